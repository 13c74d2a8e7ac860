"""Memory by which a plugin is asked for trials, in each of which it sees all accesses of a guest's kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.memory.line_areas import LineArea
from pdrgate.guests.metering.plugin import PluginMemory
from pdrgate.hosts.host import HostError

MARKS, AREAS, PLACES = 256, 32, 1 << 18
"""The most of each."""
CODE_MARK = np.dtype([("address", "<u8"), ("role", "<u8")])
AREA = np.dtype([("first", "<u8"), ("last", "<u8"), ("kind", "<u8")])

LISTED_LINE = np.dtype(
    [
        ("line", "<u8"), ("touched", "<u8"), ("written", "<u8"), ("writer", "<u8"), ("place", "<u4"), ("lines", "<u4"),
        ("kind", "<u4"), ("missed_l2", "<u4"), ("missed_last", "<u4"), ("first_ever", "<u4"),
    ]
)  # fmt: skip
"""The line's number, its bytes that the instruction touched and those that were written, a bit each, where that was,
the instruction's number, how many such lines count, their kind, and of memory trials how many of them the second and
the last level of the model did not have, though they had been touched before, and how many never had been."""
_HEEDED = 30.0


class TrialMemory(PluginMemory):
    """Common part of the memories of both such plugins: trials with numbers, marks in code, areas of lines.

    Args:
        name: of the file in /proc.
        size: bytes.
        magic: what the plugin knows it by.
    """

    def __init__(self, name: str, size: int, magic: int) -> None:
        super().__init__(name, size)
        self._asked = 0
        self._put("magic", magic)

    def set_areas(self, areas: Sequence[LineArea]) -> None:
        """Set the kinds of lines by address in trials to come. The first area that has an address decides."""
        taken = areas[:AREAS]
        self._write("area", np.array([(one.first, one.last, int(one.kind)) for one in taken], AREA))
        self._put("areas", len(taken))

    def end(self) -> None:
        """Ask for the end of the trial, from which on nothing is seen, and nothing slowed."""
        self._ask(self._asked + self._asked % 2)

    @property
    def heeded(self) -> bool:
        """Whether what was asked for last is so."""
        return self._get("heeded") == self._asked

    def wait(self, nudge: Callable[[], object], what: str) -> None:
        """Wait until what was asked for last is so, which takes a moment in which no CPU has anything to do.

        Args:
            nudge: has the guest do something, after which it has nothing to do.
            what: what could not be, in words: ``no memory trial could begin or end``.

        Raises:
            HostError: it was not so for half a minute, however busy this machine is.
        """
        deadline = time.monotonic() + _HEEDED
        while not self.heeded:
            if time.monotonic() > deadline:
                raise HostError(f"the guest was busy for {_HEEDED:g} s: {what}")
            nudge()

    def _listed(self, at: int, room: int, places: int) -> npt.NDArray[np.void]:
        """The sound lines in a table of ``room`` lines from byte ``at`` on, of ``places`` places."""
        listed = self._table(at, LISTED_LINE, room)
        sound = (listed["lines"] > 0) & (listed["place"] < places) & (listed["touched"] > 0)
        return listed[sound]

    def _begin(self, marks: Sequence[tuple[int, int]]) -> None:
        """Ask for a trial with these marks: addresses, each with the number of what begins there."""
        taken = marks[:MARKS]
        self._put("marks", len(taken))
        self._write("mark", np.array([(address, int(role)) for address, role in taken], CODE_MARK))
        self._ask(self._asked + 1 + self._asked % 2)

    def _ask(self, wanted: int) -> None:
        self._asked = wanted
        self._put("asked", wanted)

"""Memory by which a plugin is asked for trials, in each of which it sees all accesses of a guest's kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.memory.line_areas import LineArea
from pdrgate.guests.metering.memory.told_lines import TOLD_LINE
from pdrgate.guests.metering.plugin_memory import PluginMemory

MARKS, AREAS, PLACES = 256, 32, 1 << 18
"""The most of each."""
CODE_MARK = np.dtype([("address", "<u8"), ("role", "<u8")])
AREA = np.dtype([("first", "<u8"), ("last", "<u8"), ("kind", "<u8")])


class TrialMemory(PluginMemory):
    """What the memories of both such plugins have in common: trials with numbers, marks in code, areas of lines.

    Args:
        name: what the file is called in /proc.
        size: bytes.
        magic: what the plugin knows it by.
    """

    def __init__(self, name: str, size: int, magic: int) -> None:
        super().__init__(name, size)
        self._asked = 0
        self._put("magic", magic)

    def tell_areas(self, areas: Sequence[LineArea]) -> None:
        """What lines of these addresses are in trials to come; the first that has an address tells its kind."""
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

    def _told(self, at: int, room: int, places: int) -> npt.NDArray[np.void]:
        """The lines that were told one by one, in a table of so much room from a byte on, of so many places."""
        told = self._table(at, TOLD_LINE, room)
        sound = (told["lines"] > 0) & (told["place"] < places) & (told["touched"] > 0)
        return told[sound]

    def _begin(self, marks: Sequence[tuple[int, int]]) -> None:
        """Ask for a trial with these marks: addresses, each with the number of what begins there."""
        taken = marks[:MARKS]
        self._put("marks", len(taken))
        self._write("mark", np.array([(address, int(role)) for address, role in taken], CODE_MARK))
        self._ask(self._asked + 1 + self._asked % 2)

    def _ask(self, wanted: int) -> None:
        self._asked = wanted
        self._put("asked", wanted)

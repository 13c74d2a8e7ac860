"""The memory that is shared with the plugin of several CPUs: what is asked of it, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.memory.line_areas import LineKind
from pdrgate.guests.metering.memory.trial_memory import AREA, AREAS, CODE_MARK, LISTED_LINE, MARKS, PLACES, TrialMemory

FEWEST_CPUS, MOST_CPUS = 2, 4
"""CPUs of a guest that records what they share."""
_MAGIC = 0x36676E6972616873
_LISTED = 1 << 16
_HEAD = np.dtype(
    [
        ("magic", "<u8"), ("asked", "<u8"), ("cpus", "<u8"), ("turn", "<u8"), ("window", "<u8"), ("timed", "<u8"),
        ("marks", "<u8"), ("areas", "<u8"), ("mark", CODE_MARK, MARKS), ("area", AREA, AREAS), ("heeded", "<u8"),
        ("places", "<u8"), ("packets", "<u8"), ("slips", "<u8"), ("no_room", "<u8"), ("ticks", "<u8"),
        ("taken_up", "<u8"), ("by_programs", "<u8"), ("time", "<u8", MOST_CPUS), ("idle", "<u8", MOST_CPUS),
    ]
)  # fmt: skip
_PLACE = np.dtype(
    [
        ("address", "<u8"), ("kind", "<u2"), ("traits", "<u2"), ("length", "<u4"), ("ran", "<u8"), ("locked", "<u8"),
        ("shared", "<u8"), ("falsely", "<u8"), ("wrote", "<u8"), ("filled", "<u8"), ("shared_of", "<u4", len(LineKind)),
        ("writer", "<u8"),
    ]
)  # fmt: skip
_TAKEN = 1 << 12
_TAKEN_UP = np.dtype([("time", "<u8", MOST_CPUS), ("idle", "<u8", MOST_CPUS), ("cpu", "<u8")])
PROGRAM_BEGINS, STEP_BEGINS, CLOCK_TICKS = 6, 7, 8
"""Marks beside those of `Role`: a BPF program begins, perhaps once for each packet; a packet's next step begins; the
kernel's clock goes on."""


@dataclass(frozen=True, slots=True)
class SharedByPlaces:
    """Counts of a trial while all CPUs handled packets."""

    cpus: int
    packets: int
    slips: int
    """Turns that a CPU took, for the one that had it did not end it."""
    no_room: int
    """Touches that there was no room for."""
    places: npt.NDArray[np.void]
    """Instructions and blocks of code, each with what is counted."""
    listed: npt.NDArray[np.void]
    """The shared lines, `LISTED_LINE`."""


class SharingMeter(TrialMemory):
    """The memory of one guest's plugin, which dies with it.

    Args:
        cpus: how many the guest has, of `FEWEST_CPUS` to `MOST_CPUS`.
    """

    head: ClassVar[np.dtype[np.void]] = _HEAD

    def __init__(self, cpus: int) -> None:
        size = _HEAD.itemsize + PLACES * _PLACE.itemsize + _LISTED * LISTED_LINE.itemsize + _TAKEN * _TAKEN_UP.itemsize
        super().__init__("pdrgate-sharing-meter", size, _MAGIC)
        self.cpus = cpus
        self._put("cpus", cpus)

    def begin(self, marks: Sequence[tuple[int, int]], turn: int, window: int) -> None:
        """Ask for a trial; it is `heeded` when all CPUs had nothing to do for a moment.

        Args:
            turn: instructions that a CPU executes before it is the next one's turn.
            window: instructions of all CPUs, after which another takes a line from nobody.
        """
        self._put("turn", turn)
        self._put("window", window)
        self._put("timed", 0)
        self._begin(marks)

    def begin_timed(self, marks: Sequence[tuple[int, int]], turn: int) -> None:
        """Ask for a trial that records only the times at which the CPUs take packets up; else as `begin`."""
        self._put("turn", turn)
        self._put("timed", 1)
        self._begin(marks)

    def taken(self) -> npt.NDArray[np.void]:
        """The packets that a timed trial's CPUs took up, once its end is `heeded`.

        Each has its ``cpu``, and the ``time`` of all CPUs by then, of which they were ``idle``; both in instructions.

        Raises:
            ValueError: the memory names a CPU that the guest does not have.
        """
        at = _HEAD.itemsize + PLACES * _PLACE.itemsize + _LISTED * LISTED_LINE.itemsize
        found = self._table(at, _TAKEN_UP, min(self._get("taken_up"), _TAKEN))
        if np.any(found["cpu"] >= self.cpus):
            raise ValueError(f"the memory of the plugin names CPUs that a guest of {self.cpus} does not have")
        return found

    @property
    def by_programs(self) -> int:
        """Instructions that programs executed in it."""
        return self._get("by_programs")

    def shared(self) -> SharedByPlaces:
        """The trial's counts, once its end is `heeded`."""
        places = self._table(_HEAD.itemsize, _PLACE, min(self._get("places"), PLACES))
        listed = self._listed(_HEAD.itemsize + PLACES * _PLACE.itemsize, _LISTED, len(places))
        return SharedByPlaces(self.cpus, self._get("packets"), self._get("slips"), self._get("no_room"), places, listed)

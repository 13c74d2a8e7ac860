"""The memory that is shared with the plugin of memory trials: what is asked of it, and what it counts at each place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.memory.cache_levels import CacheLevels
from pdrgate.guests.metering.memory.line_areas import NAMED_KINDS, LineKind
from pdrgate.guests.metering.memory.trial_memory import AREA, AREAS, CODE_MARK, LISTED_LINE, MARKS, PLACES, TrialMemory

_MAGIC = 0x386C616972746D65
_LISTED, _LEVELS = 1 << 18, 4
_EVENTS = (
    "executed", "loaded", "stored", "new_line", "missed_l1", "missed_l2", "missed_last", "first_ever",
    "stored_locked", "filled_page",
)  # fmt: skip
_LEVEL = np.dtype([("sets", "<u8"), ("ways", "<u8")])
_HEAD = np.dtype(
    [
        ("magic", "<u8"), ("asked", "<u8"), ("warm", "<u8"), ("marks", "<u8"), ("areas", "<u8"),
        ("level", _LEVEL, _LEVELS), ("mark", CODE_MARK, MARKS), ("area", AREA, AREAS),
        ("listed_kinds", "<u8"), ("steps_wanted", "<u8"),
        ("heeded", "<u8"), ("places", "<u8"), ("packets", "<u8"),
        ("windows", "<u8"), ("dropped", "<u8"), ("no_room", "<u8"), ("steps", "<u8"),
    ]
)  # fmt: skip
_PLACE = np.dtype(
    [("address", "<u8"), ("kind", "<u2"), ("traits", "<u2"), ("length", "<u4")]
    + [(event, "<u8") for event in _EVENTS]
    + [("by_program", "<u8"), ("regions", "<u8"), ("lines_of", "<u4", len(LineKind))]
)
_CODE = np.dtype([("size", "u1"), ("bytes", "u1", 15)])
TRACED_STEPS, STEP_SHIFT = 1 << 21, 18
"""The most steps of a trace; above this bit of `what` is what happened at a place, and below it is the place."""
_STEP = np.dtype([("address", "<u8"), ("what", "<u8")])
BLOCK = 2
"""The kind of a place that is a block of code; others are instructions."""
GOES_INDIRECTLY, RETURNS = 2, 4
"""Traits of a place."""
REGION = 256 * 1024
"""Bytes of a region. The number of regions whose lines a place touched for the first time shows how much it reads."""


_TRACED = _HEAD.itemsize + PLACES * _PLACE.itemsize + _LISTED * LISTED_LINE.itemsize
"""Offset of the code of places, behind which the trace lies."""


class Role(IntEnum):
    """Meaning of a mark in the kernel's code."""

    PACKET = 1
    """Begin of the next packet, at which a window ends."""
    INTERRUPT = 2
    """Begin of an interrupt that no packet has made, whose work is not seen."""
    RETURN = 3
    """End of such an interrupt, behind this code."""
    FOREIGN = 4
    """Begin of other work that the kernel does by itself, which is not seen until it looks for packets."""
    POLL = 5
    """Point at which the kernel looks for packets."""
    READ = 9
    """Call by which a program takes a datagram from a socket."""
    SEND = 10
    """Call by which a program sends a datagram."""


@dataclass(frozen=True, slots=True)
class Touched:
    """Counts of a trial, in the windows that count."""

    packets: int
    """Packets that were taken up, in whatever window."""
    windows: int
    dropped: int
    """Windows that do not count, for the CPU had nothing to do meanwhile."""
    no_room: int
    """Touches that there was no room for."""
    places: npt.NDArray[np.void]
    """Instructions and blocks of code, each with a count of each event."""
    listed: npt.NDArray[np.void]
    """The lines that may have names, `LISTED_LINE`."""


@dataclass(frozen=True, slots=True)
class Traced:
    """What windows executed and touched, one step after the other."""

    code: npt.NDArray[np.void]
    """Code of each place that is an instruction."""
    steps: npt.NDArray[np.void]


class MemoryMeter(TrialMemory):
    """The memory of one guest's plugin, which dies with it."""

    head: ClassVar[np.dtype[np.void]] = _HEAD

    def __init__(self) -> None:
        size = _TRACED + PLACES * _CODE.itemsize + TRACED_STEPS * _STEP.itemsize
        super().__init__("pdrgate-memory-meter", size, _MAGIC)
        self._put("listed_kinds", sum(1 << kind for kind in NAMED_KINDS))

    def begin(self, levels: CacheLevels, marks: Sequence[tuple[int, Role]], warm: int) -> None:
        """Ask for a trial; it is `heeded` when the guest had nothing to do for a moment.

        Args:
            warm: windows that only fill the model.
        """
        self._put("warm", warm)
        self._write("level", np.array([(one.sets, one.ways) for one in levels.each], _LEVEL))
        self._begin(marks)

    def touched(self) -> Touched:
        """The trial's counts, once its end is `heeded`."""
        places = self._table(_HEAD.itemsize, _PLACE, min(self._get("places"), PLACES))
        listed = self._listed(_HEAD.itemsize + PLACES * _PLACE.itemsize, _LISTED, len(places))
        packets, windows, dropped, no_room = map(self._get, ("packets", "windows", "dropped", "no_room"))
        return Touched(packets, windows, dropped, no_room, places, listed)

    def trace(self, steps: int) -> None:
        """Have trials to come make a trace of so many steps at most."""
        self._put("steps_wanted", min(steps, TRACED_STEPS))

    def traced(self) -> Traced:
        """The trial's trace, once its end is `heeded`."""
        code = self._table(_TRACED, _CODE, min(self._get("places"), PLACES))
        steps = self._table(_TRACED + PLACES * _CODE.itemsize, _STEP, min(self._get("steps"), TRACED_STEPS))
        return Traced(code, steps)

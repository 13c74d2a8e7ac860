"""The memory that is shared with the plugin of memory trials: what is asked of it, and what it counts at each place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.memory.cache_levels import CacheLevels
from pdrgate.guests.metering.memory.line_areas import LineArea, LineKind
from pdrgate.guests.metering.plugin_memory import PluginMemory

_MAGIC = 0x336C616972746D65
_PLACES, _PAGED, _MARKS, _LEVELS, _AREAS = 1 << 18, 1 << 18, 256, 4, 32
_EVENTS = ("executed", "loaded", "stored", "new_line", "missed_l1", "missed_l2", "missed_last", "first_ever")
_MARK = np.dtype([("address", "<u8"), ("role", "<u8")])
_AREA = np.dtype([("first", "<u8"), ("last", "<u8"), ("kind", "<u8")])
_LEVEL = np.dtype([("sets", "<u8"), ("ways", "<u8")])
_HEAD = np.dtype(
    [
        ("magic", "<u8"), ("asked", "<u8"), ("warm", "<u8"), ("marks", "<u8"), ("areas", "<u8"),
        ("level", _LEVEL, _LEVELS), ("mark", _MARK, _MARKS), ("area", _AREA, _AREAS),
        ("paged_kind", "<u8"),
        ("heeded", "<u8"), ("places", "<u8"), ("windows", "<u8"), ("dropped", "<u8"), ("untold", "<u8"),
        ("unpaged", "<u8"), ("unused", "<u8"),
    ]
)  # fmt: skip
_PLACE = np.dtype(
    [("address", "<u8"), ("kind", "<u2"), ("traits", "<u2"), ("length", "<u4")]
    + [(event, "<u8") for event in _EVENTS]
    + [("regions", "<u8"), ("lines_of", "<u4", len(LineKind))]
)
_PAGED_LINES = np.dtype([("page", "<u8"), ("place", "<u4"), ("lines", "<u4")])
BLOCK = 2
"""The kind of a place that is a block of code; others are instructions."""
ATOMIC, GOES_INDIRECTLY, RETURNS = 1, 2, 4
"""Traits of a place."""
REGION = 256 * 1024
"""Bytes of a region: of how many a place touched lines for the first time tells how large is what it reads."""


class Role(IntEnum):
    """What the kernel does where a mark is."""

    PACKET = 1
    """It takes the next packet up: a window ends."""
    INTERRUPT = 2
    """An interrupt begins that no packet has made, and what it does is not seen;"""
    RETURN = 3
    """it ends behind this code."""
    FOREIGN = 4
    """It begins something else by itself, which is not seen until it looks for packets;"""
    POLL = 5
    """it does."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What a trial counted, in the windows that count."""

    windows: int
    dropped: int
    """Windows that do not count, for the CPU had nothing to do meanwhile."""
    untold: int
    """Touches that there was no room for."""
    places: npt.NDArray[np.void]
    """Instructions and blocks of code, each with a count of each event."""
    paged: npt.NDArray[np.void]
    """Lines of the direct map by the number of their page and that of the place that touched them."""


class MemoryMeter(PluginMemory):
    """The memory of one guest's plugin, which dies with it."""

    head: ClassVar[np.dtype[np.void]] = _HEAD

    def __init__(self) -> None:
        super().__init__(
            "pdrgate-memory-meter", _HEAD.itemsize + _PLACES * _PLACE.itemsize + _PAGED * _PAGED_LINES.itemsize
        )
        self._asked = 0
        self._put("magic", _MAGIC)
        self._put("paged_kind", int(LineKind.DIRECT))

    def begin(self, levels: CacheLevels, marks: Sequence[tuple[int, Role]], warm: int) -> None:
        """Ask for a trial; it is `heeded` when the guest had nothing to do for a moment.

        Args:
            warm: windows that only fill the model.
        """
        taken = marks[:_MARKS]
        self._put("warm", warm)
        self._put("marks", len(taken))
        self._write("level", np.array([(one.sets, one.ways) for one in levels.each], _LEVEL))
        self._write("mark", np.array([(address, int(role)) for address, role in taken], _MARK))
        self._ask(self._asked + 1 + self._asked % 2)

    def tell_areas(self, areas: Sequence[LineArea]) -> None:
        """What lines of these addresses are in trials to come; the first that has an address tells its kind."""
        taken = areas[:_AREAS]
        self._write("area", np.array([(one.first, one.last, int(one.kind)) for one in taken], _AREA))
        self._put("areas", len(taken))

    def end(self) -> None:
        """Ask for the end of the trial, from which on nothing is seen, and nothing slowed."""
        self._ask(self._asked + self._asked % 2)

    @property
    def heeded(self) -> bool:
        """Whether what was asked for last is so."""
        return self._get("heeded") == self._asked

    def touched(self) -> Touched:
        """What the trial counted, once its end is `heeded`."""
        places = self._table(_HEAD.itemsize, _PLACE, min(self._get("places"), _PLACES))
        paged = self._table(_HEAD.itemsize + _PLACES * _PLACE.itemsize, _PAGED_LINES, _PAGED)
        sound = (paged["lines"] > 0) & (paged["place"] < len(places))
        return Touched(self._get("windows"), self._get("dropped"), self._get("untold"), places, paged[sound])

    def _ask(self, wanted: int) -> None:
        self._asked = wanted
        self._put("asked", wanted)

"""The memory that is shared with the plugin of two CPUs: what is asked of it, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.plugin_memory import PluginMemory

CPUS = 2
_MAGIC = 0x31676E6972616873
_PLACES, _MARKS = 1 << 18, 256
_MARK = np.dtype([("address", "<u8"), ("role", "<u8")])
_HEAD = np.dtype(
    [
        ("magic", "<u8"), ("asked", "<u8"), ("turn", "<u8"), ("window", "<u8"), ("marks", "<u8"),
        ("mark", _MARK, _MARKS), ("heeded", "<u8"), ("places", "<u8"), ("packets", "<u8"),
        ("slips", "<u8"), ("untold", "<u8"), ("unused", "<u8", 3),
    ]
)  # fmt: skip
_PLACE = np.dtype(
    [
        ("address", "<u8"), ("kind", "<u2"), ("traits", "<u2"), ("length", "<u4"), ("ran", "<u8"), ("locked", "<u8"),
        ("shared", "<u8"), ("falsely", "<u8"),
    ]
)  # fmt: skip
PROGRAM_BEGINS = 6
"""What a mark is beside a `Role`: a BPF program begins, perhaps once for each packet."""


@dataclass(frozen=True, slots=True)
class SharedByPlaces:
    """What a trial counted while both CPUs handled packets."""

    packets: int
    slips: int
    """Turns that a CPU took, for the other one did not end its own."""
    untold: int
    """What there was no room for."""
    places: npt.NDArray[np.void]
    """Instructions and blocks of code, each with what is counted."""


class SharingMeter(PluginMemory):
    """The memory of one guest's plugin, which dies with it."""

    head: ClassVar[np.dtype[np.void]] = _HEAD

    def __init__(self) -> None:
        super().__init__("pdrgate-sharing-meter", _HEAD.itemsize + _PLACES * _PLACE.itemsize)
        self._asked = 0
        self._put("magic", _MAGIC)

    def begin(self, marks: Sequence[tuple[int, int]], turn: int, window: int) -> None:
        """Ask for a trial; it is `heeded` when both CPUs had nothing to do for a moment.

        Args:
            turn: instructions that a CPU executes before it is the other's turn.
            window: instructions of both CPUs, after which the other takes a line from nobody.
        """
        known = marks[:_MARKS]
        self._put("turn", turn)
        self._put("window", window)
        self._put("marks", len(known))
        self._write("mark", np.array(known, _MARK))
        self._ask(self._asked + 1 + self._asked % 2)

    def end(self) -> None:
        """Ask for the end of the trial, from which on nothing is seen, and nothing slowed."""
        self._ask(self._asked + self._asked % 2)

    @property
    def heeded(self) -> bool:
        """Whether what was asked for last is so."""
        return self._get("heeded") == self._asked

    def shared(self) -> SharedByPlaces:
        """What the trial counted, once its end is `heeded`."""
        places = self._table(_HEAD.itemsize, _PLACE, min(self._get("places"), _PLACES))
        return SharedByPlaces(self._get("packets"), self._get("slips"), self._get("untold"), places)

    def _ask(self, wanted: int) -> None:
        self._asked = wanted
        self._put("asked", wanted)

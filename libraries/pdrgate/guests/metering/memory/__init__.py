"""Trials in which each access to memory of a guest's kernel is seen: a plugin for QEMU, and its memory's reader."""

from pdrgate.guests.metering.memory.cache_levels import SERVER, CacheLevel, CacheLevels
from pdrgate.guests.metering.memory.line_areas import read_areas
from pdrgate.guests.metering.memory.memory_meter import MemoryMeter
from pdrgate.guests.metering.memory.memory_observer import MemoryObserver
from pdrgate.guests.metering.memory.naming.line_names import GuestLineNames
from pdrgate.guests.metering.memory.naming.variable_values import variable_values

__all__ = [
    "SERVER", "CacheLevel", "CacheLevels", "GuestLineNames", "MemoryMeter", "MemoryObserver", "read_areas",
    "variable_values",
]  # fmt: skip

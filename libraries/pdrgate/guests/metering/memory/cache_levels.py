"""The caches that a memory trial models."""

from __future__ import annotations

from dataclasses import dataclass

LINE = 64
"""Bytes of a cache line."""
_KIB = 1024


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """A cache of sets of lines; of a set the line goes first that was used longest ago."""

    size: int
    """Bytes."""
    ways: int
    """Lines of a set."""

    @property
    def sets(self) -> int:
        """Number of its sets."""
        return max(1, self.size // (LINE * self.ways))


@dataclass(frozen=True, slots=True)
class CacheLevels:
    """The caches of one CPU."""

    data: CacheLevel = CacheLevel(48 * _KIB, 12)
    """The first level, of data."""
    code: CacheLevel = CacheLevel(32 * _KIB, 8)
    """The first level, of code."""
    second: CacheLevel = CacheLevel(2048 * _KIB, 16)
    last: CacheLevel = CacheLevel(32768 * _KIB, 16)

    def __str__(self) -> str:
        """``48 KiB/12 ways, ...``."""
        return ", ".join(f"{one.size // _KIB} KiB/{one.ways} ways" for one in self.each)

    @property
    def each(self) -> tuple[CacheLevel, ...]:
        """All four, in the plugin's order."""
        return self.data, self.code, self.second, self.last


SERVER = CacheLevels()
"""A server's of today."""

"""The faults on a whole console, as tests have one in a text."""

from __future__ import annotations

from pdrgate.crashes.faults import Crash, FaultReader


def find_crashes(console: str) -> tuple[Crash, ...]:
    """All of them, in the order they were told."""
    reader = FaultReader()
    reader.read(console)
    reader.end()
    return reader.faults

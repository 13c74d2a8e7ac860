"""What the rest of pdrgate knows of a traffic generator."""

from __future__ import annotations

from typing import Protocol

from pdrgate.traffic.frames import Frames
from pdrgate.trial import Trial


class Generator(Protocol):
    """Drives traffic through the SUT and counts what comes back. Open loop: what is lost is never sent again."""

    def describe(self) -> dict[str, str]:
        """Name, version and engine, and why this engine: part of the fingerprint of a result."""

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        """Offer ``load`` packets/s (over all directions) for ``duration`` seconds, drain, and return the counts.

        Raises:
            UsageError: the load or the duration is not positive.
            GeneratorError: the generator failed; no trial came of it.
        """

    def close(self) -> None:
        """Stop the generator and free what it holds; may be called twice."""

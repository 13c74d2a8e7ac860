"""Protocol of TCP traffic that ends at the SUT."""

from __future__ import annotations

from typing import Protocol

from pdrgate.record.trial import Trial


class ClosedLoop(Protocol):
    """Mover of bytes between a program at the SUT and one at the station that it faces.

    Lost bytes are sent again, and no more are sent than were acknowledged: a load cannot be asked for.
    """

    def describe(self) -> dict[str, str]:
        """Identity of the generator: ``name``, ``engine`` and further keys, as `Generator.describe`."""

    def transfer(self, window: int, duration: float, rate: float = 0.0) -> Trial:
        """One trial of about ``duration`` seconds, whose receivers advertise at most ``window`` bytes a stream.

        Args:
            rate: bits/s that the sender holds itself back to; 0: as fast as it goes.

        Raises:
            TestbedError: no transfer came of it.
        """

    def close(self) -> None:
        """Stop the programs; may be called twice."""

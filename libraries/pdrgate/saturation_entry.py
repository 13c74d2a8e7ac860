"""The three readings of how a load-loss curve enters saturation; see `pdrgate.stability.throughput_increase`."""

from __future__ import annotations

import math
from enum import StrEnum

_ENTRY_FACTOR = 3.0


class TirReading(StrEnum):
    """How the entry into saturation is tested."""

    STRICT = "strict"
    TOLERANT = "tolerant"
    PUBLISHED = "published"

    def entry_bound(self, eta: float) -> float:
        """The TIR that the potential saturation point must stay below."""
        return {TirReading.STRICT: eta, TirReading.TOLERANT: _ENTRY_FACTOR * eta, TirReading.PUBLISHED: math.inf}[self]

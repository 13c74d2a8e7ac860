"""Trials of a SUT behind a buffer, by arithmetic: what it holds when sending ends comes back, and is in no rate."""

from __future__ import annotations

from collections.abc import Callable

from pdrgate.record.trial import LOOKS, Trial


def buffered(
    capacity: float, buffer: int, *, flight: float = 0.0, looks: bool = True
) -> Callable[[float, float], Trial]:
    """Measures a SUT that forwards ``capacity`` packets/s.

    Args:
        flight: seconds that each packet takes besides.
        looks: whether the generator looks while it sends.
    """

    def measure(load: float, duration: float) -> Trial:
        offered = round(load * duration)
        excess = offered - min(offered, round(capacity * duration))
        queued = min(buffer, excess)
        flying = round(min(load, capacity) * flight)
        return Trial(
            load, duration, offered, offered - excess + queued, drained=queued + flying, sending_time=duration,
            under_way=tuple(excess * look // LOOKS + flying for look in range(1, LOOKS + 1)) if looks else (),
        )  # fmt: skip

    return measure

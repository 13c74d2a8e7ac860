"""Can the throughput of repeated transfers be told by one number? The checks over time, as they are made of a curve."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.stability.checks import (
    Bounds,
    Check,
    check_autocorrelation,
    check_spread,
    check_trend,
    check_two_modes,
)
from pdrgate.stability.drift import Repeats


def transfer_checks(
    quantity: str, unit: str, values: Sequence[float], bounds: Bounds | None = None
) -> tuple[Check, ...]:
    """The checks of one series of repeats in measured order, such as throughputs.

    Args:
        quantity: what the values are, for people.
        unit: theirs.
    """
    bounds = bounds or Bounds()
    series = Repeats.of(quantity, None, tuple(values), bounds.each, unit)
    return (
        check_trend((series,), bounds),
        check_autocorrelation((series,), bounds),
        check_two_modes((series,), bounds),
        check_spread((series.scatter,) if series.scatter is not None else (), bounds),
    )

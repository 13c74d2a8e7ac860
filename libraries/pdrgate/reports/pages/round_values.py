"""Values that stand at the axis of a chart."""

from __future__ import annotations

import math
from collections.abc import Iterator


def round_values(low: float, high: float, parts: int) -> Iterator[float]:
    """Three to six round values from ``low`` to ``high``, at steps of a ``parts``-th of that or somewhat more."""
    rough = (high - low) / parts
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return (number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1))

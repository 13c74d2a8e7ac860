"""Effect of the order in which the two values of a pair are measured: A B, then B A."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pdrgate.stats.robust import winsorised

FEWEST_IN_ORDER = 6
"""Fewest values that distinguish an offset of every second value from chance."""
_BY_CHANCE = 0.001
"""Samples of independent values in which every second one seems to be off."""


def order_effect(values: Sequence[float]) -> float:
    """The amount by which every first value lies above the mean and every second one below it; 0 if chance explains it.

    Of values that alternate by d around a level the two halves, first ones and second ones, are two samples: Student's
    t of their difference, at a level of one of a thousand. Lone values that lie apart are pulled in before.
    """
    count = len(values)
    if count < FEWEST_IN_ORDER or count % 2:
        return 0.0
    pulled = winsorised(values)
    halves = pulled[::2], pulled[1::2]
    centres = [math.fsum(own) / len(own) for own in halves]
    effect = (centres[0] - centres[1]) / 2
    left = math.fsum((value - centre) ** 2 for own, centre in zip(halves, centres, strict=True) for value in own)
    if effect == 0 or left == 0:
        return effect
    from scipy.special import stdtr  # alone it costs a third of what scipy.stats costs to import

    t = abs(effect) / math.sqrt(left / (count - 2) / count)
    return effect if 2 * stdtr(count - 2, -t) <= _BY_CHANCE else 0.0


def without_order(values: Sequence[float]) -> tuple[float, ...]:
    """The values without their `order_effect`; of an even number the mean stays what it is.

    Where there is one it has taken a degree of freedom, so what is left deviates from the mean by a little more.
    """
    effect = order_effect(values)
    if effect == 0:
        return tuple(values)
    centre = math.fsum(values) / len(values)
    widened = math.sqrt((len(values) - 1) / (len(values) - 2))
    return tuple(
        centre + widened * (value - centre - (-effect if number % 2 else effect)) for number, value in enumerate(values)
    )

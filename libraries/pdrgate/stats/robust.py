"""Means that a lone dip does not move."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

FEWEST_WITH_DIPS = 8
"""Fewest values among which outlying ones can be found."""
_ONE_OF = 6
"""One of so many values may lie apart; of 12, two. More are no lone dips, and belong in the deviation."""
_REACH = 3.0
"""Deviations from the median that a value may count for."""
_MAD_OF_NORMAL = 0.674490
"""Median absolute deviation of normal values, in deviations."""
_DIP, _LEAST_DIP = 6.0, 0.05
"""Depth of a dip below the median in deviations, and at least in logs.

Among 16 normal values one lies that deep in some of a thousand samples, however much they deviate.
"""


def deviation_about_median(values: Sequence[float]) -> tuple[float, float]:
    """The median, and the deviation of normal values with the same median absolute one: what lies apart has no say."""
    centre = statistics.median(values)
    return centre, statistics.median(abs(value - centre) for value in values) / _MAD_OF_NORMAL


def winsorised(values: Sequence[float]) -> tuple[float, ...]:
    """The values, with the few pulled in that lie further than three deviations from the median.

    The deviation is that of normal values with the same median absolute one, so that what lies apart has no say in it
    (Tukey and McLaughlin, Sankhya A 25, 1963, with bounds instead of counts). Of normal values 3 % are pulled in where
    there are 8, 0.7 % where there are 48. Fewer than `FEWEST_WITH_DIPS` values, those of which half are equal, and
    those of which more than one of six lies apart, stay as they are.
    """
    found = tuple(values)
    if len(found) < FEWEST_WITH_DIPS:
        return found
    centre, deviation = deviation_about_median(found)
    reach = _REACH * deviation
    if reach == 0 or sum(abs(value - centre) > reach for value in found) > len(found) // _ONE_OF:
        return found
    return tuple(min(max(value, centre - reach), centre + reach) for value in found)


def dips(values: Sequence[float]) -> tuple[bool, ...]:
    """Whether each value lies far below the others: six deviations below the median, and at least 0.05.

    The values are logs, so that 0.05 is 5 %. The deviation is computed from the median absolute one, as for
    `winsorised`. Among fewer than `FEWEST_WITH_DIPS` values no dip is found.
    """
    if len(values) < FEWEST_WITH_DIPS:
        return (False,) * len(values)
    centre, deviation = deviation_about_median(values)
    reach = max(_DIP * deviation, _LEAST_DIP)
    return tuple(value < centre - reach for value in values)

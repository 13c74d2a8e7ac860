"""One mean of several groups of values, such as the repeats of several boots."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pdrgate.stats.intervals import mean


def pooled_mean(values: Sequence[float], errors: Sequence[float]) -> float:
    """The mean over groups that deviate among themselves, each known to an error of its own.

    Each group weighs 1 / (T² + error²), T² being the variance between groups by the method of moments (DerSimonian and
    Laird, Meta-analysis in clinical trials, Controlled Clinical Trials 7, 1986). It is the mean to which the groups'
    own means shrink in an empirical Bayes estimate: where groups deviate by more than their errors they weigh alike,
    else by how well they are known, and a boot that was measured badly hardly counts.

    Args:
        values: the groups' means.
        errors: their standard errors, not negative; 0 where nothing is known of one, or it is a single exact value.

    Raises:
        ValueError: no values, or not as many errors.
    """
    if not values or len(values) != len(errors):
        raise ValueError(f"{len(values)} values with {len(errors)} errors cannot be pooled")
    if not all(error > 0 for error in errors):
        return mean(values)
    precise = [error**-2 for error in errors]
    total = math.fsum(precise)
    centre = math.fsum(weight * value for weight, value in zip(precise, values, strict=True)) / total
    heterogeneity = math.fsum(weight * (value - centre) ** 2 for weight, value in zip(precise, values, strict=True))
    spread = total - math.fsum(weight**2 for weight in precise) / total
    between = max(0.0, (heterogeneity - (len(values) - 1)) / spread) if spread > 0 else 0.0
    weights = [1 / (between + error**2) for error in errors]
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=True)) / math.fsum(weights)

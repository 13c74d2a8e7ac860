"""Several groups of values are pooled to one deviation, or to one mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

Weighed = tuple[float, float]
"""A value, and its weight in (0, 1]."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A standard deviation, in the values' unit, and how well it is known."""

    value: float
    freedom: float
    """Degrees of freedom; of values that weigh less than one, less than they number."""

    def with_values(self, values: Sequence[float]) -> Deviation:
        """The deviation pooled with these values of one group."""
        centre = fmean(values)
        freedom = self.freedom + len(values) - 1
        squares = self.freedom * self.value**2 + math.fsum((value - centre) ** 2 for value in values)
        return Deviation(math.sqrt(squares / freedom), freedom)

    def at_least(self, confidence: float = 0.95) -> float:
        """Lower confidence bound of the deviation, for normal values (by chi-square).

        Raises:
            ValueError: unless 0 < confidence < 1.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"confidence is {confidence!r}: it must lie between 0 and 1")
        from scipy.special import chdtri  # alone it costs a third of what scipy.stats costs to import

        return self.value * math.sqrt(self.freedom / float(chdtri(self.freedom, 1 - confidence)))


def pooled_deviation(groups: Iterable[Sequence[Weighed]]) -> Deviation | None:
    """The deviation of values around the mean of their own group; None if no group has two.

    The pooled variance, sum of squares over degrees of freedom, each group having sum(w) - sum(w^2) / sum(w) of these:
    n - 1 where all n weigh one, and w (n - 1) where all weigh w, so that what is known is forgotten as weights fall.
    """
    squares = freedom = 0.0
    for group in groups:
        total = math.fsum(weight for _, weight in group)
        if len(group) < 2 or total <= 0:
            continue
        centre = math.fsum(value * weight for value, weight in group) / total
        squares += math.fsum(weight * (value - centre) ** 2 for value, weight in group)
        freedom += max(0.0, total - math.fsum(weight**2 for _, weight in group) / total)
    return Deviation(math.sqrt(squares / freedom), freedom) if freedom > 0 else None


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
        return fmean(values)
    precise = [error**-2 for error in errors]
    total = math.fsum(precise)
    centre = math.fsum(weight * value for weight, value in zip(precise, values, strict=True)) / total
    heterogeneity = math.fsum(weight * (value - centre) ** 2 for weight, value in zip(precise, values, strict=True))
    spread = total - math.fsum(weight**2 for weight in precise) / total
    between = max(0.0, (heterogeneity - (len(values) - 1)) / spread) if spread > 0 else 0.0
    weights = [1 / (between + error**2) for error in errors]
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=True)) / math.fsum(weights)

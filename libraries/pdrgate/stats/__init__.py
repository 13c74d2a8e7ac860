"""Floor 1: pure functions on numbers. No I/O, no trial, no packet."""

from pdrgate.stats.intervals import (
    Change,
    Interval,
    change_interval,
    change_interval_of_boots,
    delta_ucl,
    log_ratios,
    mean,
    paired_change_interval,
    sample_deviation,
    t_interval,
    t_quantile,
)
from pdrgate.stats.modes import Modes, critical_separation, two_modes
from pdrgate.stats.pooled import Deviation, pooled_deviation
from pdrgate.stats.ranks import (
    Autocorrelation,
    Trend,
    lag1_autocorrelation,
    monotone_trend,
    wander,
)
from pdrgate.stats.robust import dips, winsorised
from pdrgate.stats.sequential import log_likelihood_ratio, resolvable

__all__ = [
    "Autocorrelation",
    "Change",
    "Deviation",
    "Interval",
    "Modes",
    "Trend",
    "change_interval",
    "change_interval_of_boots",
    "critical_separation",
    "delta_ucl",
    "dips",
    "lag1_autocorrelation",
    "log_likelihood_ratio",
    "log_ratios",
    "mean",
    "monotone_trend",
    "paired_change_interval",
    "pooled_deviation",
    "resolvable",
    "sample_deviation",
    "t_interval",
    "t_quantile",
    "two_modes",
    "wander",
    "winsorised",
]

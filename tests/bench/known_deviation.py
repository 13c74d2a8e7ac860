"""What would it save a comparison to know from its testbed's history what pairs deviate by, and what would it cost?

    .venv/bin/python tests/bench/known_deviation.py [--comparisons 5000] [--tolerance 0.02]

By simulation of the rule alone, all comparisons at once; no packet is sent. The history knows the deviation by 7
degrees of freedom, those of 8 pairs, and is right, or half or twice of what it is today. Four rules:

- present: the deviation is told by the present pairs alone, from the fourth pair on (the eighth where boots scatter).
- prior: the history is a prior of the variance (inverse gamma; Smyth, Linear models and empirical Bayes methods, Stat.
  Appl. Genet. Mol. Biol. 3, 2004): its sum of squares and its degrees of freedom are added to those of the pairs.
- prior, 2 pairs: the same, which may end after two pairs.
- doubled, 2 pairs: the present rule, but two pairs may end it where twice the history's deviation lets them.

In all three a history is dropped where the pairs deviate by surely more (F-test at 5 %). In the last table boots flip
by 10 %: shares are those of the rule, before the checks on levels, which need more than a few boots.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import numpy.typing as npt
from scipy.special import fdtri

from pdrgate.replication import PairsRule

FREEDOM = 7.0
RULE = PairsRule()
ODDS = math.log(2 * RULE.regression_odds), math.log(RULE.pass_odds)
"""Of two measurands."""
RULES = ("present", "prior", "prior, 2 pairs", "doubled, 2 pairs")

Values = npt.NDArray[np.float64]


def _log_odds(counts: Values, means: Values, squares: Values, distance: float, prior: Values | float) -> Values:
    """Of a build that is slower against an unchanged one; see `log_likelihood_ratio`."""
    freedom = FREEDOM * np.asarray(np.asarray(prior) > 0)
    known = squares + freedom * np.asarray(prior) ** 2
    low = known + counts * np.maximum(means + distance, 0) ** 2
    high = known + counts * np.minimum(means, 0) ** 2
    return (counts + freedom) / 2 * np.log(high / low)


def _deviations(values: Values, counts: Values) -> Values:
    places = counts.astype(int) - 1
    sums, squares = np.cumsum(values, axis=1)[:, places], np.cumsum(values**2, axis=1)[:, places]
    return np.sqrt(np.maximum(squares - sums**2 / counts, 0) / (counts - 1))


def compared(
    rule: str, deviation: float, change: float, known: float, comparisons: int, tolerance: float, flips: str = ""
) -> tuple[float, float, float]:
    """Pairs (median), and the shares of PASS and REGRESSION in percent.

    Args:
        change: log of the candidate's speed.
        known: what the history says of the deviation, as a part of what it is.
        flips: ``both`` builds or the ``candidate`` alone, by 10 %.
    """
    source = np.random.default_rng(1)
    baseline = source.normal(0, deviation / math.sqrt(2), (comparisons, RULE.most))
    candidate = source.normal(change, deviation / math.sqrt(2), (comparisons, RULE.most))
    if flips:
        candidate += np.where(source.random(candidate.shape) < 0.5, math.log(0.9), 0)
    if flips == "both":
        baseline += np.where(source.random(baseline.shape) < 0.5, math.log(0.9), 0)
    history = deviation * known * np.sqrt(source.chisquare(FREEDOM, comparisons) / FREEDOM)[:, None]
    counts = np.arange(2.0, RULE.most + 1, 2)
    places = counts.astype(int) - 1
    ratios = candidate - baseline
    means = np.cumsum(ratios, axis=1)[:, places] / counts
    squares = np.cumsum(ratios**2, axis=1)[:, places] - counts * means**2
    scattered = np.maximum(_deviations(baseline, counts), _deviations(candidate, counts)) > tolerance / 2
    surely_more = squares / (counts - 1) > fdtri(counts - 1, FREEDOM, 0.95) * history**2
    distance = -2 * math.log1p(-tolerance)
    odds = _log_odds(counts, means, squares, distance, 0.0)
    may_end = counts >= np.where(scattered, RULE.fewest_scattered, RULE.fewest)
    if rule == "doubled, 2 pairs":
        odds = np.where(counts < RULE.fewest, _log_odds(counts, means, squares, distance, 2 * history), odds)
        may_end |= (counts < RULE.fewest) & ~surely_more & ~scattered
    elif rule != "present":
        odds = np.where(surely_more, odds, _log_odds(counts, means, squares, distance, history))
        if rule == "prior, 2 pairs":
            may_end |= (counts < RULE.fewest) & ~surely_more & ~scattered
    ended = may_end & ((odds >= ODDS[0]) | (odds <= -ODDS[1]))
    ended[:, -1] = True
    at = ended.argmax(axis=1)
    last = odds[np.arange(comparisons), at]
    return (
        float(np.median(counts[at])), 100 * float(np.mean(last <= -ODDS[1])), 100 * float(np.mean(last >= ODDS[0]))
    )  # fmt: skip


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=5000)
    parser.add_argument("--tolerance", type=float, default=0.02)
    options = parser.parse_args()
    slower = 2 * math.log1p(-options.tolerance)
    asked = (options.comparisons, options.tolerance)
    print(f"{'':>8}  {'':<18}{'':>8}{'unchanged':^26}{'slower by twice the tolerance':>33}")
    print(f"{'pairs':>8}  {'rule':<18}{'history':>8}" + f"{'pairs':>8}{'PASS':>9}{'REGR':>8}" * 2)
    for deviation in (0.005, 0.01, 0.02, 0.03, 0.05):
        for rule in RULES:
            for known in (1.0,) if rule == "present" else (1.0, 0.5, 2.0):
                cells = [compared(rule, deviation, change, known, *asked) for change in (0.0, slower)]
                told = "".join(f"{pairs:>8.0f}{passed:>8.1f}%{slow:>7.1f}%" for pairs, passed, slow in cells)
                print(
                    f"{deviation:>8.1%}  {rule:<18}{'' if rule == 'present' else f'x {known:g}':>8}{told}", flush=True
                )
    print(f"\n{'unchanged but for flips of':<28}{'rule':<18}{'pairs':>8}{'PASS':>9}{'REGR':>8}")
    for flips in ("both", "candidate"):
        for rule in RULES:
            pairs, passed, slow = compared(rule, 0.005, 0.0, 1.0, *asked, flips)
            print(f"{flips:<28}{rule:<18}{pairs:>8.0f}{passed:>8.1f}%{slow:>7.1f}%")


if __name__ == "__main__":
    main()

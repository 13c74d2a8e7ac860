"""How often a portfolio of equal builds is not green, and what of slower ones it finds, by simulation.

    .venv/bin/python tests/bench/portfolio_errors.py [--paths 40] [--runs 2000]

A build's boots deviate on each path by so much; pairs of boots are judged as those that stay up: two at once, twelve
at most, by what is known of their deviation and by what they show themselves.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from dataclasses import replace

from pdrgate.gate.comparisons.living_boots.counted_measurands import compared_by_counts
from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands import Cost
from pdrgate.replication import PairsRule, Samples
from pdrgate.results.verdict import Verdict, gravest_verdict
from pdrgate.values.tolerances import COST_TOLERANCE

MOST, AT_ONCE = 12, 2
DEVIATIONS = (0.003, 0.005, 0.007)
"""What one build's boots deviate by, relative."""
CHANGES = (0.0, 0.02, 0.03)
"""What one of the paths costs more, relative."""


def path(source: random.Random, deviation: float, change: float, rule: PairsRule) -> Verdict:
    """What a path comes to."""
    known = compared_by_counts(Scenario()).pairs_deviate[Cost.about.name]
    samples = Samples(Cost.about.name, Cost.about.unit, Cost.about.better, float(COST_TOLERANCE), (), (), known)
    while True:
        for _ in range(AT_ONCE):
            old, new = (math.exp(source.gauss(0.0, deviation)) for _ in range(2))
            samples = replace(
                samples, baseline=(*samples.baseline, old), candidate=(*samples.candidate, new * (1 + change))
            )
        said = rule.standing([samples], ended=len(samples.baseline) >= rule.most).verdict
        if said is not None:
            return said


def main() -> None:
    """Print a line for each deviation and change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", type=int, default=40)
    parser.add_argument("--runs", type=int, default=2000)
    options = parser.parse_args()
    rule = PairsRule(most=MOST, affordable=MOST, comparisons=options.paths)
    print(f"{options.paths} paths, {options.runs} runs; share of runs by their gravest verdict")
    for deviation in DEVIATIONS:
        for change in CHANGES:
            source = random.Random(f"{deviation} {change}")
            runs = Counter(
                gravest_verdict(
                    path(source, deviation, change if not number else 0.0, rule) for number in range(options.paths)
                )
                for _ in range(options.runs)
            )
            told = ", ".join(f"{word} {count / options.runs:.1%}" for word, count in runs.most_common())
            print(f"  boots deviate by {deviation:.1%}, one path costs {change:+.1%}: {told}", flush=True)


if __name__ == "__main__":
    main()

"""How often a comparison of builds errs, and how many pairs of boots it takes, by simulation of its stopping rule.

Boots are drawn, not booted: in each pair the ratio of each of two measurands (PDR and saturation throughput) is its
true change times a normal deviate of the given deviation; half of its variance is shared by both (for real guests see
docs/measurements.md). Prints one line for each deviation and pair of true changes.

    .venv/bin/python tests/bench/boot_pairs.py [--comparisons 2000] [--tolerance 0.02] [--boots 48]
        [--fewest 4 --deviations 0.003 0.005]
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter

from pdrgate.replication import PairsRule, Samples

NAMES = ("PDR", "saturation throughput")
DEVIATIONS = (0.01, 0.015, 0.02, 0.025, 0.03)
CHANGES = ((0.0, 0.0), (-0.02, -0.02), (-0.03, -0.03), (-0.04, -0.04), (-0.06, -0.06), (-0.04, 0.0), (-0.2, 0.0))
"""Of the PDR and of the saturation throughput; loss that begins earlier changes the first alone."""


def one(
    changes: tuple[float, float], deviation: float, rule: PairsRule, tolerance: float, random_: random.Random
) -> tuple[str, int]:
    """The verdict of one comparison, and its pairs."""
    ratios: tuple[list[float], list[float]] = ([], [])
    for pair in range(1, rule.most + 1):
        shared = random_.gauss(0, 1)
        for own, change in zip(ratios, changes, strict=True):
            own.append((1 + change) * (1 + deviation * math.sqrt(0.5) * (shared + random_.gauss(0, 1))))
        samples = [
            Samples(name, "packets/s", "higher", tolerance, (1.0,) * pair, tuple(own))
            for name, own in zip(NAMES, ratios, strict=True)
        ]
        verdict = rule.standing(samples).verdict
        if verdict is not None:
            return str(verdict), pair
    raise AssertionError("the rule ends at its most pairs")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=2000)
    parser.add_argument("--tolerance", type=float, default=0.02)
    parser.add_argument("--boots", type=int, default=48)
    parser.add_argument("--fewest", type=int, default=PairsRule(1).fewest)
    parser.add_argument("--deviations", type=float, nargs="+", default=DEVIATIONS)
    arguments = parser.parse_args()
    random_ = random.Random(1)
    rule = PairsRule(most=arguments.boots, fewest=arguments.fewest)
    print("deviation     PDR  saturation  PASS    REGRESSION  INCONCLUSIVE  IMPROVEMENT  pairs")
    for deviation in arguments.deviations:
        for changes in CHANGES:
            runs = [one(changes, deviation, rule, arguments.tolerance, random_) for _ in range(arguments.comparisons)]
            count = Counter(verdict for verdict, _ in runs)
            shares = [count[word] / len(runs) for word in ("PASS", "REGRESSION", "INCONCLUSIVE", "IMPROVEMENT")]
            pairs = sum(pairs for _, pairs in runs) / len(runs)
            print(
                f"{deviation:9.1%}  {changes[0]:+6.0%}  {changes[1]:+10.0%}  {shares[0]:6.1%}  {shares[1]:10.1%}  "
                f"{shares[2]:12.1%}  {shares[3]:11.1%}  {pairs:5.1f}"
            )


if __name__ == "__main__":
    main()

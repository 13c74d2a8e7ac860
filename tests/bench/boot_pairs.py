"""How often a comparison of builds errs, and how many pairs of boots it takes, by simulation of its stopping rule.

Boots are drawn, not booted: each ratio of a pair is the true change times a normal deviate of the given deviation
(for real guests see the README). Prints one line for each deviation and true change.

    .venv/bin/python tests/bench/boot_pairs.py [--comparisons 2000] [--tolerance 0.02] [--boots 48]
"""

from __future__ import annotations

import argparse
import random
from collections import Counter

from pdrgate.gate.build_comparison import decided
from pdrgate.gate.compare import CONFIDENCE, Baseline, compare_pairs


def one(change: float, deviation: float, boots: int, tolerance: float, random_: random.Random) -> tuple[str, int]:
    """The verdict of one comparison, and its pairs."""
    candidate: list[float] = []
    for pair in range(1, boots + 1):
        candidate.append((1 + change) * (1 + random_.gauss(0, deviation)))
        base = Baseline("simulated", (1.0,) * pair, {})
        if decided(candidate, base, tolerance) is not None:
            return str(decided(candidate, base, tolerance)), pair
    return str(compare_pairs(candidate, base, tolerance, confidence=CONFIDENCE)[1].verdict), boots


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=2000)
    parser.add_argument("--tolerance", type=float, default=0.02)
    parser.add_argument("--boots", type=int, default=48)
    arguments = parser.parse_args()
    random_ = random.Random(1)
    print("deviation  change  PASS    REGRESSION  INCONCLUSIVE  IMPROVEMENT  pairs")
    for deviation in (0.01, 0.015, 0.02, 0.025, 0.03):
        for change in (0.0, -0.02, -0.03, -0.04, -0.06):
            runs = [
                one(change, deviation, arguments.boots, arguments.tolerance, random_)
                for _ in range(arguments.comparisons)
            ]
            count = Counter(verdict for verdict, _ in runs)
            shares = [count[word] / len(runs) for word in ("PASS", "REGRESSION", "INCONCLUSIVE", "IMPROVEMENT")]
            pairs = sum(pairs for _, pairs in runs) / len(runs)
            print(
                f"{deviation:9.1%}  {change:+5.0%}   {shares[0]:6.1%}  {shares[1]:10.1%}  {shares[2]:12.1%}  "
                f"{shares[3]:11.1%}  {pairs:5.1f}"
            )


if __name__ == "__main__":
    main()

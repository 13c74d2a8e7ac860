"""How often four tries of one comparison err, as CI makes them that retries red builds: afresh, and with the ledger.

    .venv/bin/python tests/bench/retries.py [--comparisons 1000] [--tolerance 0.02]

By simulation, with the SUTs of gate_quality.py; no packet is sent. Each comparison is tried four times whatever it
says, so that "ever" is what CI gets that stops at the first green, or one that never does. Afresh each try begins
anew; with the ledger the pairs of the tries before it count too.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from gate_quality import Sut, judged, tried

_PASSING = ("PASS", "IMPROVEMENT")
_GREEN = "green"
SUTS = {
    "boots deviate by 0.5 %": Sut(0.005),
    "by 3 %": Sut(0.03),
    "by 5 %": Sut(0.05),
    "by 0.5 %, 5 % of them dip by 20 to 40 %": Sut(0.005, dips=0.05),
    "by 0.5 %, and flip by 10 %": Sut(0.005, flips=0.1),
    "by 0.5 %, a try's ratio by 2 %": Sut(0.005, shifts=0.02),
    "by 3 %, a try's ratio by 2 %": Sut(0.03, shifts=0.02),
}
TRIES = 4


@dataclass(frozen=True, slots=True)
class Retried:
    """Of comparisons that were tried four times."""

    first: dict[str, float]
    """By verdict, how many got it in the first try."""
    ever: dict[str, float]
    """In any of them."""
    pairs: tuple[float, ...]
    """By try, the median."""


def run_tried(sut: Sut, change: float, afresh: bool, comparisons: int, tolerance: float) -> Retried:
    source = random.Random(f"{sut} {change} {afresh}")
    found = []
    for _ in range(comparisons):
        each = tried(sut, change, tolerance, source, TRIES, afresh=afresh)
        found.append([judged(one, () if afresh else each[:number], change) for number, one in enumerate(each)])
    said = [[_GREEN if one.verdict in _PASSING else one.verdict for one in each] for each in found]
    words = {word for each in said for word in each}
    return Retried(
        {word: statistics.mean(word == each[0] for each in said) for word in words},
        {word: statistics.mean(word in each for each in said) for word in words},
        tuple(statistics.median(each[number].boots for each in found) for number in range(TRIES)),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=1000)
    parser.add_argument("--tolerance", type=float, default=0.02)
    options = parser.parse_args()
    began = time.monotonic()
    ends = (0.0, -2 * options.tolerance + options.tolerance**2)
    with ProcessPoolExecutor(2) as pool:
        print(
            f"\n{'pdrgate, tried four times':<49}{'unchanged: REGR':>17}{'UNST':>16}{'-2 tolerance: green':>24}"
            f"{'unchanged:':>14}\n{'':<49}" + f"{'first':>9}{'ever':>8}" * 2 + f"{'first':>15}{'ever':>9}{'pairs':>14}"
        )
        rows = [(name, sut, afresh) for name, sut in SUTS.items() for afresh in (True, False)]
        jobs = [
            [pool.submit(run_tried, sut, change, afresh, options.comparisons, options.tolerance) for change in ends]
            for _, sut, afresh in rows
        ]
        for (name, _, afresh), job in zip(rows, jobs, strict=True):
            alike, worse = (one.result() for one in job)
            shares = [(alike, "REGRESSION", 9, 8), (alike, "UNSTABLE", 9, 8), (worse, _GREEN, 15, 9)]
            print(
                f"{name:<41}{'afresh' if afresh else 'ledger':<8}"
                + "".join(f"{a.first.get(word, 0):>{b}.1%}{a.ever.get(word, 0):>{c}.1%}" for a, word, b, c in shares)
                + f"{' + '.join(f'{count:.0f}' for count in alike.pairs):>14}", flush=True
            )  # fmt: skip
    print(f"\n{options.comparisons} comparisons a cell, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()

"""How often the intervals that the gate reports hold what they are of, beside what they say.

    .venv/bin/python tests/bench/coverage.py [--comparisons 1000] [--tolerance 0.02]

By simulation, with the SUTs of gate_quality.py; no packet is sent. First the change of a comparison in pairs, where it
has ended by itself: as the pairs have it (their mean and its t-interval), and as it is told, without what the end has
favoured; told is also how far each is off on average. Then the same after three tries with the ledger, whatever they
say. Then the other intervals: of a build's PDR and cost over boots of a comparison that ended by itself, of a PDR over
six repeats, and of the change against a stored run where 8 pairs of equal boots have told what boots deviate by.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from gate_quality import CAPACITY, NAMES, Sut, one_boot, tried

from pdrgate.gate.verdicts.change_verdict import summarised
from pdrgate.measurands import Cost
from pdrgate.replication import PairsRule
from pdrgate.results.model import ChangeResult
from pdrgate.search.goals import PDR_GOAL
from pdrgate.stats.intervals import Interval

DEVIATIONS = (0.01, 0.03, 0.05)
CHANGES = (0.0, 0.5, 1.0, 1.5, 2.0)
"""In tolerances, for the worse."""
EACH = 1 - 0.05 / len(NAMES)
"""What the interval of a change says."""
REPEATS = 6
COST = 8000.0
COST_DEVIATION = 0.002


@dataclass(frozen=True, slots=True)
class Told:
    """Of many changes."""

    errors: tuple[float, ...]
    held: tuple[bool, ...]

    def __str__(self) -> str:
        return f"{statistics.mean(self.errors):>+8.2%}{statistics.mean(self.held):>7.1%}"

    @classmethod
    def of(cls, found: Sequence[ChangeResult], change: float) -> Told:
        return cls(
            tuple(one.change - change for one in found), tuple(one.lower <= change <= one.upper for one in found)
        )


def of_change(deviation: float, change: float, tolerance: float, count: int, tries: int) -> tuple[Told, Told]:
    """As the pairs of the last try have it, and as it is told."""
    source = random.Random(f"{deviation} {change} {tries}")
    ended = [tried(Sut(deviation), change, tolerance, source, tries)[-1] for _ in range(count)]
    told = [PairsRule().told(one.standing, one.samples, one.taken_over)[0] for one in ended]
    return Told.of([one.standing.changes[0] for one in ended], change), Told.of(told, change)


def of_others(deviation: float, tolerance: float, count: int) -> dict[str, float]:
    """By kind, how often it holds."""
    source = random.Random(f"others {deviation}")
    held: dict[str, list[bool]] = {"PDR of boots": [], "cost of boots": [], "PDR of repeats": [], "stored run": []}
    for _ in range(count):
        (ended,) = tried(Sut(deviation), 0.0, tolerance, source, 1)
        held["PDR of boots"].append(_holds(NAMES[0], "packets/s", ended.values[NAMES[0]]["baseline"], CAPACITY))
        costs = [COST * (1 + source.gauss(0, COST_DEVIATION)) for _ in range(ended.pairs)]
        held["cost of boots"].append(_holds(Cost.name, Cost.unit, costs, COST))
        repeats = [CAPACITY * (1 + source.gauss(0, deviation)) for _ in range(REPEATS)]
        held["PDR of repeats"].append(_holds(PDR_GOAL.name, "packets/s", repeats, CAPACITY))
        held["stored run"].append(one_boot(Sut(deviation), 0.0, tolerance, source).holds)
    return {kind: statistics.mean(each) for kind, each in held.items()}


def _holds(name: str, unit: str, samples: Sequence[float], truth: float) -> bool:
    found = summarised(name, unit, "higher", samples)
    assert found is not None
    assert found.lower is not None
    assert found.upper is not None
    return truth in Interval(found.lower, found.upper)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=1000)
    parser.add_argument("--tolerance", type=float, default=0.02)
    options = parser.parse_args()
    began = time.monotonic()
    asked = (options.tolerance, options.comparisons)
    print(f"a share of {options.comparisons} is known to {100 * math.sqrt(0.025 * 0.975 / options.comparisons):.1f} %")
    with ProcessPoolExecutor(2) as pool:
        for tries in (1, 3):
            print(
                f"\nchange of the PDR after {tries} {'try' if tries == 1 else 'tries'}, interval of {EACH:.1%}: "
                "error and how often it holds\npairs deviate by   change   as the pairs have it     as it is told"
            )
            parts = CHANGES if tries == 1 else CHANGES[::2]
            cells = [(deviation, -part * options.tolerance) for deviation in DEVIATIONS for part in parts]
            jobs = [pool.submit(of_change, *cell, *asked, tries) for cell in cells]
            for (deviation, change), job in zip(cells, jobs, strict=True):
                seen, told = job.result()
                print(f"{deviation:>10.1%}{change:>16.1%}{seen!s:>22}{told!s:>22}", flush=True)
        print(
            f"\n{'boots deviate by':<18}"
            + "".join(f"{of:>16}" for of in ("PDR of boots", "cost of boots"))
            + f"{'PDR of repeats':>16}{'stored run':>16}\n{'says':<18}"
            + f"{0.95:>16.1%}" * 3
            + f"{EACH:>16.1%}"
        )
        others = [pool.submit(of_others, deviation, *asked) for deviation in DEVIATIONS]
        for deviation, each in zip(DEVIATIONS, others, strict=True):
            print(f"{deviation:<18.1%}" + "".join(f"{share:>16.1%}" for share in each.result().values()), flush=True)
    print(f"\n{options.comparisons} comparisons a cell, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()

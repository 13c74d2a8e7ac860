"""How often a portfolio of equal builds is not green, and what of slower ones it finds, by simulation.

    .venv/bin/python tests/bench/portfolio_errors.py [--paths 40] [--runs 2000] [--alone base|paths]

A build's boots deviate on each path by so much; pairs of boots are judged as those that stay up: two at once, twelve
at most, by what is known of their deviation and by what they show themselves. With --alone the first pair is measured
alone, and may be enough: for a PASS where a base that was measured before vouches for it, for any verdict where other
paths foretell it. A base vouches for pairs whose baseline lies within two deviations of it; other paths foretell no
change, and vouch for pairs within two deviations of that. That a function surely changed of the slower path is not
modelled, so that it is vouched for as well: the worst case.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from dataclasses import replace

from pdrgate.gate.comparisons.living_boots.counted_measurands import compared_by_counts
from pdrgate.gate.comparisons.pairs.foreseen import FORETOLD, UNCHANGED
from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands import Cost
from pdrgate.replication import PairsRule, Samples
from pdrgate.results.verdict import Verdict, gravest_verdict
from pdrgate.stats.pooled import Deviation
from pdrgate.values.units import COST_TOLERANCE

MOST, AT_ONCE = 12, 2
DEVIATIONS = (0.003, 0.005, 0.007)
"""What one build's boots deviate by, relative."""
CHANGES = (0.0, 0.02, 0.03)
"""What one of the paths costs more, relative."""


def path(source: random.Random, deviation: float, change: float, rule: PairsRule) -> tuple[Verdict, int]:
    """What a path comes to, and after how many pairs."""
    known = compared_by_counts(Scenario()).pairs_deviate[Cost.about.name]
    samples = Samples(Cost.about.name, Cost.about.unit, Cost.about.better, float(COST_TOLERANCE), (), (), known)
    while True:
        for _ in range(1 if rule.alone and len(samples.baseline) < AT_ONCE else AT_ONCE):
            old, new = (math.exp(source.gauss(0.0, deviation)) for _ in range(2))
            samples = replace(
                samples, baseline=(*samples.baseline, old), candidate=(*samples.candidate, new * (1 + change))
            )
        said = _asked(rule, samples, known).standing([samples], ended=len(samples.baseline) >= rule.most).verdict
        if said is not None:
            return said, len(samples.baseline)


def _asked(rule: PairsRule, samples: Samples, known: Deviation) -> PairsRule:
    """The rule, without a single pair that is not what was known before."""
    seen = math.log(samples.baseline[0]) if rule.alone == UNCHANGED else samples.gains[0]
    moved = abs(seen) > 2 * known.value
    return replace(rule, alone=frozenset()) if moved else rule


def main() -> None:
    """Print a line for each deviation and change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", type=int, default=40)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--alone", choices=("base", "paths"))
    options = parser.parse_args()
    alone = {"base": UNCHANGED, "paths": FORETOLD}.get(options.alone, frozenset[Verdict]())
    rule = PairsRule(most=MOST, affordable=MOST, comparisons=options.paths, alone=alone)
    print(f"{options.paths} paths, {options.runs} runs; share of runs by their gravest verdict")
    for deviation in DEVIATIONS:
        for change in CHANGES:
            source = random.Random(f"{deviation} {change}")
            runs, pairs, single = Counter[Verdict](), 0, 0
            for _ in range(options.runs):
                found = [path(source, deviation, 0.0 if number else change, rule) for number in range(options.paths)]
                runs[gravest_verdict(verdict for verdict, _ in found)] += 1
                pairs += sum(number for _, number in found)
                single += sum(number == 1 for _, number in found)
            told = ", ".join(f"{word} {count / options.runs:.1%}" for word, count in runs.most_common())
            print(f"  boots deviate by {deviation:.1%}, one path costs {change:+.1%}: {told}; "
                  f"{pairs / options.runs / options.paths:.2f} pairs a path, "
                  f"one pair on {single / options.runs / options.paths:.0%}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

"""PASTRAMI's published experiments, replayed to a gate: what it says of real runs that nobody has changed, or slowed.

Part of gate_quality.py, which prints it; alone: .venv/bin/python tests/bench/pastrami_replay.py [--comparisons 1000].
The experiments (netgroup/pastrami) are looked for in ../shared/pastrami. A run gives what a boot gives to a comparison:
a PDR and a saturation throughput, each run of an experiment one of them.

- halves: an experiment's runs, put into two halves by chance, are pairs of an unchanged build; slower: the candidate's
  are multiplied by what makes it slower by twice the tolerance, as if all its loads were scaled.
- first half, second half: the same in the order of time, once for each experiment.
- executions: of one that was executed again, unchanged; runs by chance. One start against another is no comparison in
  pairs: here pdrgate has six runs of each and does not know what starts deviate by.

Only experiments whose curve is stable are compared; pdrgate would call the others UNSTABLE.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jumpavg
from scipy.stats import ttest_ind

from pdrgate.gate.comparisons.pairs.pairs_shape import shape_of
from pdrgate.gate.judged_again.file_comparison import values_by_run
from pdrgate.gate.verdicts.change_verdict import unpaired_changes
from pdrgate.measurands import OF_TRIALS, PartialDropRate, SaturationThroughput, compared_of
from pdrgate.replication import PairsRule, Samples
from pdrgate.replication.samples import gravest_change
from pdrgate.search.goals import PDR_GOAL
from pdrgate.stability import StabilityVerdict, assess, read_experiments

PUBLISHED = Path(__file__).resolve().parents[2].parent / "shared" / "pastrami"
NAMES = (PartialDropRate.name, SaturationThroughput.name)
TRIALS = 10
REPEATS = 6

Runs = Sequence[tuple[float, float]]
"""Of an experiment: PDR and saturation throughput of each run."""


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    stable: bool
    runs: Runs

    @property
    def again(self) -> str:
        """The name without the number of its execution: equal where an experiment was executed again."""
        return re.sub(r"_\d[a-z]{2}_exec.*", "", self.name.removesuffix(".txt"))


def experiments() -> list[Experiment]:
    """All of which a run tells both measurands; none where the folder is absent."""
    labels = PUBLISHED / "labels.json"
    found = []
    for name in json.loads(labels.read_text()) if labels.is_file() else ():
        (one,) = read_experiments(PUBLISHED / name)
        curve = assess(one.trials)
        values = values_by_run(curve.curve, PDR_GOAL.loss_ratio)
        runs = list(zip(*(values[measurand].values() for measurand in NAMES), strict=True))
        if runs:
            found.append(Experiment(name, curve.verdict is StabilityVerdict.STABLE, runs))
    return found


def _samples(baseline: Runs, candidate: Runs, tolerance: float) -> list[Samples]:
    return [
        Samples(name, "packets/s", "higher", tolerance, old, new)
        for name, old, new in zip(NAMES, zip(*baseline, strict=True), zip(*candidate, strict=True), strict=True)
    ]


def in_pairs(baseline: Runs, candidate: Runs, tolerance: float, source: random.Random) -> tuple[str, int]:
    pairs = min(len(baseline), len(candidate)) // 2 * 2
    rule = PairsRule(most=pairs)
    for count in range(2, pairs + 1, 2):
        samples = _samples(baseline[:count], candidate[:count], tolerance)
        standing = rule.standing(samples)
        if standing.verdict is not None:
            values = {one.measurand: {"baseline": one.baseline, "candidate": one.candidate} for one in samples}
            shape = shape_of(compared_of(OF_TRIALS), values)
            veto = shape.veto(standing, {})
            return str(veto.verdict if veto else standing.verdict), count
    raise AssertionError("the rule ends at its most pairs")


def one_start(baseline: Runs, candidate: Runs, tolerance: float, source: random.Random) -> tuple[str, int]:
    return str(
        gravest_change(unpaired_changes(_samples(baseline[:REPEATS], candidate[:REPEATS], tolerance), "")).verdict
    ), 1


def sweeps(baseline: Runs, candidate: Runs, tolerance: float, source: random.Random) -> tuple[str, int]:
    old, new = (statistics.mean(pdr for pdr, _ in runs) for runs in (baseline, candidate))
    return _said(new / old - 1 < -tolerance), 1


def welch(baseline: Runs, candidate: Runs, tolerance: float, source: random.Random) -> tuple[str, int]:
    old, new = ([rate for _, rate in source.sample(runs, TRIALS)] for runs in (baseline, candidate))
    return _said(statistics.mean(new) < statistics.mean(old) and ttest_ind(old, new, equal_var=False).pvalue < 0.05), 1


def grouped(baseline: Runs, candidate: Runs, tolerance: float, source: random.Random) -> tuple[str, int]:
    old, new = ([rate for _, rate in source.sample(runs, TRIALS)] for runs in (baseline, candidate))
    groups = jumpavg.classify([old, new])
    return _said(len(groups) > 1 and groups[-1].comment == "regression"), 1


def _said(slower: bool) -> str:
    return "REGRESSION" if slower else "PASS"


OTHERS = {"sweep, 2 % apart": sweeps, "Welch, ten runs": welch, "jumpavg, ten runs": grouped}


def table(comparisons: int, tolerance: float) -> list[str]:
    """Lines; one that says why where there are no experiments."""
    known = experiments()
    if not known:
        return [
            f"\nPASTRAMI's experiments are not replayed: they are not at {PUBLISHED}; get them from netgroup/pastrami"
        ]
    stable = [one for one in known if one.stable]
    again = [(one, other) for one, other in itertools.permutations(known, 2) if one.again == other.again]
    slower = (1 - tolerance) ** 2
    lines = [
        f"\nPASTRAMI's experiments: {len(known)}, {len(stable)} of them with a stable curve; {len(again) // 2} pairs of"
        f" executions\n{'replayed':<34}{'rule':<20}{'PASS':>8}{'REGR':>8}{'IMPR':>8}{'INC':>8}{'UNST':>8}{'NO_BASE':>9}"
        f"{'pairs':>7}{'of':>7}"
    ]

    def halves(source: random.Random, factor: float) -> tuple[Runs, Runs]:
        runs = list(source.choice(stable).runs)
        source.shuffle(runs)
        return runs[::2][: len(runs) // 2], _scaled(runs[1::2], factor)

    def executed(source: random.Random) -> tuple[Runs, Runs]:
        one, other = source.choice(again)
        return source.sample(one.runs, len(one.runs)), source.sample(other.runs, len(other.runs))

    in_time = [(one.runs[: len(one.runs) // 2], one.runs[len(one.runs) // 2 :]) for one in stable]
    pdrgate = {"pdrgate": in_pairs} | OTHERS
    kinds = {
        "halves by chance": ([halves(random.Random(n), 1.0) for n in range(comparisons)], pdrgate),
        "halves by chance, slower": ([halves(random.Random(n), slower) for n in range(comparisons)], pdrgate),
        "first half, second half": (in_time, pdrgate),
        "first half, second half, slower": ([(old, _scaled(new, slower)) for old, new in in_time], pdrgate),
        "executions": ([executed(random.Random(n)) for n in range(comparisons)], {"pdrgate": one_start} | OTHERS),
    }
    for kind, (cases, rules) in kinds.items():
        for rule, says in rules.items():
            source = random.Random(f"{kind} {rule}")
            found = [says(*case, tolerance, source) for case in cases]
            count = Counter(verdict for verdict, _ in found)
            words = ("PASS", "REGRESSION", "IMPROVEMENT", "INCONCLUSIVE", "UNSTABLE", "NO_BASELINE")
            shares = "".join(f"{count[word] / len(found):>{8 + (word == words[-1])}.1%}" for word in words)
            pairs = statistics.median(each for _, each in found)
            lines.append(f"{kind:<34}{rule:<20}{shares}{pairs:>7.0f}{len(found):>7}")
    return lines


def _scaled(runs: Runs, factor: float) -> Runs:
    return [(pdr * factor, rate * factor) for pdr, rate in runs]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=1000)
    parser.add_argument("--tolerance", type=float, default=0.02)
    options = parser.parse_args()
    print("\n".join(table(options.comparisons, options.tolerance)))


if __name__ == "__main__":
    main()

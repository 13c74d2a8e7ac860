"""What one pair would have said of stored runs: does it say what more pairs said, and is it red of equal builds?

    .venv/bin/python tests/bench/one_pair_replayed.py RUN…

RUN is the folder of a finished run of paths whose packets were counted. Each path is asked twice. First pair alone:
what the paths before it foretell, and whether its verdict is that of the run. Equal builds: boots of one build by twos,
one of them as the candidate.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pdrgate.gate.comparisons.living_boots.counted_measurands import compared_by_counts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES
from pdrgate.gate.comparisons.pairs.foreseen import Foreseen, foreseen
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.verdicts.packet_cost import cost_result
from pdrgate.history.results import RESULT_FILE, read_result
from pdrgate.history.trials import TRIALS_FILE
from pdrgate.measurands import Cost
from pdrgate.record.trial import Trial
from pdrgate.replication import PairsRule, Samples
from pdrgate.results.model import BootResult, ScenarioResult
from pdrgate.stability import read_trials
from pdrgate.values.units import COST_TOLERANCE

LOSS_RATIO = 0.005
KNOWN = compared_by_counts(Scenario()).pairs_deviate[Cost.about.name]


def said(
    before: Sequence[Trial], after: Sequence[Trial], costs: tuple[float, float], known: Foreseen, paths: int
) -> str:
    """The verdict of a single pair; why it has none, where a second one is measured."""
    vouched = known.vouched((cost_result([before], LOSS_RATIO), cost_result([after], LOSS_RATIO)), costs, KNOWN)
    samples = Samples(
        Cost.name, Cost.unit, Cost.better, float(COST_TOLERANCE), costs[:1], costs[1:], KNOWN
    )  # fmt: skip
    if not vouched:
        return "not foretold"
    verdict = PairsRule(comparisons=paths, alone=vouched).standing([samples]).verdict
    return str(verdict) if verdict is not None else "odds too small"


def counted(scenario: ScenarioResult) -> list[BootResult]:
    """The boots that were counted; none of a scenario that is judged by something else."""
    changes = () if scenario.comparison is None else scenario.comparison.changes
    if scenario.builds is None or not changes or changes[0].measurand != Cost.name:
        return []
    usual = changes[0].tolerance == float(COST_TOLERANCE)
    return [one for one in scenario.builds.boots if not one.failure and Cost.name in one.values and usual]


def main() -> None:
    """Print what each path came to, and both counts."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    alone, equal = Counter[str](), Counter[str]()
    for folder in map(Path, sys.argv[1:]):
        result = read_result(folder / RESULT_FILE)
        of_boot: dict[tuple[str, str], list[Trial]] = {}
        for trial in read_trials(folder / TRIALS_FILE):
            of_boot.setdefault((trial.belonging.scenario, trial.belonging.boot), []).append(trial)
        paths, judged = len(result.scenarios), list[ScenarioResult]()
        for scenario in result.scenarios:
            boots = counted(scenario)
            first = [one for side in SIDES for one in boots if one.side == side and one.pair == 1]
            trials = [of_boot.get((scenario.name, one.boot), []) for one in boots]
            if len(first) == len(SIDES) and (known := foreseen(judged, ())).possible:
                one, other = (of_boot[scenario.name, boot.boot] for boot in first)
                verdict = said(one, other, (first[0].values[Cost.name], first[1].values[Cost.name]), known, paths)
                print(f"{scenario.title[:50]:50s} {scenario.verdict} of the run; one pair: {verdict}")
                agrees = "" if verdict not in ("PASS", "REGRESSION", "IMPROVEMENT") else (
                    ", as the run" if verdict == str(scenario.verdict) else ", not as the run"
                )  # fmt: skip
                alone[verdict + agrees] += 1
            judged.append(scenario)
            for side in SIDES:
                own = [(boot, made) for boot, made in zip(boots, trials, strict=True) if boot.side == side and made]
                for (boot, one), (another, other) in zip(own[::2], own[1::2], strict=False):
                    values = boot.values[Cost.name], another.values[Cost.name]
                    equal[said(one, other, values, Foreseen(calls={}), paths)] += 1
    print("first pairs:", dict(alone))
    print("pairs of equal builds:", dict(equal))


if __name__ == "__main__":
    main()

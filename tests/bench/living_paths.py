"""What boots that stay up deviate by on each path, from finished runs of the portfolio, best of a build against itself.

.venv/bin/python tests/bench/living_paths.py RESULTS...

A path that hands packets to other tasks also tells how often they take turns in a trial at saturation: where equal
boots differ by more than a few hundredths of a packet, their costs do as well.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path

from pdrgate.history.results import read_result
from pdrgate.history.trials import TRIALS_FILE
from pdrgate.measurands import Cost
from pdrgate.record.phase import Phase
from pdrgate.results.model import ScenarioResult

_TURNS, _FEW = "__schedule", 0.01
"""What a kernel enters whenever another task gets the CPU, and how often for a packet it is not worth a word."""


def deviation(scenario: ScenarioResult) -> tuple[list[float], float]:
    """Costs of all boots, and what those of one build deviate by, relative: pooled over both builds."""
    costs: dict[str, list[float]] = {}
    for boot in scenario.builds.boots:
        if Cost.name in boot.values:
            costs.setdefault(boot.side, []).append(boot.values[Cost.name])
    squares = sum(sum((value / statistics.fmean(own) - 1) ** 2 for value in own) for own in costs.values())
    freedom = sum(len(own) - 1 for own in costs.values())
    return [value for own in costs.values() for value in own], math.sqrt(squares / freedom) if freedom else math.nan


def turns(folder: Path) -> dict[str, tuple[float, float]]:
    """How often tasks take turns for a packet, by test: least and most of the trials at saturation."""
    found: dict[str, list[float]] = {}
    with (folder / TRIALS_FILE).open(encoding="utf-8") as file:
        trials = (trial for trial in map(json.loads, file) if trial["phase"] == Phase.SATURATION)
        for trial in trials:
            if trial["forwarded"] and trial["functions"]:
                calls = trial["functions"].get(_TURNS, (0, 0))[1] / trial["forwarded"]
                found.setdefault(trial["test"].rpartition(".")[2], []).append(calls)
    return {test: (min(own), max(own)) for test, own in found.items()}


def words(taken: tuple[float, float] | None) -> str:
    """``; 0.06 to 0.07 turns``; nothing of a path on which no other task has a part."""
    return f"; {taken[0]:.2f} to {taken[1]:.2f} turns" if taken and taken[1] > _FEW else ""


def main() -> None:
    """Print a line for each path of each run."""
    for folder in map(Path, sys.argv[1:]):
        result = read_result(folder)
        print(f"{result.run}: {result.verdict}, {sum(one.verdict.passes for one in result.scenarios)} of "
              f"{len(result.scenarios)} paths pass")  # fmt: skip
        taken = turns(folder)
        for scenario in result.scenarios:
            costs, deviates = deviation(scenario)
            told = " ".join(f"{cost:.0f}" for cost in costs)
            print(f"  {scenario.origin.test:32s} {scenario.verdict:13s} CV {deviates:.2%}  {told}"
                  f"{words(taken.get(scenario.origin.test))}")  # fmt: skip


if __name__ == "__main__":
    main()

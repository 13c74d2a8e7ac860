"""What boots that stay up deviate by on each path, from finished runs of the portfolio, best of a build against itself.

.venv/bin/python tests/bench/living_paths.py RESULTS...
"""

from __future__ import annotations

import math
import statistics
import sys
from pathlib import Path

from pdrgate.history.results import read_result
from pdrgate.measurands import Cost
from pdrgate.results.model import ScenarioResult


def deviation(scenario: ScenarioResult) -> tuple[list[float], float]:
    """Costs of all boots, and what those of one build deviate by, relative: pooled over both builds."""
    costs: dict[str, list[float]] = {}
    for boot in scenario.builds.boots:
        if Cost.name in boot.values:
            costs.setdefault(boot.side, []).append(boot.values[Cost.name])
    squares = sum(sum((value / statistics.fmean(own) - 1) ** 2 for value in own) for own in costs.values())
    freedom = sum(len(own) - 1 for own in costs.values())
    return [value for own in costs.values() for value in own], math.sqrt(squares / freedom) if freedom else math.nan


def main() -> None:
    """Print a line for each path of each run."""
    for folder in map(Path, sys.argv[1:]):
        result = read_result(folder)
        print(f"{result.run}: {result.verdict}, {sum(one.verdict.passes for one in result.scenarios)} of "
              f"{len(result.scenarios)} paths pass")  # fmt: skip
        for scenario in result.scenarios:
            costs, deviates = deviation(scenario)
            told = " ".join(f"{cost:.0f}" for cost in costs)
            print(f"  {scenario.origin.test:32s} {scenario.verdict:13s} CV {deviates:.2%}  {told}")


if __name__ == "__main__":
    main()

"""Stored comparisons of equal builds, judged again by branches and returns through thunks: is none red?

PYTHONPATH=libraries:tests/fakes .venv/bin/python tests/bench/equal_thunks.py RESULTS...

RESULTS are folders below which finished runs lie. Prints what the two boots or more of a build lie apart by, what the
two builds do, and what would have surely changed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

from rule_changes import cost_changes

from pdrgate.history.results import read_result
from pdrgate.measurands.counted.thunks import OF_THUNKS, OfThunks
from pdrgate.results.model import CostResult, ScenarioResult
from pdrgate.results.verdict import Verdict

Costs = tuple[CostResult, CostResult]


def equal(scenarios: Iterable[ScenarioResult]) -> Iterator[tuple[str, Costs]]:
    """Paths on which one build was compared with itself, by what a packet costs."""
    for scenario in scenarios:
        sides = {one.side: one for one in scenario.builds.sides}
        if len(sides) < 2 or len({one.build for one in sides.values()}) > 1:
            continue
        costs = sides["baseline"].findings.cost, sides["candidate"].findings.cost
        if costs[0] is not None and costs[1] is not None and costs[0].each == "packet":
            yield scenario.name, (costs[0], costs[1])


def times(kind: type[OfThunks], cost: CostResult) -> tuple[float, float, float]:
    """How often a packet goes through such thunks: the median, and the least and the most of the boots."""
    found = [one for one in cost.functions if kind.counts(one.name)]
    return (
        sum(one.calls for one in found), sum(one.fewest_calls or one.calls for one in found),
        sum(one.most_calls or one.calls for one in found),
    )  # fmt: skip


def main() -> None:
    """Print what was found."""
    files = sorted({file.resolve() for folder in sys.argv[1:] for file in Path(folder).rglob("result.json")})
    found = [(name, costs) for file in files for name, costs in equal(read_result(file).scenarios)]
    paths = len({name for name, _ in found})
    print(f"{len(found)} comparisons of equal builds, {paths} paths, {len(files)} runs")
    for kind in OF_THUNKS:
        both = [(times(kind, costs[0]), times(kind, costs[1])) for _, costs in found]
        apart = [abs(candidate[0] - base[0]) for base, candidate in both]
        beyond = [max(candidate[1] - base[2], base[1] - candidate[2], 0.0) for base, candidate in both]
        usual = [base[0] for base, _ in both]
        print(f"{kind.about.name}: {min(usual):.1f} to {max(usual):.1f} a packet, median {median(usual):.1f}; "
              f"medians apart by at most {max(apart):.2f}, all boots by at most {max(beyond):.2f}")  # fmt: skip
    changes = [change for _, costs in found for change in cost_changes(*costs)]
    red = sum(one.verdict is Verdict.REGRESSION for one in changes)
    print(f"{len(changes)} told as changed, {red} judged REGRESSION")


if __name__ == "__main__":
    main()

"""All reports tell in the same words where packets were lost."""

from __future__ import annotations

from collections.abc import Iterator

from pdrgate.reports.words.builds import lines_by_build, of_builds
from pdrgate.results.losses import LossResult
from pdrgate.results.model import ScenarioResult


def by_build(scenario: ScenarioResult) -> Iterator[tuple[str, LossResult]]:
    """The account of each build that was compared, the baseline's first; of the only one without a name."""
    return of_builds(scenario, lambda one: one.findings.losses)


def loss_lines(scenario: ScenarioResult) -> list[str]:
    """A sentence for each build, and one more where its account does not add up."""
    silent = _overloaded(scenario)
    return lines_by_build(
        scenario,
        lambda one: one.findings.losses,
        lambda found: filter(None, (found.sentence() if found.lost or not silent else "", found.fault)),
    )


def _overloaded(scenario: ScenarioResult) -> bool:
    """Whether the SUT was offered more than it takes: where nothing was lost all the same, queues held what was left,
    or the generator waited for each burst."""
    found = scenario.findings.assessment
    beyond = found is not None and any((one.steady_plr or one.plr) > found.pdr.plr_threshold for one in found.loads)
    return scenario.comparison is not None or beyond

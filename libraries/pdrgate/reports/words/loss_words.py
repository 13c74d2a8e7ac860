"""Words for where packets were lost, alike in all reports."""

from __future__ import annotations

from collections.abc import Iterator

from pdrgate.reports.tree import Cell, Column, ReportPart, Table, begun
from pdrgate.reports.words.build_words import lines_by_build, of_builds
from pdrgate.results.losses import LossResult, thousands
from pdrgate.results.model import ScenarioResult


def by_build(scenario: ScenarioResult) -> Iterator[tuple[str, LossResult]]:
    """The account of each build that was compared, the baseline's first; of the only one without a name."""
    return of_builds(scenario, lambda one: one.findings.losses)


def losses_part(scenario: ScenarioResult) -> ReportPart:
    """Each place that lost packets, and what nobody counted; a sentence for each build, and one more where its account
    does not add up."""
    silent = _overloaded(scenario)
    lines = lines_by_build(
        scenario,
        lambda one: one.findings.losses,
        lambda found: filter(None, (found.sentence() if found.lost or not silent else "", found.fault)),
    )
    tables = [_table(losses, label) for label, losses in by_build(scenario) if losses.lost]
    return ReportPart(title="Where packets were lost", lines=lines, brief=tables, whole=tables)


def _table(losses: LossResult, of: str) -> Table:
    rows = [(place.where, place.hint, place.packets) for place in losses.places]
    if losses.unexplained:
        rows.append(("unexplained", losses.fault, losses.unexplained))
    cells = [
        [Cell(where), Cell(hint), Cell(thousands(packets)), Cell(f"{packets / losses.offered:.3%}")]
        for where, hint, packets in rows
    ]
    columns = (
        Column("lost", heads=True), Column("what it hints at", wraps=True), Column("packets", True),
        Column("of the offered", True),
    )  # fmt: skip
    caption = (
        f"{thousands(losses.offered)} packets offered = {thousands(losses.forwarded)} handled + what each place lost"
    )
    return Table(begun(of, caption), columns, cells)


def _overloaded(scenario: ScenarioResult) -> bool:
    """Whether the SUT was offered more than it takes: where nothing was lost all the same, queues held what was left,
    or the generator waited for each burst."""
    found = scenario.findings.assessment
    beyond = found is not None and any((one.steady_plr or one.plr) > found.pdr.plr_threshold for one in found.loads)
    return scenario.comparison is not None or beyond

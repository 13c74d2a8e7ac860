"""What became of a slowdown that was planted."""

from __future__ import annotations

from pdrgate.reports.tree import Cell, Column, ReportPart, Table
from pdrgate.reports.words.measurand_tables import comparison_table
from pdrgate.results.model import ScenarioResult, SpikeInResult


def spike_in_part(scenario: ScenarioResult) -> ReportPart:
    """How the measurands of the baseline changed by the slowdown that was planted; nothing where none was asked for."""
    found = scenario.builds.spike_in
    if found is None:
        return ReportPart()
    remark = f"spike-in: {_planted(found)}{f'{found.verdict}: ' if found.verdict else ''}{found.reason}"
    return ReportPart(title="Spike-in", remarks=(remark,), whole=[_table(found)])


def _table(found: SpikeInResult) -> Table:
    columns = (
        Column("measurand", heads=True), Column("baseline", True), Column("slowed down", True),
        Column("change", True, wraps=True),
    )  # fmt: skip
    rows = comparison_table(found.comparison).rows if found.comparison else ()
    if not rows:
        rows = [[Cell(found.reason, span=len(columns))]]
    pairs = f", {found.comparison.pairs} pairs of boots" if found.comparison else ""
    return Table(f"Spike-in: {_planted(found)}{found.verdict or 'nothing planted'}{pairs}", columns, rows)


def _planted(found: SpikeInResult) -> str:
    if found.slowdown is None:
        return ""
    return f"the baseline with {found.planted} ({found.slowdown:.1%} more work for a packet) against the baseline: "

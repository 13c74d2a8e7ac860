"""What became of a slowdown that was planted, in words and as a table."""

from __future__ import annotations

from pdrgate.reports.markup.html import Cell, Column, Table
from pdrgate.reports.words.measurands import change_rows
from pdrgate.results.model import ScenarioResult, SpikeInResult


def spike_in_lines(scenario: ScenarioResult) -> list[str]:
    """The line on the planted slowdown; none where none was asked for."""
    found = scenario.builds.spike_in
    if found is None:
        return []
    return [f"spike-in: {_planted(found)}{f'{found.verdict}: ' if found.verdict else ''}{found.reason}"]


def spike_in_table(found: SpikeInResult) -> str:
    """How the measurands of the baseline changed by the slowdown."""
    columns = (
        Column("measurand", heads=True), Column("baseline", True), Column("slowed down", True), Column("change", True),
        Column("verdict"),
    )  # fmt: skip
    rows = [
        [Cell(row.name), Cell(row.baseline), Cell(row.value), Cell(row.change), Cell(row.marked)]
        for row in (change_rows(found.comparison) if found.comparison else ())
    ]
    if not rows:
        rows = [[Cell(found.reason, span=len(columns))]]
    pairs = f", {found.comparison.pairs} pairs of boots" if found.comparison else ""
    return Table(f"Spike-in: {_planted(found)}{found.verdict or 'nothing planted'}{pairs}", columns, rows).html()


def _planted(found: SpikeInResult) -> str:
    if found.slowdown is None:
        return ""
    return f"the baseline with {found.planted} ({found.slowdown:.1%} more work for a packet) against the baseline: "

"""The measurands of a scenario as tables: what was measured and how it changed, and what verdicts rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdrgate.reports.tree import Cell, Column, Table, Tone
from pdrgate.reports.words.measurands import (
    EVIDENCE,
    MeasurandLine,
    change_rows,
    intervals_in_words,
    judged_first,
    measurand_rows,
)
from pdrgate.results.model import ComparisonResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.units import Ratio

_TONES: Mapping[Verdict, Tone] = {
    Verdict.PASS: "pass", Verdict.IMPROVEMENT: "pass", Verdict.REGRESSION: "fail", Verdict.ASSERTION_FAILED: "fail",
    Verdict.INCONCLUSIVE: "warn",
}  # fmt: skip
_MEASURED = (Column("measurand", heads=True, wraps=True), Column("value", True), Column("95 % interval", True, True))
_COMPARED = (
    Column("measurand", heads=True, wraps=True), Column("base", True, optional=True), Column("candidate", True),
    Column("change", True, wraps=True),
)  # fmt: skip
_BESIDES = (Column("report-only", heads=True, wraps=True), Column("base", True), Column("candidate", True))
_GROUNDS = (
    Column("measurand", heads=True, wraps=True), Column("candidate's 95 % interval", True, wraps=True),
    Column("confidence of the change", True, wraps=True), Column("evidence"),
    Column("resolvable change", True, wraps=True),
)  # fmt: skip


def measurands_table(scenario: ScenarioResult, *, every: bool = False) -> Table:
    """Each measurand of both builds with its change and the verdict on it; of a build alone with its interval.

    Args:
        every: whether measurands that were not compared have a row, too.
    """
    rows = measurand_rows(scenario)
    if scenario.comparison is None:
        cells = [[Cell(row.title, short=row.name), Cell(row.number), Cell(row.interval)] for row in rows]
        return Table("Measured", _MEASURED, cells)
    changed, besides = judged_first(rows)
    cells = [_compared(row) for row in (*changed, *(besides if every else ()))]
    return Table(_against(scenario, scenario.comparison), _COMPARED, cells, intervals_in_words(scenario.comparison))


def comparison_table(comparison: ComparisonResult) -> Table:
    """A row for each change of a comparison that no scenario holds."""
    return Table("", _COMPARED, [_compared(row) for row in change_rows(comparison)])


def evidence_tables(scenario: ScenarioResult) -> list[Table]:
    """What the verdict on each measurand rests on, and measurands that are not judged; nothing of one build alone."""
    if scenario.comparison is None:
        return []
    changed, besides = judged_first(measurand_rows(scenario))
    cells = [_compared(row)[:-1] for row in besides]
    tables = [Table("", _BESIDES, cells, "The least and the most of a boot.")] if besides else []
    return [*tables, grounds_table(changed)]


def grounds_table(rows: Sequence[MeasurandLine]) -> Table:
    """What the verdict on each measurand rests on."""
    cells = [
        [*map(Cell, (row.name, row.interval, row.confidence, row.evidence, row.resolves))] for row in rows
    ]  # fmt: skip
    return Table("What the verdicts rest on", _GROUNDS, cells, f"{EVIDENCE}.")


def change_cell(change: str, verdict: Verdict | None, mark: str, why: str = "", where: str = "") -> Cell:
    """A change with the verdict on it."""
    tone = _TONES.get(verdict, "") if verdict is not None else ""
    return Cell(change, tone, mark=mark, why=why, detail=where)


def _compared(row: MeasurandLine) -> list[Cell]:
    change = change_cell(row.change, row.verdict, row.word, row.why, row.where)
    return [Cell(row.title, short=row.name), Cell(row.baseline), Cell(row.number), change]


def _against(scenario: ScenarioResult, comparison: ComparisonResult) -> str:
    pairs = f", {comparison.pairs_in_words}" if comparison.pairs else ""
    rests = "" if comparison.accepted else "; the verdict does not rest on it"
    if rests and not scenario.reason.startswith(comparison.why_not):  # it is the headline then
        rests += f": {comparison.why_not}"
    return f"Against {comparison.baseline}{pairs}, tolerance {Ratio(comparison.tolerance)}{rests}"

"""What changed by function: who touches more memory and what lines these are, and which thunks a packet takes."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.measurands.functions.more_by_function import kinds_changed
from pdrgate.reports.tree import Cell, Column, ReportPart, Table
from pdrgate.results.model import ChangeResult, PartChange, ScenarioResult

MEMORY_CAPTION = "Memory and thunks by function: what surely changed for a packet"
_LARGEST = 4
"""Functions of each measurand."""
_KINDS = 3


def memory_part(scenario: ScenarioResult) -> ReportPart:
    """Functions that surely have more or less of what is counted so, and the whole; nothing where none surely has."""
    table = _table(scenario)
    blocks = [table] if table is not None else []
    return ReportPart(title="Memory that changed", brief=blocks, whole=blocks, on_screen=True)


def _table(scenario: ScenarioResult) -> Table | None:
    changes = scenario.comparison.changes if scenario.comparison is not None else ()
    rows = [row for one in changes if one.parts for row in _rows(one)]
    if not rows:
        return None
    columns = [
        Column("measurand"), Column("function", heads=True), Column("before", True), Column("after", True),
        Column("change", True), Column("lines of", wraps=True),
    ]  # fmt: skip
    shown = len(columns) if any(row[-1].text for row in rows) else len(columns) - 1
    return Table(MEMORY_CAPTION, columns[:shown], [row[:shown] for row in rows])


def _rows(change: ChangeResult) -> list[list[Cell]]:
    """The largest changes of a measurand, what the others and all together come to, and a packet's whole."""
    shown, others = change.parts[:_LARGEST], change.parts[_LARGEST:]
    rows = [[one.label, *_values(one), f"{one.change:+z.1f}", _of(one)] for one in shown]
    if others:
        name = f"{len(others)} other functions" if len(others) > 1 else "another function"
        rows.append([name, "", "", f"{sum(one.change for one in others):+z.1f}", _kinds(others)])
    if len(change.parts) > 1:
        # A packet's whole holds what did not surely change, too.
        together = sum(one.change for one in change.parts)
        rows.append(["these together", "", "", f"{together:+z.1f}", _kinds(change.parts)])
    whole = change.candidate - change.baseline
    rows.append(["a packet", f"{change.baseline:z.1f}", f"{change.candidate:z.1f}", f"{whole:+z.1f}", ""])
    return [
        [
            Cell("" if at else change.measurand), Cell(function, is_name=at < len(shown)), *map(Cell, values),
        ]
        for at, (function, *values) in enumerate(rows)
    ]  # fmt: skip


def _values(one: PartChange) -> tuple[str, str]:
    known = one.baseline or one.candidate
    return (f"{one.baseline:z.1f}", f"{one.candidate:z.1f}") if known else ("", "")


def _of(one: PartChange) -> str:
    """What a function's lines are, and who writes to them where another function does."""
    return ", ".join(filter(None, (_kinds([one]), one.writer and f"written by {one.writer}")))


def _kinds(parts: Sequence[PartChange]) -> str:
    """``the direct map +4.0, stacks +1.0``."""
    fields = {kind: told for one in parts for kind, told in one.fields.items()} if len(parts) == 1 else {}
    return ", ".join(
        f"{kind} {by:+z.1f}" + (f" ({fields[kind]})" if kind in fields else "")
        for kind, by in kinds_changed(parts)[:_KINDS]
    )

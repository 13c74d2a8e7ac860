"""What changed by function in words: who touches more memory and what lines these are, and which thunks a packet takes.

It is the same for all reports.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.measurands.functions.line_kinds import kinds_changed
from pdrgate.reports.markup.columns import aligned
from pdrgate.reports.words.costs import ChangesTable
from pdrgate.results.model import ChangeResult, PartChange, ScenarioResult

MEMORY_CAPTION = "Memory and thunks by function: what surely changed for a packet"
_LARGEST = 4
"""Functions of each measurand."""
_KINDS = 3


def memory_table(scenario: ScenarioResult) -> ChangesTable | None:
    """Functions that surely have more or less of what is counted so, and the whole; None where none surely has."""
    changes = scenario.comparison.changes if scenario.comparison is not None else ()
    found = [one for one in changes if one.parts]
    if not found:
        return None
    rows = [row for one in found for row in _rows(one)]
    told = any(row[-1] for row in rows)
    head = ("measurand", "function", "before", "after", "change", "lines of")
    return ChangesTable(head if told else head[:-1], tuple(row if told else row[:-1] for row in rows))


def memory_lines(scenario: ScenarioResult) -> list[str]:
    """The table on the console; empty where nothing surely changed."""
    table = memory_table(scenario)
    if table is None:
        return []
    rows = [tuple(name.upper() for name in table.head), *table.rows]
    return ["surely changed for a packet:", *aligned(rows, frozenset({2, 3, 4}), indent="  ")]


def _rows(change: ChangeResult) -> list[tuple[str, ...]]:
    """The largest changes of a measurand, what the others and all together come to, and a packet's whole."""
    shown, others = change.parts[:_LARGEST], change.parts[_LARGEST:]
    rows = [("", one.label, *_values(one), f"{one.change:+z.1f}", _of(one)) for one in shown]
    if others:
        name = f"{len(others)} other functions" if len(others) > 1 else "another function"
        rows.append(("", name, "", "", f"{sum(one.change for one in others):+z.1f}", _kinds(others)))
    if len(change.parts) > 1:
        # A packet's whole holds what did not surely change, too.
        together = sum(one.change for one in change.parts)
        rows.append(("", "these together", "", "", f"{together:+z.1f}", _kinds(change.parts)))
    whole = change.candidate - change.baseline
    rows.append(("", "a packet", f"{change.baseline:z.1f}", f"{change.candidate:z.1f}", f"{whole:+z.1f}", ""))
    return [(change.measurand, *rows[0][1:]), *rows[1:]]


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

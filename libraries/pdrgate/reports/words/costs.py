"""What a packet costs, and the functions in which that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from pdrgate.measurands import Cost
from pdrgate.reports.tree import Cell, Column, ReportPart, Table, begun
from pdrgate.reports.words.build_words import of_builds
from pdrgate.reports.words.packet_way import callers_of
from pdrgate.results.model import ChangeResult, ComparisonResult, CostResult, FunctionChange, ScenarioResult
from pdrgate.values.printable import first_names
from pdrgate.values.units import Rate

INLINED = "inlined functions count for their callers"
_LARGEST = 5
"""Functions of a brief table."""
_FUNCTIONS = 40
"""Functions of a page's table."""
_CALLERS = 3
_SCATTER = 2.0
"""Instructions per packet that the whole must differ by from the sum of its functions, to have a row of its own."""


def cost_in_words(cost: CostResult) -> str:
    """``5370 instructions per packet at saturation, 64 packets a poll; 6100 at 8 kpps, 12 packets a poll``."""
    if cost.alone:
        return f"{cost.instructions:.1f} instructions per packet in the program and what it calls"
    if cost.each != "packet":
        return f"{cost.instructions:.0f} instructions of the kernel per {cost.each}"
    told = f"{cost.instructions:.0f} instructions per packet at saturation{_batch(cost.batch)}"
    if cost.lossless_instructions is not None and cost.lossless_load is not None:
        told += f"; {cost.lossless_instructions:.0f} at {Rate(cost.lossless_load)}{_batch(cost.lossless_batch)}"
    return told


def cost_part(scenario: ScenarioResult) -> ReportPart:
    """What a packet costs, and the functions on its way, the largest first."""
    cost = scenario.findings.cost
    found = of_builds(scenario, lambda one: one.findings.cost)
    return ReportPart(
        title="Cost",
        lines=(cost_in_words(cost),) if cost is not None else (),
        further=[_functions(cost, label) for label, cost in found],
    )


def changes_part(scenario: ScenarioResult) -> ReportPart:
    """The functions in which the cost of a packet changed, the largest change first, and the whole cost at the end.

    What surely changed below a tolerance is a remark, where the verdict's reason does not say it.
    """
    comparison = scenario.comparison
    if comparison is None:
        return ReportPart()
    notice, cost = comparison.notice, scenario.findings.cost
    remarks = [f"notice: {notice}"] if notice and notice not in scenario.reason else []
    total = total_change(comparison)
    brief = changes_table(comparison.functions, total, cost.each if cost is not None else "packet")
    return ReportPart(
        title="Functions that changed",
        remarks=remarks,
        brief=[brief] if brief is not None else (),
        whole=[_all_changes(comparison.functions, total, _callers(scenario))] if brief is not None else (),
        on_screen=True,
    )


def changes_table(
    changes: Sequence[FunctionChange], total: ChangeResult | None = None, each: str = "packet"
) -> Table | None:
    """The functions whose cost or calls changed most, of those that surely did; None where none surely did."""
    sure = sure_changes(changes)
    if not sure:
        return None
    most = f", the largest {_LARGEST} of {len(sure)} changes" if len(sure) > _LARGEST else ""
    return _changes(f"Instructions per {each} by function ({INLINED}){most}", sure[:_LARGEST], changes, total)


def total_change(comparison: ComparisonResult) -> ChangeResult | None:
    """The change of a packet's whole cost; None where it was not compared."""
    return next((one for one in comparison.changes if one.measurand == Cost.name), None)


def _callers(scenario: ScenarioResult) -> Mapping[str, tuple[str, ...]]:
    return callers_of(scenario.findings.cost, *(side.findings.cost for side in scenario.builds.sides))


def sure_changes(changes: Sequence[FunctionChange]) -> list[FunctionChange]:
    """Functions whose cost differs by more than trials of a build do, or whose calls differ."""
    return [one for one in changes if one.sure or one.calls_changed]


def _all_changes(
    changes: Sequence[FunctionChange], total: ChangeResult | None, callers: Mapping[str, tuple[str, ...]]
) -> Table:
    shown = sure_changes(changes)[:_FUNCTIONS]
    table = _changes(f"Instructions per packet by function: what changed ({INLINED})", shown, changes, total)
    called = [first_names(callers.get(one.function, ()), _CALLERS) for one in shown]
    if not any(called):
        return table
    rows = [[*row, Cell(by)] for row, by in zip_longest(table.rows, called, fillvalue="")]
    return replace(table, columns=(*table.columns, Column("called by", wraps=True)), rows=rows)


def _changes(
    caption: str, shown: Sequence[FunctionChange], changes: Sequence[FunctionChange], total: ChangeResult | None
) -> Table:
    """The functions that are ``shown``, of all ``changes``; without ``total`` nobody knows what they add up to."""
    counted = any(one.calls_before is not None for one in shown)
    columns = [Column("function", heads=True), Column("before", True), Column("after", True), Column("change", True)]
    rows = [
        [
            Cell(one.label, is_name=True), Cell(f"{one.before:.1f}"), Cell(f"{one.after:.1f}"),
            Cell(f"{one.change:+z.1f}"), *([Cell(_calls(one))] if counted else []),
        ]
        for one in shown
    ]  # fmt: skip
    sums = []
    if total is not None:
        change, functions = total.candidate - total.baseline, sum(one.change for one in changes)
        others = len(changes) - len(shown)
        name = f"{others} other functions" if others > 1 else "all other functions"
        # A burst of a few trials is in the median of a packet's whole, and of no function.
        scatter = change - functions if abs(change - functions) >= _SCATTER else 0.0
        sums.append((name, "", "", f"{change - scatter - sum(one.change for one in shown):+z.1f}"))
        if scatter:
            sums.append(("what differs from trial to trial", "", "", f"{scatter:+z.1f}"))
        sums.append(("a packet", f"{total.baseline:.1f}", f"{total.candidate:.1f}", f"{change:+z.1f}"))
    rows += [[*map(Cell, texts), *([Cell("")] if counted else [])] for texts in sums]
    return Table(caption, [*columns, *([Column("calls", True)] if counted else [])], rows)


def _functions(cost: CostResult, of: str) -> Table:
    columns = (Column("function", heads=True), Column("instructions", True), Column("calls", True))
    rows = [
        [Cell(one.name), Cell(f"{one.instructions:.1f}"), Cell(f"{one.calls:.3g}")]
        for one in cost.functions[:_FUNCTIONS]
    ]
    if left := cost.functions[_FUNCTIONS:]:
        rest = f"{len(left)} smaller ones"
        rows.append([Cell(rest), Cell(f"{sum(one.instructions for one in left):.1f}"), Cell("")])
    return Table(begun(of, f"{cost_in_words(cost)}; by function, per {cost.each} ({INLINED})"), columns, rows)


def _calls(one: FunctionChange) -> str:
    """``2, was 1`` where it surely changed, else how often it is called."""
    before, after = (f"{calls or 0.0:.3g}" for calls in (one.calls_before, one.calls_after))
    return f"{after}, was {before}" if one.calls_changed else after


def _batch(packets: float | None) -> str:
    return "" if packets is None else f", {packets:.3g} packets a poll"

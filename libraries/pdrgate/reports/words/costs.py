"""The cost of a packet in words, the same for all reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.measurands import Cost
from pdrgate.reports.markup.columns import aligned
from pdrgate.results.model import ChangeResult, ComparisonResult, CostResult, FunctionChange, ScenarioResult
from pdrgate.values.units import Rate

INLINED = "what the compiler inlined counts for the function that it was inlined into"
_LARGEST = 5
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


def cost_lines(scenario: ScenarioResult) -> list[str]:
    """The end of a scenario on the console: what a packet costs, and the functions where that changed most."""
    lines = []
    if scenario.findings.cost is not None:
        lines.append(cost_in_words(scenario.findings.cost))
    comparison = scenario.comparison
    lines += notice_lines(scenario)
    each = scenario.findings.cost.each if scenario.findings.cost is not None else "packet"
    if comparison is None:
        return lines
    return lines + change_lines(comparison.functions, total_change(comparison), each)


def notice_lines(scenario: ScenarioResult) -> list[str]:
    """What surely changed below a tolerance, where the verdict's reason does not say it."""
    notice = scenario.comparison.notice if scenario.comparison is not None else ""
    return [f"notice: {notice}"] if notice and notice not in scenario.reason else []


def change_lines(
    changes: Sequence[FunctionChange], total: ChangeResult | None = None, each: str = "packet"
) -> list[str]:
    """A table of the functions whose cost changed most; empty where none surely did."""
    largest, number = largest_changes(changes)
    if not largest:
        return []
    most = f", the largest {len(largest)} of {number} changes" if number > len(largest) else ""
    table = changes_table(largest, changes, total)
    rows = [tuple(name.upper() for name in table.head), *table.rows]
    return [f"instructions per {each} by function{most}:", *aligned(rows, indent="  ")]


def largest_changes(changes: Sequence[FunctionChange]) -> tuple[Sequence[FunctionChange], int]:
    """The functions whose cost or calls changed most, of those that surely did, and how many these are."""
    sure = [one for one in changes if one.sure or one.calls_changed]
    return sure[:_LARGEST], len(sure)


def total_change(comparison: ComparisonResult) -> ChangeResult | None:
    """The change of a packet's whole cost; None where it was not compared."""
    return next((one for one in comparison.changes if one.measurand == Cost.name), None)


@dataclass(frozen=True, slots=True)
class ChangesTable:
    """Functions with what they cost before and after, what all others changed by, and the whole: it adds up."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """A cell is empty where nothing is to be said."""


def changes_table(
    shown: Sequence[FunctionChange], changes: Sequence[FunctionChange], total: ChangeResult | None
) -> ChangesTable:
    """The functions that are ``shown``, of all ``changes``; without ``total`` nobody knows what they add up to."""
    counted = any(one.calls_before is not None for one in shown)
    rows = [
        (
            one.label,
            f"{one.before:.1f}",
            f"{one.after:.1f}",
            f"{one.change:+z.1f}",
            *((_calls(one),) if counted else ()),
        )
        for one in shown
    ]
    if total is not None:
        change, functions = total.candidate - total.baseline, sum(one.change for one in changes)
        others = len(changes) - len(shown)
        name = f"{others} other functions" if others > 1 else "all other functions"
        # A burst of a few trials is in the median of a packet's whole, and of no function.
        scatter = change - functions if abs(change - functions) >= _SCATTER else 0.0
        rows.append(_sum(name, change - scatter - sum(one.change for one in shown), counted))
        if scatter:
            rows.append(_sum("what differs from trial to trial", scatter, counted))
        none = ("",) if counted else ()
        rows.append(("a packet", f"{total.baseline:.1f}", f"{total.candidate:.1f}", f"{change:+z.1f}", *none))
    return ChangesTable(("function", "before", "after", "change", *(("calls",) if counted else ())), tuple(rows))


def _sum(name: str, change: float, counted: bool) -> tuple[str, ...]:
    return (name, "", "", f"{change:+z.1f}", *(("",) if counted else ()))


def _calls(one: FunctionChange) -> str:
    """``2, was 1`` where it surely changed, else how often it is called."""
    before, after = (f"{calls or 0.0:.3g}" for calls in (one.calls_before, one.calls_after))
    return f"{after}, was {before}" if one.calls_changed else after


def _batch(packets: float | None) -> str:
    return "" if packets is None else f", {packets:.3g} packets a poll"

"""The cost of a packet in words, the same for all reports."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.results.model import CostResult, FunctionChange, ScenarioResult
from pdrgate.units import Rate

INLINED = "what the compiler inlined counts for the function that it was inlined into"
_LARGEST = 5


def cost_in_words(cost: CostResult) -> str:
    """``5370 instructions per packet at saturation, 64 packets a poll; 6100 at 8 kpps, 12 packets a poll``."""
    told = f"{cost.instructions:.0f} instructions per packet at saturation{_batch(cost.batch)}"
    if cost.lossless_instructions is not None and cost.lossless_load is not None:
        told += f"; {cost.lossless_instructions:.0f} at {Rate(cost.lossless_load)}{_batch(cost.lossless_batch)}"
    return told


def cost_lines(scenario: ScenarioResult) -> list[str]:
    """The end of a scenario on the console: what a packet costs, and the functions where that changed most."""
    lines = []
    if scenario.cost is not None:
        lines.append(cost_in_words(scenario.cost))
    return lines + change_lines(scenario.comparison.functions if scenario.comparison is not None else ())


def change_lines(changes: Sequence[FunctionChange]) -> list[str]:
    """A table of the functions whose cost changed most; empty where none surely did."""
    largest, number = largest_changes(changes)
    if not largest:
        return []
    what = "function" if number == 1 else f"{number} functions"
    most = f", the largest {len(largest)} changes" if number > len(largest) else ""
    return [f"instructions per packet changed in {what}{most}:", *_columns(largest)]


def largest_changes(changes: Sequence[FunctionChange]) -> tuple[Sequence[FunctionChange], int]:
    """The functions whose cost changed most, of those that surely did, and how many these are."""
    sure = [one for one in changes if one.sure]
    return sure[:_LARGEST], len(sure)


def _columns(changes: Sequence[FunctionChange]) -> list[str]:
    rows = [(one.function, f"{one.before:.1f}", f"{one.after:.1f}", f"{one.change:+.1f}") for one in changes]
    head = ("FUNCTION", "BEFORE", "AFTER", "CHANGE")
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  " + "  ".join(f"{cell:{'<' if at == 0 else '>'}{widths[at]}s}" for at, cell in enumerate(row))
        for row in (head, *rows)
    ]


def _batch(packets: float | None) -> str:
    return "" if packets is None else f", {packets:.3g} packets a poll"

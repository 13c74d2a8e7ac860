"""A change of what a packet has of something, told by a number and by the functions that it is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.measurands.functions.line_kinds import kinds_changed
from pdrgate.results.model import ChangeResult, FunctionChange


@dataclass(frozen=True, slots=True)
class MoreByFunction:
    """A change in a sentence that names functions: *each packet touches 6.0 more cache lines (31.2 -> 37.2)*."""

    words: str
    """What a packet has more of, ``touches {} {} cache lines``."""
    whole: bool = True
    says_worse: bool = True

    def clause(self, change: ChangeResult, functions: Sequence[FunctionChange] | None) -> str:
        by = more_of(change)
        said = self.words.format(f"{abs(by):.1f}", "more" if by >= 0 else "fewer")
        before, after = before_and_after(change)
        least, most = (f"{one:+z.1f}" for one in limits_of(change))
        between = f", {least} to {most}" if least != most else ""
        told = f"each packet {said} ({before:z.1f} -> {after:z.1f}{between})"
        same = [one for one in change.parts if (one.change > 0) == (by > 0)]
        if not same:
            return told
        first = max(same, key=lambda one: abs(one.change))
        part = "" if abs(first.change) >= _ALL * abs(by) else f"{abs(first.change):.1f} of them "
        kinds = [(kind, more) for kind, more in kinds_changed(change.parts) if (more > 0) == (by > 0)]
        of = f", {abs(kinds[0][1]):.1f} of {kinds[0][0]}" if kinds else ""
        of += f" ({first.fields[kinds[0][0]]})" if kinds and kinds[0][0] in first.fields else ""
        writer = f", written by {first.writer}" if first.writer else ""
        return f"{told}, {part}in {first.function}{of}{writer}"


def share_of(baseline: float) -> float:
    """What a change is a share of: of a packet that has less than one of it, any more would be a large share."""
    return max(baseline, 1.0)


def more_of(change: ChangeResult) -> float:
    """How much more of it a packet has: what surely changed is summed."""
    return sum(one.change for one in change.parts) if change.parts else change.candidate - change.baseline


def limits_of(change: ChangeResult) -> tuple[float, float]:
    """The interval of the same: the least and the most by which trials of the two builds differ.

    Both are equal where all trials of a build counted the same, and in results of older versions, which do not have
    them.
    """
    whole = share_of(change.baseline)
    return change.lower * whole, change.upper * whole


def before_and_after(change: ChangeResult) -> tuple[float, float]:
    """What a packet had of it and has now, so that the difference is the change.

    What surely changed is summed. All that was counted has what trials differ by besides, and may differ by another
    number: then it is that of the functions that surely changed. Results of older versions do not have that.
    """
    by = sum(one.change for one in change.parts)
    parts = sum(one.baseline for one in change.parts), sum(one.candidate for one in change.parts)
    if not change.parts or _adds_up(change.baseline, change.candidate, by) or not _adds_up(*parts, by):
        return change.baseline, change.candidate
    return parts


def _adds_up(before: float, after: float, by: float) -> bool:
    """Whether two numbers, as they are told, differ by a third one."""
    return f"{after - before:.1f}" == f"{by:.1f}"


_ALL = 0.95
"""A share of a change: the function that has it is the only one."""

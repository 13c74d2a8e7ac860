"""A change of what a packet has of something, said by a number and by the functions that it is in."""

from __future__ import annotations

from pdrgate.measurands.description import Sentence
from pdrgate.measurands.functions.line_kinds import kinds_changed
from pdrgate.results.model import ChangeResult, PartChange


def more_by_function(words: str) -> Sentence:
    """A change in a sentence that says the packet's numbers, then the functions: *each packet touches 6.0 more cache
    lines (31.2 -> 37.2), 5.0 of them in lookup*.

    Where the functions that surely changed come to another number than the packet's, both are said: *(11.6 -> 13.8),
    +4.0 in enqueue*.

    Args:
        words: what a packet has more of, ``touches {} {} cache lines``.
    """
    return Sentence(lambda change, _: _more_in_words(words, change))


def _more_in_words(words: str, change: ChangeResult) -> str:
    by = more_of(change)
    said = words.format(f"{abs(by):.1f}", "more" if by >= 0 else "fewer")
    numbers = f"{change.baseline:z.1f} -> {change.candidate:z.1f}"
    if not change.parts:
        return f"each packet {said} ({numbers})"
    sure = surely_more(change)
    first = max((one for one in change.parts if (one.change > 0) == (sure > 0)), key=lambda one: abs(one.change))
    alone = abs(first.change) >= _ALL * abs(sure)
    limits = limits_in_words(change)
    if adds_up(change):
        between = f", {limits}" if limits else ""
        part = "" if alone else f"{abs(first.change):.1f} of them "
        return f"each packet {said} ({numbers}{between}), {part}in {_place(change, first)}"
    between = f" ({limits})" if limits else ""
    told = f"{sure:+z.1f}{between} in" if alone else f"by function {sure:+z.1f}{between}, most in"
    return f"each packet {said} ({numbers}), {'' if by * sure > 0 else 'though '}{told} {_place(change, first)}"


def _place(change: ChangeResult, first: PartChange) -> str:
    """The function that has most of a change, what its lines are of, and who writes to them."""
    more = surely_more(change) > 0
    kinds = [(kind, by) for kind, by in kinds_changed(change.parts) if (by > 0) == more]
    of = f", {abs(kinds[0][1]):.1f} of {kinds[0][0]}" if kinds else ""
    of += f" ({first.fields[kinds[0][0]]})" if kinds and kinds[0][0] in first.fields else ""
    return first.label + of + (f", written by {first.writer}" if first.writer else "")


def share_of(baseline: float) -> float:
    """What a change is a share of: of a packet that has less than one of it, any more would be a large share."""
    return max(baseline, 1.0)


def more_of(change: ChangeResult) -> float:
    """How much more of it a packet has: the difference of the two numbers as they are said, so that they subtract."""
    return round(change.candidate, 1) - round(change.baseline, 1)


def surely_more(change: ChangeResult) -> float:
    """How much more of it the functions have that surely changed; the rest of a packet may scatter or move besides."""
    return sum(one.change for one in change.parts)


def adds_up(change: ChangeResult) -> bool:
    """Whether what surely changed is the packet's difference; so it is where nothing has parts."""
    sure = surely_more(change)
    return not change.parts or abs(more_of(change) - sure) <= max(_SCATTER, (1.0 - _ALL) * abs(sure))


def limits_of(change: ChangeResult) -> tuple[float, float]:
    """The interval of what surely changed: the least and the most by which trials of the two builds differ.

    Both are equal where all trials of a build counted the same.
    """
    whole = share_of(change.baseline)
    return change.lower * whole, change.upper * whole


def limits_in_words(change: ChangeResult) -> str:
    """``+0.9 to +1.1``; empty where both ends are the same."""
    least, most = (f"{one:+z.1f}" for one in limits_of(change))
    return f"{least} to {most}" if least != most else ""


_SCATTER = 0.15
"""Amount for a packet by which all functions together that did not surely change may differ."""
_ALL = 0.95
"""A share of a change: the function that has it is the only one."""

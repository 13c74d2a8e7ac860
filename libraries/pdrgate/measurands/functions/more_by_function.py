"""A change of what a packet has of something, in words: a number, the functions that it is in, and kinds of lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Final

from pdrgate.measurands.description import Description, Rule, Sentence, Tolerance
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.record.stretch import MemorySeen
from pdrgate.results.model import ChangeResult, PartChange


def counted_by_function(
    name: str, metric: str, about: str, words: str, tolerance: float, *, unit: str = "", rule: Rule = Rule.SURE,
    slows: str = "", report_only: str = "",
) -> Description:  # fmt: skip
    """The description of what is counted for a packet, function by function: less of it is better.

    A change is a sentence that says the packet's numbers, then the functions: *each packet touches 6.0 more cache lines
    (31.2 -> 37.2), 5.0 of them in lookup*. Where the functions that surely changed come to another number than the
    packet's, both are said: *(11.6 -> 13.8), +4.0 in enqueue*.

    Args:
        metric: what OpenMetrics calls it, without ``_per_packet``.
        about: what it is, in a clause.
        words: what a packet has more of, ``touches {} {} cache lines``.
        tolerance: the growth that is accepted, relative.
        unit: what is counted, where that is not the name.
        slows: as `Description.slows`.
        report_only: as `Description.report_only`.
    """
    return Description(
        name, Unit(f"{unit or name}/packet", metric=f"{metric}_per_packet", prefixed=False), "lower", about, rule=rule,
        tolerance=Tolerance(tolerance, ""), sentence=Sentence(lambda change, _: _more_in_words(words, change)),
        slows=slows, report_only=report_only,
    )  # fmt: skip


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


LINE_KINDS: Final[Mapping[str, str]] = {
    "stack_lines": "stacks", "cpu_lines": "per-CPU areas", "symbol_lines": "the kernel's image",
    "direct_lines": "the direct map",
    "vmalloc_lines": "vmalloc", "page_lines": "struct pages", "program_lines": "programs",
}  # fmt: skip
"""Fields of `MemoryCounts`, and what their lines are of."""
_TOLD = 0.1
"""Lines of a kind for a packet, for the kind to be listed."""


def lines_by_kind(seen: Sequence[MemorySeen], function: str) -> dict[str, float]:
    """A function's lines by what they are, for a packet: medians of the trials.

    Lines that have names of their own, as far as these are known, count under their name: a BPF map, a slab cache, a
    variable.
    """
    trials = [_of_trial(one, function) for one in seen]
    kinds = dict.fromkeys(kind for trial in trials for kind in trial)
    found = {kind: median(trial.get(kind, 0.0) for trial in trials) for kind in kinds}
    return {kind: lines for kind, lines in found.items() if lines > 0}


def names_of(seen: Sequence[MemorySeen], function: str, field: str) -> dict[str, float]:
    """How many lines of each name a field of `MemoryCounts` counts for a packet: medians of the trials.

    There are fewer than it counts, for not all lines have names.
    """
    trials = [(one.named.get(function, {}).get(field, {}), one.windows) for one in seen]
    names = dict.fromkeys(name for trial, _ in trials for name in trial)
    found = {name: median(trial.get(name, 0) / windows for trial, windows in trials) for name in names}
    return {name: count for name, count in found.items() if count > 0}


def _of_trial(seen: MemorySeen, function: str) -> dict[str, float]:
    counts, named = seen.functions.get(function), seen.named.get(function, {})
    if counts is None:
        return {}
    found = {
        kind: max(0, getattr(counts, field) - sum(named.get(field, {}).values())) for field, kind in LINE_KINDS.items()
    }
    for field in LINE_KINDS:
        found.update(named.get(field, {}))
    return {kind: lines / seen.windows for kind, lines in found.items()}


def kinds_changed(parts: Iterable[PartChange]) -> list[tuple[str, float]]:
    """What the changes of functions come to by kind, the largest first."""
    found: dict[str, float] = {}
    for part in parts:
        for kind, change in part.kinds.items():
            found[kind] = found.get(kind, 0.0) + change
    return sorted(((kind, by) for kind, by in found.items() if abs(by) >= _TOLD), key=lambda one: -abs(one[1]))

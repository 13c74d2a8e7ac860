"""Functions that two builds call by different names.

A function that one build does not have and the other does may be one and the same. Otherwise it would show as a loss
and as a gain that are no change of anything. Two functions are taken for one that do alike work as often, and that
stand in the same place or have like names. Both must be wholly gone in the other build: what moved between two
functions that both builds have is a change of these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from pdrgate.observers.function_names import OTHERS, is_thunk
from pdrgate.results.model import CostResult, FunctionResult

_AS_OFTEN = 0.8
"""Calls per packet of one, of those of the other, at least."""
_LIKE_CODE = 0.7
"""Least ratio of the instructions of each call of two functions that are taken for one."""
_SAME_CODE = 0.9
"""Least ratio of the instructions of each call, where nothing is like in their names."""
_LIKE_NAME = 0.7
"""The least ratio of `SequenceMatcher`, unless one name begins with the other."""
_BEGINNING = 8
"""Letters that the shorter name must have where the longer begins with it."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The callers and callees of a function, as far as they matter."""

    callers: frozenset[str]
    callees: frozenset[str]


def renamed(before: CostResult, after: CostResult) -> dict[str, str]:
    """Functions by their name in the baseline, with what the candidate calls them; each name once, the likest
    first."""
    old, new = ({one.name: one for one in cost.functions} for cost in (before, after))
    gone = [one for name, one in old.items() if name not in new and _can_be_renamed(one)]
    fresh = [one for name, one in new.items() if name not in old and _can_be_renamed(one)]
    if not gone or not fresh:
        return {}
    both = old.keys() & new.keys()
    there, here = neighbours_of(before, both), neighbours_of(after, both)
    likeness = sorted(
        (
            (-likeness, earlier.name, later.name)
            for earlier in gone
            for later in fresh
            if (likeness := _likeness(earlier, later, there.get(earlier.name), here.get(later.name)))
        ),
    )
    found: dict[str, str] = {}
    for _, earlier, later in likeness:
        if earlier not in found and later not in found.values():
            found[earlier] = later
    return found


def _can_be_renamed(one: FunctionResult) -> bool:
    return one.calls > 0 and one.instructions > 0 and one.name != OTHERS and not is_thunk(one.name)


def _likeness(one: FunctionResult, other: FunctionResult, before: Neighbours | None, after: Neighbours | None) -> float:
    """How like two functions are; 0 where they are not the same."""
    often = _ratio(one.calls, other.calls)
    code = _ratio(one.instructions / one.calls, other.instructions / other.calls)
    if often < _AS_OFTEN or code < _LIKE_CODE:
        return 0.0
    name = SequenceMatcher(None, one.name, other.name, autojunk=False).ratio()
    like_name = name >= _LIKE_NAME or _begins(one.name, other.name) or _begins(other.name, one.name)
    if before is None or after is None:
        in_place = False
    elif _alike(before.callers, after.callers) and _alike(before.callees, after.callees):
        in_place = bool(before.callers & after.callers) and code >= _SAME_CODE
    else:
        return 0.0
    return often * code * (1.0 + name) if like_name or in_place else 0.0


def _ratio(one: float, other: float) -> float:
    return min(one, other) / max(one, other)


def _begins(longer: str, beginning: str) -> bool:
    return len(beginning) >= _BEGINNING and longer.startswith(beginning)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sets do not contradict each other; whoever is in one build alone is in neither."""
    return bool(one & other) or not one or not other


def neighbours_of(cost: CostResult, known: Collection[str]) -> dict[str, Neighbours]:
    """The callers and callees of functions: in the chains that were followed, and by the code of all.

    Args:
        known: the functions that matter as callers and callees.
    """
    callers: dict[str, set[str]] = {}
    callees: dict[str, set[str]] = {}
    for caller, function in _calls(cost):
        callers.setdefault(function, set()).update({caller}.intersection(known))
        callees.setdefault(caller, set()).update({function}.intersection(known))
    names = callers.keys() | (callees.keys() - {""})
    return {name: Neighbours(frozenset(callers.get(name, ())), frozenset(callees.get(name, ()))) for name in names}


def _calls(cost: CostResult) -> Iterator[tuple[str, str]]:
    """Each function of the path with its caller, an empty name where there is none; and what code calls."""
    for frame in cost.path:
        yield cost.path[frame.caller].function if frame.caller is not None else "", frame.function
    for function, callers in cost.callers.items():
        for caller in callers:
            yield caller, function

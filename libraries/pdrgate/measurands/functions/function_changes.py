"""What changed in the cost of a packet between two builds: instructions and calls, function by function.

Calls are counted, and of most functions on the packets' path they repeat from boot to boot to a hundredth for each
packet: that one is called twice where it was called once is sure, however little it costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pdrgate.measurands.functions.moved_work import MovedWork, moved_work, shown_by
from pdrgate.observers.function_names import OTHERS, is_thunk
from pdrgate.results.model import CostResult, FunctionChange, FunctionResult

_LEAST = 0.1
"""Instructions per packet that a function must change by to be listed."""
_SURE = 0.5
"""Instructions per packet that a function must change by, and so many deviations of its trials:"""
_DEVIATIONS = 3.0
_SURE_CALLS = 0.4
"""Calls per packet that all replicates of one build must lie beyond all of the other's; boots of one build were up to
0.22 apart, in who frees a packet. And so many times what the replicates of one build are apart:"""
_RANGES = 3.0


def function_changes(
    before: CostResult | None, after: CostResult | None, work: Sequence[MovedWork] | None = None
) -> tuple[FunctionChange, ...]:
    """How the cost changed by function, the largest change first; nothing where one of them was not counted.

    Args:
        work: the functions that are one, for work moved between them; None: found by the costs alone, see `moved_work`.
    """
    if before is None or after is None:
        return ()
    old, new = ({one.name: one for one in cost.functions} for cost in (before, after))
    moved = moved_work(before, after) if work is None else work
    counts = all(any(one.calls for one in cost.functions) for cost in (before, after))
    batches = explained_by_batches(before, after)
    found = [_change(one, _together(one, old), _together(one, new), counts, batches) for one in _each(old, new, moved)]
    told = [one for one in found if abs(one.change) >= _LEAST or one.calls_changed]
    return tuple(sorted(told, key=lambda one: (-abs(one.change), one.function)))


_NONE = FunctionResult(name="", instructions=0.0, calls=0.0, deviation=0.0, fewest_calls=0.0, most_calls=0.0)


def _each(
    old: Mapping[str, FunctionResult], new: Mapping[str, FunctionResult], moved: Sequence[MovedWork]
) -> Iterator[MovedWork]:
    """Each function once, with those that it shares its work with."""
    for name in (old.keys() | new.keys()) - shown_by(moved).keys():
        yield MovedWork(name, ())
    yield from moved


def _together(one: MovedWork, functions: Mapping[str, FunctionResult]) -> FunctionResult:
    """What functions cost together; they are called as often as the one that they are shown by."""
    found = [functions[name] for name in one.members if name in functions]
    if one.renamed or not found:
        return found[0] if found else _NONE
    deviations = [each.deviation for each in found if each.deviation is not None]
    return replace(
        functions.get(one.name, _NONE), instructions=sum(each.instructions for each in found),
        deviation=sum(each**2 for each in deviations) ** 0.5 if len(deviations) == len(found) else None,
    )  # fmt: skip


def _change(
    one: MovedWork, base: FunctionResult, candidate: FunctionResult, counts: bool, batches: float
) -> FunctionChange:
    change = candidate.instructions - base.instructions
    told = one.name != OTHERS and not is_thunk(one.name)
    return FunctionChange(
        function=one.name, before=base.instructions, after=candidate.instructions, change=change,
        sure=_sure(change, base.deviation, candidate.deviation),
        calls_before=base.calls if counts else None, calls_after=candidate.calls if counts else None,
        calls_changed=counts and told and _called_otherwise(base, candidate, batches),
        renamed_from=one.others[0] if one.renamed else "", moved_with=() if one.renamed else one.others,
    )  # fmt: skip


def _sure(change: float, *deviations: float | None) -> bool:
    known = [one for one in deviations if one is not None]
    spread = sum(one**2 for one in known) ** 0.5
    return len(known) == len(deviations) and abs(change) >= max(_SURE, _DEVIATIONS * spread)


def _called_otherwise(base: FunctionResult, candidate: FunctionResult, batches: float) -> bool:
    """Whether all replicates of one build lie beyond all of the other's, by more than their scatter and batches do."""
    fewest, most = base.fewest_calls, base.most_calls
    fewest_now, most_now = candidate.fewest_calls, candidate.most_calls
    if fewest is None or most is None or fewest_now is None or most_now is None:
        return False
    if not (_entered(base) and _entered(candidate)):
        return False
    apart = max(fewest_now - most, fewest - most_now)
    explained = batches * max(base.calls, candidate.calls)
    return apart >= max(_SURE_CALLS, _RANGES * max(most - fewest, most_now - fewest_now), explained)


def _entered(one: FunctionResult) -> bool:
    """Whether its calls are known: of a function whose begin was inlined, and whose rest was not, no call is seen."""
    return one.calls > 0 or not one.instructions


def explained_by_batches(before: CostResult, after: CostResult) -> float:
    """The share by which calls per packet differ of a function that is called so many times for each batch."""
    if not before.batch or not after.batch:
        return 0.0
    return 1.0 - min(before.batch, after.batch) / max(before.batch, after.batch)

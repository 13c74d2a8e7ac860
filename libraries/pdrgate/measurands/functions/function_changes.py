"""What changed in the cost of a packet between two builds: instructions and calls, function by function.

Calls are counted, and of most functions on the packets' path they repeat from boot to boot to a hundredth for each
packet: that one is called twice where it was called once is sure, however little it costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pdrgate.measurands.functions.renamed import renamed
from pdrgate.observers.function_names import OTHERS, is_thunk
from pdrgate.results.model import CostResult, FunctionChange, FunctionResult

_LEAST = 0.1
"""Instructions per packet that a function must change by to be told of."""
_SURE = 0.5
"""Instructions per packet that a function must change by, and so many deviations of its trials:"""
_DEVIATIONS = 3.0
_SURE_CALLS = 0.4
"""Calls per packet that all replicates of one build must lie beyond all of the other's; boots of one build were up to
0.22 apart, in who frees a packet. And so many times what the replicates of one build are apart:"""
_RANGES = 3.0


def function_changes(before: CostResult | None, after: CostResult | None) -> tuple[FunctionChange, ...]:
    """How the cost changed by function, the largest change first; nothing where one of them was not counted.

    What one build calls so and the other otherwise is one function, see `renamed`.
    """
    if before is None or after is None:
        return ()
    old, new = ({one.name: one for one in cost.functions} for cost in (before, after))
    names = renamed(before, after)
    counts = all(any(one.calls for one in cost.functions) for cost in (before, after))
    batches = explained_by_batches(before, after)
    found = [
        _change(name, earlier, old.get(earlier or name, _NONE), new.get(name, _NONE), counts, batches)
        for name, earlier in _together(old, new, names)
    ]
    told = [one for one in found if abs(one.change) >= _LEAST or one.calls_changed]
    return tuple(sorted(told, key=lambda one: (-abs(one.change), one.function)))


_NONE = FunctionResult(name="", instructions=0.0, calls=0.0, deviation=0.0, fewest_calls=0.0, most_calls=0.0)


def _together(
    old: Mapping[str, FunctionResult], new: Mapping[str, FunctionResult], names: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Each function once, and its earlier name where it has another one now."""
    for name in (old.keys() | new.keys()) - names.keys() - set(names.values()):
        yield name, ""
    for earlier, name in names.items():
        yield name, earlier


def _change(
    name: str, earlier: str, base: FunctionResult, candidate: FunctionResult, counts: bool, batches: float
) -> FunctionChange:
    change = candidate.instructions - base.instructions
    told = name != OTHERS and not is_thunk(name)
    return FunctionChange(
        function=name, before=base.instructions, after=candidate.instructions, change=change,
        sure=_sure(change, base.deviation, candidate.deviation),
        calls_before=base.calls if counts else None, calls_after=candidate.calls if counts else None,
        calls_changed=counts and told and _called_otherwise(base, candidate, batches), renamed_from=earlier,
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

"""What a change costs on one path, by function and call, foretells what it costs on the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pdrgate.results.model import FunctionChange

_LEAST = 1.0
"""Instructions per packet by which a function may miss what is foretold of it, and so much of that:"""
_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class CallCost:
    """What a call of a function takes in both builds, instructions; 0 in a build that does not call it."""

    before: float
    after: float

    def foretells(self, one: FunctionChange) -> float:
        """The change of the function's instructions per packet on a path that calls it so often."""
        before, after = one.calls_before or 0.0, one.calls_after or 0.0
        return (self.after - self.before) * min(before, after) + (
            self.after * (after - before) if after > before else self.before * (after - before)
        )


KnownCalls = Mapping[str, tuple[CallCost, ...]]
"""What calls take on the paths that are judged already, by the function's label."""


def known_calls(judged: Iterable[Sequence[FunctionChange]]) -> KnownCalls:
    """What calls take of the functions that surely changed on some paths.

    Args:
        judged: of each path how its cost changed by function.
    """
    found: dict[str, tuple[CallCost, ...]] = {}
    for path in judged:
        for one in path:
            if one.sure and (cost := _cost_of_calls(one)) is not None:
                found[one.label] = (*found.get(one.label, ()), cost)
    return found


def foretold_change(functions: Sequence[FunctionChange], known: KnownCalls) -> tuple[float, float] | None:
    """The change of a packet's cost on a path by what calls take on other paths, instructions from and to.

    It is the sum over the functions that surely changed of their change by call times their calls here. None where one
    of them is not known from another path, or changed by something else than is foretold of it.

    Args:
        functions: how the path's cost changed by function, as seen so far.
    """
    low = high = 0.0
    for one in functions:
        if not one.sure:
            continue
        each = [cost.foretells(one) for cost in known.get(one.label, ())]
        if not each or _cost_of_calls(one) is None:
            return None
        slack = max(_LEAST, _SHARE * abs(one.change))
        if not min(each) - slack <= one.change <= max(each) + slack:
            return None
        low, high = low + min(each), high + max(each)
    return low, high


def _cost_of_calls(one: FunctionChange) -> CallCost | None:
    """None where calls are not counted, or were not seen: of a function whose begin was inlined none is."""
    before, after = one.calls_before, one.calls_after
    if before is None or after is None or (one.before and not before) or (one.after and not after):
        return None
    return CallCost(one.before / before if before else 0.0, one.after / after if after else 0.0)

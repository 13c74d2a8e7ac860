"""Functions that began to cost a packet more where a trend moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pdrgate.measurands import described
from pdrgate.measurands.description import Parts
from pdrgate.measurands.functions.function_changes import function_changes
from pdrgate.results.model import CostResult
from pdrgate.trend import Move, Point, Series

CostAt = Callable[[Series, Point], CostResult | None]
"""What a packet cost at a point of a series, by function; None where it was not counted."""

FunctionsBetween = Callable[[Series, Point, Point], str]
"""The functions that surely changed most between two points of a series, in words."""
_MOST = 3


def functions_between(series: Series, before: Point, after: Point, cost_at: CostAt) -> str:
    """``virtqueue_add_outbuf +216, fib_lookup -12``: those that surely changed most; empty where nobody counted."""
    changes = function_changes(cost_at(series, before), cost_at(series, after))
    sure = sorted((one for one in changes if one.sure), key=lambda one: -abs(one.change))
    return ", ".join(f"{one.function} {one.change:+z.0f}" for one in sure[:_MOST])


def with_functions(found: Iterable[Move], cost_at: CostAt) -> tuple[Move, ...]:
    """The moves, and to those that functions have a part in the ones that changed between the two points around it."""
    return tuple(_with_functions(move, described(move.series.measurand).parts, cost_at) for move in found)


def _with_functions(move: Move, parts: Parts | None, cost_at: CostAt) -> Move:
    if parts is None:
        return move
    changes = function_changes(cost_at(move.series, move.before), cost_at(move.series, move.after))
    sure = tuple(one for one in changes if parts.sure(one))
    return replace(move, functions=sure, within=parts.within(move.after.value - move.before.value, sure))

"""Which functions a packet began to cost more in, where a trend moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pdrgate.gate.verdicts.packet_cost import within_functions
from pdrgate.measurands import Cost
from pdrgate.measurands.function_changes import function_changes
from pdrgate.results.model import CostResult
from pdrgate.trend import Move, Point, Series

CostAt = Callable[[Series, Point], CostResult | None]
"""What a packet cost at a point of a series, by function; None where it was not counted."""


def with_functions(found: Iterable[Move], cost_at: CostAt) -> tuple[Move, ...]:
    """The moves, and to those of the cost the functions that changed between the two points around it."""
    return tuple(_told(move, cost_at) if move.series.measurand == Cost.name else move for move in found)


def _told(move: Move, cost_at: CostAt) -> Move:
    changes = function_changes(*(cost_at(move.series, point) for point in (move.before, move.after)))
    sure = tuple(one for one in changes if one.sure)
    return replace(move, functions=sure, within=within_functions(move.after.value - move.before.value, sure))

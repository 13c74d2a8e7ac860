"""Whether the cost of a packet can be counted on a testbed, and what that takes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from pdrgate.observers.watching import Observer
from pdrgate.record.phase import Phase
from pdrgate.testbeds import Testbed
from pdrgate.values.units import COST_TOLERANCE, Ratio


def counting_of(testbed: Testbed) -> tuple[Observer, ...]:
    """Observers that count functions in trials for the cost of a packet; nothing where nobody can count."""
    return testbed.executed.counting() if testbed.executed is not None else ()


def watching_during(testbed: Testbed) -> Mapping[Phase, tuple[Observer, ...]]:
    """What watches in trials that show one thing and slow the SUT, by phase, once `counting_of` was asked.

    It follows calls, sees each access to memory, or has the CPUs execute in turn.
    """
    executed = testbed.executed
    if executed is None:
        return {}
    alone = {Phase.PATH: tuple(executed.tracing()), Phase.MEMORY: tuple(executed.memory())}
    # Only now: its observers go by the names that `memory` has read.
    return {**alone, **executed.in_lockstep()}


def cost_tolerance_of(testbed: Testbed, asked: Ratio | None) -> float | None:
    """Relative rise of a packet's cost that is accepted there; None where the cost is report-only."""
    if asked is not None:
        return float(asked)
    return float(COST_TOLERANCE) if testbed.executed is not None and testbed.executed.exact else None


def busy_of(testbed: Testbed) -> Callable[[], AbstractContextManager[object]]:
    """What has a program use the SUT's CPU, where that is needed."""
    return testbed.executed.busy if testbed.executed is not None else contextlib.nullcontext


def uncounted_reason(testbed: Testbed) -> str:
    """Why the cost of a packet is not counted there, as a sentence; empty when it is."""
    why = testbed.executed.uncounted if testbed.executed is not None else "the testbed has no way to"
    return f"the cost of a packet is not counted here: {why}" if why else ""

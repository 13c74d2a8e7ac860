"""The changes that measurands find by rules of their own, for tests that have one kind of evidence at hand."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.measurands import BuildSeen, changes_by_rule
from pdrgate.measurands.counted.load_cost import LOAD_TOLERANCE
from pdrgate.measurands.functions.moved_work import MovedWork
from pdrgate.measurands.measurand import Values
from pdrgate.measurands.memory.of_memory import OfMemory
from pdrgate.measurands.memory.surely_changed import surely_changed
from pdrgate.measurands.memory.touched_lines import OF_MEMORY
from pdrgate.results.model import ChangeResult, CostResult, Findings, MemoryResult


def value_changes(baseline: Values, candidate: Values, load_tolerance: float | None = None) -> tuple[ChangeResult, ...]:
    """The changes of builds whose boots have these values."""
    asked = {LOAD_TOLERANCE: load_tolerance}
    return changes_by_rule(BuildSeen(values=baseline), BuildSeen(values=candidate), asked)


def cost_changes(before: CostResult | None, after: CostResult | None) -> tuple[ChangeResult, ...]:
    """The changes of builds of which the cost by function alone is known."""
    baseline, candidate = (BuildSeen(findings=Findings(cost=one)) for one in (before, after))
    return changes_by_rule(baseline, candidate, {})


def several_cpus_changes(before: MemoryResult | None, after: MemoryResult | None) -> tuple[ChangeResult, ...]:
    """The changes that guests of several CPUs show, judged and report-only."""
    baseline, candidate = (BuildSeen(findings=Findings(several_cpus=one)) for one in (before, after))
    return changes_by_rule(baseline, candidate, {})


def memory_changes(
    before: MemoryResult | None,
    after: MemoryResult | None,
    work: Sequence[MovedWork] = (),
    kinds: Sequence[type[OfMemory]] = OF_MEMORY,
) -> tuple[ChangeResult, ...]:
    """The changes of some measurands of memory, by the functions that their work moved between."""
    found = (surely_changed(kind, before, after, work) for kind in kinds)
    return tuple(change for change in found if change is not None)

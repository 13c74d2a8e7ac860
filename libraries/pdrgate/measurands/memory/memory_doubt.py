"""Whether two builds may differ in what a packet does with memory, by one memory trial of each.

A memory trial has all of a guest's code translated anew, twice. So one pair of boots is asked first, and a second one
only where the first leaves doubt: what does not differ beyond a tolerance in one pair is no change in two.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.measurands.memory.of_memory import OfMemory
from pdrgate.measurands.memory.surely_changed import SURE
from pdrgate.measurands.memory.touched_lines import OF_MEMORY
from pdrgate.record.stretch import MemorySeen


def memory_may_have_changed(
    before: MemorySeen, after: MemorySeen, judged: Sequence[type[OfMemory]] = OF_MEMORY
) -> bool:
    """Whether functions have more of anything judged, or less, that together is beyond its tolerance."""
    return any(_moved(kind, before, after) for kind in judged)


def _moved(kind: type[OfMemory], before: MemorySeen, after: MemorySeen) -> bool:
    old, new = kind.by_function(before), kind.by_function(after)
    whole = max(1.0, sum(old.values()))
    allowed = max(kind.about.tolerance.default * whole, kind.least)
    fill = {name for seen in (before, after) for name, counts in seen.functions.items() if counts.fills_pages}
    names = (old.keys() | new.keys()) - fill
    changes = [by for name in names if abs(by := new.get(name, 0.0) - old.get(name, 0.0)) >= SURE]
    return any(abs(sum(one for one in changes if (one > 0) == more)) > allowed for more in (True, False))

"""One memory trial of each build decides whether a second pair of boots is asked."""

from __future__ import annotations

import pytest

from pdrgate.measurands.memory.memory_doubt import memory_may_have_changed
from pdrgate.record.stretch import MemoryCounts, MemorySeen

WINDOWS = 500


def seen(**lines: float) -> MemorySeen:
    """A trial, by lines per packet of functions."""
    counts = {name: MemoryCounts(lines=round(WINDOWS * each)) for name, each in lines.items()}
    if "wipe" in counts:
        counts["wipe"] = counts["wipe"]._replace(filled_pages=counts["wipe"].lines // 64)
    return MemorySeen(WINDOWS, 3, counts)


BASE = seen(receive=60.0, lookup=40.0, wipe=10.0)


@pytest.mark.parametrize(
    "other",
    [
        BASE,
        seen(receive=60.1, lookup=40.1, wipe=10.0),
        seen(receive=63.0, lookup=38.0, wipe=10.0),  # within the tolerance, either way
        seen(receive=60.0, lookup=40.0, wipe=30.0),  # free pages were others
    ],
)
def test_builds_that_touch_about_the_same_leave_no_doubt(other: MemorySeen) -> None:
    assert not memory_may_have_changed(BASE, other)
    assert not memory_may_have_changed(other, BASE)


@pytest.mark.parametrize(
    "other",
    [
        seen(receive=60.0, lookup=48.0, wipe=10.0),
        seen(receive=60.0, lookup=40.0, wipe=10.0, fill=8.0),
        seen(receive=68.0, lookup=32.0, wipe=10.0),  # as many in all: a second pair tells what moved
    ],
)
def test_one_that_touches_more_or_less_is_looked_at_again(other: MemorySeen) -> None:
    assert memory_may_have_changed(BASE, other)
    assert memory_may_have_changed(other, BASE)


def test_a_miss_of_the_last_level_is_looked_at_again() -> None:
    near, far = (
        MemorySeen(WINDOWS, 0, {"bpf:a": MemoryCounts(lines=4 * WINDOWS, missed_last=one)}) for one in (0, 500)
    )
    assert memory_may_have_changed(near, far)

"""Who else had the SUT's CPUs."""

from __future__ import annotations

import os

from pdrgate.gate.interference import interference
from pdrgate.trial import Trial, placed

SECOND = os.sysconf("SC_CLK_TCK")


def trial(**gains: int) -> Trial:
    names = {name.replace("__", "."): gain for name, gain in gains.items()}
    return Trial(1e5, 1.0, 100_000, 100_000, counters_before=placed(dict.fromkeys(names, 50)), counters_after=placed({
        name: 50 + gain for name, gain in names.items()
    }))  # fmt: skip


def test_the_most_disturbed_cpu_is_named_with_its_share() -> None:
    trials = [trial(cpu1__process_ticks=SECOND // 10, cpu2__process_ticks=SECOND // 2), trial()]
    assert interference(trials, (1, 2)) == "other processes had 25% of CPU 2"


def test_the_hypervisor_is_told_apart() -> None:
    found = interference([trial(cpu1__process_ticks=SECOND // 4, cpu1__steal_ticks=SECOND // 20)], (1,))
    assert found == "other processes had 25% of CPU 1 and the hypervisor's other guests had 5% of CPU 1"


def test_the_generators_cpu_and_small_shares_are_nobodys_business() -> None:
    assert interference([trial(cpu0__process_ticks=SECOND, cpu1__process_ticks=1)], (1,)) == ""
    assert interference([trial()], ()) == ""
    assert interference([], (1,)) == ""

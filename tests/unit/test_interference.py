"""Who else had the SUT's CPUs, trial by trial."""

from __future__ import annotations

import os

import pytest
from flat_values import flat_trial

from pdrgate.gate.verdicts.interference import Interference, interference, interferences
from pdrgate.record.trial import Trial

SECOND = os.sysconf("SC_CLK_TCK")


def trial(seconds: float = 1.0, **gains: int) -> Trial:
    """A trial in which counters gained this much; ``cpu1__steal_ticks`` is that of the place ``cpu1``."""
    before: dict[str, dict[str, int]] = {}
    after: dict[str, dict[str, int]] = {}
    for full, gain in gains.items():
        place, name = full.split("__")
        before.setdefault(place, {})[name], after.setdefault(place, {})[name] = 50, 50 + gain
    return flat_trial(1e5, seconds, 100_000, 100_000, counters_before=before, counters_after=after)


def test_the_most_disturbed_cpu_is_named_with_its_worst_trial() -> None:
    trials = [trial(cpu1__process_ticks=SECOND // 10, cpu2__process_ticks=SECOND // 2), trial()]
    assert interference(trials, (1, 2)) == "other processes had up to 50% of CPU 2 in 1 of 2 trials, 25% on average"


def test_a_stall_of_half_a_second_is_not_averaged_away() -> None:
    trials = [trial(cpu1__process_ticks=SECOND // 2), *[trial(cpu1__process_ticks=0) for _ in range(99)]]
    assert interference(trials, (1,)) == "other processes had up to 50% of CPU 1 in 1 of 100 trials, 0.5% on average"


def test_a_single_trial_has_no_average() -> None:
    assert interference([trial(0.5, cpu1__process_ticks=SECOND // 10)], (1,)) == "other processes had 20% of CPU 1"


def test_the_time_of_programs_that_receive_is_nobody_elses() -> None:
    own = trial(cpu1__process_ticks=SECOND // 2, cpu1__steal_ticks=SECOND // 20, receiver0__received=7)
    assert interference([own], (1,)) == "the hypervisor's other guests had 5% of CPU 1"


def test_the_hypervisor_is_told_apart() -> None:
    found = interference([trial(cpu1__process_ticks=SECOND // 4, cpu1__steal_ticks=SECOND // 20)], (1,))
    assert found == "other processes had 25% of CPU 1 and the hypervisor's other guests had 5% of CPU 1"


def test_a_guests_machine_has_other_processes_too() -> None:
    # Reading the counters takes up to 4 ticks by itself.
    trials = [trial(cpu1__other_ticks=ticks) for ticks in (4, 3, SECOND // 4, 4)]
    (found,) = interferences(trials, (1,))
    assert (found.who, found.cpu, found.worst, found.touched, found.trials) == ("other processes", 1, 0.25, 1, 4)
    assert found.average == pytest.approx((11 + SECOND // 4) / SECOND / 4)
    assert interference([trial(cpu1__other_ticks=4)], (1,)) == ""


def test_one_tick_of_a_short_trial_is_nobodys() -> None:
    assert interference([trial(0.1, cpu1__process_ticks=1)], (1,)) == ""
    assert interference([trial(0.1, cpu1__process_ticks=2)], (1,)) != ""


def test_the_generators_cpu_and_small_shares_are_nobodys_business() -> None:
    assert interference([trial(cpu0__process_ticks=SECOND, cpu1__process_ticks=1)], (1,)) == ""
    assert interference([trial()], ()) == ""
    assert interference([], (1,)) == ""


def test_it_is_told_as_a_value_too() -> None:
    found = Interference("other processes", 1, worst=0.5, average=0.12, touched=3, trials=36)
    assert str(found) == "other processes had up to 50% of CPU 1 in 3 of 36 trials, 12% on average"

"""How many times as many packets two CPUs handle as one: what trials tell it, what they come to, what is judged."""

from __future__ import annotations

import numpy as np
import pytest
from rule_changes import several_cpus_changes
from trials_in_turns import in_turns, trial

from pdrgate.guests.metering.sharing.lockstep_observer import taken_in_time
from pdrgate.guests.metering.sharing.sharing_meter import MOST_CPUS, SharingMeter
from pdrgate.measurands import described
from pdrgate.measurands.memory.scaling import scalings, tells_rate
from pdrgate.observers.reading import Counter, Place
from pdrgate.record.phase import Phase
from pdrgate.results.model import MemoryResult
from pdrgate.results.verdict import Verdict

_TAKEN = np.dtype([("time", "<u8", MOST_CPUS), ("idle", "<u8", MOST_CPUS), ("cpu", "<u8")])
_ONE = trial(in_turns((500, 2_500_000)), Phase.ONE_CPU, "b1")


def taken(packets: int, each: int, idle: int = 0) -> np.ndarray:
    """Packets that two CPUs take up in turn, each so many instructions after the one before, CPU 1 ``idle`` of them."""
    found = np.zeros(packets, _TAKEN)
    found["cpu"] = np.arange(packets) % 2
    found["time"][:, :2] = (np.arange(packets) * each)[:, None]
    found["idle"][:, 1] = np.arange(packets) * idle
    return found


def test_of_a_trial_the_midst_counts_by_cpu() -> None:
    told = taken_in_time(taken(1000, 2500, idle=10), 2, 0)
    # 128 packets are left out at the begin, and a fifth at the end.
    assert told[Counter(Place("vcpu", "0"), "packets")] + told[Counter(Place("vcpu", "1"), "packets")] == 671
    assert told[Counter(Place("vcpu", "0"), "turn_instructions")] == 671 * 2500
    assert told[Counter(Place("vcpu", "1"), "idle_instructions")] == 671 * 10


def test_too_few_packets_tell_nothing_and_neither_does_what_programs_handle() -> None:
    assert taken_in_time(taken(600, 2500), 2, 0) == {}
    assert taken_in_time(taken(0, 2500), 2, 0) == {}
    assert taken_in_time(taken(1000, 2500), 2, by_programs=500_000) == {}


@pytest.mark.parametrize(
    ("told", "tells"),
    [
        (trial(in_turns((500, 2_500_000), (500, 2_500_000))), True),
        (trial(in_turns((500, 2_500_000), (500, 2_500_000)), unsent=1000), True),
        (trial(in_turns((500, 2_500_000), (500, 2_500_000), idle=100_000)), True),
        (trial(in_turns((500, 2_500_000), (500, 2_500_000), idle=100_000), unsent=1000), False),
        (trial(in_turns((500, 2_500_000), (500, 2_500_000)), lost=100), False),
        (trial(in_turns((500, 0))), False),
        (trial(in_turns((500, 2_500_000)), Phase.MEMORY), False),
    ],
    ids=["whole", "few but busy", "idle", "few and idle", "lost", "nothing told", "another phase"],
)
def test_a_trial_tells_what_the_sut_does_and_not_the_generator(told: object, tells: bool) -> None:
    assert tells_rate(told) is tells  # type: ignore[arg-type]


def test_all_cpus_are_told_against_one_of_the_same_boot() -> None:
    perfect = trial(in_turns((500, 2_500_000), (500, 2_500_000)), boot="b1")
    lame = trial(in_turns((500, 5_000_000), (500, 5_000_000)), boot="b1")
    stranger = trial(in_turns((500, 2_500_000), (500, 2_500_000)), boot="b2")
    assert scalings([perfect, _ONE, lame, stranger]) == pytest.approx([2.0, 1.0])
    assert scalings([perfect]) == ()


def result(*scaling: float, cpus: int = 2) -> MemoryResult:
    """What a guest of so many CPUs tells."""
    return MemoryResult(trials=2, values={"scaling": scaling} if scaling else {}, functions=(), cpus=cpus)


def test_less_is_a_regression_where_all_trials_lie_apart_by_more_than_the_tolerance() -> None:
    (change,) = several_cpus_changes(result(1.98, 2.0), result(1.42, 1.46))
    assert change.verdict is Verdict.REGRESSION
    assert (change.lower, change.change, change.upper) == pytest.approx(
        (1.42 / 2 - 1, 1.44 / 1.99 - 1, 1.46 / 1.98 - 1)
    )
    assert described("scaling").told(change) == "all CPUs handle 1.44 times what one does (1.99 before)"


@pytest.mark.parametrize(("now", "verdict"), [((1.40, 1.43), Verdict.PASS), ((1.2, 1.22), Verdict.REGRESSION)])
def test_cpus_that_wait_for_each_other_scatter_and_have_a_larger_tolerance(
    now: tuple[float, float], verdict: Verdict
) -> None:
    (change,) = several_cpus_changes(result(1.54, 1.56), result(*now))
    assert (change.verdict, change.tolerance) == (verdict, pytest.approx(0.15))


@pytest.mark.parametrize("now", [(1.91, 1.92), (1.5, 1.95), (2.2, 2.3)])
def test_what_trials_do_not_show_for_sure_is_told_and_no_regression(now: tuple[float, float]) -> None:
    (change,) = several_cpus_changes(result(1.98, 2.0), result(*now))
    assert change.verdict is Verdict.PASS


def test_nothing_is_told_where_a_build_does_not_tell() -> None:
    assert several_cpus_changes(result(2.0), None) == ()
    assert several_cpus_changes(result(2.0), result()) == ()


def test_what_four_cpus_lack_is_lacking_of_four() -> None:
    (change,) = several_cpus_changes(result(3.1, 3.1, cpus=4), result(2.4, 2.5, cpus=4))
    assert (change.verdict, change.tolerance) == (Verdict.PASS, pytest.approx(0.3))


def test_guests_of_different_numbers_of_cpus_are_not_compared() -> None:
    assert several_cpus_changes(result(2.0, cpus=2), result(3.9, cpus=4)) == ()


def test_a_cpu_that_the_guest_does_not_have_is_believed_by_nobody() -> None:
    with SharingMeter(2) as meter:
        meter._put("taken_up", 1)
        assert meter.taken()["cpu"].tolist() == [0]
        meter._memory[:] = meter._memory[:].replace(b"\0", b"\xff")
        with pytest.raises(ValueError, match="does not have"):
            meter.taken()

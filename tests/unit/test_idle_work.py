"""What kernels do without packets: how much of it is taken away from what packets cost, and when it is judged."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from flat_values import changed, flat_trial
from rule_changes import value_changes

from pdrgate.gate.verdicts.change_verdict import judged
from pdrgate.measurands import Cost, described
from pdrgate.measurands.counted.cost import idle_of, on_path, with_pair_beside
from pdrgate.measurands.counted.idle_work import IdleWork
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import USER_SPACE, Functions
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side
from pdrgate.results.verdict import Verdict

TICK = "update_process_times"
COST = Cost(10_000.0, 0.25, 0.005)
PACKETS = 2000
TICKS = 62


def idle(side: Side, functions: Mapping[str, float], *, ticks: int = TICKS, pair: int = 1) -> Trial:
    """A quarter of a second without packets, in which functions execute so many instructions for each tick."""
    counted: Functions = {name: (round(each * TICKS), TICKS) for name, each in functions.items()}
    return flat_trial(
        0.0, 0.25, 0, 0, phase=Phase.IDLE, counted=0.25, pair=pair, boot=f"{side}-{pair}", side=side,
        functions={**counted, TICK: (1000 * ticks, ticks), USER_SPACE: (10**8, 0)},
    )  # fmt: skip


def saturation(side: Side, functions: Mapping[str, float], *, ticks: int = 25, pair: int = 1) -> Trial:
    """A tenth of a second at an overload, in which functions execute so many instructions for each packet."""
    counted: Functions = {name: (round(each * PACKETS), PACKETS) for name, each in functions.items()}
    return flat_trial(
        4e4, 0.1, 2 * PACKETS, PACKETS, phase=Phase.SATURATION, counted=0.1, pair=pair, boot=f"{side}-{pair}",
        side=side, functions={**counted, TICK: (1000 * ticks, ticks)},
    )  # fmt: skip


def cost(own: list[Trial], others: list[Trial]) -> float:
    value = COST.value(with_pair_beside(own, others))
    assert value is not None
    return value


def test_work_that_only_one_idle_kernel_does_is_not_taken_away_from_what_its_packets_cost() -> None:
    """A module that hashes each header, and in a timer hashes more where no packet came for a while."""
    baseline = [saturation("baseline", {"ip_forward": 1000}), idle("baseline", {"run_timers": 3000})]
    hiding = [
        saturation("candidate", {"ip_forward": 1000, "hash": 150}),
        idle("candidate", {"run_timers": 3000, "hash": 200_000}),
    ]
    assert cost(hiding, baseline) == pytest.approx(1.15 * cost(baseline, hiding))
    alone = COST.value(hiding)
    assert alone == pytest.approx(cost(baseline, hiding))  # of one build, nothing else is known


def test_work_of_both_idle_kernels_is_taken_away_by_the_lesser_of_the_two() -> None:
    packets = {"ip_forward": 1000.0, "run_timers": 100.0}
    known = idle("candidate", {"run_timers": 3000}), idle("baseline", {"run_timers": 1000})
    for own in (known, known[::-1]):
        found = on_path(saturation("candidate", packets), own)
        assert found["run_timers"][0] == pytest.approx(100 - 25 * 1000 / PACKETS)


def test_equal_kernels_cost_the_same_whichever_of_the_idle_trials_had_more() -> None:
    quiet, busy = ({"run_timers": each, "worker": each / 2} for each in (3000.0, 5000.0))
    packets = {"ip_forward": 1000.0, "run_timers": 100.0, "worker": 50.0}
    one = [saturation("baseline", packets), idle("baseline", quiet)]
    other = [saturation("candidate", packets), idle("candidate", busy)]
    assert cost(one, other) == pytest.approx(cost(other, one))


def test_ticks_that_a_kernel_counts_for_its_packets_take_nothing_away() -> None:
    """It calls what is called for each tick once for each packet as well."""
    idles = idle("candidate", {"run_timers": 3000}), idle("baseline", {"run_timers": 3000})
    packets = {"ip_forward": 1000.0, "run_timers": 500.0}
    honest, calling = (
        on_path(saturation("candidate", packets, ticks=ticks), idles)["run_timers"][0] for ticks in (25, 2000)
    )
    assert honest == pytest.approx(500 - 25 * 3000 / PACKETS)
    assert calling == pytest.approx(500 - (1 + 0.1 * TICKS / 0.25) * 3000 / PACKETS)


def test_a_trial_without_a_tick_has_nothing_taken_away() -> None:
    found = on_path(saturation("candidate", {"run_timers": 500.0}, ticks=0), [idle("candidate", {"run_timers": 3000})])
    assert found["run_timers"][0] == 500


def test_a_kernel_of_four_times_the_hz_has_its_own_ticks_taken_away() -> None:
    fast, slow = idle("candidate", {"run_timers": 1500}, ticks=4 * TICKS), idle("baseline", {"run_timers": 1500})
    found = on_path(saturation("candidate", {"run_timers": 100.0}, ticks=100), (fast, slow))
    assert found["run_timers"][0] == pytest.approx(100 - 100 * 1500 / 4 / PACKETS)


def test_the_idle_trial_beside_is_that_of_the_same_pair_and_never_stands_in_for_ones_own() -> None:
    own = [saturation("candidate", {"ip_forward": 1000}, pair=2)]
    others = [idle("baseline", {}, pair=1), saturation("baseline", {}, pair=2), idle("baseline", {}, pair=2)]
    assert with_pair_beside(own, others) == [*own, others[2]]
    assert idle_of(with_pair_beside(own, others)) == ()
    assert idle_of(with_pair_beside([*own, idle("candidate", {}, pair=2)], others))[1:] == (others[2],)
    assert not with_pair_beside([], [])


def test_the_idle_work_is_of_ones_own_kernel_without_programs() -> None:
    own, other = idle("candidate", {"f": 4000}), idle("baseline", {"f": 9})
    assert IdleWork().value([saturation("candidate", {}), own, other]) == pytest.approx(TICKS * 5000 / 0.25)
    assert IdleWork().value([saturation("candidate", {})]) is None
    assert IdleWork().value([changed(own, counted=0.0)]) is None


def test_an_idle_kernel_that_executes_66_times_as_much_is_a_regression_that_says_so() -> None:
    (change,) = value_changes({"idle work": (0.8e6, 0.82e6)}, {"idle work": (53.4e6, 53.5e6)})
    assert change.verdict is Verdict.REGRESSION
    assert judged([change]).reason == "the idle kernel executes 66 times as much (0.81 -> 53.5 M instr/s)"
    assert described(change.measurand) is IdleWork.about


def test_an_idle_kernel_that_grows_by_little_is_noticed_and_passes() -> None:
    """As a clock of 1000 Hz does in place of one of 250."""
    (change,) = value_changes({"idle work": (1.2e6, 1.3e6)}, {"idle work": (5.0e6, 4.8e6)})
    assert change.verdict is Verdict.PASS
    assert "executes 3.9 times as much (1.2 -> 4.9 M instr/s)" in judged([change]).reason


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        ((1.2e6, 2.06e6), (1.1e6, 2.0e6)), ((1.2e6, 1.3e6), (90e6, 2.0e6)), ((53e6, 53e6), (0.8e6, 0.8e6)),
        ((), (1e9, 1e9)), ((0.0,), (1e9,)), ((1.0e6,), ()),
    ],
    ids=["noise", "one boot alone", "less", "not known", "nothing", "not known of the candidate"],
)  # fmt: skip
def test_idle_work_that_did_not_surely_grow_is_no_change(
    baseline: tuple[float, ...], candidate: tuple[float, ...]
) -> None:
    assert not value_changes({"idle work": baseline}, {"idle work": candidate})

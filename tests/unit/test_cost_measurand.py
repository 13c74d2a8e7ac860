"""The cost of a packet, from trials that say what the kernel executed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from causes import because
from flat_values import changed, flat_trial

from pdrgate.measurands import Cost, replicate_of
from pdrgate.measurands.counted.cost import idle_of, on_path, packet_cost, packets_per_poll, saturated
from pdrgate.measurands.measurand import Ask
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import USER_SPACE
from pdrgate.record.trial import Trial

MEASURAND = Cost(10_000.0, 0.25, 0.005)
TICK = "update_process_times"


def trial(phase: str, forwarded: int, functions: dict[str, tuple[int, int]], **more: object) -> Trial:
    """One at an overload, of which the half is lost, unless it says otherwise."""
    load = {Phase.IDLE: 0.0, Phase.COST: 10_000.0}.get(phase, 40_000.0)
    offered = forwarded if phase in (Phase.IDLE, Phase.COST) else 2 * forwarded
    return changed(
        flat_trial(load, 0.25, offered, forwarded, phase=phase, functions=functions, counted=0.3, pair=1, boot="b"),
        **more,
    )


def saturation(each: float, forwarded: int = 5000, ticks: int = 0, **more: object) -> Trial:
    functions = {
        "ip6_forward": (round(each * forwarded), forwarded),
        "virtnet_poll": (100 * (forwarded // 50), forwarded // 50),
        USER_SPACE: (10**9, 0),
    }
    if ticks:
        functions[TICK] = (1000 * ticks, ticks)
    return trial(Phase.SATURATION, forwarded, functions, **more)


IDLE_TRIAL = trial(Phase.IDLE, 0, {TICK: (100_000, 100), "ip6_forward": (5000, 0), "do_idle": (10**6, 50)}, counted=0.5)


def test_nothing_is_asked_for_where_nothing_is_counted():
    assert MEASURAND.next([]) is None
    assert MEASURAND.next([trial(Phase.SATURATION, 5000, {}), trial(Phase.REPEAT, 5000, {"f": (1, 1)})]) is None
    assert MEASURAND.value([trial(Phase.SATURATION, 5000, {})]) is None


def test_first_what_the_kernel_does_by_itself_then_the_lossless_load():
    trials = [saturation(170)]
    assert MEASURAND.next(trials) == Ask(0.0, 0.25, Phase.IDLE)
    trials.append(IDLE_TRIAL)
    assert MEASURAND.next(trials) == Ask(10_000.0, 0.25, Phase.COST)
    trials.append(trial(Phase.COST, 2500, {"ip6_forward": (1, 1)}))
    assert MEASURAND.next(trials) is None


def test_who_called_whom_is_told_by_one_trial_of_the_first_replicate_at_the_load_that_saturates():
    following = replace(MEASURAND, paths=True)
    trials = [saturation(170), IDLE_TRIAL, trial(Phase.COST, 2500, {"ip6_forward": (1, 1)})]
    assert following.next(trials) == Ask(40_000.0, 0.25, Phase.PATH)
    assert following.next([*trials, trial(Phase.PATH, 2500, {})]) is None
    assert following.next([changed(one, pair=2) for one in trials]) is None


@pytest.mark.parametrize("later", [{"pair": 3}, {"pair": 0, "repeat": 3}])
def test_the_lossless_load_is_measured_in_the_first_replicates_only(later):
    assert MEASURAND.next([saturation(170, **later), changed(IDLE_TRIAL, **later)]) is None


def test_the_value_is_the_median_of_the_trials_at_saturation():
    trials = [saturation(each) for each in (170, 172, 900)]
    assert MEASURAND.value(trials) == pytest.approx(172 + 2)  # and two instructions of the poll


def test_trials_that_do_not_agree_ask_for_more_of_them_until_most_do():
    """As in a boot of a comparison: of its two trials one had its packets queued before they were sent on."""
    trials = [changed(saturation(each), pair=3) for each in (5713, 5857)] + [changed(IDLE_TRIAL, pair=3)]
    assert MEASURAND.next(trials) == Ask(40_000.0, 0.25, Phase.SATURATION)
    agreed = [*trials, changed(saturation(5715), pair=3)]
    assert MEASURAND.next(agreed) is None
    assert MEASURAND.value(agreed) == pytest.approx(5715 + 2, abs=1.5)
    # A build that scatters by itself is measured a few times more, not for ever.
    assert MEASURAND.next([*trials, *[changed(saturation(each), pair=3) for each in (5200, 5500)]]) is not None
    assert MEASURAND.next([*trials, *[changed(saturation(each), pair=3) for each in (5200, 5500, 6000)]]) is None


@pytest.mark.parametrize("costs", [(5700,), (5700, 5720), (5700, 5720, 6000)])
def test_trials_that_agree_are_enough(costs: tuple[int, ...]):
    trials = [changed(saturation(each), pair=3) for each in costs] + [changed(IDLE_TRIAL, pair=3)]
    assert MEASURAND.next(trials) is None


def test_trials_below_saturation_and_of_other_phases_do_not_count():
    lossless = replace(saturation(500), offered=5000)
    assert saturated([lossless, saturation(170), trial(Phase.COST, 1, {"f": (1, 1)})], 0.005) == [saturation(170)]
    assert replicate_of([saturation(170), IDLE_TRIAL, trial(Phase.PDR, 1, {})]).keys() == {("b", 1, 0)}


def test_a_disturbed_trial_counts_where_there_is_no_other():
    disturbed = saturation(180, disturbed=because("the emulator was late"))
    assert saturated([disturbed, saturation(170)], 0.005) == [saturation(170)]
    assert saturated([disturbed], 0.005) == [disturbed]


def test_a_trial_that_lost_packets_of_a_burst_counts_where_all_did():
    lost, complete = saturation(190), replace(saturation(170), offered=5000, drained=5000)
    assert saturated([lost, complete], 0.005) == [complete]
    assert saturated([lost, lost], 0.005) == [lost, lost]
    due = replace(lost, under_way=(5000,) * 16)  # sent when it was due: that is what an overload loses
    assert saturated([due, complete], 0.005) == [due, complete]


def test_a_trial_with_smaller_batches_than_the_others_was_disturbed_by_the_machine():
    small = saturation(280)
    small = changed(small, functions={**small.seen.functions, "virtnet_poll": (10_000, 130)})  # 38 packets each, not 50
    assert saturated([small, saturation(170), saturation(171)], 0.005) == [saturation(170), saturation(171)]
    assert saturated([small, small], 0.005) == [small, small]  # such a kernel may be: it is alike in all trials


def test_trials_with_smaller_batches_count_where_most_are_such():
    """A kernel polls once more for each packet in all trials but one, in which its packets cost less."""
    small = saturation(280)
    small = changed(small, functions={**small.seen.functions, "virtnet_poll": (10_000, 130)})
    assert saturated([saturation(170), small, small], 0.005) == [saturation(170), small, small]
    assert MEASURAND.value([saturation(170), small, small]) == pytest.approx(280 + 2)


def test_programs_are_no_part_of_the_path():
    assert USER_SPACE not in on_path(saturation(170))


def test_what_the_kernel_does_by_itself_is_subtracted_tick_by_tick():
    found = on_path(saturation(170, ticks=50), [IDLE_TRIAL])
    assert TICK not in found  # all of it was the tick's
    assert found["ip6_forward"] == (pytest.approx(170 - 0.5 * 5000 / 5000), 1.0)
    assert "do_idle" not in found  # it never falls below nothing


def test_without_ticks_it_is_subtracted_by_time():
    own = changed(IDLE_TRIAL, functions={"ip6_forward": (5000, 0)})
    found = on_path(saturation(170), [own])
    assert found["ip6_forward"][0] == pytest.approx(170 - 0.3 / 0.5 * 5000 / 5000)
    assert on_path(saturation(170), [changed(own, counted=0.0)])["ip6_forward"][0] == pytest.approx(170)


def test_functions_are_medians_over_trials():
    found = packet_cost([saturation(each) for each in (170, 171, 300)])
    assert found is not None
    assert found.functions["ip6_forward"] == (171.0, 1.0)
    assert found.batch == 50.0
    assert found.trials == 3
    assert packet_cost([]) is None
    assert packet_cost([trial(Phase.COST, 0, {"f": (1, 1)})]) is None


def test_what_polls_is_known_by_name():
    assert packets_per_poll(trial(Phase.COST, 100, {"__napi_poll": (1, 10)})) == 10.0
    assert packets_per_poll(trial(Phase.COST, 100, {"virtnet_poll": (1, 5), "__napi_poll": (1, 10)})) == 20.0
    assert packets_per_poll(trial(Phase.COST, 100, {"f": (1, 1)})) is None


def test_the_idle_trial_is_found():
    assert idle_of([saturation(1), IDLE_TRIAL]) == (IDLE_TRIAL,)
    assert idle_of([trial(Phase.IDLE, 0, {})]) == ()


def test_a_lossless_load_is_told_too():
    at_rest = packet_cost([trial(Phase.COST, 2500, {"ip6_forward": (2500 * 400, 2500), TICK: (0, 50)})], [IDLE_TRIAL])
    assert at_rest is not None
    assert at_rest.load == 10_000.0
    assert at_rest.instructions == pytest.approx(400 - 50 / 100 * 5000 / 2500)

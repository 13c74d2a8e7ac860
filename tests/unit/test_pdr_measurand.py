"""The PDR of one replicate on simulated curves of which the truth is known."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

import pytest
from curves import EarlyLoss, Livelock
from deep_buffer import buffered
from flat_values import changed, flat_trial
from hypothesis import given
from hypothesis import strategies as st
from simulated_sut import (
    Behaviour,
    Ceiling,
    IdealCurve,
    LoadLoss,
    RealisticCurve,
    SimulatedSut,
    TrashingCurve,
)

from pdrgate.gate.scenarios.replicate_samples import Measurands
from pdrgate.measurands import Ask, PartialDropRate, Setting, Sweep
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.search.goals import PDR_GOAL

Measure = Callable[[float, float], Trial]
FACTORS = (0.5, 0.7, 1.15, 1.5, 1.95)
WIDTH = 0.01


def measurands(centre: float = 1e6, width: float = WIDTH, duration: float = 1.0) -> Measurands:
    return Measurands.of(
        Setting(
            loads=tuple(centre * factor for factor in FACTORS),
            duration=duration,
            loss_ratio=PDR_GOAL.loss_ratio,
            top_trials=2,
            width=width,
        )
    )


def replicate(
    measure: Measure, centre: float = 1e6, *, most: int | None = None, width: float = WIDTH, duration: float = 1.0
) -> tuple[Measurands, list[Trial]]:
    """All trials of one replicate, as a gate measures them."""
    found = measurands(centre, width, duration)
    if most is not None:
        limited = dataclasses.replace(found.pdr, most=most)
        found = Measurands(tuple(limited if one is found.pdr else one for one in found.all))
    steps = found.steps(Sweep(tuple(centre * factor for factor in FACTORS), duration))
    trials: list[Trial] = []
    while (ask := next((ask for step in steps if (ask := step.next(trials)) is not None), None)) is not None:
        trials.append(changed(measure(ask.load, ask.duration), phase=ask.phase))
        assert len(trials) < 50
    return found, trials


def exact(curve: LoadLoss) -> Measure:
    return SimulatedSut(curve, Behaviour(0.0)).measure


def truth(curve: LoadLoss) -> float:
    low, high = 1e3, 5e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if curve.loss_ratio(middle) <= PDR_GOAL.loss_ratio else (low, middle)
    return low


CURVES: dict[str, LoadLoss] = {
    "ideal": IdealCurve(1e6),
    "realistic": RealisticCurve(1e6),
    "loss from 0.8 on": EarlyLoss(1e6, 0.8),
    "loss from 0.3 on": EarlyLoss(1e6, 0.3),
    "forwards less the more it is offered": TrashingCurve(IdealCurve(1e6), 1.3e6, 1e6),
    "so before saturation": TrashingCurve(IdealCurve(1e6), 0.9e6, 2e6),
    "livelock": Livelock(1e6),
    "livelock at once": Livelock(1e6, 1.05),
}


@pytest.mark.parametrize("shape", CURVES)
def test_the_value_is_where_the_curve_crosses_the_goal(shape: str) -> None:
    curve = CURVES[shape]
    found, trials = replicate(exact(curve), round(truth(curve), -4))
    value = found.pdr.value(trials)
    assert value == pytest.approx(truth(curve), rel=1.2 * WIDTH)
    assert sum(trial.occasion.phase == Phase.PDR for trial in trials) <= found.pdr.most


def test_an_ideal_sut_costs_one_trial_more_than_its_saturation() -> None:
    found, trials = replicate(exact(IdealCurve(1e6)))
    assert [trial.occasion.phase for trial in trials] == [Phase.REPEAT] * 5 + [Phase.SATURATION, Phase.PDR]
    assert found.pdr.value(trials) == found.pdr.knee(trials) == pytest.approx(1e6 / 0.995, rel=1e-4)


@pytest.mark.parametrize("begins", [0.8, 0.3])
def test_loss_before_saturation_lowers_the_pdr_and_not_the_saturation_throughput(begins: float) -> None:
    found, trials = replicate(exact(EarlyLoss(1e6, begins)))
    assert found.saturation.value(trials) == pytest.approx(1e6, rel=0.001)
    assert found.pdr.value(trials) == pytest.approx(begins * 1e6, rel=1.2 * WIDTH)


@pytest.mark.parametrize("seed", range(5))
def test_one_stall_of_the_machine_decides_nothing(seed: int) -> None:
    """Every load is stalled once, and only once: 3 % of a trial's packets are lost that have nothing to do with it."""
    sut = SimulatedSut(IdealCurve(1e6), Behaviour(0.002), seed=seed)
    stalled: set[float] = set()

    def measure(load: float, duration: float) -> Trial:
        trial = sut.measure(load, duration)
        if load in stalled:
            return trial
        stalled.add(load)
        return dataclasses.replace(trial, forwarded=round(trial.forwarded * 0.97))

    found, trials = replicate(measure)
    assert found.pdr.value(trials) == pytest.approx(1e6 / 0.995, rel=0.03)


def test_a_sut_that_flips_between_trials_has_a_pdr_between_its_two() -> None:
    for seed in range(10):
        found, trials = replicate(SimulatedSut(IdealCurve(1e6), Behaviour(0.002, modes=(1.0, 0.7)), seed=seed).measure)
        value = found.pdr.value(trials)
        assert value is not None
        assert 0.68e6 <= value <= 1.03e6


def test_what_the_generator_limited_is_no_loss_and_no_proof() -> None:
    """Each first trial at a load falls short by 9 %, and loses packets too."""
    sut = SimulatedSut(IdealCurve(1e6), Behaviour(0.0))
    seen: set[float] = set()

    def measure(load: float, duration: float) -> Trial:
        trial = sut.measure(load, duration)
        if load in seen:
            return trial
        seen.add(load)
        return dataclasses.replace(trial, unsent=trial.offered // 10, forwarded=trial.forwarded // 2)

    found, trials = replicate(measure)
    assert found.pdr.value(trials) == pytest.approx(1e6 / 0.995, rel=0.003)


def test_a_generator_below_the_grid_shows_no_saturation_and_so_no_pdr() -> None:
    found, trials = replicate(SimulatedSut(IdealCurve(1e6), Behaviour(0.0), ceiling=Ceiling(1.1e6)).measure)
    assert found.saturation.value(trials) is None
    assert found.pdr.value(trials) is None
    assert [trial.occasion.phase for trial in trials] == [Phase.REPEAT] * 5 + [Phase.SATURATION]


def test_a_sut_that_loses_everywhere_has_no_pdr() -> None:
    found, trials = replicate(exact(EarlyLoss(1e6, 0.0)))
    assert found.pdr.value(trials) is None
    assert min(trial.intended_load for trial in trials) >= found.pdr.min_load


def test_what_stands_in_a_queue_is_no_loss() -> None:
    """Of 18.7 kpps 0.25 s have a goal of 23 packets; these looks are a real guest's, at 0.984 of what it forwards."""
    calm, capacity = buffered(18_700, 4096), 18_700
    waver = (14, 15, 10, 18, 32, 20, 14, 20, 22, 16, 26, 73, 68, 62, 68, 78)

    def measure(load: float, duration: float) -> Trial:
        trial = calm(load, duration)
        if load > capacity:
            return trial
        return dataclasses.replace(trial, drained=78, under_way=waver)

    found, trials = replicate(measure, capacity, width=0.02, duration=0.25)
    assert found.pdr.value(trials) == found.pdr.knee(trials)
    assert sum(trial.occasion.phase == Phase.PDR for trial in trials) == 1


@pytest.mark.parametrize("duration", [0.2, 1.0, 10.0])
def test_a_pdr_does_not_depend_on_how_long_a_trial_lasts(duration: float) -> None:
    """4096 packets are 10 % of what 0.2 s of 200 kpps offer: such a trial at an overload loses nothing at all."""
    whole = buffered(2e5, 4096)
    found, trials = replicate(lambda load, _: whole(load, duration), 2e5)
    assert found.pdr.value(trials) == pytest.approx(2e5 / 0.995, rel=0.002)
    assert found.saturation.value(trials) == pytest.approx(2e5, rel=0.001)


@pytest.mark.parametrize("looks", [True, False], ids=["looks", "no looks"])
@pytest.mark.parametrize("flight", [0.0, 0.001], ids=["at once", "1 ms"])
@pytest.mark.parametrize("buffer", [512, 4096])
@pytest.mark.parametrize("capacity", [20e3, 43e3, 100e3, 1e6])
def test_a_pdr_depends_neither_on_a_buffer_nor_on_whether_somebody_looks(
    capacity: float, buffer: int, flight: float, looks: bool
) -> None:
    """Of 20 kpps a buffer of 4096 packets hides an overload of 1.8 from a trial of 0.25 s: more than a grid has."""
    for duration in (0.25, 1.0, 4.0):
        measure = buffered(capacity, buffer, flight=flight, looks=looks)
        found, trials = replicate(measure, capacity, width=0.02, duration=duration)
        # What is in flight at the end is in no rate.
        assert found.pdr.value(trials) == pytest.approx(capacity / 0.995, rel=0.002 + flight / duration)
        assert found.saturation.value(trials) == pytest.approx(capacity, rel=0.001 + flight / duration)


curves = st.one_of(
    st.builds(IdealCurve, st.floats(3e5, 2e6)),
    st.builds(RealisticCurve, st.floats(3e5, 2e6)),
    st.builds(EarlyLoss, st.floats(3e5, 2e6), st.floats(0.05, 0.99), st.floats(0.006, 0.2)),
    st.builds(Livelock, st.floats(3e5, 2e6), st.floats(1.01, 2.0), st.floats(0.01, 0.9)),
)
behaviours = st.builds(
    Behaviour, st.floats(0, 0.05), st.booleans(), modes=st.lists(st.floats(0.5, 1.0), min_size=1, max_size=3)
)


@given(curves, behaviours, st.integers(0, 1000), st.integers(0, 16))
def test_the_value_lies_between_what_held_and_what_did_not_and_next_ends(
    curve: LoadLoss, behaviour: Behaviour, seed: int, most: int
) -> None:
    found, trials = replicate(SimulatedSut(curve, behaviour, seed=seed).measure, most=most)
    assert sum(trial.occasion.phase == Phase.PDR for trial in trials) <= most
    value = found.pdr.value(trials)
    if value is None:
        return
    votes: dict[float, list[bool]] = {}
    for trial in trials:
        if trial.occasion.phase != Phase.SATURATION:
            votes.setdefault(trial.intended_load, []).append(trial.steady_loss_ratio > PDR_GOAL.loss_ratio)
    knee = found.pdr.knee(trials)
    assert knee is not None
    assert value <= knee
    assert any(load <= value * (1 + 1e-9) and not all(lost) for load, lost in votes.items())
    too_high = [load for load, lost in votes.items() if load < knee and sum(lost) >= 2]
    assert value <= min(too_high, default=knee)


@given(curves, behaviours, st.integers(0, 1000), st.data())
def test_a_replicate_goes_on_where_it_was_killed(
    curve: LoadLoss, behaviour: Behaviour, seed: int, data: st.DataObject
) -> None:
    """What is asked next is a function of the trials alone."""
    found, trials = replicate(SimulatedSut(curve, behaviour, seed=seed).measure)
    steps = found.steps(Sweep(tuple(1e6 * factor for factor in FACTORS), 1.0))
    cut = data.draw(st.integers(0, len(trials) - 1))
    asked = next(ask for step in steps if (ask := step.next(trials[:cut])) is not None)
    assert asked == Ask(trials[cut].intended_load, trials[cut].intended_duration, trials[cut].occasion.phase)


def at(pdr: PartialDropRate, outcomes: Sequence[tuple[float, bool]]) -> list[Trial]:
    """Trials of an ideal SUT of 1 Mpps at saturation, and of others that lost 2 % or nothing."""
    top = pdr.saturation.load
    saturated = [flat_trial(top, 1.0, round(top), 1_000_000, sending_time=1.0, phase=Phase.SATURATION)] * 2
    return saturated + [
        flat_trial(load, 1.0, round(load), round(load * (0.98 if lost else 1)), sending_time=1.0, phase=Phase.PDR)
        for load, lost in outcomes
    ]


@pytest.mark.parametrize(
    ("outcomes", "asks"),
    [
        ([], 9.97e5),  # just below the knee
        ([(9.97e5, False)], None),  # the knee it is
        ([(9.97e5, True)], 9.97e5),  # once more
        ([(9.97e5, True), (9.97e5, False)], 9.97e5),  # and once more
        ([(9.97e5, True), (9.97e5, False), (9.97e5, False)], None),
        ([(9.97e5, True), (9.97e5, True)], 6.979e5),  # loss begins before saturation
        ([(9.97e5, True), (9.97e5, True), (6.979e5, False)], 8.342e5),  # in the middle of both, on a scale of ratios
        ([(9.97e5, True), (9.97e5, True), (9.9e5, False)], None),
    ],
)
def test_what_is_asked_next(outcomes: list[tuple[float, bool]], asks: float | None) -> None:
    pdr = measurands().pdr
    found = pdr.next(at(pdr, outcomes))
    assert (found and found.load) == asks
    assert found is None or (found.duration, found.phase) == (1.0, Phase.PDR)


@pytest.mark.parametrize(
    ("outcomes", "asks"),
    [
        ([], 8.957e5),  # just below what is expected
        ([(8.957e5, False)], 9.043e5),  # and above
        ([(8.957e5, False), (9.043e5, True)], 9.043e5),
        ([(8.957e5, False), (9.043e5, True), (9.043e5, True)], None),  # it is as expected
        ([(8.957e5, False), (9.043e5, False)], 9.043e5),  # one trial is no sign of more
        ([(8.957e5, False), (9.043e5, False), (9.043e5, True), (9.043e5, True)], None),
        (
            [(8.957e5, False), (9.043e5, False), (9.043e5, False)],
            1.004e6,
        ),  # it is more: as though nothing had been expected
        ([(8.957e5, True), (8.957e5, True)], 8.778e5),  # it is less: two widths
        ([(8.957e5, True), (8.957e5, True), (8.778e5, False)], 8.867e5),
        ([(8.9e5, True), (8.9e5, True)], 8.722e5),  # the knee was below it
        ([(8.957e5, True), (8.957e5, True), (8.778e5, True), (8.778e5, True)], 6.145e5),
    ],
)
def test_what_is_asked_next_where_a_pdr_is_expected(outcomes: list[tuple[float, bool]], asks: float | None) -> None:
    pdr = dataclasses.replace(measurands().pdr, expected=9e5)
    found = pdr.next(at(pdr, outcomes))
    assert (found and found.load) == asks


def test_an_expected_pdr_moves_no_value() -> None:
    curve = EarlyLoss(1e6, 0.8)
    sut = exact(curve)
    for expected in (0.0, 0.6e6, truth(curve), 0.95e6, 2e6):
        found = measurands().expecting(expected)
        steps = found.steps(Sweep(tuple(1e6 * factor for factor in FACTORS), 1.0))
        trials: list[Trial] = []
        while (ask := next((ask for step in steps if (ask := step.next(trials)) is not None), None)) is not None:
            trials.append(changed(sut(ask.load, ask.duration), phase=ask.phase))
        assert found.pdr.value(trials) == pytest.approx(truth(curve), rel=WIDTH)


def test_two_of_three_decide_in_any_order() -> None:
    pdr = measurands().pdr
    for order in set(itertools.permutations([True, True, False])):
        value = pdr.value(at(pdr, [(9e5, lost) for lost in order] + [(8.95e5, False)]))
        assert value == pytest.approx(8.95e5, rel=0.006)

"""The search on simulated SUTs, whose true PDR is known: bounds, outcomes, and whose limit it was."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from itertools import count

import pytest
from deep_buffer import buffered
from simulated_sut import (
    Behaviour,
    Ceiling,
    IdealCurve,
    LoadLoss,
    RealisticCurve,
    SimulatedSut,
    TrashingCurve,
)

from pdrgate.record.trial import Trial
from pdrgate.results.model import GoalResult
from pdrgate.search.goals import NDR, PDR_GOAL, Goal
from pdrgate.search.mlr import GoalOutcome, Measure, SearchOutcome, search
from pdrgate.values.errors import UsageError

EXACT = Behaviour(noise=0.0)
CURVES: dict[str, LoadLoss] = {
    "ideal": IdealCurve(1e6),
    "realistic": RealisticCurve(1e6),
    "trashing": TrashingCurve(RealisticCurve(1e6), 1.3e6, 1e6),
    # Trashing that begins below saturation: the PDR lies on the falling side.
    "trashing early": TrashingCurve(IdealCurve(1e6), 0.9e6, 2e6),
}
FINE = Goal("PDR", 0.005, width=0.005, initial_trial_duration=0.5, final_trial_duration=1.0, duration_sum=3.0)


def true_pdr(curve: LoadLoss, loss_ratio: float = 0.005) -> float:
    """The load at which the curve loses that much, by bisection: no part of the search under test."""
    low, high = 1e3, 5e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if curve.loss_ratio(middle) <= loss_ratio else (low, middle)
    return low


def pdr_search(measure: Measure, *goals: Goal, max_load: float = 3e6, budget: float = 1e9) -> SearchOutcome:
    return search(measure, goals or (PDR_GOAL,), min_load=1e3, max_load=max_load, budget=budget)


def within_goal(result: GoalResult) -> bool:
    assert result.lower is not None
    assert result.upper is not None
    return result.lower < result.upper and 1 - result.lower / result.upper <= result.width * (1 + 1e-9)


@pytest.mark.parametrize("shape", CURVES)
def test_without_noise_the_bounds_bracket_the_true_pdr(shape: str) -> None:
    found = pdr_search(SimulatedSut(CURVES[shape], EXACT).measure, FINE).of("PDR")
    assert found.outcome == GoalOutcome.FOUND
    assert within_goal(found)
    assert found.lower is not None
    assert found.upper is not None
    # A trial of 1 s counts a million packets: its PLR of 0.5 % is off by 0.007 % at most (one deviation).
    assert found.lower * 0.9995 <= true_pdr(CURVES[shape]) <= found.upper * 1.0005


@pytest.mark.parametrize("shape", CURVES)
@pytest.mark.parametrize("seed", range(10))
def test_with_noise_the_bounds_are_off_by_no_more_than_the_noise(shape: str, seed: int) -> None:
    noise = 0.003
    found = pdr_search(SimulatedSut(CURVES[shape], Behaviour(noise), seed=seed).measure, FINE).of("PDR")
    assert found.outcome == GoalOutcome.FOUND
    assert within_goal(found)
    assert found.lower is not None
    assert found.upper is not None
    assert found.conditional_throughput is not None
    truth = true_pdr(CURVES[shape])
    assert found.lower * (1 - 3 * noise) <= truth <= found.upper * (1 + 3 * noise)
    assert found.lower * 0.99 <= found.conditional_throughput <= found.lower


def test_two_goals_at_once_share_their_trials() -> None:
    measure = SimulatedSut(RealisticCurve(1e6), EXACT).measure
    both = pdr_search(measure, NDR, PDR_GOAL)
    ndr, pdr = both.of("NDR"), both.of("PDR")
    assert [result.name for result in both.results] == ["NDR", "PDR"]
    assert ndr.outcome == pdr.outcome == GoalOutcome.FOUND
    assert within_goal(ndr)
    assert within_goal(pdr)
    assert ndr.upper is not None
    assert pdr.lower is not None
    assert ndr.upper < pdr.lower
    alone = sum(pdr_search(SimulatedSut(RealisticCurve(1e6), EXACT).measure, goal).trials for goal in (NDR, PDR_GOAL))
    assert both.trials < alone
    with pytest.raises(KeyError, match="MRR"):
        both.of("MRR")


def test_no_lower_bound() -> None:
    found = pdr_search(SimulatedSut(IdealCurve(100), EXACT).measure).of("PDR")
    assert (found.outcome, found.lower, found.conditional_throughput) == (GoalOutcome.NO_LOWER_BOUND, None, None)
    assert found.upper == 1e3


@pytest.mark.parametrize("saturation", [3e6, 1e9])
def test_no_upper_bound(saturation: float) -> None:
    found = pdr_search(SimulatedSut(IdealCurve(saturation), EXACT).measure).of("PDR")
    assert (found.outcome, found.lower, found.upper) == (GoalOutcome.NO_UPPER_BOUND, 3e6, None)


@pytest.mark.parametrize("width", [0.001, 0.01, 0.1, 0.5])
def test_the_outcome_is_found_at_any_width(width: float) -> None:
    goal = dataclasses.replace(PDR_GOAL, width=width)
    found = pdr_search(SimulatedSut(IdealCurve(1e6), EXACT).measure, goal).of("PDR")
    assert found.outcome == GoalOutcome.FOUND
    assert within_goal(found)


def test_out_of_time_keeps_the_bounds_so_far() -> None:
    outcomes = []
    for budget in range(1, 30):
        kept: list[Trial] = []
        sut = SimulatedSut(IdealCurve(1e6), Behaviour(0.003), seed=1)

        def measure(load: float, duration: float, sut: SimulatedSut = sut, kept: list[Trial] = kept) -> Trial:
            kept.append(sut.measure(load, duration))
            return kept[-1]

        result = search(measure, [FINE], min_load=1e3, max_load=3e6, budget=budget)
        found = result.of("PDR")
        outcomes.append((found.outcome, found.lower is not None, found.upper is not None))
        assert result.trials == len(kept)
        # The budget is looked at before each trial, never in one.
        assert sum(trial.intended_duration for trial in kept[:-1]) < budget
        assert result.elapsed == sum(trial.intended_duration for trial in kept)
        for bound in (found.lower, found.upper):
            assert bound is None or 0.98e6 <= bound <= 3e6
    assert outcomes[0] == (GoalOutcome.OUT_OF_TIME, False, False)
    assert (GoalOutcome.OUT_OF_TIME, True, False) in outcomes or (GoalOutcome.OUT_OF_TIME, False, True) in outcomes
    assert outcomes[-1] == (GoalOutcome.FOUND, True, True)


@pytest.mark.parametrize("stretches", [False, True])
@pytest.mark.parametrize("ceiling", [1e6, 2.4e6])
def test_a_perfect_sut_behind_a_slow_generator_has_no_upper_bound(ceiling: float, stretches: bool) -> None:
    measure = SimulatedSut(IdealCurve(1e9), EXACT, ceiling=Ceiling(ceiling, stretches)).measure
    result = pdr_search(measure)
    found = result.of("PDR")
    assert (found.outcome, found.upper) == (GoalOutcome.NO_UPPER_BOUND, None)
    assert found.lower == result.max_load
    assert ceiling * 0.9 <= result.max_load <= ceiling


@pytest.mark.parametrize("stretches", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_slow_generator_does_not_move_the_pdr_below_it(seed: int, stretches: bool) -> None:
    sut = SimulatedSut(IdealCurve(1e6), Behaviour(0.001), seed=seed, ceiling=Ceiling(1.2e6, stretches))
    found = pdr_search(sut.measure).of("PDR")
    assert found.outcome == GoalOutcome.FOUND
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower * 0.997 <= true_pdr(IdealCurve(1e6)) <= found.upper * 1.003


def hiccups(measure: Measure, limited: Callable[[int], bool]) -> Measure:
    """A generator that sends only 98 % in those of its trials, counted from 0, that ``limited`` says."""
    number = count()

    def hiccup(load: float, duration: float) -> Trial:
        if not limited(next(number)):
            return measure(load, duration)
        sent = round(load * duration * 0.98)
        return Trial(load, duration, sent, sent, unsent=round(load * duration) - sent, sending_time=duration)

    return hiccup


def test_a_trial_in_which_the_generator_missed_its_cpu_is_measured_again() -> None:
    smooth = pdr_search(SimulatedSut(IdealCurve(1e6), EXACT).measure)
    # Two hiccups in a row, again and again: the third try counts.
    rough = pdr_search(hiccups(SimulatedSut(IdealCurve(1e6), EXACT).measure, lambda number: number % 3 < 2))
    assert rough.trials == 3 * smooth.trials
    assert rough.max_load == smooth.max_load
    ours, theirs = rough.of("PDR"), smooth.of("PDR")
    assert (ours.outcome, ours.lower, ours.upper) == (theirs.outcome, theirs.lower, theirs.upper)


def test_a_generator_that_always_falls_short_gives_no_pdr() -> None:
    log: list[str] = []
    measure = hiccups(SimulatedSut(IdealCurve(1e6), EXACT).measure, lambda number: True)
    result = search(measure, [PDR_GOAL], min_load=1e3, max_load=3e6, budget=1e9, log=log.append)
    found = result.of("PDR")
    assert (found.outcome, found.lower, found.upper) == (GoalOutcome.GENERATOR_LIMITED, None, None)
    assert "the generator reached 2940000 of 3000000 pps: searching below 2851800" in log


def test_a_surplus_is_no_gain_and_unsent_packets_within_the_tolerance_are_no_loss() -> None:
    def duplicating(load: float, duration: float) -> Trial:
        sent = round(load * duration)
        unsent = sent // 2000
        return Trial(load, duration, sent - unsent, sent * 2, unsent=unsent, sending_time=duration)

    found = pdr_search(duplicating, NDR).of("NDR")
    assert (found.outcome, found.lower) == (GoalOutcome.NO_UPPER_BOUND, 3e6)
    assert found.conditional_throughput == 3e6


@pytest.mark.parametrize("looks", [True, False], ids=["looks", "no looks"])
@pytest.mark.parametrize("flight", [0.0, 0.001], ids=["at once", "1 ms"])
def test_a_buffer_that_holds_an_overload_until_a_trial_is_over_makes_no_load_hold(flight: float, looks: bool) -> None:
    """4096 packets are 4 % of what 0.5 s of 200 kpps offer: such a trial at 204 kpps loses nothing."""

    found = pdr_search(buffered(2e5, 4096, flight=flight, looks=looks)).of("PDR")
    assert found.outcome == GoalOutcome.FOUND
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= 2e5 / 0.995 * 1.001
    assert found.upper <= 2e5 / 0.995 * 1.011


def test_what_the_measurer_raises_ends_the_search() -> None:
    def broken(load: float, duration: float) -> Trial:
        raise OSError("cable")

    with pytest.raises(OSError, match="cable"):
        pdr_search(broken)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"width": 0}, "goal PDR: a width of 0.000% would never be reached; use one above 0 %, such as 1%"),
        ({"width": 1e-9}, "goal PDR: a width of 0.000% would never be reached; use one above 0 %, such as 1%"),
        ({"width": math.nan}, "goal PDR: a width of nan% would never be reached; use one above 0 %, such as 1%"),
        ({"width": 1}, "goal PDR: a width of 100.000% would never be reached; use one above 0 %, such as 1%"),
        ({"loss_ratio": 1}, "goal PDR: a loss ratio of 100.000% has no meaning; use 0 to 99 %"),
        ({"loss_ratio": -0.1}, "goal PDR: a loss ratio of -10.000% has no meaning; use 0 to 99 %"),
        ({"loss_ratio": math.nan}, "goal PDR: a loss ratio of nan% has no meaning; use 0 to 99 %"),
        ({"exceed_ratio": 1}, "goal PDR: an exceed ratio of 1 has no meaning; use 0 to 0.99"),
        (
            {"final_trial_duration": 3},
            "goal PDR: trial durations 0.5 s, 3 s and their sum 2.0 s must grow in this order, and be above 0",
        ),
        (
            {"initial_trial_duration": 0},
            "goal PDR: trial durations 0 s, 0.5 s and their sum 2.0 s must grow in this order, and be above 0",
        ),
    ],
)
def test_goals_that_have_no_meaning(values: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError) as error:
        dataclasses.replace(PDR_GOAL, **values)  # type: ignore[arg-type]
    assert str(error.value) == message


def never(load: float, duration: float) -> Trial:
    raise AssertionError("no trial belongs here")


@pytest.mark.parametrize(
    ("goals", "loads", "budget", "message"),
    [
        ([], (1e3, 3e6), 10, "a search needs at least one goal, such as a loss ratio of 0.5%"),
        ([PDR_GOAL, PDR_GOAL], (1e3, 3e6), 10, "two of the goals PDR, PDR ask for the same; leave one out"),
        ([PDR_GOAL], (0, 3e6), 10, "cannot search between 0 and 3000000.0 packets/s; the lower must be above 0"),
        ([PDR_GOAL], (5, 5), 10, "cannot search between 5 and 5 packets/s; the lower must be above 0"),
        ([PDR_GOAL], (math.nan, 5), 10, "cannot search between nan and 5 packets/s; the lower must be above 0"),
        ([PDR_GOAL], (1, math.nan), 10, "cannot search between 1 and nan packets/s; the lower must be above 0"),
        ([PDR_GOAL], (1, math.inf), 10, "cannot search between 1 and inf packets/s; the lower must be above 0"),
        ([PDR_GOAL], (1e3, 3e6), 0, "cannot search within 0 s; give a budget above 0"),
        ([PDR_GOAL], (1e3, 3e6), math.nan, "cannot search within nan s; give a budget above 0"),
    ],
)
def test_searches_that_have_no_meaning(
    goals: list[Goal], loads: tuple[float, float], budget: float, message: str
) -> None:
    with pytest.raises(UsageError) as error:
        search(never, goals, min_load=loads[0], max_load=loads[1], budget=budget)
    assert str(error.value) == message

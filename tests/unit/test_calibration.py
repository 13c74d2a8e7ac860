"""Calibration: the generator's ceiling, and what the SUT forwards there."""

from __future__ import annotations

import pytest
from causes import because
from flat_values import changed
from simulated_sut import Behaviour, Ceiling, IdealCurve, SimulatedSut

from pdrgate.record.trial import Trial
from pdrgate.search.calibration import FLAT_OUT, Calibration, calibrate
from pdrgate.values.errors import GeneratorError


def sent(offered: int, forwarded: int) -> Trial:
    return Trial(FLAT_OUT, 1.0, offered, forwarded, unsent=int(FLAT_OUT) - offered, sending_time=1.0)


@pytest.mark.parametrize("stretches", [False, True])
def test_ceiling_and_forwarding_rate(stretches: bool) -> None:
    sut = SimulatedSut(IdealCurve(1e6), Behaviour(0.0), ceiling=Ceiling(2.5e6, stretches))
    found = calibrate(sut.measure, 0.3)
    assert found.ceiling == pytest.approx(2.5e6, rel=1e-6)
    assert found.forwarding_rate == pytest.approx(1e6, rel=0.005)
    assert found.max_load == pytest.approx(2.25e6, rel=1e-6)
    # A search begins well beyond what the SUT forwarded, and not at the generator's end.
    assert found.search_load == pytest.approx(1.5e6, rel=0.005)
    assert found.min_load == pytest.approx(1500, rel=0.005)


def test_a_search_goes_no_further_than_the_generator_and_as_far_where_the_sut_forwards_nothing() -> None:
    assert Calibration(1e6, 0.9e6).search_load == Calibration(1e6, 0.9e6).max_load == pytest.approx(0.9e6)
    assert Calibration(1e6, 0.0).search_load == pytest.approx(0.9e6)


def test_a_sut_that_forwards_nothing_when_it_is_flooded_may_be_far_slower_than_the_generator() -> None:
    assert Calibration(7e6, 4_500.0).min_load == pytest.approx(6.75)
    assert Calibration(7e6, 0.0).min_load == pytest.approx(6.3)


def test_the_best_counts_once_it_was_shown_twice() -> None:
    """Cold caches and a missed CPU make trials that say nothing of what the generator can do."""
    rates = iter([(100, 100), (1_400_000, 900_000), (2_000_000, 800_000), (2_050_000, 850_000), (1, 1)])
    found = calibrate(lambda load, duration: sent(*next(rates)), 1.0)
    assert (found.ceiling, found.forwarding_rate) == (2_050_000, pytest.approx(850_000))
    assert next(rates) == (1, 1)


def test_a_generator_that_never_agrees_with_itself_is_believed_after_six_trials() -> None:
    rates = iter([1_000_000, 1_200_000, 1_400_000, 1_600_000, 1_800_000, 2_000_000])
    assert calibrate(lambda load, duration: sent(next(rates), 500_000), 1.0).ceiling == 2_000_000


def test_a_ceiling_far_above_the_sut_need_not_be_known_well() -> None:
    rates = iter([(11_000_000, 4_520), (7_000_000, 4_500), (1, 1)])
    found = calibrate(lambda load, duration: sent(*next(rates)), 1.0)
    assert (found.ceiling, found.forwarding_rate) == (11_000_000, 4_520)
    assert next(rates) == (1, 1)


@pytest.mark.parametrize(
    ("first", "asked"),
    [
        pytest.param(sent(650_000, 18_900), 1, id="the next one would show the same"),
        pytest.param(
            changed(sent(650_000, 18_900), disturbed=because("the guest's CPU was late")), 2, id="it was disturbed"
        ),
        pytest.param(sent(100_000, 18_900), 3, id="the search may come near what the generator can do"),
    ],
)
def test_of_a_steady_sut_one_trial_tells_enough(first: Trial, asked: int) -> None:
    trials = iter([first] * 9)
    calibrate(lambda load, duration: next(trials), 1.0, steady=True)
    assert len(list(trials)) == 9 - asked


@pytest.mark.parametrize(
    "rates",
    [
        pytest.param([(11_000_000, 4_500), (11_000_000, 9_000)], id="what the SUT forwards is not known yet"),
        pytest.param(
            [(11_000_000, 0), (11_000_000, 0)], id="it forwards nothing, and may be searched up to the ceiling"
        ),
        pytest.param([(40_000, 4_500), (11_000_000, 4_500)], id="the generator missed its CPU once"),
    ],
)
def test_otherwise_a_third_trial_is_wanted(rates: list[tuple[int, int]]) -> None:
    asked = iter([*rates, rates[-1], (1, 1), (1, 1), (1, 1)])
    calibrate(lambda load, duration: sent(*next(asked)), 1.0)
    assert len(list(asked)) <= 3


def test_flat_out_and_the_duration_are_what_is_asked_for() -> None:
    asked: list[tuple[float, float]] = []

    def measure(load: float, duration: float) -> Trial:
        asked.append((load, duration))
        return sent(1000, 1000)

    calibrate(measure, 0.25, flat_out=7e6)
    assert asked == [(7e6, 0.25)] * 3


def test_a_very_slow_generator_is_searched_from_1_pps_on() -> None:
    assert calibrate(lambda load, duration: sent(100, 100), 1.0).min_load == 1.0


def test_a_generator_that_sends_nothing() -> None:
    with pytest.raises(GeneratorError, match=r"^the generator offered no packet when asked for all it has; see"):
        calibrate(lambda load, duration: sent(0, 0), 1.0)

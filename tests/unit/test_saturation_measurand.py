"""The saturation throughput of one replicate."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from flat_values import flat_trial

from pdrgate.measurands import Ask, SaturationThroughput, Sweep, replicate_of
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial

SATURATED = SaturationThroughput(2e6, 0.5, 4, 0.005)


def trial(forwarded: float, load: float = 2e6, phase: Phase = Phase.SATURATION, **more: Any) -> Trial:
    return flat_trial(load, 1.0, round(load), round(forwarded), sending_time=1.0, phase=phase, **more)


def test_it_is_the_median_so_that_one_dip_in_four_tells_nothing() -> None:
    trials = [trial(1e6), trial(0.8e6), trial(1.002e6), trial(0.998e6)]
    assert SATURATED.value(trials) == pytest.approx(0.999e6)


def test_what_drained_after_sending_is_no_throughput() -> None:
    """The curve's most overloaded trials of 0.25 s once came to 5 % more than the SUT's capacity."""
    assert SATURATED.value([trial(1.05e6, drained=50_000)]) == pytest.approx(1e6)


def test_trials_elsewhere_without_overload_or_of_a_limited_generator_tell_nothing() -> None:
    limited = dataclasses.replace(trial(1e6), unsent=200_000)
    assert SATURATED.value([limited, trial(1e6, 1.5e6), trial(2e6)]) is None


def test_a_sut_that_takes_all_it_is_offered_is_offered_more() -> None:
    """A guest of wavering speed held in most of its trials what had been an overload when it was chosen."""
    trials, asked = [], []
    while (ask := SATURATED.next(trials)) is not None:
        asked.append(ask.load)
        trials.append(trial(min(ask.load, 2.5e6), ask.load))
    assert asked == [2e6] * 4 + [3e6] * 4
    assert SATURATED.value(trials) == pytest.approx(2.5e6)


def test_a_trial_that_holds_is_no_reason_to_count_the_slow_ones_only() -> None:
    rates = [1.9e6, 2e6, 1.8e6]
    assert SATURATED.value([trial(rate) for rate in rates]) == pytest.approx(1.9e6)


def test_where_the_generator_ends_no_higher_load_is_tried() -> None:
    limited = dataclasses.replace(trial(1e6), unsent=200_000)
    assert SATURATED.next([limited] * 4) is None


def test_the_curves_own_trials_count_as_well() -> None:
    trials = [trial(1e6, phase=Phase.REPEAT)]
    asked = []
    while (ask := SATURATED.next(trials)) is not None:
        asked.append(ask)
        trials.append(trial(1e6))
    assert asked == [Ask(2e6, 0.5, Phase.SATURATION)] * 3


def test_a_sweep_asks_each_load_once_in_its_order() -> None:
    sweep = Sweep((3.0, 1.0, 2.0), 0.5)
    trials: list[Trial] = [trial(1, 1, phase=Phase.SEARCH)]
    for load in (3.0, 1.0, 2.0):
        assert sweep.next(trials) == Ask(load, 0.5, Phase.REPEAT)
        trials.append(trial(load, load, Phase.REPEAT))
    assert sweep.next(trials) is None


def test_trials_of_replicates_by_boot_pair_and_repeat() -> None:
    kept = [
        trial(1, boot="a", repeat=1, phase=Phase.REPEAT), trial(1, boot="a", repeat=2), trial(1, boot="a", repeat=1),
        trial(1, boot="b", pair=1),
    ]  # fmt: skip
    others = [trial(1, boot="a"), trial(1, boot="b", pair=1, phase=Phase.SEARCH), trial(1, repeat=1, phase=Phase.LOAD)]
    assert replicate_of([*others, *kept]) == {
        ("a", 0, 1): [kept[0], kept[2]], ("a", 0, 2): [kept[1]], ("b", 1, 0): [kept[3]],
    }  # fmt: skip

"""What a replicate tells of loads far beyond saturation."""

from __future__ import annotations

from typing import Any

import pytest
from causes import because
from flat_values import flat_trial

from pdrgate.gate.scenarios.load_plan import overloads
from pdrgate.measurands import Ask, OverloadThroughput
from pdrgate.measurands.rates.overload import LivelockThreshold
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial

OVERLOADED = OverloadThroughput((4e6, 8e6), 0.5, 2)
THRESHOLD = LivelockThreshold(OVERLOADED)


def trial(load: float, forwarded: float, phase: Phase = Phase.OVERLOAD, **more: Any) -> Trial:
    return flat_trial(load, 1.0, round(load), round(forwarded), sending_time=1.0, phase=phase, **more)


CURVE = [trial(0.5e6, 0.5e6, Phase.REPEAT), trial(1.5e6, 1e6, Phase.REPEAT), trial(2e6, 1e6, Phase.REPEAT)]


def test_each_load_is_asked_for_as_often_as_it_takes() -> None:
    trials = list(CURVE)
    for load in (4e6, 4e6, 8e6, 8e6):
        assert OVERLOADED.next(trials) == Ask(load, 0.5, Phase.OVERLOAD)
        trials.append(trial(load, 1e6))
    assert OVERLOADED.next(trials) is None
    assert THRESHOLD.next(CURVE) is None


def test_the_highest_load_tells_the_throughput() -> None:
    assert OVERLOADED.value([*CURVE, trial(4e6, 1e6), trial(8e6, 0.3e6), trial(8e6, 0.1e6)]) == pytest.approx(0.2e6)
    assert OVERLOADED.value(CURVE) is None


def test_what_drained_is_no_throughput_and_nothing_is_less_than_one_packet() -> None:
    assert OVERLOADED.value([trial(8e6, 4000, drained=4000)]) == 2.0  # one packet in 0.5 s


def test_half_of_the_most_is_the_threshold() -> None:
    assert THRESHOLD.value([*CURVE, trial(4e6, 0.8e6), trial(8e6, 0.2e6)]) == pytest.approx(6e6)
    assert THRESHOLD.value([*CURVE, trial(4e6, 0.2e6), trial(8e6, 0.1e6)]) == pytest.approx(3.25e6)


def test_a_sut_that_keeps_forwarding_has_its_threshold_beyond_the_highest_load() -> None:
    assert THRESHOLD.value([*CURVE, trial(4e6, 0.9e6), trial(8e6, 0.6e6)]) == 8e6
    assert THRESHOLD.value([*CURVE, trial(4e6, 0.1e6)]) is None


def test_trials_that_were_disturbed_or_offered_too_little_tell_nothing() -> None:
    disturbed, short = (
        trial(8e6, 1e6, disturbed=because("stalls")),
        flat_trial(8e6, 1.0, 7_000_000, 1_000_000, phase=Phase.OVERLOAD),
    )
    assert OVERLOADED.value([disturbed, short]) is None
    assert OVERLOADED.value([disturbed, short, trial(8e6, 1e3)]) == 1e3


@pytest.mark.parametrize(
    ("factor", "most", "loads"),
    [
        (0, 1e9, ()),
        (4, 1e9, (4e6,)),
        (16, 1e9, (4e6, 8e6, 16e6)),
        (10, 1e9, (4e6, 8e6, 10e6)),
        (16, 9e6, (4e6, 8e6)),
        (3, 1e9, (3e6,)),
    ],
)
def test_loads_beyond_the_curve_double(factor: float, most: float, loads: tuple[float, ...]) -> None:
    assert overloads(2e6, factor, most) == loads

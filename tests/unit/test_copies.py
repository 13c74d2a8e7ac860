"""Packets that come back twice or never: a fault of the candidate alone is a REGRESSION, whatever a packet costs."""

from __future__ import annotations

import pytest
from flat_values import flat_trial
from rule_changes import value_changes

from pdrgate.gate.verdicts.change_verdict import judged
from pdrgate.measurands.rates.numbered_packets import PacketsNever, PacketsTwice
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.verdict import Verdict

TWICE, NEVER = PacketsTwice.about.name, PacketsNever.about.name


def burst(forwarded: int, twice: int = 0, offered: int = 2304, phase: Phase = Phase.SATURATION) -> Trial:
    return flat_trial(250e3, 0.009, offered, forwarded, drained=forwarded, twice=twice, phase=phase)


def test_sound_packets_have_no_value() -> None:
    trials = [burst(2304), burst(2304)]
    assert (PacketsTwice().value(trials), PacketsNever().value(trials)) == (None, None)
    assert (PacketsTwice().value([]), PacketsNever().value([])) == (None, None)


def test_a_tenth_that_is_lost_and_a_tenth_that_comes_twice_are_two_values() -> None:
    trials = [burst(2074, twice=230), burst(2074, twice=230)]
    assert PacketsTwice().value(trials) == pytest.approx(0.1, abs=0.001)
    assert PacketsNever().value(trials) == pytest.approx(0.1, abs=0.001)


def test_what_is_lost_by_an_overload_that_is_not_in_bursts_is_a_queues() -> None:
    overload = flat_trial(500e3, 0.1, 50_000, 20_000, drained=100, phase=Phase.SATURATION)
    looked_at = flat_trial(500e3, 0.1, 100, 50, drained=50, under_way=(1,) * 16, phase=Phase.SATURATION)
    assert PacketsNever().value([overload, looked_at, burst(0), burst(100, phase=Phase.COST)]) is None


def test_one_trial_in_which_the_machine_was_slow_is_none_of_a_boots() -> None:
    assert PacketsNever().value([burst(2304), burst(2000), burst(2304)]) is None


def test_of_the_candidate_alone_each_is_a_regression_that_says_so() -> None:
    twice, never = value_changes({}, {TWICE: (0.1, 0.1), NEVER: (0.1, 0.1)})
    assert (twice.verdict, never.verdict) == (Verdict.REGRESSION, Verdict.REGRESSION)
    assert judged([twice]).reason == "10.0% of the packets come back twice, 0.0% of the baseline's"
    assert judged([never]).reason == "10.0% of the packets never come back, 0.0% of the baseline's"


@pytest.mark.parametrize("values", [(0.2, 0.0), (0.0, 0.0, 0.0, 0.01)])
def test_packets_that_come_twice_in_one_boot_are_enough(values: tuple[float, ...]) -> None:
    assert value_changes({TWICE: (0.0, 0.0)}, {TWICE: values})


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        ({}, {}), ({TWICE: (0.1, 0.1)}, {TWICE: (0.1, 0.1)}), ({NEVER: (0.0, 0.3)}, {NEVER: (0.3, 0.3)}),
        ({}, {NEVER: (0.3, 0.0)}), ({}, {TWICE: (0.0005, 0.0005)}), ({TWICE: (0.1, 0.1)}, {}),
    ],
    ids=["none", "both builds", "a baseline that loses too", "one boot", "hardly any", "the baseline alone"],
)  # fmt: skip
def test_what_the_candidate_does_not_do_alone_is_no_change(
    baseline: dict[str, tuple[float, ...]], candidate: dict[str, tuple[float, ...]]
) -> None:
    assert not value_changes(baseline, candidate)

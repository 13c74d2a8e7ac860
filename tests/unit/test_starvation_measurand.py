"""What a replicate tells of the least that an end host's programs get past the PDR."""

from __future__ import annotations

from typing import Any

import pytest
from causes import because
from flat_values import flat_trial

from pdrgate.gate.run.profile import BOOT_GRID
from pdrgate.gate.scenarios.load_plan import ends, past_the_pdr
from pdrgate.measurands import Ask
from pdrgate.measurands.rates.starvation import LeastDelivered
from pdrgate.record.phase import Phase
from pdrgate.record.trial import LOOKS, Trial

LEAST = LeastDelivered((1.1e6, 1.5e6), count=2)


def trial(load: float, *rates: float, phase: Phase = Phase.PAST, **more: Any) -> Trial:
    """One of 0.25 s that delivered at these rates, each for an equal part of the time; what was not stayed away."""
    step, parts = 0.25 / LOOKS, LOOKS // len(rates)
    by_look = [step * (load - rates[look // parts]) for look in range(LOOKS)]
    waiting = tuple(round(sum(by_look[: look + 1])) for look in range(LOOKS))
    offered = round(0.25 * load)
    return flat_trial(
        load, 0.25, offered, offered - waiting[-1], sending_time=0.25, under_way=waiting, phase=phase, **more
    )  # fmt: skip


def test_each_load_is_asked_for_in_rounds() -> None:
    trials = [trial(1.5e6, 1e6, phase=Phase.REPEAT)]
    for load in (1.1e6, 1.5e6, 1.1e6, 1.5e6):
        assert LEAST.next(trials) == Ask(load, 0.25, Phase.PAST)
        trials.append(trial(load, 1e6))
    assert LEAST.next(trials) is None


def test_loads_beyond_the_two_lowest_are_asked_for_less_often_where_that_is_said() -> None:
    least, trials = LeastDelivered((1.1e6, 1.2e6, 1.5e6, 1.7e6), count=2, count_beyond=1), list[Trial]()
    while (ask := least.next(trials)) is not None:
        trials.append(trial(ask.load, 1e6))
    assert sorted(one.intended_load for one in trials) == [1.1e6, 1.1e6, 1.2e6, 1.2e6, 1.5e6, 1.7e6]
    assert least.value(trials) == pytest.approx(1e6, rel=1e-3)


def test_what_told_nothing_is_made_good_within_bounds() -> None:
    disturbed = [trial(1.1e6, 1e6, disturbed=because("stalls")) for _ in range(3)]
    others = [trial(1.5e6, 1e6) for _ in range(2)]
    assert LEAST.next([*disturbed, *others]) == Ask(1.1e6, 0.25, Phase.PAST)
    assert LEAST.next([*disturbed, *others, trial(1.1e6, 1e6, disturbed=because("stalls"))]) is None
    assert LEAST.value([*disturbed, *others]) is None  # the least may have been there


def test_when_a_thread_takes_over_does_not_change_what_is_told() -> None:
    """A whole trial delivers 0.5, 0.8 or 1.1 Mpps by chance, and while receivers starve it is 0.3 Mpps each time."""
    early, late, last = (trial(1.1e6, *rates) for rates in ([0.3e6] * 2 + [1.1e6] * 2, [0.3e6] * 3 + [1.1e6], [0.3e6]))
    assert early.forwarding_rate == pytest.approx(0.7e6, rel=1e-3)
    assert last.forwarding_rate == pytest.approx(0.3e6, rel=1e-3)
    flat = trial(1.5e6, 1e6)
    for one in (early, late, last):
        assert LEAST.value([one, one, flat, flat]) == pytest.approx(0.3e6, rel=1e-3)


def test_it_is_the_least_of_all_trials_at_all_loads() -> None:
    """A burst of the generator's wakes the thread at once in half of the trials: a median would tell of that."""
    woken = [trial(1.1e6, 1e6), trial(1.1e6, 1e6), trial(1.1e6, 0.3e6)]
    assert LEAST.value([*woken, trial(1.5e6, 1e6)]) == pytest.approx(0.3e6, rel=1e-3)
    assert LEAST.value([*woken, trial(1.5e6, 0.2e6)]) == pytest.approx(0.2e6, rel=1e-3)
    assert LEAST.value([*woken, trial(1.5e6, 1e6), trial(1.3e6, 0.1e6)]) == pytest.approx(0.3e6, rel=1e-3)


def test_nothing_is_less_than_one_packet_in_a_trial() -> None:
    assert LEAST.value([trial(1.1e6, 0.0), trial(1.5e6, 1e6)]) == 4.0


def test_a_generator_that_does_not_look_tells_the_rate_of_the_whole_trial() -> None:
    one = flat_trial(1e6, 0.25, 250_000, 100_000, sending_time=0.25, phase=Phase.PAST)
    assert one.least_rate == one.forwarding_rate == pytest.approx(0.4e6)


def test_its_loads_lie_between_the_pdr_and_the_highest_of_the_curve() -> None:
    assert ends(BOOT_GRID) == (0.5, 0.7, 2.0)
    assert past_the_pdr(2e6) == (1.2e6, 1.25e6, 1.5e6, 1.75e6)
    assert past_the_pdr(1.0) == (0.6, 0.625, 0.75, 0.875)

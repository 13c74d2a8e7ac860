"""The plan of the repeats: which loads, which one more, which order."""

from __future__ import annotations

import pytest
from causes import because
from flat_values import changed

from pdrgate.gate.run.profile import PROFILES
from pdrgate.gate.scenarios.load_plan import further_load, grid, round_order
from pdrgate.record.trial import Trial
from pdrgate.search.goals import PDR_GOAL


def lossy(load: float, plr: float) -> Trial:
    return Trial(load, 1.0, 1_000_000, round(1_000_000 * (1 - plr)), sending_time=1.0)


def test_the_grid_lies_around_the_pdr_and_below_the_generators_end() -> None:
    assert grid(123_456, (0.5, 1.5, 0.9, 1.95), 1e6) == (61_730, 111_100, 185_200, 240_700)
    assert grid(123_456, (0.5, 0.9, 1.5, 1.95), 200_000) == (61_730, 111_100, 185_200)
    assert grid(100, (1.0, 1.00001), 1e6) == (100,)  # what rounds to one load is one load


@pytest.mark.parametrize(
    ("plrs", "expected"),
    [
        ({1e5: 0, 2e5: 0.01, 3e5: 0.1}, None),  # two past the PDR: enough
        ({1e5: 0, 2e5: 0, 3e5: 0.1}, 3.6e5),
        ({1e5: 0, 2e5: 0, 3e5: 0}, 3.6e5),
        ({1e5: 0, 9e5: 0}, 1e6),  # no further than the generator goes
        ({1e5: 0, 1e6: 0.1}, None),  # it is there already
        ({1e5 + step: 0 for step in range(16)}, None),  # enough is enough
    ],
)
def test_a_further_load_until_two_are_past_the_pdr(plrs: dict[float, float], expected: float | None) -> None:
    assert further_load([lossy(load, plr) for load, plr in plrs.items()], 0.005, 1e6) == expected


def test_a_load_that_told_nothing_is_asked_for_again_before_a_higher_one() -> None:
    trials = [lossy(1e5, 0), lossy(3e5, 0.1)]
    disturbed = changed(lossy(6e5, 0.5), disturbed=because("stalls"))
    for _ in range(3):
        trials.append(disturbed)
        assert further_load(trials, 0.005, 1e6) == 6e5
    assert further_load([*trials, disturbed], 0.005, 1e6) == 7.2e5
    assert further_load([*trials, lossy(6e5, 0.5)], 0.005, 1e6) is None


def test_further_loads_end() -> None:
    trials = [lossy(1e3, 0)]
    while (load := further_load(trials, 0.005, 1e9)) is not None:
        trials.append(lossy(load, 0))
    assert len(trials) == 16


def test_rounds_go_upwards_and_downwards_in_turn() -> None:
    loads = {3.0, 1.0, 2.0}
    assert [round_order(loads, number) for number in range(3)] == [(1, 2, 3), (3, 2, 1), (1, 2, 3)]


def test_profiles_promise_what_they_take() -> None:
    for name, one in PROFILES.items():
        assert one.name == name
        assert any(goal.name == PDR_GOAL.name and goal.loss_ratio == PDR_GOAL.loss_ratio for goal in one.goals)
        assert one.goals[-1].name == PDR_GOAL.name  # what the repeats lie around
        assert len([factor for factor in one.grid if factor > 1]) >= 2  # a TIR needs two loads past the PDR
        assert min(one.grid) < 0.8  # and low loads show early loss
        assert one.repeats_time > one.repeats * one.trial_duration * len(one.grid)  # saturation and PDR besides
    for name, most in (("smoke", 15), ("quick", 180)):
        assert PROFILES[name].search_time[1] + PROFILES[name].repeats_time < most

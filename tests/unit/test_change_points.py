"""Where a series moved: planted changes, none, lone dips, creeps, and values that are no series."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pdrgate.stats.change_points import FEWEST_OF_A_LEVEL, change_points


def made(*levels: tuple[int, float], deviation: float = 0.005, seed: int = 1) -> list[float]:
    """As many builds as each level says, around it."""
    noise = random.Random(seed)
    return [level * math.exp(noise.gauss(0, deviation)) for count, level in levels for _ in range(count)]


def test_a_step_is_found_with_its_place_size_and_interval() -> None:
    (found,) = change_points(made((30, 1e6), (10, 0.95e6)))
    assert (found.before, found.after, found.creeps) == (29, 30, False)
    assert found.lower < -0.05 < found.upper and found.upper - found.lower < 0.02


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_the_unit_does_not_matter(scale: float) -> None:
    values = made((30, 1.0), (10, 0.95))
    (found,), (scaled,) = change_points(values), change_points([scale * value for value in values])
    assert (found.before, found.after) == (scaled.before, scaled.after)
    assert found.change == pytest.approx(scaled.change)


def test_an_unsure_place_is_told_as_a_range_that_holds_it() -> None:
    found = [
        one for seed in range(20) for one in change_points(made((40, 1e6), (40, 0.98e6), deviation=0.012, seed=seed))
    ]
    assert len(found) > 15
    assert sum(one.after - one.before > 1 for one in found) > 10
    assert sum(one.before <= 39 and one.after >= 40 for one in found) >= len(found) - 1


def test_what_went_down_and_came_back_is_two_changes() -> None:
    down, up = change_points(made((20, 1e6), (15, 0.96e6), (20, 1e6)))
    assert down.change < 0 < up.change
    assert (down.after, up.after) == (20, 35)


@pytest.mark.parametrize("deviation", [0.001, 0.01, 0.03])
def test_where_nothing_moved_nothing_is_told(deviation: float) -> None:
    assert [change_points(made((60, 1e6), deviation=deviation, seed=seed)) for seed in range(20)] == [()] * 20


def test_lone_dips_are_silent_and_do_not_hide_a_step() -> None:
    values = made((40, 1e6), (12, 0.95e6))
    for lone in (5, 17, 30, 45):
        values[lone] *= 0.85
    (found,) = change_points(values)
    assert (found.before, found.after) == (39, 40)
    assert change_points(values[:40]) == ()


@pytest.mark.parametrize("count", range(1, FEWEST_OF_A_LEVEL))
def test_the_latest_values_tell_of_a_step_once_there_are_enough(count: int) -> None:
    assert change_points(made((30, 1e6), (count, 0.9e6))) == ()
    assert len(change_points(made((30, 1e6), (FEWEST_OF_A_LEVEL + 1, 0.9e6)))) == 1


def test_a_creep_is_one_change_though_no_step_of_it_can_be_seen() -> None:
    values = made((20, 1e6), (1, 1e6)) + [
        value * math.exp(-0.003 * number) for number, value in enumerate(made((30, 1e6), seed=2), 1)
    ]
    (found,) = change_points(values)
    assert found.creeps
    assert abs(found.before - 20) <= 5 and found.after >= 45
    assert found.change == pytest.approx(math.expm1(-0.09), abs=0.015)


def test_a_creep_from_the_first_build_on_is_found() -> None:
    values = [value * math.exp(-0.003 * number) for number, value in enumerate(made((30, 1e6)))]
    (found,) = change_points(values)
    assert found.creeps and found.before < 5 and found.change < -0.06


def test_a_smaller_change_than_asked_for_is_not_told() -> None:
    values = made((30, 1e6), (30, 0.985e6), deviation=0.001)
    assert len(change_points(values, least=0.01)) == 1
    assert change_points(values, least=0.02) == ()


def test_equal_values_move_nothing_and_a_step_between_them_is_found() -> None:
    assert change_points([1e6] * 40) == ()
    (found,) = change_points([1e6] * 20 + [0.98e6] * 20)
    assert (found.before, found.after) == (19, 20)
    assert found.change == pytest.approx(-0.02)


@pytest.mark.parametrize("count", range(2 * FEWEST_OF_A_LEVEL))
def test_too_few_values_say_nothing(count: int) -> None:
    assert change_points([1e6 / (number + 1) for number in range(count)]) == ()


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_positive_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        change_points([1.0, bad])


@settings(max_examples=50)
@example([2.85e16, 3.79e16, 14.0, 7.06e18, 4.66e299, 6.05e299, 3.39e284, 5.01e230, 4.55e230, 2.48e263, 1.0])
@given(st.lists(st.floats(min_value=1e-300, max_value=1e300), max_size=40))
def test_changes_are_in_order_and_within_the_series(values: list[float]) -> None:
    found = change_points(values)
    assert list(found) == sorted(found, key=lambda one: one.before)
    for one in found:
        assert 0 <= one.before < one.after < len(values)
        assert one.lower <= one.change <= one.upper

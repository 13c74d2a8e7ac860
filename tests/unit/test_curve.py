"""The load-loss curve: points, what is left out, and where the PDR lies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.record.trial import LOOKS, Trial
from pdrgate.stability.curve import LoadLossCurve, crossing, first_past


def trial(load: float, lost: int = 0, *, unsent: int = 0, surplus: int = 0) -> Trial:
    offered = 100_000 - unsent
    return Trial(
        intended_load=load,
        intended_duration=1,
        offered=offered,
        forwarded=offered - lost + surplus,
        unsent=unsent,
        sending_time=1,
    )


def test_a_point_holds_the_numbers_of_equations_1_and_2() -> None:
    (point,) = LoadLossCurve.from_trials([trial(2e6, lost) for lost in (1000, 2000, 6000)]).points
    assert point.runs == 3
    assert point.losses == pytest.approx((0.01, 0.02, 0.06))
    assert point.plr == pytest.approx(0.03)
    assert point.plr_sd == pytest.approx(7e-4**0.5)
    assert point.delivery_ratio == pytest.approx(0.97)
    assert point.throughput == pytest.approx(1.94e6)
    assert point.throughputs == pytest.approx((1.98e6, 1.96e6, 1.88e6))
    assert point.ucl == pytest.approx(0.09572, abs=1e-5)
    assert point.lcl == pytest.approx(0.03 - 0.06572, abs=1e-5)
    assert point.delta_ucl == pytest.approx(0.06572 / 0.03, abs=1e-3)


def test_one_trial_has_no_deviation_and_no_limits() -> None:
    (point,) = LoadLossCurve.from_trials([trial(1e6, 10)]).points
    assert (point.plr_sd, point.lcl, point.ucl, point.delta_ucl) == (None, None, None, None)


def test_delta_ucl_of_a_lossless_load_is_undefined_and_its_limits_are_zero() -> None:
    (point,) = LoadLossCurve.from_trials([trial(1e6)] * 3).points
    assert (point.plr_sd, point.lcl, point.ucl, point.delta_ucl) == (0.0, 0.0, 0.0, None)


def test_a_surplus_is_kept_and_not_netted_against_loss() -> None:
    (point,) = LoadLossCurve.from_trials([trial(1e6, 1000), trial(1e6, surplus=1000)]).points
    assert point.plr == pytest.approx(0.005)
    assert point.surplus == pytest.approx(0.005)


def test_generator_limited_trials_are_left_out_and_counted() -> None:
    curve = LoadLossCurve.from_trials(
        [trial(1e6), trial(2e6, 500), trial(2e6, 50_000, unsent=20_000), trial(3e6, 60_000, unsent=30_000)]
    )
    assert curve.loads == (1e6, 2e6)
    assert curve.points[1].losses == pytest.approx((0.005,))
    assert curve.points[1].left_out == curve.left_out == 1
    assert curve.limited_loads == (3e6,)


def test_loads_are_sorted_and_repeats_keep_their_order() -> None:
    curve = LoadLossCurve.from_trials([trial(2e6, 3), trial(1e6), trial(2e6, 1), trial(2e6, 2)])
    assert curve.loads == (1e6, 2e6)
    assert curve.points[1].losses == pytest.approx((3e-5, 1e-5, 2e-5))


def test_nothing_or_a_load_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no trials"):
        LoadLossCurve.from_trials([])
    with pytest.raises(ValueError, match="load of 0"):
        LoadLossCurve.from_trials([trial(0.0)])


def test_the_pdr_is_where_an_ideal_curve_would_bend() -> None:
    # 1 % lost at 2 Mpps: T_sat = 1.98 Mpps, which is 99.5 % of 1.98995 Mpps (Eq. 3).
    pdr = LoadLossCurve.from_trials([trial(1e6), trial(2e6, 1000)]).pdr(0.005)
    assert pdr.load == pytest.approx(1.98e6 / 0.995)
    assert pdr.bracket == (1e6, 2e6)
    assert (pdr.lower, pdr.upper) == (None, None)


def test_the_interval_is_where_the_confidence_limits_cross() -> None:
    curve = LoadLossCurve.from_trials([trial(1e6)] * 3 + [trial(2e6, lost) for lost in (900, 1000, 1100)])
    pdr = curve.pdr(0.005)
    top = curve.points[1]
    assert top.lcl is not None
    assert top.ucl is not None
    assert pdr.lower == pytest.approx(2e6 * (1 - top.ucl) / 0.995)
    assert pdr.upper == pytest.approx(2e6 * (1 - top.lcl) / 0.995)


def test_the_pdr_stays_between_the_loads_around_it() -> None:
    # Saturated long before the upper load: the throughput there is below the lower load, which still held.
    assert crossing([1e6, 2e6], [0.0, 0.6], 0.005, [1e6, 0.8e6]) == 1e6


@pytest.mark.parametrize(
    ("losses", "bracket", "lower", "upper"),
    [
        ((0, 100), (2e6, None), 2e6, None),  # never past 0.5 %: the PDR is at least the highest load
        ((1000, 2000), (None, 1e6), None, 1e6),  # past it from the start: at most the lowest load
    ],
)
def test_a_pdr_outside_the_loads_is_bounded_on_one_side(
    losses: tuple[int, int], bracket: tuple[float | None, float | None], lower: float | None, upper: float | None
) -> None:
    curve = LoadLossCurve.from_trials(
        [trial(load, lost) for load, lost in zip((1e6, 2e6), losses, strict=True) for _ in range(3)]
    )
    pdr = curve.pdr(0.005)
    assert pdr.load is None
    assert (pdr.bracket, pdr.lower, pdr.upper) == (bracket, lower, upper)


@given(st.lists(st.lists(st.integers(min_value=0, max_value=3000), min_size=2, max_size=5), min_size=2, max_size=8))
def test_the_interval_holds_the_estimate(losses: list[list[int]]) -> None:
    curve = LoadLossCurve.from_trials(
        [trial(1e6 + 1e5 * index, lost) for index, point in enumerate(losses) for lost in point]
    )
    pdr = curve.pdr(0.005)
    if pdr.load is not None and pdr.lower is not None:
        assert pdr.lower <= pdr.load * (1 + 1e-12)
    if pdr.load is not None and pdr.upper is not None:
        assert pdr.load <= pdr.upper * (1 + 1e-12)


def test_the_interval_holds_the_estimate_where_a_queue_holds_what_is_not_lost_yet() -> None:
    """What a queue grew by is no throughput and no loss, and need not add up with both to the load."""

    def queued(load: float, grown: int) -> Trial:
        # A packet in a hundred stood in the queue when the first look came: it is in no throughput, and no growth.
        looks = tuple(1000 + grown * look // LOOKS for look in range(1, LOOKS + 1))
        return Trial(load, 1.0, 100_000, 100_000, drained=1000 + grown, sending_time=1.0, under_way=looks)

    curve = LoadLossCurve.from_trials([trial(1e6)] * 3 + [queued(1.2e6, grown) for grown in (13_000, 13_100, 13_200)])
    pdr = curve.pdr(0.005)
    assert pdr.load is not None and pdr.lower is not None and pdr.upper is not None
    assert pdr.lower < pdr.load < pdr.upper < 1.01 * pdr.lower


def test_each_repeat_has_its_own_pdr() -> None:
    curve = LoadLossCurve.from_trials(
        [trial(1e6, lost) for lost in (0, 1000, 0)] + [trial(2e6, lost) for lost in (1000, 1000, 0, 7)]
    )
    assert curve.pdr_per_run(0.005) == pytest.approx((1.98e6 / 0.995, 1e6, 2e6))


def test_far_loads_with_fewer_repeats_do_not_shorten_the_series() -> None:
    curve = LoadLossCurve.from_trials(
        [trial(load, lost) for load, lost in ((1e6, 0), (2e6, 1000), (3e6, 9000)) for _ in range(4)]
        + [trial(4e6, 20_000)]
    )
    assert curve.pdr_per_run(0.005) == pytest.approx((1.98e6 / 0.995,) * 4)


def test_the_first_crossing_counts() -> None:
    assert first_past([0.0, 0.006, 0.001, 0.1], 0.005) == 1
    assert first_past([0.005], 0.005) is None
    found = crossing([1.0, 2.0, 3.0], [0.0, 0.01, 0.0], 0.005, [1.0, 1.98, 3.0])
    assert found == pytest.approx(1.98 / 0.995)
    assert crossing([1.0, 2.0], [0.01, 0.02], 0.005, [0.99, 1.96]) is None
    assert crossing([1.0, 2.0], [0.0, 0.0], 0.005, [1.0, 2.0]) is None

"""TIR, the potential and the actual saturation point, and the label in the three readings."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from simulated_sut import IdealCurve

from pdrgate.stability import TirReading
from pdrgate.stability.throughput_increase import Label, detect_saturation, throughput_increase_ratios

LOADS = [1.0, 2.0, 3.0, 4.0, 5.0]


def plrs_of(throughputs: list[float]) -> list[float]:
    return [1 - throughput / load for load, throughput in zip(LOADS, throughputs, strict=True)]


def labels(throughputs: list[float]) -> dict[TirReading, Label]:
    return {reading: detect_saturation(LOADS, plrs_of(throughputs), reading=reading).label for reading in TirReading}


def test_the_tir_of_section_v_by_hand() -> None:
    # O = 1, 2, 4 with PLR 0, 0.1, 0.5: T = 1, 1.8, 2; TIR = 0.8 / 1 and 0.2 / 2.
    assert throughput_increase_ratios([1, 2, 4], [1, 1.8, 2]) == (None, pytest.approx(0.8), pytest.approx(0.1))


def test_the_ideal_curve_of_equation_3_saturates_at_once() -> None:
    curve = IdealCurve(2.0)
    found = detect_saturation(LOADS, [curve.loss_ratio(load) for load in LOADS])
    assert found.label is Label.GOOD
    # 2 is lossless, 3 the first past the PDR, 4 the load after that.
    assert (found.potential_index, found.actual_index) == (3, 3)
    assert found.tir == (None, pytest.approx(1), pytest.approx(0), pytest.approx(0), pytest.approx(0))


@pytest.mark.parametrize(
    ("throughputs", "strict", "tolerant", "published"),
    [
        ([1, 2, 2.9, 2.95, 3.0], "GOOD", "GOOD", "GOOD"),  # TIR 0.05, 0.05
        ([1, 2, 2.9, 3.1, 3.15], "BAD", "GOOD", "GOOD"),  # entry TIR 0.2: between η and 3 η
        ([1, 2, 2.9, 3.3, 3.35], "BAD", "BAD", "GOOD"),  # entry TIR 0.4: only the published reading lets it in
        ([1, 2, 2.9, 2.95, 3.15], "BAD", "BAD", "BAD"),  # leaves saturation: TIR 0.2 later
        ([1, 2, 3, 4, 5], "BAD", "BAD", "BAD"),  # never past the PDR
        ([1, 2, 3, 4, 4.5], "BAD", "BAD", "BAD"),  # no load after the first past it
    ],
)
def test_the_three_readings(throughputs: list[float], strict: str, tolerant: str, published: str) -> None:
    assert labels(throughputs) == {
        TirReading.STRICT: strict,
        TirReading.TOLERANT: tolerant,
        TirReading.PUBLISHED: published,
    }


def test_the_actual_point_is_where_lasting_saturation_begins() -> None:
    found = detect_saturation(LOADS, plrs_of([1, 1.9, 2.9, 2.95, 3.0]))
    assert (found.label, found.potential_index, found.actual_index) == (Label.BAD, 2, 3)


def test_saturation_that_ends_is_forgotten() -> None:
    found = detect_saturation(LOADS, plrs_of([1, 1.9, 1.95, 2.0, 2.9]))
    assert (found.potential_index, found.actual_index) == (2, None)


def test_a_loss_of_exactly_the_threshold_is_not_past_it() -> None:
    assert detect_saturation([1, 2, 3], [0, 0.005, 0.3]).potential_index is None
    assert detect_saturation([1, 2, 3], [0, 0.0051, 0.3]).potential_index == 2


def test_loads_must_increase_and_match() -> None:
    with pytest.raises(ValueError, match="strictly increase"):
        throughput_increase_ratios([1, 1], [0, 0])
    with pytest.raises(ValueError, match="2 loads but 1"):
        throughput_increase_ratios([1, 2], [0])


curves = st.lists(st.floats(min_value=0, max_value=0.9), min_size=2, max_size=12)
steps = st.lists(st.floats(min_value=0.1, max_value=10), min_size=12, max_size=12)


@given(curves, steps, st.floats(min_value=1e-3, max_value=1e7), st.sampled_from(TirReading))
def test_labels_do_not_depend_on_the_unit_of_the_loads(
    plrs: list[float], step: list[float], factor: float, reading: TirReading
) -> None:
    loads = [sum(step[: index + 1]) for index in range(len(plrs))]
    straight = detect_saturation(loads, plrs, reading=reading)
    assume(all(ratio is None or min(abs(ratio - 0.1), abs(ratio - 0.3)) > 1e-9 for ratio in straight.tir))
    scaled = detect_saturation([factor * load for load in loads], plrs, reading=reading)
    assert (scaled.label, scaled.potential_index, scaled.actual_index) == (
        straight.label,
        straight.potential_index,
        straight.actual_index,
    )


@given(curves)
def test_a_stricter_reading_never_says_good_where_a_laxer_says_bad(plrs: list[float]) -> None:
    loads = [float(index + 1) for index in range(len(plrs))]
    good = [detect_saturation(loads, plrs, reading=reading).label is Label.GOOD for reading in TirReading]
    assert good == sorted(good)


@given(curves, st.sampled_from(TirReading))
def test_good_means_that_saturation_begins_at_the_potential_point(plrs: list[float], reading: TirReading) -> None:
    loads = [float(index + 1) for index in range(len(plrs))]
    found = detect_saturation(loads, plrs, reading=reading)
    assert (found.label is Label.GOOD) == (
        found.potential_index is not None and found.potential_index == found.actual_index
    )

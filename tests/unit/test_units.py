"""Rate, Ratio and Duration: what people write, and what comes back."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.gate.verdicts.packet_cost import percent
from pdrgate.measurands import described, unit_of
from pdrgate.reports.words.measurands import change_told
from pdrgate.results.model import ChangeResult, PartChange
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import UnitError
from pdrgate.values.units import Duration, Rate, Ratio, change_in_words


@pytest.mark.parametrize(
    ("text", "pps"),
    [("1.2 Mpps", 1.2e6), ("500kpps", 5e5), ("64000", 64000.0), ("64_000 pps", 64000.0), ("1e6", 1e6), (7, 7.0)],
)
def test_a_rate_is_read_in_packets_per_second(text: str | float, pps: float) -> None:
    assert Rate.parse(text) == pytest.approx(pps)


@pytest.mark.parametrize("text", ["", "fast", "1 Gbps", "-1 kpps", "nan", "1e999"])
def test_what_is_no_rate_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UnitError, match="rate"):
        Rate.parse(text)


@pytest.mark.parametrize(("text", "value"), [("0.5%", 0.005), ("0.5 %", 0.005), ("0.005", 0.005), (0.1, 0.1)])
def test_a_ratio_is_read_with_and_without_percent(text: str | float, value: float) -> None:
    assert Ratio.parse(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "half", "5 permille", float("nan")])
def test_what_is_no_ratio_is_refused(text: str | float) -> None:
    with pytest.raises(UnitError, match="ratio"):
        Ratio.parse(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500 ms", 0.5), ("2 min", 120.0), ("1h", 3600.0), ("3", 3.0), (timedelta(minutes=1), 60.0), ("10 us", 1e-5)],
)
def test_a_duration_is_read_in_seconds(text: str | float | timedelta, seconds: float) -> None:
    assert Duration.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "3 weeks", "-1 s", float("inf")])
def test_what_is_no_duration_is_refused(text: str | float) -> None:
    with pytest.raises(UnitError):
        Duration.parse(text)


@given(st.floats(min_value=1e-3, max_value=1e12))
def test_a_rate_survives_being_shown_to_four_digits(pps: float) -> None:
    assert Rate.parse(str(Rate(pps))) == pytest.approx(pps, rel=1e-3)


@given(st.floats(min_value=1e-6, max_value=1.0))
def test_a_ratio_survives_being_shown_to_three_digits(ratio: float) -> None:
    assert Ratio.parse(str(Ratio(ratio))) == pytest.approx(ratio, rel=1e-2)


@given(st.floats(min_value=1e-9, max_value=59.0))
def test_a_short_duration_survives_being_shown(seconds: float) -> None:
    assert Duration.parse(str(Duration(seconds))) == pytest.approx(seconds, rel=1e-2)


@given(st.floats(min_value=0, max_value=1e15), st.sampled_from([Rate, Duration]))
def test_a_repr_evaluates_to_the_same_value(value: float, kind: type[Rate] | type[Duration]) -> None:
    quantity = kind(value)
    assert eval(repr(quantity), {"Rate": Rate, "Duration": Duration}) == quantity


@given(st.floats(min_value=0, max_value=1e15), st.sampled_from([Ratio, Duration]))
def test_a_text_means_the_very_same_value(value: float, kind: type[Ratio] | type[Duration]) -> None:
    assert kind.parse(kind(value).text) == value


def test_a_text_is_what_a_person_would_write() -> None:
    assert [Ratio(value).text for value in (0.02, 0.005, 0.07, 0)] == ["2%", "0.5%", "7%", "0%"]
    assert [Duration(value).text for value in (600, 0.5, 0)] == ["600 s", "0.5 s", "0 s"]


def test_a_long_duration_is_shown_in_minutes() -> None:
    assert str(Duration(125)) == "2 min 05 s"


@pytest.mark.parametrize(
    ("change", "lower", "upper", "told"),
    [
        (0.097, 0.042, 0.155, "+9.7% (+4.2% to +15.5%)"),
        (1 / 3, 0.33334, 0.33335, "+33.3%"),
        (0.0, -0.001, 0.0, "+0.0% (-0.1% to +0.0%)"),
    ],
)
def test_a_change_whose_interval_is_itself_is_told_alone(change: float, lower: float, upper: float, told: str) -> None:
    assert change_in_words(change, lower, upper) == told


_SMALL = st.floats(-0.01, 0.01) | st.sampled_from([-0.0, -1e-300])


@given(_SMALL, _SMALL, _SMALL, st.floats(0.0, 1e4))
def test_no_report_writes_minus_nothing(change: float, lower: float, upper: float, base: float) -> None:
    """It reads like a typing error: a change of -0.01 % is told as +0.0 %."""
    part = PartChange(function="rcv", change=change, baseline=base, candidate=base + change)
    counted = ChangeResult(
        measurand="cache lines", change=change, lower=lower, upper=upper, confidence=1.0, tolerance=0.05, baseline=base,
        candidate=base + change, unit="lines/packet", better="lower", verdict=Verdict.PASS, parts=(part,),
    )  # fmt: skip
    cost = replace(counted, measurand="cost", unit="instructions/packet", confidence=0.95, parts=())
    told = [
        change_in_words(change, lower, upper), percent(change), unit_of("lines/packet").said(-0.0),
        *(text for one in (counted, cost) for text in (change_told(one), described(one.measurand).told(one, ()))),
    ]  # fmt: skip
    assert [one for one in told if re.search(r"-0(\.0*)?(?![\d.])", one)] == []

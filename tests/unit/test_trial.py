"""The Trial: what counts as loss, what never does, and its one line of JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.trial import Latency, Trial

counts = st.integers(min_value=0, max_value=10**12)
times = st.floats(min_value=0, max_value=1e9, allow_nan=False)
latencies = st.none() | st.builds(Latency, p50=times, p90=times, p99=times, max=times, count=counts)
counters = st.dictionaries(st.text(max_size=8), counts, max_size=3)


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    offered = draw(counts)
    return Trial(
        intended_load=draw(times),
        intended_duration=draw(times),
        offered=offered,
        forwarded=draw(counts),
        unsent=draw(counts),
        refused=draw(st.integers(min_value=0, max_value=offered)),
        stray=draw(counts),
        sending_time=draw(times),
        latency=draw(latencies),
        counters_before=draw(counters),
        counters_after=draw(counters),
        scenario=draw(st.text(max_size=8)),
        boot=draw(st.text(max_size=8)),
        phase=draw(st.sampled_from(["", "search", "repeat"])),
        started=draw(times),
    )


def trial(offered: int = 1000, forwarded: int = 1000, **more: object) -> Trial:
    return Trial(intended_load=1000, intended_duration=1, offered=offered, forwarded=forwarded, **more)  # type: ignore[arg-type]


@given(trials())
def test_a_trial_survives_its_line_of_json(before: Trial) -> None:
    line = before.to_json()
    assert "\n" not in line
    assert Trial.from_mapping(json.loads(line)) == before


@given(trials())
def test_loss_is_never_negative_and_a_surplus_is_kept_beside_it(measured: Trial) -> None:
    assert 0 <= measured.loss_ratio <= 1
    assert measured.lost * measured.surplus == 0
    assert measured.lost - measured.surplus == measured.offered - measured.forwarded


def test_loss_is_counted_on_what_was_offered() -> None:
    assert trial(900, 855, unsent=100).loss_ratio == pytest.approx(0.05)


def test_unsent_packets_limit_the_generator_from_a_thousandth_on() -> None:
    assert not trial(9990, 9990, unsent=10).generator_limited
    assert trial(9989, 9989, unsent=11).generator_limited


def test_a_stretched_sending_time_limits_the_generator() -> None:
    assert not trial(sending_time=1.001).generator_limited
    assert trial(sending_time=1.0011).generator_limited


def test_the_offered_load_is_counted_over_the_longer_time() -> None:
    assert trial(sending_time=2.0).offered_load == 500
    assert trial(1000, 900, sending_time=2.0).forwarding_rate == pytest.approx(450)


def test_counters_show_only_what_changed() -> None:
    measured = trial(counters_before={"a": 1, "b": 2, "gone": 3}, counters_after={"a": 5, "b": 2, "new": 1})
    assert measured.counter_changes == {"a": 4}


@pytest.mark.parametrize("field", ["offered", "forwarded", "unsent", "refused", "stray"])
def test_a_negative_count_is_refused_by_name(field: str) -> None:
    record = json.loads(trial().to_json()) | {field: -1}
    with pytest.raises(ValueError, match=f"{field} is -1"):
        Trial.from_mapping(record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offered": "12"}, "offered is '12': a whole number belongs there"),
        ({"offered": True}, "offered is True: a whole number"),
        ({"intended_load": "x"}, "intended_load is 'x': a number belongs there"),
        ({"intended_load": float("nan")}, "finite"),
        ({"scenario": 3}, "scenario is 3: text belongs there"),
        ({"counters_before": [1]}, "an object of counters belongs there"),
        ({"latency": {"p50": 1}}, "latency lacks count, max, p90, p99"),
        ({"refused": 1001}, "exceeds offered"),
    ],
)
def test_a_wrong_value_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Trial.from_mapping(json.loads(trial().to_json()) | change)


def test_a_missing_key_is_named_and_an_unknown_one_ignored() -> None:
    record = json.loads(trial().to_json()) | {"later": 1}
    assert Trial.from_mapping(record) == trial()
    del record["offered"]
    with pytest.raises(ValueError, match="offered is missing"):
        Trial.from_mapping(record)

"""The Trial: what counts as loss, what never does, and its one line of JSON."""

from __future__ import annotations

import dataclasses
import json

import pytest
from causes import because
from flat_values import flat_trial
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.record.cause import CauseKind
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Latency
from pdrgate.record.trial import IN_FLIGHT, LOOKS, STANDING, STANDING_SHARE, Trial

counts = st.integers(min_value=0, max_value=10**12)
times = st.floats(min_value=0, max_value=1e9, allow_nan=False)
latencies = st.none() | st.builds(Latency, p50=times, p90=times, p99=times, max=times, count=counts)
counters = st.dictionaries(st.text(max_size=8), st.dictionaries(st.text(max_size=8), counts, max_size=3), max_size=3)


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    offered = draw(counts)
    return flat_trial(
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
        side=draw(st.sampled_from(["", "baseline", "candidate"])),
        pair=draw(st.integers(0, 48)),
        drained=0,
        under_way=tuple(draw(st.lists(st.integers(0, 9000), max_size=LOOKS))),
        boot=draw(st.text(max_size=8)),
        phase=draw(st.sampled_from(Phase)),
        disturbed=draw(
            st.sampled_from([(), because("a stall"), (*because("a stall"), *because("late", CauseKind.LATE))])
        ),
        started=draw(times),
    )


def trial(offered: int = 1000, forwarded: int = 1000, **more: object) -> Trial:
    return flat_trial(intended_load=1000, intended_duration=1, offered=offered, forwarded=forwarded, **more)


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


def test_what_a_sut_lost_anyway_need_not_have_been_sent() -> None:
    assert not trial(9500, 4750, unsent=500).generator_limited
    assert trial(9400, 4700, unsent=600).generator_limited
    assert trial(9500, 9450, unsent=500).generator_limited
    short = trial(9500, 4750, unsent=500)
    assert short.throughput_ratio == pytest.approx(0.95 * short.delivery_ratio)
    assert short.throughput_ratio * short.intended == pytest.approx(short.forwarding_rate)
    assert trial(sending_time=2.0).throughput_ratio == pytest.approx(0.5)


def test_a_stretched_sending_time_limits_the_generator() -> None:
    assert not trial(sending_time=1.001).generator_limited
    assert trial(sending_time=1.0011).generator_limited


def test_the_offered_load_is_counted_over_the_longer_time() -> None:
    assert trial(sending_time=2.0).offered_load == 500
    assert trial(1000, 900, sending_time=2.0).forwarding_rate == pytest.approx(450)


def test_counters_show_only_what_changed() -> None:
    measured = trial(
        counters_before={"in0": {"a": 1, "b": 2, "gone": 3}, "cpu1": {"c": 1}},
        counters_after={"in0": {"a": 5, "b": 2, "new": 1}, "cpu1": {"c": 1}},
    )
    assert measured.seen.counter_changes == {"in0": {"a": 4}}


@pytest.mark.parametrize("field", ["offered", "forwarded", "drained", "unsent", "refused", "stray", "pair", "repeat"])
def test_a_negative_count_is_refused_by_name(field: str) -> None:
    record = json.loads(trial().to_json()) | {field: -1}
    with pytest.raises(ValueError, match=f"{field} is -1"):
        Trial.from_mapping(record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offered": "12"}, r"Expected `int`, got `str` - at `\$.offered`"),
        ({"offered": True}, r"Expected `int`, got `bool` - at `\$.offered`"),
        ({"intended_load": "x"}, r"Expected `float`, got `str` - at `\$.intended_load`"),
        ({"intended_load": float("nan")}, "finite"),
        ({"scenario": 3}, r"Expected `str`, got `int` - at `\$.scenario`"),
        ({"phase": "warm-up"}, r"Invalid enum value - at `\$.phase`"),
        ({"counters_before": [1]}, r"Expected `object`, got `array` - at `\$.counters_before`"),
        ({"latency": {"p50": 1}}, r"missing required field `p90` - at `\$.latency`"),
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
    with pytest.raises(ValueError, match="missing required field `offered`"):
        Trial.from_mapping(record)


def filling(duration: float, load: float = 101_000, capacity: float = 100_000, buffer: int = 4096) -> Trial:
    """A trial of a SUT that forwards ``capacity`` packets/s from a buffer, by arithmetic."""
    excess = load - capacity
    queued = [min(buffer, excess * duration * look / LOOKS) for look in range(1, LOOKS + 1)]
    lost = max(0.0, excess * duration - buffer)
    losses = [max(0.0, excess * duration * look / LOOKS - buffer) for look in range(1, LOOKS + 1)]
    offered = round(load * duration)
    return Trial(
        intended_load=load, intended_duration=duration, offered=offered, forwarded=offered - round(lost),
        drained=round(queued[-1]), sending_time=duration,
        under_way=tuple(round(queue + gone) for queue, gone in zip(queued, losses, strict=True)),
    )  # fmt: skip


@pytest.mark.parametrize("duration", [0.25, 1.0, 4.0])
def test_a_rate_does_not_contain_what_drains_after_sending(duration: float) -> None:
    assert filling(duration, load=150_000).forwarding_rate == pytest.approx(100_000, rel=1e-3)


@pytest.mark.parametrize("duration", [0.25, 1.0, 4.0])
def test_a_deep_buffer_hides_no_overload_however_short_the_trial(duration: float) -> None:
    hidden = filling(duration)
    assert hidden.loss_ratio == 0
    assert hidden.steady_loss_ratio == pytest.approx(0.0099, rel=0.02)


def test_the_steady_loss_ratio_of_a_buffer_that_overflows_half_way() -> None:
    overflown = filling(1.0, load=108_192)
    assert overflown.loss_ratio == pytest.approx(0.038, rel=0.02)
    assert overflown.steady_loss_ratio == pytest.approx(0.0757, rel=0.001)


@given(st.floats(0.1, 8.0), st.floats(1.005, 3.0))
def test_the_steady_loss_ratio_depends_neither_on_the_duration_nor_on_when_the_buffer_is_full(
    duration: float, overload: float
) -> None:
    measured = filling(duration, load=overload * 20_000, capacity=20_000)
    standing = min(STANDING, STANDING_SHARE * measured.offered)
    seen = (overload - 1) * 20_000 * duration > 1.1 * standing
    hidden = 1.1 * standing / measured.offered
    assert measured.steady_loss_ratio == pytest.approx(1 - 1 / overload, abs=2e-3 if seen else hidden)


def unseen(seen: Trial) -> Trial:
    """The same of a generator that could not look while it sent."""
    return dataclasses.replace(seen, under_way=())


@given(st.floats(0.1, 8.0), st.floats(1.0, 3.0), st.sampled_from([20_000, 43_000, 100_000, 1_000_000]))
def test_no_overload_is_hidden_where_nobody_looks(duration: float, overload: float, capacity: int) -> None:
    measured = unseen(filling(duration, load=overload * capacity, capacity=capacity))
    allowed = max(min(STANDING, STANDING_SHARE * measured.offered), IN_FLIGHT * measured.offered_load)
    truth = 1 - 1 / overload
    if truth * measured.offered > 1.1 * allowed:
        assert measured.steady_loss_ratio == pytest.approx(truth, abs=2 / measured.offered)
    else:
        assert measured.steady_loss_ratio <= 1.1 * allowed / measured.offered


@given(st.floats(0.1, 8.0), st.floats(100, 2e6), st.floats(0, 0.99 * IN_FLIGHT))
def test_what_is_in_flight_is_no_loss_where_nobody_looks(duration: float, load: float, latency: float) -> None:
    offered = max(1, round(load * duration))
    calm = Trial(offered / duration, duration, offered, offered, drained=int(load * latency), sending_time=duration)
    assert calm.steady_loss_ratio == 0


def test_what_is_in_flight_for_long_is_loss_where_nobody_looks() -> None:
    slow = trial(100_000, 100_000, drained=5000)
    assert slow.steady_loss_ratio == 0.05
    assert dataclasses.replace(slow, under_way=(5000,) * LOOKS).steady_loss_ratio == 0


def test_what_stands_is_no_queue_that_grows() -> None:
    """Of 18.5 kpps 0.25 s have a goal of 23 packets; these looks are a real guest's, at 0.984 of what it forwards."""
    wavering = trial(4622, 4622, drained=78, under_way=(14, 15, 10, 18, 32, 20, 14, 20, 22, 16, 26, 73, 68, 62, 68, 78))
    assert wavering.steady_loss_ratio == 0


@pytest.mark.parametrize("capacity", [500, 1000, 4700])
def test_a_slow_suts_overload_is_no_standing_queue(capacity: int) -> None:
    """The least step of a grid beyond the PDR, in the shortest trials: 0.1 s of 500 packets/s are 58 packets."""
    measured = filling(0.1, load=1.15 * capacity, capacity=capacity)
    assert measured.steady_loss_ratio == pytest.approx(1 - 1 / 1.15, abs=0.02)


@given(st.integers(0, 50), st.integers(0, LOOKS - 1))
def test_one_look_during_a_stall_makes_no_queue(standing: int, at: int) -> None:
    looks = [standing] * LOOKS
    looks[at] = 5000
    calm = trial(100_000, 100_000, drained=min(looks[-1], 5000), under_way=tuple(looks))
    assert calm.steady_loss_ratio == 0


def test_bursts_of_loss_are_counted_once() -> None:
    lossy = trial(100_000, 99_000, drained=20, under_way=(20,) * 8 + (1020,) * 8)
    assert lossy.loss_ratio == pytest.approx(0.01)
    assert lossy.steady_loss_ratio == pytest.approx(0.01, abs=21 / 100_000)  # no more than what was under way

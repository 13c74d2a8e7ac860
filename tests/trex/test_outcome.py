"""What is made of the worker's observations: counts, sending time, latency; and what is not believed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from trex_rig import paths

from pdrgate.traffic.frames import Frames
from pdrgate.traffic.trex.outcome import (
    END_LAG,
    Observation,
    Reading,
    Sending,
    UntrustedCountersError,
    latency,
    sending_end,
    sending_time,
    trial,
)
from pdrgate.traffic.trex.trex_streams import streams

SENT = streams(Frames(6), paths(), 1_000_000, 1.0)
GROUP = SENT[0].group


def message(**more: Any) -> dict[str, Any]:
    """A million packets from port 0 to port 1, in one second."""
    counters = {"opackets": 0, "ipackets": 0, "oerrors": 0, "ierrors": 0}
    before = {f"port{port}.{name}": 10 for port in (0, 1) for name in counters} | {"queue_full": 3}
    after = before | {"port0.opackets": 1_000_010, "port1.ipackets": 1_000_010}
    flows = {"tx": {"0": 1_000_000, "1": 0}, "rx": {"0": 0, "1": 1_000_000}}
    return {
        "started": 5.0, "before": before, "after": after, "groups_before": {}, "groups_after": {str(GROUP): flows},
        "sendings": {"0": {"started": [0.0, 0.002], "ended": [1.0, 1.01], "readings": []}},
        "histograms": [], "arrivals": [], "stopped": False,
    } | more  # fmt: skip


def outcome(told: dict[str, Any]) -> Any:
    return trial(1e6, 1.0, SENT, (0, 1), Observation.from_message(told))


def test_a_trial_without_loss() -> None:
    found = outcome(message())
    assert (found.offered, found.unsent, found.forwarded, found.stray) == (1_000_000, 0, 1_000_000, 0)
    assert found.sending_time == 1.0
    assert not found.generator_limited
    assert found.started == 5.0
    assert found.counter_changes == {
        "trex.port0": {"opackets": 1_000_000},
        "trex.port1": {"ipackets": 1_000_000},
    }
    assert found.counters_before["trex"]["queue_full"] == 3


def test_only_packets_of_the_flow_at_the_far_port_are_forwarded() -> None:
    told = message()
    told["groups_after"][str(GROUP)]["rx"] = {"0": 4000, "1": 900_000}  # some came back where they were sent
    told["groups_after"]["31"] = {"tx": {"0": 0}, "rx": {"1": 77}}
    found = outcome(told)
    assert (found.offered, found.forwarded, found.lost) == (1_000_000, 900_000, 100_000)
    assert found.stray == 100_000


def test_what_the_card_dropped_was_not_offered() -> None:
    told = message()
    told["after"]["port0.opackets"] = 900_010
    told["after"]["port0.oerrors"] = 100_010
    told["groups_after"][str(GROUP)]["rx"] = {"1": 900_000}
    found = outcome(told)
    assert (found.offered, found.unsent, found.lost) == (900_000, 100_000, 0)
    assert found.generator_limited


def test_what_was_not_sent_is_not_lost() -> None:
    told = message()
    told["after"]["port0.opackets"] = 800_010
    told["groups_after"][str(GROUP)] = {"tx": {"0": 800_000}, "rx": {"1": 800_000}}
    found = outcome(told)
    assert (found.unsent, found.lost, found.generator_limited) == (200_000, 0, True)


def test_a_surplus_is_kept() -> None:
    told = message()
    told["groups_after"][str(GROUP)]["rx"]["1"] = 1_000_500
    assert outcome(told).surplus == 500


@pytest.mark.parametrize(
    ("where", "value", "what"),
    [
        (("after", "port0.opackets"), 9, "counted port0.opackets 10 before and 9 after"),
        (("after", "queue_full"), 0, "counted queue_full 3 before and 0 after"),
        (("groups_after", str(GROUP), "tx", "0"), 1_000_001, "port 0 counts 1000001 packets sent of 1000000"),
        (("groups_after", str(GROUP), "rx", "1"), 2**63, "are said to have come back of 1000000 sent by port 0"),
        (("after", "port0.opackets"), 2**62, "packets sent, the flow statistics 1000000"),
        (("groups_before", str(GROUP)), {"tx": {}, "rx": {"1": 2_000_000}}, "the rx counter of flow .* went back by"),
    ],
)
def test_counters_that_cannot_be(where: tuple[str, ...], value: Any, what: str) -> None:
    told = copy.deepcopy(message())
    place = told
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    with pytest.raises(UntrustedCountersError, match=what):
        outcome(told)


def test_a_flow_without_statistics_is_not_one_of_zero_packets() -> None:
    with pytest.raises(UntrustedCountersError, match=f"no statistics of flow {GROUP}, which port 0 sent"):
        outcome(message(groups_after={}))


def arrivals(*points: tuple[float, int, int], took: float = 0.001) -> list[Any]:
    """Readings of the flow statistics: when, packets sent, packets back."""
    return [
        [at - took / 2, at + took / 2, {str(GROUP): {"tx": {"0": sent}, "rx": {"0": 0, "1": back}}}]
        for at, sent, back in points
    ]


def queue(capacity: float, buffer: int, at: float) -> tuple[float, int, int]:
    """What is read while a million packets are sent in a second, to a SUT with a buffer, from 0.001 s on."""
    excess = min(buffer, 1e6 - capacity)
    sent = 1e6 * min(1.0, at - 0.001)
    return at, round(sent), round(min(capacity + excess, capacity * (at - 0.001)))


@pytest.mark.parametrize("late", [0.0, 0.002, 0.02, 0.05])
def test_what_was_queued_when_sending_ended_is_drained_and_in_no_rate(late: float) -> None:
    told = message(arrivals=arrivals(*(queue(0.8e6, 65_536, 0.991 + late + turn / 200) for turn in range(40))))
    told["groups_after"][str(GROUP)]["rx"] = {"0": 0, "1": 865_536}
    found = outcome(told)
    assert found.forwarding_rate == pytest.approx(0.8e6, rel=0.001)
    assert (found.drained, found.forwarded, found.lost) == (pytest.approx(65_536, abs=800), 865_536, 134_464)
    assert found.under_way == ()


def test_nothing_drains_where_all_is_back_at_the_end() -> None:
    found = outcome(message(arrivals=arrivals((0.99, 989_000, 988_900), (1.004, 1_000_000, 1_000_000))))
    assert (found.forwarded, found.drained) == (1_000_000, 0)


def test_readings_before_the_last_packet_was_sent_are_not_believed() -> None:
    """Here, received packets are counted late while others are being sent."""
    found = outcome(message(arrivals=arrivals((0.99, 989_000, 9), (0.999, 999_999, 9), (1.01, 1_000_000, 1_000_000))))
    assert found.drained == 0


@pytest.mark.parametrize(
    "points", [[], [(1.01, 1_000_000, 900_000)], [(1.01, 1_000_000, 0), (1.011, 1_000_000, 10**6)]]
)
def test_no_more_has_drained_than_came_back(points: list[tuple[float, int, int]]) -> None:
    found = outcome(message(arrivals=arrivals(*points)))
    assert 0 <= found.drained <= found.forwarded == 1_000_000


def test_the_end_of_sending_is_told_by_the_last_reading_of_its_progress() -> None:
    known = Sending((0.0, 0.01), (1.0, 1.02), (Reading(0.899, 0.901, 890_000),))
    assert sending_end(1_000_000, 1.0, known) == pytest.approx(1.01)
    assert sending_end(1_000_000, 1.0, Sending((0.0, 0.01), (1.0, 1.02), ())) == pytest.approx(1.005)
    assert sending_end(1_000_000, 1.0, known, stopped=True) == pytest.approx(1.01)
    assert sending_end(1_000_000, 1.2, known) == 1.02


def sending(*readings: Reading, end: float = 1.0) -> Sending:
    return Sending((0.0, 0.002), (end, end + 0.005), readings)


def reading(at: float, packets: float, request: float = 0.001) -> Reading:
    return Reading(at - request / 2, at + request / 2, round(packets))


def test_on_time_is_exactly_on_time() -> None:
    """The end is known within milliseconds only, and is no reason to doubt."""
    on_time = sending(reading(0.1, 0.1e6), reading(0.9, 0.9e6), end=1.0 + END_LAG * 0.9)
    assert sending_time(1_000_000, 1.0, on_time) == 1.0


@pytest.mark.parametrize("stretch", [1.005, 1.05, 1.5])
def test_lateness_is_measured_by_the_progress(stretch: float) -> None:
    late = sending(reading(0.1, 0.1e6 / stretch), reading(0.9, 0.9e6 / stretch), end=stretch + 0.02)
    assert sending_time(1_000_000, 1.0, late) == pytest.approx(stretch, rel=1e-3)


def test_a_lateness_within_the_readings_is_none() -> None:
    slightly = sending(reading(0.1, 0.1e6 / 1.002, 0.004), reading(0.9, 0.9e6 / 1.002, 0.004))
    assert sending_time(1_000_000, 1.0, slightly) == 1.0


def test_few_packets_tell_nothing() -> None:
    assert sending_time(10, 0.1, sending(reading(0.01, 0), reading(0.09, 7), end=0.1)) == 0.1


def test_the_sending_time_never_goes_beyond_the_end() -> None:
    stuck = sending(reading(0.1, 500), reading(0.9, 500), end=1.05)
    assert sending_time(1_000_000, 1.0, stuck) == pytest.approx(1.055)
    early = sending(reading(0.1, 500), reading(0.9, 500), end=0.9)
    assert sending_time(1_000_000, 1.0, early) == 1.0


def test_without_readings_the_end_tells() -> None:
    assert sending_time(1000, 1.0, sending(end=1.5)) == pytest.approx(1.5 - 0.002 - END_LAG)


def test_a_stopped_port_sent_until_then() -> None:
    halved = sending(reading(0.1, 0.05e6), reading(0.9, 0.45e6), end=1.2)
    assert sending_time(1_000_000, 1.0, halved, stopped=True) == pytest.approx(1.2, abs=0.01)


def test_the_slower_port_counts() -> None:
    sent = streams(Frames(6, directions=2), paths(), 1_000_000, 1.0)
    groups = {stream.port: str(stream.group) for stream in sent}
    told = message()
    told["after"] |= {f"port{port}.{name}": 500_010 for port in (0, 1) for name in ("opackets", "ipackets")}
    told["groups_after"] = {
        groups[port]: {"tx": {str(port): 500_000}, "rx": {str(1 - port): 500_000}} for port in (0, 1)
    }
    told["sendings"]["1"] = {
        "started": [0.0, 0.002], "ended": [1.2, 1.21],
        "readings": [[0.1, 0.101, 45_000], [0.9, 0.901, 405_000]],
    }  # fmt: skip
    found = trial(1e6, 1.0, sent, (0, 1), Observation.from_message(told))
    assert found.forwarded == 1_000_000
    assert found.sending_time == pytest.approx(0.8 / 0.72, rel=1e-2)
    assert found.generator_limited


def test_percentiles_are_upper_ends_of_buckets() -> None:
    found = latency([{10: 50, 90: 40}, {100: 8, 2000: 2}], 100)
    assert found is not None
    assert (found.p50, found.p90, found.p99, found.max, found.count) == (20e-6, 100e-6, 3000e-6, 3000e-6, 100)


def test_probes_that_the_histograms_leave_out_were_faster_than_their_first_bucket() -> None:
    found = latency([{0: 10, 20: 1}, {10: 9}], 1000)
    assert found is not None
    assert (found.p50, found.p90, found.p99, found.max, found.count) == (10e-6, 10e-6, 10e-6, 30e-6, 1000)
    found = latency([{}], 5)
    assert found is not None
    assert (found.p50, found.max, found.count) == (10e-6, 10e-6, 5)


def test_no_probes_no_latency() -> None:
    assert latency([{}], 0) is None

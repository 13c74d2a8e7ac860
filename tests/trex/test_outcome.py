"""What is made of the worker's observations: counts, sending time, latency; and what is not believed."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from trex_rig import paths

from pdrgate.record.cause import causes_in_words
from pdrgate.record.trial import LOOKS
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.trex.outcome import (
    DeafStatisticsError,
    UntrustedCountersError,
    WorkerObservation,
    probe_latency,
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
        "sendings": {"0": {"started": [0.0, 0.002], "ended": [1.0, 1.01]}},
        "histograms": [], "copies": 0, "arrivals": [], "stopped": False,
    } | more  # fmt: skip


def outcome(told: dict[str, Any]) -> Any:
    return trial(1e6, 1.0, SENT, (0, 1), WorkerObservation.from_message(told))


def test_a_trial_without_loss() -> None:
    found = outcome(message())
    assert (found.offered, found.unsent, found.forwarded, found.aside.stray) == (1_000_000, 0, 1_000_000, 0)
    assert found.sending_time == 1.0
    assert not found.generator_limited
    assert found.occasion.started == 5.0
    assert found.seen.counter_changes == {
        "trex.port0": {"opackets": 1_000_000},
        "trex.port1": {"ipackets": 1_000_000},
    }
    assert found.seen.counters_before["trex"]["queue_full"] == 3


def test_only_packets_of_the_flow_at_the_far_port_are_forwarded() -> None:
    told = message()
    told["groups_after"][str(GROUP)]["rx"] = {"0": 4000, "1": 900_000}  # some came back where they were sent
    told["groups_after"]["31"] = {"tx": {"0": 0}, "rx": {"1": 77}}
    found = outcome(told)
    assert (found.offered, found.forwarded, found.lost) == (1_000_000, 900_000, 100_000)
    # Returned ones are told apart: they are our own, and were sent back.
    assert (found.aside.returned, found.aside.stray) == (4_000, 96_000)


def test_a_probe_that_came_twice_does_not_stand_in_for_a_lost_packet() -> None:
    sent = streams(Frames(6, probe_rate=1000.0), paths(), 1_000_000, 1.0)
    plain, probes = (one.group for one in sent)
    told = message(copies=100)
    told["groups_after"] = {
        str(plain): {"tx": {"0": 999_000}, "rx": {"1": 999_000}},
        str(probes): {"tx": {"0": 1000}, "rx": {"1": 1000}},
    }
    found = trial(1e6, 1.0, sent, (0, 1), WorkerObservation.from_message(told))
    assert (found.forwarded, found.aside.twice, found.lost) == (999_900, 100, 100)


def test_no_more_probes_came_twice_than_came() -> None:
    assert outcome(message(copies=100)).aside.twice == 0


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


@pytest.mark.parametrize("seen", [0, 1, 9_000])
def test_flow_statistics_that_see_nothing_are_refused(seen: int) -> None:
    told = message()
    told["groups_after"][str(GROUP)]["rx"] = {"0": 0, "1": seen}
    with pytest.raises(DeafStatisticsError, match=f"received 1000000 packets of 1000000 sent, .* saw {seen} of them: "):
        outcome(told)


@pytest.mark.parametrize("strays", [0, 400_000])
def test_a_loss_of_all_packets_is_one(strays: int) -> None:
    told = message()
    told["after"]["port1.ipackets"] = 10 + strays
    told["groups_after"][str(GROUP)]["rx"] = {"0": 0, "1": 0}
    assert (outcome(told).loss_ratio, outcome(told).aside.stray) == (1.0, strays)


def test_of_few_packets_neighbours_may_have_sent_as_many() -> None:
    sent = streams(Frames(6), paths(), 100, 1.0)
    told = message()
    told["after"] |= {"port0.opackets": 110, "port1.ipackets": 100}
    told["groups_after"] = {str(sent[0].group): {"tx": {"0": 100}, "rx": {"1": 0}}}
    assert trial(100, 1.0, sent, (0, 1), WorkerObservation.from_message(told)).aside.stray == 90


def test_a_flow_without_statistics_is_not_one_of_zero_packets() -> None:
    with pytest.raises(UntrustedCountersError, match=f"no statistics of flow {GROUP}, which port 0 sent"):
        outcome(message(groups_after={}))


def arrivals(*points: tuple[float, int, int], took: float = 0.001) -> list[dict[str, Any]]:
    """Readings of the flow statistics: when, packets sent, packets back."""
    return [
        {
            "asked": at - took / 2, "answered": at + took / 2,
            "groups": {str(GROUP): {"tx": {"0": sent}, "rx": {"0": 0, "1": back}}},
        }
        for at, sent, back in points
    ]  # fmt: skip


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
    found = outcome(message(arrivals=arrivals((0.99, 989_000, 989_000), (1.004, 1_000_000, 1_000_000))))
    assert (found.forwarded, found.drained) == (1_000_000, 0)


@pytest.mark.parametrize(
    "points", [[], [(1.2, 1_000_000, 1_000_000)], [(0.5, 500_000, 400_000), (1.2, 1_000_000, 1_000_000)]]
)
def test_what_nobody_saw_come_back_in_time_is_not_held(points: list[tuple[float, int, int]]) -> None:
    """A machine that was too busy to look, or a server too busy to answer, until a queue had drained."""
    found = outcome(message(arrivals=arrivals(*points)))
    assert (found.lost, found.under_way) == (0, ())
    assert found.steady_loss_ratio >= 0.2
    assert not found.sound
    assert re.fullmatch(
        r"TRex, or this machine, was too busy to look for \d+ ms of 1000 ms", causes_in_words(found.seen.disturbed)
    )


def test_who_looked_in_time_was_not_disturbed() -> None:
    times = [0.2, 0.4, 0.7, 0.9, 1.1]
    assert outcome(message(arrivals=arrivals(*(queue(1e6, 0, at) for at in times)))).seen.disturbed == ()
    blind = outcome(message(arrivals=arrivals(*(queue(1e6, 0, at) for at in (0.2, 0.4, 0.9, 1.1)))))
    assert causes_in_words(blind.seen.disturbed).endswith("was too busy to look for 500 ms of 1000 ms")


@pytest.mark.parametrize(
    "points", [[], [(1.01, 1_000_000, 900_000)], [(1.01, 1_000_000, 0), (1.011, 1_000_000, 10**6)]]
)
def test_no_more_has_drained_than_came_back(points: list[tuple[float, int, int]]) -> None:
    found = outcome(message(arrivals=arrivals(*points)))
    assert 0 <= found.drained <= found.forwarded == 1_000_000


def test_what_was_read_while_packets_were_sent_are_looks() -> None:
    """An overload by 3 %, of which the buffer holds all: nothing is lost, and nothing drains for long enough to see."""
    times = [step / 16 for step in range(1, 16)] + [0.996, 1.1]
    told = message(arrivals=arrivals(*(queue(0.97e6, 65_536, at) for at in times)))
    found = outcome(told)
    assert (found.lost, found.drained, found.forwarding_rate) == (0, 30_000, 0.97e6)
    assert found.under_way == pytest.approx([30_000 * look / LOOKS for look in range(1, LOOKS + 1)], abs=40)
    assert found.steady_loss_ratio == pytest.approx(0.03, abs=1e-4)


def test_looks_are_those_of_both_directions_and_of_probes() -> None:
    """The second port begins 20 ms later and is flooded; every tenth packet of both is a probe."""
    sent = streams(Frames(6, directions=2, probe_rate=50_000), paths(), 1_000_000, 1.0)
    counts = {stream.group: (stream.port, stream.count) for stream in sent}
    returned = {0: 1.0, 1: 0.9}

    def read(at: float) -> dict[str, Any]:
        flows = {}
        for group, (port, count) in counts.items():
            share = min(1.0, max(0.0, at - 0.02 * port))
            back = count * returned[port] * min(1.0, max(0.0, at - 0.02 * port))
            flows[str(group)] = {"tx": {str(port): round(count * share)}, "rx": {str(1 - port): round(back)}}
        return {"asked": at, "answered": at, "groups": flows}

    told = message(arrivals=[read(step / 16) for step in range(1, 18)])
    told["after"] |= {f"port{port}.{name}": 500_010 for port in (0, 1) for name in ("opackets", "ipackets")}
    told["groups_after"] = read(2.0)["groups"]
    told["sendings"]["1"] = {"started": [0.02, 0.022], "ended": [1.02, 1.03]}
    found = trial(1e6, 1.0, sent, (0, 1), WorkerObservation.from_message(told))
    assert (found.offered, found.forwarded, found.drained) == (1_000_000, 950_000, 0)
    assert found.under_way == pytest.approx([50_000 * look / LOOKS for look in range(1, LOOKS + 1)], abs=5)


def test_the_slower_port_counts() -> None:
    sent = streams(Frames(6, directions=2), paths(), 1_000_000, 1.0)
    groups = {stream.port: str(stream.group) for stream in sent}
    told = message()
    told["after"] |= {f"port{port}.{name}": 500_010 for port in (0, 1) for name in ("opackets", "ipackets")}
    told["groups_after"] = {
        groups[port]: {"tx": {str(port): 500_000}, "rx": {str(1 - port): 500_000}} for port in (0, 1)
    }
    told["sendings"]["1"] = {"started": [0.0, 0.002], "ended": [1.2, 1.21]}
    told["arrivals"] = [
        {
            "asked": at, "answered": at + 0.001,
            "groups": {groups[0]: {"tx": {"0": first}}, groups[1]: {"tx": {"1": second}}},
        }
        for at, first, second in ((0.1, 50_000, 45_000), (0.9, 450_000, 405_000))
    ]  # fmt: skip
    found = trial(1e6, 1.0, sent, (0, 1), WorkerObservation.from_message(told))
    assert found.forwarded == 1_000_000
    assert found.sending_time == pytest.approx(0.8 / 0.72, rel=1e-2)
    assert found.generator_limited


def test_percentiles_are_upper_ends_of_buckets() -> None:
    found = probe_latency([{10: 50, 90: 40}, {100: 8, 2000: 2}], 100)
    assert found is not None
    assert (found.p50, found.p90, found.p99, found.max, found.count) == (20e-6, 100e-6, 3000e-6, 3000e-6, 100)


def test_probes_that_the_histograms_leave_out_were_faster_than_their_first_bucket() -> None:
    found = probe_latency([{0: 10, 20: 1}, {10: 9}], 1000)
    assert found is not None
    assert (found.p50, found.p90, found.p99, found.max, found.count) == (10e-6, 10e-6, 10e-6, 30e-6, 1000)
    found = probe_latency([{}], 5)
    assert found is not None
    assert (found.p50, found.max, found.count) == (10e-6, 10e-6, 5)


def test_a_latency_has_the_width_of_its_bucket() -> None:
    found = probe_latency([{10: 50, 90: 40}, {100: 8, 2000: 2}], 100)
    assert found is not None
    assert found.within == (10e-6, 10e-6, 1000e-6, 1000e-6)


def test_no_probes_no_latency() -> None:
    assert probe_latency([{}], 0) is None

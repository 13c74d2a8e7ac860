"""Trials over a simulated SUT: loss, surplus, a server that is the limit, counters, warm-up, and a whole search."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import struct
from collections.abc import Callable
from typing import Any, Literal

import pytest
from packets import decode
from simulated_sut import Ceiling
from trex_rig import ideal, paths
from trex_server import Faults, TRexServer, packets

from pdrgate.record.trial import Trial
from pdrgate.search.goals import Goal
from pdrgate.search.mlr import GoalOutcome, search
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.trex import TRexGenerator
from pdrgate.traffic.trex.trex_config import TRexConfig
from pdrgate.values.errors import GeneratorError, UsageError

Serve = Callable[..., TRexServer]
Connect = Callable[..., TRexGenerator]
FRAMES = Frames(6)


def test_the_loss_is_the_sut_s(generator: TRexGenerator) -> None:
    trial = generator.trial(1.25e6, 0.1, FRAMES)
    assert (trial.offered, trial.unsent) == (125_000, 0)
    assert trial.loss_ratio == pytest.approx(0.2, rel=0.03)
    assert not trial.generator_limited
    assert generator.trial(0.9e6, 0.1, FRAMES).loss_ratio == 0


@pytest.mark.parametrize("duration", [0.25, 1.0])
def test_a_queue_that_drains_after_sending_is_in_no_rate(
    server: TRexServer, generator: TRexGenerator, duration: float
) -> None:
    server.sut = ideal(100e3, buffer=20_000)
    for _ in range(20):  # on a busy machine it is seen too late what was queued when sending ended
        trial = generator.trial(200e3, duration, FRAMES)
        assert trial.offered - trial.lost == trial.forwarded == pytest.approx(100e3 * duration + 20_000, rel=0.01)
        assert trial.drained <= trial.forwarded
        if trial.forwarding_rate == pytest.approx(100e3, rel=0.01):
            break
    assert trial.forwarding_rate == pytest.approx(100e3, rel=0.01)
    assert not trial.generator_limited


def test_packets_beyond_the_sent_ones_and_packets_of_others(server: TRexServer, generator: TRexGenerator) -> None:
    server.faults.surplus, server.faults.noise = 12, 5
    trial = generator.trial(10e3, 0.1, FRAMES)
    assert (trial.offered, trial.forwarded, trial.surplus, trial.lost, trial.aside.stray) == (1000, 1012, 12, 0, 5)
    server.faults.surplus = server.faults.noise = 0
    trial = generator.trial(10e3, 0.1, FRAMES)
    assert (trial.forwarded, trial.surplus, trial.aside.stray) == (1000, 0, 0)


def test_a_server_that_sends_late_is_the_limit_and_not_the_sut(server: TRexServer, generator: TRexGenerator) -> None:
    """As TRex does: every packet is sent, and comes back; only the time tells."""
    server.sut = ideal(ceiling=Ceiling(0.5e6, stretches=True))
    for _ in range(20):  # on a busy machine requests may take so long that the lateness drowns in them
        trial = generator.trial(0.6e6, 0.5, FRAMES)
        assert (trial.offered, trial.unsent, trial.loss_ratio) == (300_000, 0, 0)
        if trial.generator_limited:
            break
    assert trial.generator_limited
    assert trial.sending_time == pytest.approx(0.6, rel=0.1)
    assert trial.offered_load == pytest.approx(0.5e6, rel=0.1)
    assert not generator.trial(0.49e6, 0.5, FRAMES).generator_limited


def test_a_server_that_is_far_too_slow_is_stopped(server: TRexServer, generator: TRexGenerator) -> None:
    server.sut = ideal(ceiling=Ceiling(0.5e6, stretches=True))
    trial = generator.trial(10e6, 0.2, FRAMES)
    assert trial.generator_limited
    assert trial.unsent > trial.intended / 2
    assert trial.offered_load == pytest.approx(0.5e6, rel=0.5)
    assert trial.seen.counter_changes["trex"]["queue_full"] > 0
    assert trial.seen.counters_after["trex"]["cpu_util_permille"] == 1000
    after = generator.trial(10e3, 0.1, FRAMES)
    assert (after.offered, after.forwarded, after.aside.stray) == (1000, 1000, 0)


def test_what_a_stopped_port_has_sent_is_drained_by_the_ports_own_counters(
    server: TRexServer, generator: TRexGenerator
) -> None:
    """As a real server does: its flow statistics stand still after the stop, and the SUT's queue is full."""
    server.sut = ideal(100e3, buffer=20_000, ceiling=Ceiling(0.2e6, stretches=True))
    server.faults.stands_still = True
    trial = generator.trial(1e6, 0.2, FRAMES)
    assert trial.unsent > 0
    assert trial.generator_limited
    # Of the whole run 120 000 of 200 000 come back, a sixth of them from the queue.
    assert trial.forwarded == pytest.approx(0.6 * trial.offered, rel=0.01)
    assert trial.drained > 0.05 * trial.forwarded
    assert trial.aside.stray == 0
    after = generator.trial(10e3, 0.1, FRAMES)
    assert (after.offered, after.forwarded, after.aside.stray) == (1000, 1000, 0)


def test_flow_statistics_that_see_nothing_are_no_loss(server: TRexServer, generator: TRexGenerator) -> None:
    server.faults.deaf = True
    with pytest.raises(GeneratorError) as error:
        generator.trial(10e3, 0.2, FRAMES)
    assert str(error.value) == (
        f"TRex at 127.0.0.1:{server.sync_port}: its ports received 2000 packets of 2000 sent, and its flow statistics "
        "saw 0 of them: the card does not count flows in hardware; start the server with --software and again"
    )


def test_a_server_that_sends_less(server: TRexServer, generator: TRexGenerator) -> None:
    server.sut = ideal(ceiling=Ceiling(0.5e6))
    trial = generator.trial(1e6, 0.1, FRAMES)
    assert (trial.offered, trial.unsent, trial.lost) == (50_000, 50_000, 0)
    assert trial.generator_limited


def test_readings_of_a_server_whose_counters_lag_do_no_harm(server: TRexServer, generator: TRexGenerator) -> None:
    server.faults.held_back = 0.02
    trial = generator.trial(0.5e6, 0.3, FRAMES)
    assert (trial.offered, trial.forwarded, trial.sending_time) == (150_000, 150_000, 0.3)


def test_the_server_s_own_counters_come_with_the_trial(generator: TRexGenerator) -> None:
    trial = generator.trial(10e3, 0.1, Frames(6, directions=2))
    assert trial.seen.counter_changes["trex.port0"]["opackets"] == 500
    assert trial.seen.counter_changes["trex.port1"]["opackets"] == 500
    assert trial.seen.counters_after.keys() == {"trex", "trex.port0", "trex.port1"}
    assert trial.seen.counters_after["trex"].keys() == {"queue_full", "cpu_util_permille"}
    assert trial.seen.counters_after["trex.port1"].keys() == {"opackets", "ipackets", "oerrors", "ierrors"}
    assert Trial.from_mapping(json.loads(trial.to_json())) == trial


@pytest.mark.parametrize("family", [4, 6])
def test_the_client_tells_the_server_what_was_asked_for(serve: Serve, connect: Connect, family: Literal[4, 6]) -> None:
    """The packets are made from what arrived at the server, through the client and its field engine program."""
    server = serve()
    connect(server, family).trial(
        10e3, 0.1, Frames(family, 128, flows=10, vary="addresses", directions=2, probe_rate=1000)
    )
    assert len(server.seen) == 2
    for path, sent in zip(paths(family), server.seen, strict=True):
        plain, probe = sent
        assert plain["flow_stats"]["rule_type"] == "stats"
        assert probe["flow_stats"]["rule_type"] == "latency"
        assert plain["mode"] == {"type": "single_burst", "total_pkts": 450, "rate": {"type": "pps", "value": 4500.0}}
        assert plain["flags"] & 7 == 0b011  # both MAC addresses are the packet's own
        decoded = [decode(packet) for packet in packets(plain, 20)]
        assert {(found.source_mac, found.destination_mac) for found in decoded} == {
            (path.source_mac, path.destination_mac)
        }
        assert len({found.source for found in decoded}) == 10


def test_the_first_trial_of_a_connection_is_preceded_by_a_warm_up(serve: Serve, connect: Connect) -> None:
    server = serve()
    generator = connect(server, warm_up=0.05)
    for _ in range(2):
        trial = generator.trial(10e3, 0.1, FRAMES)
        assert (trial.offered, trial.forwarded) == (1000, 1000)
    assert [sent[0]["mode"]["total_pkts"] for sent in server.seen] == [500, 1000, 1000]


def test_packets_of_a_capture(serve: Serve, connect: Connect, tmp_path: pathlib.Path) -> None:
    packet = bytes(12) + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, 6, 59, 64) + bytes(38)
    record = struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet
    path = tmp_path / "plain-ipv6-64.pcap"
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + record)
    server = serve()
    generator = connect(server, pcap=(path,))
    trial = generator.trial(10e3, 0.1, FRAMES)
    assert (trial.offered, trial.forwarded) == (1000, 1000)
    (made,) = packets(server.seen[0][0], 1)
    assert made[12:] == packet[12:]
    assert generator.describe()["captures"].startswith("plain-ipv6-64.pcap (")
    with pytest.raises(UsageError, match="cannot be latency probes"):
        generator.trial(10e3, 0.1, Frames(6, probe_rate=10))


def test_cores_can_be_chosen(serve: Serve, connect: Connect) -> None:
    generator = connect(serve(), core_mask=0x3)
    assert generator.trial(10e3, 0.05, FRAMES).forwarded == 500
    assert generator.describe()["core mask"] == "0x3"


def test_a_server_that_only_publishes_its_counters(serve: Serve, connect: Connect) -> None:
    """Those before v2.42 do."""
    server = serve()
    server.faults.old = True
    generator = connect(server)
    trial = generator.trial(100e3, 0.2, Frames(6, directions=2))
    assert (trial.offered, trial.forwarded, trial.unsent, trial.sending_time) == (20_000, 20_000, 0, 0.2)
    assert trial.seen.counter_changes["trex.port1"]["opackets"] == 10_000
    assert "get_global_stats" not in server.calls
    server.faults.wrong = lambda method, result: {} if method == "get_port_stats" else result
    assert generator.trial(100e3, 0.1, FRAMES).forwarded == 10_000


def test_probes_that_the_server_saw_twice_count_once(server: TRexServer, generator: TRexGenerator) -> None:
    def twice(method: str, result: Any) -> Any:
        if method == "get_pgid_stats":
            for group, latency in result["latency"].items():
                latency |= {"er": {"drp": 7, "dup": 7, "ooo": 0, "sth": 7, "stl": 7}} if group.isdigit() else {}
        return result

    server.faults.wrong = twice
    found = generator.trial(100e3, 0.1, dataclasses.replace(FRAMES, probe_rate=1000.0))
    assert (found.forwarded, found.aside.twice) == (9_993, 7)
    server.faults = Faults()
    assert generator.trial(100e3, 0.1, dataclasses.replace(FRAMES, probe_rate=1000.0)).aside.twice == 0


def test_counters_that_are_missing_are_not_zero(server: TRexServer, generator: TRexGenerator) -> None:
    server.faults.wrong = lambda method, result: {} if method == "get_port_stats" else result
    with pytest.raises(GeneratorError, match=r": the server does not report opackets of port 0; use one of v2.27 or "):
        generator.trial(10e3, 0.1, FRAMES)
    server.faults = Faults()
    assert generator.trial(10e3, 0.1, FRAMES).forwarded == 1000


def test_a_search_finds_the_simulated_pdr(server: TRexServer, generator: TRexGenerator) -> None:
    server.sut = ideal(saturation=700e3, ceiling=Ceiling(3e6, stretches=True))
    goal = Goal("PDR", 0.005, width=0.01, initial_trial_duration=0.05, final_trial_duration=0.1, duration_sum=0.3)
    result = search(
        lambda load, duration: generator.trial(load, duration, FRAMES), [goal], min_load=10e3, max_load=2e6, budget=60
    )
    found = result.of("PDR")
    assert found.outcome == GoalOutcome.FOUND
    assert found.lower is not None
    assert found.upper is not None
    truth = 700e3 / 0.995
    # 70,000 packets a trial: the loss ratio of 0.5 % has a deviation of 0.03 %.
    assert found.lower * 0.998 <= truth <= found.upper * 1.002
    assert found.upper / found.lower - 1 <= 0.0102


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"server": " "}, "has no name"),
        ({"ports": (0,)}, "make no path"),
        ({"ports": (0, 0)}, "make no path"),
        ({"ports": (0, -1)}, "make no path"),
        ({"sync_port": 0}, "out of range; use 1 to 65535"),
        ({"async_port": 65536}, "out of range; use 1 to 65535"),
        ({"username": ""}, "give a username"),
        ({"core_mask": 0}, "selects no core"),
        ({"warm_up": -1.0}, "use 0 to 60 s"),
    ],
)
def test_configurations_without_meaning(values: dict[str, object], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        TRexConfig(**({"server": "tg"} | values))  # type: ignore[arg-type]


def test_a_path_belongs_to_a_port() -> None:
    with pytest.raises(UsageError, match="'t0' is not one of the TRex ports 0, 1 of the testbed"):
        TRexGenerator(TRexConfig("tg"), [dataclasses.replace(paths()[0], port="t0")])

"""Frames that a server captures in a burst before the first trial, and what they say of the SUT; no packet is sent."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Literal

import pytest
from trex_rig import paths
from trex_server import TRexServer

from pdrgate.data_paths.catalogue import Hop, Port
from pdrgate.data_paths.forwarded_frames import routed
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.hosts.host import local_host
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.trex import TRexGenerator
from pdrgate.traffic.trex.captured_frames import carried
from pdrgate.traffic.trex.trex_streams import uncounted_streams

Serve = Callable[..., TRexServer]
Connect = Callable[..., TRexGenerator]
HOPS = (
    Hop(local_host(), Port("in", "02:00:00:00:01:00", "02:00:00:00:00:00"),
        Port("out", "02:00:00:00:01:01", "02:00:00:00:00:01")),
)  # fmt: skip
STAND_IN = pathlib.Path(__file__).parents[1] / "fakes" / "shipped_client"


@pytest.mark.parametrize("client", [None, STAND_IN], ids=["of PyPI", "the server's own"])
def test_the_first_trial_of_some_frames_has_what_came_back_whole(
    serve: Serve, connect: Connect, client: pathlib.Path | None
) -> None:
    server = serve(api="4.1" if client is None else "5.1")
    server.makes = lambda frame, port: (frame[:21] + bytes([frame[21] - 1]) + frame[22:], port ^ 1)
    generator = connect(server, client=client)
    trial = generator.trial(10e3, 0.1, Frames(6, directions=2))
    assert len(trial.aside.frames) == 64  # and not the neighbour's
    assert [one.direction for one in trial.aside.frames].count(1) == 32
    for one in trial.aside.frames:
        sent, got = bytes.fromhex(one.sent), bytes.fromhex(one.got)
        assert (got[21], sent[21], got[22:], one.returned) == (sent[21] - 1, 64, sent[22:], False)
    assert len({one.sent for one in trial.aside.frames}) == 64  # each told its flow
    assert (trial.offered, trial.forwarded, trial.aside.stray) == (1000, 1000, 0)  # the burst is nobody's
    assert generator.trial(10e3, 0.1, Frames(6, directions=2)).aside.frames == ()
    assert generator.trial(10e3, 0.1, Frames(6, directions=2, probe_rate=100)).aside.frames == ()
    assert generator.trial(10e3, 0.1, Frames(6, 128)).aside.frames
    assert not any(port.service for port in server.ports)
    assert "frames" not in generator.describe()


def test_frames_that_come_back_where_they_were_sent_from_are_told_so(serve: Serve, connect: Connect) -> None:
    server = serve()
    server.makes = lambda frame, port: (frame, port)
    trial = connect(server).trial(10e3, 0.1, Frames(6))
    assert [one.returned for one in trial.aside.frames] == [True] * 64


class Routes:
    """A data path that routes IPv6."""

    of_user = False

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return routed(frame, HOPS, direction)


def test_a_router_is_told_from_one_that_ages_no_packet(serve: Serve, connect: Connect) -> None:
    server = serve()
    server.makes = lambda frame, port: (routed(frame, HOPS, port), port ^ 1)
    generator = connect(server)
    seen = FramesSeen()
    seen.take(generator.trial(10e3, 0.1, Frames(6, directions=2)), Routes())  # type: ignore[arg-type]
    assert (seen.looked_at, seen.fault) == (64, "")
    server.makes = lambda frame, port: (routed(frame, HOPS, port)[:21] + b"\x40" + frame[22:], port ^ 1)
    trial = seen.take(generator.trial(10e3, 0.1, Frames(6, 128)), Routes())  # type: ignore[arg-type]
    assert seen.fault == "makes wrong frames, 64 of 128 looked at: hop limit 64 in place of 63"
    assert len(trial.aside.frames) == 2


@pytest.mark.parametrize("command", ["capture", "service"])
def test_a_server_that_captures_nothing_measures_all_the_same(serve: Serve, connect: Connect, command: str) -> None:
    server = serve()
    server.refused.add(command)
    generator = connect(server)
    for _ in range(2):
        trial = generator.trial(10e3, 0.1, Frames(6))
        assert (trial.aside.frames, trial.offered, trial.forwarded) == ((), 1000, 1000)
    assert not any(port.service for port in server.ports)
    told = generator.describe()["frames"]
    assert told.startswith("not looked at (") and "not supported" in told
    assert server.calls.count(command) == 1 + (command == "service")


def test_ports_that_a_dead_worker_left_in_service_mode_are_taken_out_of_it(serve: Serve, connect: Connect) -> None:
    server = serve()
    for port in server.ports:
        port.service = True
    connect(server)
    assert not any(port.service for port in server.ports)


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("vary", ["ports", "addresses"])
def test_what_a_program_changed_is_the_only_difference(
    family: Literal[4, 6], vary: Literal["ports", "addresses"]
) -> None:
    sent = uncounted_streams(Frames(family, 128, flows=100, vary=vary), paths(family), 64, 0.02)
    (stream,) = sent
    (whole,) = carried(sent, [(1, stream.packet)])
    assert whole.sent == whole.got
    broken = bytearray(stream.packet)
    broken[-1] ^= 1
    (one,) = carried(sent, [(1, bytes(broken))])
    assert bytes.fromhex(one.sent) == stream.packet
    (cut,) = carried(sent, [(1, stream.packet[:-4])])
    assert bytes.fromhex(cut.sent) == stream.packet
    assert carried(sent, [(1, stream.packet[:20])]) == ()
    assert carried(sent, [(1, bytes(128)), (1, b"")]) == ()


def test_each_frame_of_a_mix_is_told_by_its_size() -> None:
    sent = uncounted_streams(Frames(6, imix=True), paths(6), 64, 0.02)
    found = carried(sent, [(1, stream.packet) for stream in sent])
    assert [len(bytes.fromhex(one.sent)) for one in found] == [len(stream.packet) for stream in sent]
    assert len({len(one.sent) for one in found}) == 3

"""Chosen traffic by TRex: the same frames, as streams that a real client hands to a simulated server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from trex_rig import paths
from trex_server import TRexServer, packets
from whole_frames import layers

from pdrgate.traffic.chosen.frame_table import frame_table
from pdrgate.traffic.chosen.traffic_words import chosen_traffic
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.trex import TRexGenerator
from pdrgate.traffic.trex.trex_streams import streams
from pdrgate.values.errors import UsageError


def frames(*words: str, **more: Any) -> Frames:
    chosen = chosen_traffic(words)
    return Frames(4, chosen=chosen, directions=chosen.directions, **more)


def test_each_frame_is_a_stream_with_its_share() -> None:
    asked = frames("udp flows=3 weight=2; tcp flags=S flows=2 from=out")
    assert asked.chosen is not None
    table = frame_table(asked.chosen, paths(4), 64)
    made = streams(asked, paths(4), 9001, 2.0, turn=3, table=table)
    assert [stream.packet for stream in made] == list(table.frames)
    assert sum(stream.count for stream in made) == 9001
    shares = Counter(table.order)
    for number, stream in enumerate(made):
        assert stream.count == pytest.approx(9001 * shares[number] / len(table.order), abs=1)
        assert stream.rate == stream.count / 2.0
        assert not stream.sweeps
    assert len({(stream.port, stream.group) for stream in made}) == 2
    assert {stream.port for stream in made[3:]} == {int(paths(4)[1].port)}


def test_probes_are_the_usual_frame() -> None:
    asked = frames("udp flows=2 draw=zipf", probe_rate=100)
    assert asked.chosen is not None
    table = frame_table(asked.chosen, paths(4), 64)
    made = streams(asked, paths(4), 1000, 1.0, table=table)
    assert [(stream.count, stream.probe) for stream in made][-1] == (100, True)
    assert made[-1].packet == table.frames[0]
    assert made[-1].group == made[0].group + 1
    assert sum(stream.count for stream in made) == 1000


def test_a_server_is_asked_for_the_chosen_frames(
    serve: Callable[..., TRexServer], connect: Callable[..., TRexGenerator]
) -> None:
    server = serve()
    generator = connect(server, family=4)
    asked = frames("udp dst=@out flows=20 in vxlan vni=5; icmp flows=3 weight=2")
    trial = generator.trial(10e3, 0.1, asked)
    assert (trial.offered, trial.forwarded) == (1000, 1000)
    sent = {tuple(layers(packet)) for stream in server.seen[-1] for packet in packets(stream, 1)}
    assert sent == {
        ("ethernet", "ipv4", "icmp"),
        ("ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv4", "udp"),
    }
    with pytest.raises(UsageError, match="1001 are more than 1000; use flows=1000 or fewer"):
        generator.trial(10e3, 0.1, frames("udp flows=1001"))

"""What TRex is told to send: exact counts, the frames that were asked for, checksums that hold in every packet."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import pathlib
import struct
from collections import Counter
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packets import decode
from trex_rig import paths
from trex_server import packets

from pdrgate.traffic.chosen.capture_file import captured_packets
from pdrgate.traffic.frames import MAX_FLOWS, Frames
from pdrgate.traffic.trex.trex_streams import GROUPS, MOST_FRAME_STREAMS, Stream, split, streams
from pdrgate.values.errors import DataError, UsageError

families = st.sampled_from([4, 6])


def as_told(stream: Stream) -> dict[str, Any]:
    """A stream as the server gets it: see the worker's session for the same with the client's classes."""
    program: list[dict[str, Any]] = []
    for number, sweep in enumerate(stream.sweeps):
        name = str(number)
        first, op = (sweep.high, "dec") if sweep.down else (sweep.low, "inc")
        program.append(
            {"type": "flow_var", "name": name, "op": op, "init_value": first,
             "min_value": sweep.low, "max_value": sweep.high}
        )  # fmt: skip
        program.append({"type": "write_flow_var", "name": name, "pkt_offset": sweep.offset})
    if stream.fix_ipv4:
        program.append({"type": "fix_checksum_ipv4", "pkt_offset": 14})
    return {"packet": {"binary": base64.b64encode(stream.packet).decode()}, "vm": {"instructions": program}}


@settings(deadline=None)
@given(
    families, st.integers(64, 1518), st.integers(1, MAX_FLOWS), st.sampled_from(["ports", "addresses"]),
    st.sampled_from([1, 2]),
)  # fmt: skip
def test_every_packet_has_right_lengths_checksums_and_addresses(
    family: Literal[4, 6], size: int, flows: int, vary: Literal["ports", "addresses"], directions: Literal[1, 2]
) -> None:
    frames = Frames(family, size, flows, vary, directions)
    made = streams(frames, paths(family), 1000, 1.0)
    assert len(made) == directions
    for stream, path in zip(made, paths(family), strict=False):
        assert stream.port == int(path.port)
        assert len(stream.packet) + 4 == frames.wire_size
        for packet in packets(as_told(stream), min(flows, 40)):
            found = decode(packet)
            assert (found.source_mac, found.destination_mac) == (path.source_mac, path.destination_mac)
            assert found.destination == path.destination
            assert int(found.source) >> 16 == int(path.source) >> 16
            assert found.source_port >= 1024


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("vary", ["ports", "addresses"])
@pytest.mark.parametrize("flows", [1, 7, 1000])
def test_flows_are_as_many_as_asked_for(family: Literal[4, 6], vary: Literal["ports", "addresses"], flows: int) -> None:
    (stream,) = streams(Frames(family, 128, flows, vary), paths(family), 5000, 1.0)
    seen = Counter((str(p.source), p.source_port) for p in map(decode, packets(as_told(stream), 2 * flows)))
    assert len(seen) == flows
    assert set(seen.values()) == {2}
    assert len({source for source, _ in seen}) == (flows if vary == "addresses" else 1)


@settings(deadline=None)
@given(st.integers(1, 10**9), st.lists(st.integers(1, 50), min_size=1, max_size=9))
def test_a_count_is_split_without_rest_and_near_the_weights(count: int, weights: list[int]) -> None:
    parts = split(count, weights)
    assert sum(parts) == count
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - count * weight / sum(weights)) < 1


@settings(deadline=None)
@given(
    st.integers(1, 10**7), st.sampled_from([0.1, 1.0, 10.0]), st.sampled_from([1, 2]), st.booleans(),
    st.sampled_from([0.0, 100.0, 50_000.0]),
)  # fmt: skip
def test_counts_and_rates_add_up(
    count: int, duration: float, directions: Literal[1, 2], imix: bool, probe_rate: float
) -> None:
    frames = Frames(6, directions=directions, imix=imix, probe_rate=probe_rate)
    made = streams(frames, paths(), count, duration)
    assert sum(stream.count for stream in made) == count
    assert sum(stream.rate for stream in made) == pytest.approx(count / duration)
    probes = sum(stream.count for stream in made if stream.probe)
    assert probes == min(round(probe_rate * duration), count // 2)
    assert {stream.group for stream in made if stream.probe}.isdisjoint(
        stream.group for stream in made if not stream.probe
    )


def test_the_mix_is_seven_four_one() -> None:
    made = streams(Frames(4, imix=True), paths(4), 12_000, 1.0)
    assert {len(stream.packet) + 4: stream.count for stream in made} == {64: 7000, 570: 4000, 1518: 1000}
    assert len({stream.group for stream in made}) == 1
    assert min(len(stream.packet) + 4 for stream in streams(Frames(6, imix=True), paths(), 12, 1.0)) == 70


@pytest.mark.parametrize(("family", "least"), [(4, 62), (6, 82)])
def test_probes_have_room_for_the_stamp_of_the_server(family: Literal[4, 6], least: int) -> None:
    plain, probe = streams(Frames(family, 64, probe_rate=10), paths(family), 1000, 1.0)
    assert (plain.probe, probe.probe) == (False, True)
    assert len(probe.packet) + 4 == max(64, least)
    (_, long) = streams(Frames(family, 512, probe_rate=10), paths(family), 1000, 1.0)
    assert len(long.packet) + 4 == 512


def test_trials_next_to_each_other_share_no_statistics() -> None:
    used = [
        {stream.group for stream in streams(Frames(6, directions=2, probe_rate=100), paths(), 1000, 1.0, turn=turn)}
        for turn in range(GROUPS)
    ]
    assert all(len(groups) == 4 for groups in used)
    assert all(first.isdisjoint(second) for first, second in itertools.pairwise(used))
    assert max(map(max, used)) <= GROUPS


def test_two_directions_take_two_paths() -> None:
    with pytest.raises(UsageError, match="needs a testbed with two paths"):
        streams(Frames(6, directions=2), paths()[:1], 10, 1.0)


PLAIN_IPV6_64 = bytes.fromhex("0200000000010200000000aa86dd") + struct.pack(
    "!IHBB16s16s6s", 6 << 28, 6, 59, 64, b"\xfc" + bytes(15), b"\xfd" + bytes(15), bytes(6)
)
"""64 bytes with FCS of plain IPv6, no header after it, as PASTRAMI's capture of that name has them."""


def capture(*records: bytes, order: str = "<", link: int = 1, magic: int = 0xA1B2C3D4) -> bytes:
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    return head + b"".join(struct.pack(f"{order}IIII", 0, 0, len(one), len(one)) + one for one in records)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_a_capture_is_sent_in_turn_with_our_macs(tmp_path: pathlib.Path, order: str, magic: int) -> None:
    other = PLAIN_IPV6_64 + bytes(100)
    (tmp_path / "a.pcap").write_bytes(capture(PLAIN_IPV6_64, other, order=order, magic=magic))
    read = captured_packets(tmp_path / "a.pcap")
    assert read == (PLAIN_IPV6_64, other)
    made = streams(Frames(6), paths(), 1001, 2.0, captures=[read])
    assert [stream.count for stream in made] == [501, 500]
    assert [stream.rate for stream in made] == [250.5, 250.0]
    forward = paths()[0]
    macs = bytes.fromhex((forward.destination_mac + forward.source_mac).replace(":", ""))
    assert [stream.packet for stream in made] == [macs + PLAIN_IPV6_64[12:], macs + other[12:]]
    assert not any(stream.sweeps or stream.fix_ipv4 or stream.probe for stream in made)


def test_captures_have_no_probes_and_one_file_per_direction() -> None:
    with pytest.raises(UsageError, match="leave the probe rate at 0"):
        streams(Frames(6, probe_rate=1), paths(), 10, 1.0, captures=[[PLAIN_IPV6_64]])
    with pytest.raises(UsageError, match="needs two capture files"):
        streams(Frames(6, directions=2), paths(), 10, 1.0, captures=[[PLAIN_IPV6_64]])


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is no pcap file; convert it"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "is a damaged pcapng file"),
        (capture(), "holds no packets"),
        (capture(PLAIN_IPV6_64, link=113), "link type 113"),
        (capture(PLAIN_IPV6_64)[:-1], "packet 1 was cut off"),
        (capture(PLAIN_IPV6_64) + b"\0", "ends in the middle of packet 2"),
        (capture(b"short"), "packet 1 has 5 bytes"),
        (capture(*[PLAIN_IPV6_64] * 1001), "more than 1000 packets"),
    ],
)
def test_captures_of_no_use(tmp_path: pathlib.Path, content: bytes, what: str) -> None:
    (tmp_path / "a.pcap").write_bytes(content)
    with pytest.raises(DataError, match=what) as caught:
        captured_packets(tmp_path / "a.pcap", MOST_FRAME_STREAMS)
    assert "a.pcap" in str(caught.value)


def test_a_capture_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(DataError, match="No such file or directory; give a capture file"):
        captured_packets(tmp_path / "a.pcap", MOST_FRAME_STREAMS)


def test_frames_of_one_size_are_a_mix_of_one() -> None:
    frames = Frames(4, 128, flows=3)
    assert frames.shares == ((1, frames),)
    assert all(not share.imix for _, share in dataclasses.replace(frames, imix=True).shares)

"""Frames: the bytes that go on the wire, taken apart by a parser of its own, and every checksum summed anew."""

from __future__ import annotations

import dataclasses
import struct
from ipaddress import IPv6Address, ip_address
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packets import decode

from pdrgate.traffic.frames import MAX_FLOWS, Frames, Path, Template, template
from pdrgate.values.errors import UsageError

SOURCE_MAC, DESTINATION_MAC = "02:70:64:72:00:00", "02:70:64:72:00:01"
TAG, PROBE_TAG = 0x8004, 0x8005
ADDRESSES = {4: ("198.19.0.1", "198.18.171.205"), 6: ("2001:2:0:2::1", "2001:2:0:1::abcd")}

families = st.sampled_from([4, 6])
sizes = st.integers(64, 1518)
words = st.integers(0, 0xFFFF)
stamps = st.integers(0, 2**64 - 1)


def path(family: int) -> Path:
    source, destination = ADDRESSES[family]
    return Path("t0", SOURCE_MAC, DESTINATION_MAC, ip_address(source), ip_address(destination))


def fold(total: int) -> bytes:
    """What the worker makes of a partial sum: the checksum's two bytes."""
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    return struct.pack("!H", 0xFFFF - total)


def complete(frames: Frames, part: Template, word: int, stamp: int | None = None) -> bytes:
    """A whole frame (without FCS), as the header comments of worker.c say: word, sums, time stamp."""
    probe = stamp is not None
    size = (frames.probe_size if probe else frames.wire_size) - 4
    frame = bytearray(part.probe if probe else part.plain)
    frame += b"\0" * (size - len(frame))
    frame[part.vary_offset : part.vary_offset + 2] = struct.pack("!H", word)
    if part.vary_in_ip and frames.family == 4:
        longer = frames.probe_size - frames.wire_size if probe else 0
        frame[24:26] = fold(part.ip_sum + word + longer)
    total = (part.probe_sum if probe else part.csum_sum) + word
    if stamp is not None:
        frame[frames.header : frames.header + 8] = struct.pack("!Q", stamp)
        total += sum(stamp >> shift & 0xFFFF for shift in (0, 16, 32, 48))
    checksum = fold(total)
    frame[frames.header - 2 : frames.header] = checksum if checksum != b"\0\0" else b"\xff\xff"
    return bytes(frame)


@given(families, sizes, words)
def test_flows_by_port(family: Literal[4, 6], size: int, word: int) -> None:
    frames = Frames(family, size)
    part = template(frames, path(family), tag=TAG, probe_tag=PROBE_TAG)
    frame = complete(frames, part, word)
    assert len(frame) == frames.wire_size - 4
    found = decode(frame)
    assert (found.source_mac, found.destination_mac) == (SOURCE_MAC, DESTINATION_MAC)
    assert (str(found.source), str(found.destination)) == ADDRESSES[family]
    assert (found.source_port, found.destination_port, found.hops) == (word, TAG, 64)
    assert set(found.payload) <= {0}
    assert part.first >= 1024  # no flow begins at a port that services use


@given(families, sizes, words)
def test_flows_by_address(family: Literal[4, 6], size: int, word: int) -> None:
    frames = Frames(family, size, vary="addresses")
    part = template(frames, path(family), tag=TAG, probe_tag=PROBE_TAG)
    found = decode(complete(frames, part, word))
    assert int(found.source) == int(ip_address(ADDRESSES[family][0])) >> 16 << 16 | word
    assert str(found.destination) == ADDRESSES[family][1]
    assert (found.source_port, found.destination_port) == (1024, TAG)
    assert part.first == 1  # where the path's source address begins


@given(families, sizes, words, stamps, st.sampled_from(["ports", "addresses"]))
def test_probes_carry_their_time_and_a_port_of_their_own(
    family: Literal[4, 6], size: int, word: int, stamp: int, vary: Literal["ports", "addresses"]
) -> None:
    frames = Frames(family, size, vary=vary, probe_rate=100)
    part = template(frames, path(family), tag=TAG, probe_tag=PROBE_TAG)
    frame = complete(frames, part, word, stamp)
    assert len(frame) == frames.probe_size - 4
    found = decode(frame)
    assert found.destination_port == PROBE_TAG
    assert found.payload[:8] == struct.pack("!Q", stamp)


def test_the_checksum_that_comes_out_as_0_is_sent_as_all_ones() -> None:
    frames = Frames(6)
    part = template(frames, path(6), tag=TAG, probe_tag=PROBE_TAG)
    word = next(word for word in range(0x10000) if fold(part.csum_sum + word) == b"\0\0")
    frame = complete(frames, part, word)
    assert frame[60:62] == b"\xff\xff"
    decode(frame)


@pytest.mark.parametrize(
    ("family", "size", "wire", "probe"),
    [(4, 64, 64, 64), (6, 64, 70, 74), (6, 70, 70, 74), (6, 74, 74, 74), (4, 128, 128, 128), (6, 1518, 1518, 1518)],
)
def test_bytes_on_the_wire(family: Literal[4, 6], size: int, wire: int, probe: int) -> None:
    frames = Frames(family, size)
    assert (frames.wire_size, frames.probe_size) == (wire, probe)


def test_there_is_room_for_a_mark_and_a_number() -> None:
    for family, size in ((4, 64), (6, 74)):
        frames = Frames(family, mark=7)  # type: ignore[arg-type]
        part = template(frames, path(family), tag=TAG, probe_tag=PROBE_TAG)  # type: ignore[arg-type]
        assert part.plain_size == frames.wire_size == size
        assert len(part.plain) + 8 <= size - 4


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"family": 5}, "IP version 5 does not exist; use 4 or 6"),
        ({"size": 63}, "frame size 63 is out of range; use 64 to 1518 bytes (with FCS)"),
        ({"size": 1519}, "frame size 1519 is out of range; use 64 to 1518 bytes (with FCS)"),
        ({"flows": 0}, f"0 flows are out of range; use 1 to {MAX_FLOWS}"),
        ({"flows": MAX_FLOWS + 1}, f"{MAX_FLOWS + 1} flows are out of range; use 1 to {MAX_FLOWS}"),
        ({"vary": "colours"}, "flows cannot vary by 'colours'; use ports or addresses"),
        ({"directions": 3}, "3 directions do not exist; use 1 or 2"),
        ({"mark": 7, "probe_rate": 10}, "packets that a receiver reads cannot be latency probes; send none"),
        ({"probe_rate": -1}, "probe rate -1 is out of range; use 0 to 50000 probes/s"),
        ({"probe_rate": float("nan")}, "probe rate nan is out of range; use 0 to 50000 probes/s"),
        ({"probe_rate": 50_001}, "probe rate 50001 is out of range; use 0 to 50000 probes/s"),
    ],
)
def test_what_frames_cannot_be(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        Frames(**values)  # type: ignore[arg-type]
    assert str(error.value) == message


@pytest.mark.parametrize("values", [{"size": 64}, {"size": 1518}, {"flows": 1}, {"flows": MAX_FLOWS}])
def test_the_limits_themselves_are_allowed(values: dict[str, int]) -> None:
    frames = Frames(**values)  # type: ignore[arg-type]
    assert all(getattr(frames, name) == value for name, value in values.items())


@given(st.integers(1, 8), sizes, words, st.sampled_from(["ports", "addresses"]))
def test_segments_lead_to_the_destination(
    count: int, size: int, word: int, vary: Literal["ports", "addresses"]
) -> None:
    frames = Frames(6, size, vary=vary, segments=True)
    segments = tuple(IPv6Address(f"fd00::{number:x}") for number in range(1, count + 1))
    way = dataclasses.replace(path(6), segments=segments)
    part = template(frames, way, tag=TAG, probe_tag=PROBE_TAG)
    assert part.routing == 8 + 16 * (count + 1)
    assert part.plain_size == max(size, 14 + 40 + part.routing + 8 + 4 + 4)
    frame = bytearray(part.plain) + bytes(part.plain_size - 4 - len(part.plain))
    frame[part.vary_offset : part.vary_offset + 2] = struct.pack("!H", word)
    frame[len(part.plain) - 2 : len(part.plain)] = fold(part.csum_sum + word)
    assert ip_address(bytes(frame[38:54])) == segments[0]
    assert frame[20] == 43
    following, length, kind, left, last = frame[54:59]
    assert (following, 8 + 8 * length, kind, left, last) == (17, part.routing, 4, count, count)
    stops = [ip_address(bytes(frame[62 + 16 * at : 78 + 16 * at])) for at in range(count + 1)]
    assert stops == [way.destination, *reversed(segments)]
    # At its end the packet has the last stop as destination, and the checksum must be right for that one.
    payload_length = struct.pack("!H", len(frame) - 54 - part.routing)
    arrived = frame[:18] + payload_length + b"\x11" + frame[21:38] + stops[0].packed + frame[54 + part.routing :]
    found = decode(bytes(arrived))
    assert (str(found.destination), found.destination_port) == (ADDRESSES[6][1], TAG)
    assert found.source_port == (word if vary == "ports" else 1024)


def test_segments_that_cannot_be() -> None:
    with pytest.raises(UsageError, match=r"^IPv4 has no segment routing header; use IPv6$"):
        Frames(4, segments=True)
    many = dataclasses.replace(path(6), segments=tuple(IPv6Address(number) for number in range(9)))
    for way, has in ((path(6), 0), (many, 9)):
        with pytest.raises(UsageError, match=rf"through 1 to 8 segments, and the path has {has}; choose another"):
            template(Frames(6, segments=True), way, tag=TAG, probe_tag=PROBE_TAG)


@given(families, st.integers(1, 4094), sizes, words, st.sampled_from(["ports", "addresses"]))
def test_a_tag_stands_behind_the_mac_addresses_and_is_part_of_the_size(
    family: Literal[4, 6], vlan: int, size: int, word: int, vary: Literal["ports", "addresses"]
) -> None:
    frames = Frames(family, size, vary=vary, vlan=vlan)
    part = template(frames, path(family), tag=TAG, probe_tag=PROBE_TAG)
    frame = part.frame(word)
    assert len(frame) == part.plain_size - 4 == frames.wire_size - 4 == max(size, 74 if family == 6 else 64) - 4
    assert frame[12:16] == struct.pack("!HH", 0x8100, vlan)
    found = decode(frame[:12] + frame[16:])  # its checksums are right
    assert found.source_port == (word if vary == "ports" else 1024)
    assert (part.link_header, part.frame(word, probe=True)[12:16]) == (18, frame[12:16])


@pytest.mark.parametrize("vlan", [0, 4095])
def test_a_vlan_that_does_not_exist(vlan: int) -> None:
    with pytest.raises(UsageError, match=rf"^VLAN {vlan} does not exist; use 1 to 4094$"):
        Frames(4, vlan=vlan)

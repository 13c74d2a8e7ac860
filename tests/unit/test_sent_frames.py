"""How a frame that came back was sent: by the number in it."""

from __future__ import annotations

import dataclasses
from ipaddress import IPv6Address

import pytest

from pdrgate.traffic.frames import Frames, Path, Template, template
from pdrgate.traffic.sent_frames import BuiltInFrames

THERE = Path("t0", "02:00:00:00:00:01", "02:00:00:00:00:02", IPv6Address("2001:2:0:2::1"), IPv6Address("2001:2:0:1::"))
FRAMES = Frames(6, flows=4)


def part_of(frames: Frames) -> Template:
    return template(frames, THERE, tag=0x8000, probe_tag=0x8001)


def payload(number: int, mark: int | None = None) -> bytes:
    return (b"" if mark is None else mark.to_bytes(4, "big")) + number.to_bytes(4, "big")


@pytest.mark.parametrize("vary", ["ports", "addresses"])
@pytest.mark.parametrize("mark", [None, 7])
def test_a_packet_with_the_number_of_one_of_another_flow_differs_from_what_was_sent(vary, mark) -> None:
    frames = dataclasses.replace(FRAMES, vary=vary, mark=mark)
    part = part_of(frames)
    sent = BuiltInFrames(frames, (part,), 5)
    own, others = (part.frame(part.first + flow, payload=payload(9, mark)) for flow in (9 % 4, 2))
    right, moved = (sent.carried(0, 0, 0, one.hex()) for one in (own, others))
    assert right is not None
    assert moved is not None
    assert right.sent == right.got
    assert moved.sent == right.sent != moved.got


def test_packets_of_two_directions_take_turns_so_that_a_flow_s_numbers_are_twice_as_far_apart() -> None:
    frames = dataclasses.replace(FRAMES, directions=2)
    part = part_of(frames)
    sent = BuiltInFrames(frames, (part, part), 5)
    for number in range(16):
        frame = part.frame(part.first + number // 2 % 4, payload=payload(number))
        found = sent.carried(number % 2, 0, 0, frame.hex())
        assert found is not None
        assert found.sent == found.got


def test_the_flow_of_a_probe_and_of_a_frame_that_was_cut_short_is_read_from_the_frame() -> None:
    part = part_of(FRAMES)
    sent = BuiltInFrames(FRAMES, (part,), 5)
    probe = part.frame(part.first + 3, probe=True, payload=bytes(8))
    found = sent.carried(0, 1, 0, probe.hex())
    assert found is not None
    assert found.sent == probe.hex()
    cut = sent.carried(0, 0, 0, part.frame(part.first + 3)[: len(part.plain) + 1].hex())
    assert cut is not None
    assert cut.sent == part.frame(part.first + 3).hex()

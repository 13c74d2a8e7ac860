"""What the frames of two builds come to, without packets: fields that differ, checksums, and who is to blame."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal

import pytest
from flat_values import flat_trial
from hypothesis import given
from hypothesis import strategies as st
from packets import decode

from pdrgate.data_paths.catalogue import Hop, Port
from pdrgate.data_paths.forwarded_frames import redirected, routed, segments_ended
from pdrgate.gate.sut.carried_frames import FramesSeen, judged_frames
from pdrgate.hosts.host import local_host
from pdrgate.record.trial import CarriedFrame, Trial
from pdrgate.results.verdict import Verdict
from pdrgate.traffic.frame_fields import fields, frame_differences, frame_in_words, frames_side_by_side
from pdrgate.traffic.frames import Frames, Path, Template, template
from pdrgate.traffic.headers import checksum, words_sum

ENDS = {4: ("198.19.0.1", "198.18.171.205"), 6: ("2001:2:0:2::1", "2001:2:0:1::abcd")}
SEGMENTS = tuple(ip_address(f"fd00:211:5e9::{hop}") for hop in (1, 2))
HOPS = tuple(
    Hop(local_host(), Port("in", f"02:00:00:00:0{n}:01", f"02:00:00:00:0{n}:02"),
        Port("out", f"02:00:00:00:0{n}:03", f"02:00:00:00:0{n}:04"))
    for n in (1, 2)
)  # fmt: skip


def part(frames: Frames) -> Template:
    source, destination = map(ip_address, ENDS[frames.family])
    way = Path("t0", "02:00:00:00:00:01", "02:00:00:00:01:01", source, destination, SEGMENTS if frames.segments else ())  # type: ignore[arg-type]
    return template(frames, way, tag=0x8000, probe_tag=0x8001)


@dataclass(frozen=True)
class Routes:
    """A data path that routes IPv6, of the user's own or not."""

    of_user: bool = False

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return routed(frame, HOPS, direction)


@given(st.sampled_from([4, 6]), st.integers(64, 1518), st.integers(0, 0xFFFF), st.booleans(), st.booleans())
def test_whole_frames_are_those_that_a_parser_of_its_own_takes(
    family: Literal[4, 6], size: int, word: int, probe: bool, addresses: bool
) -> None:
    frames = Frames(family, size, vary="addresses" if addresses else "ports")
    frame = part(frames).frame(word, probe=probe, payload=b"\x01\x02\x03\x04\x05\x06\x07\x08" if probe else b"")
    found = decode(frame)  # sums the checksums anew
    assert found.destination_port == 0x8000 + probe
    assert (int(found.source) & 0xFFFF if addresses else found.source_port) == word
    assert len(frame) + 4 == (frames.probe_size if probe else frames.wire_size)
    sent_on = routed(frame, HOPS, 0)
    assert decode(sent_on).hops == 62
    assert decode(sent_on).destination_mac == HOPS[-1].egress.peer_mac
    assert frame_differences(frame, frame) == frame_differences(sent_on, sent_on) == ()
    assert decode(redirected(frame, HOPS, 1)).source_mac == HOPS[0].ingress.mac


def test_segments_end_hop_by_hop() -> None:
    frame = part(Frames(6, segments=True)).frame(1024)
    at_the_end = segments_ended(frame, HOPS, 0)
    by_name = {field.name: field.text(at_the_end) for field in fields(at_the_end)}
    assert (by_name["segments left"], by_name["destination address"]) == ("0", ENDS[6][1])
    assert frame_differences(at_the_end, at_the_end) == ()
    half = segments_ended(frame, HOPS[:1], 0)
    told = {one.name for one in frame_differences(at_the_end, half)}
    assert {"hop limit", "segments left", "destination address"} <= told
    assert "UDP checksum" not in told  # the last stop counts, wherever the frame is


@given(st.sampled_from([4, 6]), st.integers(0, 2000), st.integers(1, 255))
def test_any_changed_byte_is_told(family: Literal[4, 6], at: int, by: int) -> None:
    frame = routed(part(Frames(family, 200)).frame(1024), HOPS, 0)
    got = bytearray(frame)
    got[at % len(frame)] ^= by
    assert frame_differences(frame, bytes(got))
    assert "^^" in "\n".join(frames_side_by_side(frame, bytes(got)))
    assert frame_in_words(bytes(got)).startswith("196 bytes: ")


@given(st.sampled_from([4, 6]), st.integers(0, 195))
def test_a_frame_that_is_cut_is_told_wherever(family: Literal[4, 6], length: int) -> None:
    frame = routed(part(Frames(family, 200)).frame(1024), HOPS, 0)
    assert frame_differences(frame, frame[:length])[0].name == "frame length"
    assert frames_side_by_side(frame, frame[:length])


def test_a_checksum_that_is_left_to_a_card_is_right() -> None:
    """On a virtual wire nobody completes it."""
    frame = routed(part(Frames(6, 128)).frame(1024), HOPS, 0)
    partial = bytearray(frame)
    pseudo = words_sum(frame[22:54] + struct.pack("!HH", len(frame) - 54, 17))
    partial[60:62] = struct.pack("!H", checksum(pseudo) ^ 0xFFFF)
    assert frame_differences(frame, bytes(partial)) == ()
    partial[61] ^= 1
    (one,) = frame_differences(frame, bytes(partial))
    assert (one.name, one.broken) == ("UDP checksum", True)


def trial(change: dict[int, int] | None = None, *, returned: int = 0, frames: int = 8) -> Trial:
    """Some frames that were routed, with bytes of theirs changed."""
    sent = part(Frames(6, 128)).frame(1024)
    got = bytearray(routed(sent, HOPS, 0))
    for at, value in (change or {}).items():
        got[at] = value
    kept = tuple(CarriedFrame(0, sent.hex(), got.hex()) for _ in range(frames))
    return flat_trial(1e3, 1.0, offered=1000, forwarded=1000 - returned, returned=returned, frames=kept)


LIMIT_KEPT, CORRUPT = {21: 64}, {63: 0x55}


def seen(of_user: bool, *trials: Trial) -> FramesSeen:
    found = FramesSeen()
    for one in trials:
        found.take(one, Routes(of_user))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("of_user", "before", "after", "verdict", "told"),
    [
        (False, trial(), trial(), None, ""),
        (False, trial(), trial(LIMIT_KEPT), Verdict.REGRESSION, "hop limit 64 in place of 62"),
        (False, trial(LIMIT_KEPT), trial(LIMIT_KEPT), Verdict.ERROR, "both builds are wrong"),
        (False, trial(LIMIT_KEPT), trial(), Verdict.ERROR, "nothing to compare with"),
        (False, trial(), trial(returned=990), Verdict.REGRESSION, "sends 990 of 1000 packets back"),
        (False, trial(), trial(returned=3), None, ""),
        (True, trial(LIMIT_KEPT), trial(LIMIT_KEPT), None, ""),
        (True, trial(), trial(LIMIT_KEPT), Verdict.REGRESSION, "other frames than the baseline: hop limit 64, the"),
        (True, trial(LIMIT_KEPT), trial(), Verdict.REGRESSION, "hop limit 62, the baseline's 64"),
        (True, trial(), trial(CORRUPT), Verdict.REGRESSION, "makes wrong frames"),
        (True, trial(CORRUPT), trial(CORRUPT), Verdict.ERROR, "both builds are wrong"),
        # Of one frame nothing is certain: what a program does to some flows may have been missed.
        (True, trial(frames=1), trial(LIMIT_KEPT, frames=1), None, ""),
    ],
)  # fmt: skip
def test_whose_fault_it_is(of_user: bool, before: Trial, after: Trial, verdict: Verdict | None, told: str) -> None:
    found = judged_frames({"baseline": seen(of_user, before), "candidate": seen(of_user, after)})
    assert (found.verdict if found else None) is verdict
    assert told in (found.reason if found else "")


def test_what_one_flow_gets_of_many_is_no_difference_of_builds() -> None:
    """A balancer that marks every second flow, seen twice: one boot's few frames need not hold both kinds."""
    mixed = [trial(), trial(LIMIT_KEPT)]
    once = {"baseline": seen(True, *mixed), "candidate": seen(True, trial(frames=4))}
    assert judged_frames(once) is None
    often = {"baseline": seen(True, *mixed), "candidate": seen(True, *[trial()] * 5)}
    found = judged_frames(often)
    assert found is not None and found.verdict is Verdict.REGRESSION


def test_a_trial_keeps_only_what_tells_something() -> None:
    path = Routes()
    kept = FramesSeen().take(trial(LIMIT_KEPT), path)  # type: ignore[arg-type]
    assert (kept.aside.looked_at, len(kept.aside.frames)) == (8, 2)
    assert Trial.from_mapping(json.loads(kept.to_json())) == kept
    sound = FramesSeen().take(trial(), path)  # type: ignore[arg-type]
    assert (sound.aside.looked_at, sound.aside.frames) == (8, ())

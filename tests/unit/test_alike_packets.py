"""Whether two builds do the same to the same packet, without packets: what is compared, and what is told."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest

from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.sut.carried_frames import FramesSeen, judged_frames
from pdrgate.record.fate import Fate
from pdrgate.record.trial import Aside, CarriedFrame, Trial
from pdrgate.results.verdict import Verdict
from pdrgate.traffic.frames import Frames, Path, template
from pdrgate.traffic.headers import complete_ipv4
from pdrgate.values.errors import UsageError

SOURCE, LIMIT, IDENTIFICATION, PAYLOAD = 29, 22, 19, 50
NO_SUM = {40: 0, 41: 0}
"""A UDP checksum that is left out, as IPv4 allows."""
FLOWS = range(1024, 1034)


class SomePath:
    of_user = True

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return frame


def seen(
    changes: dict[int, dict[int, int]], *, fate: Fate = "forwarded", returned: bool = False, alike: bool = True,
    trials: int = 3, counts_up: bool = False,
) -> FramesSeen:  # fmt: skip
    """Packets of several flows, each with its bytes changed; a generator tells those of each trial by another port."""
    found, path = FramesSeen(alike=alike), SomePath()
    for number in range(trials):
        way = Path("t0", "02:00:00:00:00:01", "02:00:00:00:00:02", IPv4Address("198.19.0.1"), IPv4Address("198.18.0.1"))
        made = template(Frames(4, 96), way, tag=0x8000 + 2 * number, probe_tag=0x8001 + 2 * number)
        frames = []
        for flow in FLOWS:
            sent = made.frame(flow, probe=False, payload=b"")
            got = bytearray(sent)
            for at, value in changes.get(flow, changes.get(0, {})).items():
                got[at] = value
            if counts_up:
                got[IDENTIFICATION] = number + 1
            complete_ipv4(got)
            frames.append(CarriedFrame(0, sent.hex(), bytes(got).hex(), returned=returned))
        taken: Any = path
        found.take(Trial(1e3, 1.0, offered=1000, forwarded=1000, aside=Aside(fate=fate, frames=tuple(frames))), taken)
    return found


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({}, {}, ""),
        ({0: {LIMIT: 62}}, {0: {LIMIT: 62}}, ""),
        ({0: {LIMIT: 62}}, {0: {LIMIT: 63}}, "time to live 63, the baseline's 62"),
        ({}, {1030: {LIMIT: 1}}, "time to live 1, the baseline's 64"),
        ({1030: {LIMIT: 1}}, {}, "time to live 64, the baseline's 1"),
        ({1030: {PAYLOAD: 7, **NO_SUM}}, {1030: {PAYLOAD: 8, **NO_SUM}}, "payload 0x08 at its byte"),
    ],
)
def test_the_field_of_the_first_packet_that_leaves_otherwise_is_told(before, after, told: str) -> None:
    found = judged_frames({"baseline": seen(before), "candidate": seen(after)})
    assert told in (found.reason if found else "")
    assert (found is None) == (not told)
    if found and ("1030" in str(before) or "1030" in str(after)):
        assert found.verdict is Verdict.REGRESSION
        assert found.reason.startswith("packets do not leave alike: ")
        assert "source port 1030" in found.reason


def test_without_the_word_what_depends_on_the_flow_is_no_difference() -> None:
    """Every flow has its own address after NAT; which one may be another in each boot."""
    some = {flow: {SOURCE: 100 + flow % 5, **NO_SUM} for flow in FLOWS}
    other = {flow: {SOURCE: 100 + flow % 7, **NO_SUM} for flow in FLOWS}
    assert judged_frames({"baseline": seen(some, alike=False), "candidate": seen(other, alike=False)}) is None
    assert judged_frames({"baseline": seen(some), "candidate": seen(some)}) is None
    found = judged_frames({"baseline": seen(some), "candidate": seen(other)})
    assert found is not None
    assert "source address 198.19.0.10" in found.reason


def test_what_a_build_counts_up_is_no_property_of_a_packet() -> None:
    assert judged_frames({"baseline": seen({}, counts_up=True), "candidate": seen({}, counts_up=True)}) is None


def test_packets_that_were_seen_once_tell_nothing() -> None:
    found = judged_frames({"baseline": seen({}, trials=1), "candidate": seen({1030: {LIMIT: 1}}, trials=1)})
    assert found is not None
    assert (found.verdict, "no packet was seen of both builds" in found.reason) == (Verdict.ERROR, True)


@pytest.mark.parametrize("alike", [False, True])
def test_of_what_is_handled_the_port_counts_too(alike: bool) -> None:
    back, on = (seen({}, fate="handled", returned=returned, alike=alike) for returned in (True, False))
    found = judged_frames({"baseline": on, "candidate": back})
    assert found is not None
    said = "packets do not leave alike" if alike else "the candidate makes other frames than the baseline"
    assert found.reason.startswith(f"{said}: port the one that they came in by, the baseline's the other one")
    assert judged_frames({"baseline": back, "candidate": back}) is None


def test_it_is_a_word_of_the_scenario() -> None:
    scenario = Scenario("xdp-ipv6-routing", fate="returned", alike=True)
    assert scenario.name == "xdp-ipv6-routing-1cpu-4096-64B-returned-alike"
    assert "packets of both builds alike" in scenario.title
    with pytest.raises(UsageError, match="no packet leaves of those that are dropped; leave out that they leave alike"):
        Scenario("xdp-ipv6-routing", fate="dropped", alike=True)

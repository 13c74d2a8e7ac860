"""Packets that are to be returned: both builds must do the same to them."""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Any

from flat_values import flat_trial

from pdrgate.gate.sut.carried_frames import FramesSeen, judged_frames
from pdrgate.record.trial import CarriedFrame
from pdrgate.results.verdict import Verdict
from pdrgate.traffic.frames import Frames, Path, template

SENT = template(
    Frames(6),
    Path(
        "t0", "02:00:00:00:00:01", "02:00:00:00:00:02",
        IPv6Address("2001:2:0:2::1"), IPv6Address("2001:2:0:1::"),
    ),
    tag=0x8000, probe_tag=0x8001,
).frame(1024, probe=False, payload=b"")  # fmt: skip


class SomePath:
    of_user = False

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        raise AssertionError("nobody forwards")


def seen(hops: int) -> FramesSeen:
    """Frames that came back with a hop limit of so many less."""
    got = bytearray(SENT)
    got[21] -= hops
    frames = (CarriedFrame(0, SENT.hex(), got.hex(), returned=True),) * 20
    path: Any = SomePath()
    found = FramesSeen()
    found.take(flat_trial(1e3, 1.0, offered=1000, forwarded=1000, fate="returned", frames=frames), path)
    return found


def test_a_build_that_returns_other_frames_than_the_other_is_told() -> None:
    found = judged_frames({"baseline": seen(0), "candidate": seen(1)})
    assert found is not None
    assert found.verdict is Verdict.REGRESSION
    assert found.reason == "the candidate makes other frames than the baseline: hop limit 63, the baseline's 64"


def test_builds_that_return_them_alike_are_compared_by_speed() -> None:
    assert seen(1).looked_at == 20
    assert seen(1).fault == ""
    assert judged_frames({"baseline": seen(1), "candidate": seen(1)}) is None

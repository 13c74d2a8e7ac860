"""Programs that do to packets what no router does: found before anything is measured, and told byte by byte.

Each is our own XDP router with one thing done otherwise, in a namespace and on real packets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from wrong_routers import FAULTS, MARKS, RIGHT, SENDS_BACK, router

from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames

pytestmark = pytest.mark.datapath


@pytest.fixture(scope="module")
def testbed(make_testbed) -> NetnsTestbed:
    return make_testbed(hops=1)


def seen(testbed: NetnsTestbed, program: Path | None, name: str, frames: Frames) -> FramesSeen:
    """What a trial shows of the frames that a path carries."""
    path, found = data_path(name, program), FramesSeen()
    try:
        path.apply(testbed.hops)
        generator = testbed.generator(path.family)
        try:
            found.take(generator.trial(20e3, 0.1, frames), path)
        finally:
            generator.close()
    finally:
        path.restore()
    return found


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(
    "name", ["ipv6-routing", "ipv4-routing", "xdp-ipv6-routing", "xdp-ipv4-routing", "tc-redirect", "srv6-end"]
)
def test_what_a_path_makes_of_a_frame_is_known_to_the_byte(make_testbed, name: str, directions: Literal[1, 2]) -> None:
    testbed = make_testbed(hops=3)
    try:
        family: Literal[4, 6] = 4 if "ipv4" in name else 6
        for size, probe_rate in ((64, 0), (64, 4000), (333, 1000), (1518, 0)):
            frames = Frames(
                family, size, directions=directions, probe_rate=probe_rate, segments=name == "srv6-end",
                vary="addresses" if size == 333 else "ports",
            )  # fmt: skip
            found = seen(testbed, None, name, frames)
            assert found.looked_at >= 4
            assert (found.examples, found.returned, found.fault) == ([], 0, "")
    finally:
        testbed.close()


@pytest.mark.parametrize("family", [6, 4])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_no_router_does_is_told_with_its_field(
    testbed: NetnsTestbed, tmp_path: Path, fault: str, family: Literal[4, 6]
) -> None:
    program = router(tmp_path, FAULTS[fault].code, "wrong")
    found = seen(testbed, program, f"xdp-ipv{family}-routing", Frames(family, 128))
    assert found.looked_at >= 2
    told = [str(difference) for one in found.examples for difference in one.differences]
    assert any(sentence.startswith(FAULTS[fault].told[family]) for sentence in told), told
    assert bool(found.fault) == FAULTS[fault].broken, found.fault
    lines = "\n".join(found.in_lines())
    assert "^^" in lines
    assert "frame sent: 124 bytes: destination MAC" in lines


@pytest.mark.parametrize("family", [6, 4])
def test_a_users_program_may_do_otherwise_and_its_frames_are_sound(
    testbed: NetnsTestbed, tmp_path: Path, family: Literal[4, 6]
) -> None:
    for code, others in ((RIGHT, False), (MARKS, True)):
        found = seen(testbed, router(tmp_path, code, "marks"), f"xdp-ipv{family}-routing", Frames(family))
        assert found.looked_at >= 4
        assert found.fault == ""
        assert bool(found.examples) == others


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("family", [6, 4])
def test_what_comes_back_where_it_was_sent_from_is_not_forwarded(
    testbed: NetnsTestbed, tmp_path: Path, family: Literal[4, 6], directions: Literal[1, 2]
) -> None:
    path = data_path(f"xdp-ipv{family}-routing", router(tmp_path, SENDS_BACK, "reflector"))
    try:
        path.apply(testbed.hops)
        generator = testbed.generator(family)
        try:
            trial = generator.trial(20e3, 0.1, Frames(family, directions=directions, probe_rate=1000))
        finally:
            generator.close()
    finally:
        path.restore()
    assert trial.aside.returned == trial.offered > 0
    assert (trial.forwarded, trial.loss_ratio, trial.seen.latency) == (0, 1.0, None)
    found = FramesSeen()
    assert found.take(trial, path).aside.frames
    assert (
        found.fault == f"sends {trial.aside.returned} of {trial.offered} packets back on the port that they came from"
    )

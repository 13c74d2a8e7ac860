"""A kernel that drops packets, and has others come twice with the numbers of the dropped ones: frames show it."""

from __future__ import annotations

import pytest
from hostile_driver import NoHeadersError, hostile_driver

from pdrgate.builds.kernel_build import kernel_build
from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.sut.carried_frames import FramesSeen, judged_frames
from pdrgate.results.verdict import Verdict
from pdrgate.traffic.frames import Frames

pytestmark = pytest.mark.guest
PATH = "ipv4-routing"


def test_a_packet_does_not_stand_in_for_one_that_is_dropped_by_having_its_number(
    cloud, shared_testbed, tmp_path
) -> None:
    try:
        hostile = kernel_build(str(hostile_driver(tmp_path, cloud, "moves_numbers")))
    except NoHeadersError as error:
        pytest.skip(str(error))
    found = {}
    for side, build in {"baseline": cloud, "candidate": hostile}.items():
        testbed, path = shared_testbed(build), data_path(PATH)
        generator, seen = testbed.generator(4), FramesSeen()
        try:
            path.apply(testbed.hops)
            trials = [generator.trial(5e3, 0.1, Frames(4)) for _ in range(20)]
            for trial in trials:
                seen.take(trial, path)
        finally:
            generator.close()
            path.restore()
        found[side] = seen
        if side == "candidate":
            # By their numbers, nearly all came, and each once.
            assert sum(trial.aside.twice for trial in trials) == 0
            assert sum(trial.forwarded for trial in trials) > 0.95 * sum(trial.offered for trial in trials)
    assert found["baseline"].fault == ""
    judgement = judged_frames(found)
    assert judgement is not None
    assert judgement.verdict is Verdict.REGRESSION
    assert "makes wrong frames" in judgement.reason
    assert "source port" in judgement.reason

"""Frames with a VLAN tag, of both engines, over a path that touches nothing behind the MAC addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.knobs import KnobSet, offloads
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.datapath


@pytest.fixture(scope="module", params=["xdp", "packet"])
def testbed(request: pytest.FixtureRequest, make_testbed) -> NetnsTestbed:
    return make_testbed(request.param, hops=1)


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("family", [4, 6])
def test_tagged_frames_come_back_whole(testbed: NetnsTestbed, family: Literal[4, 6], directions: Literal[1, 2]) -> None:
    path = data_path("tc-redirect")
    with KnobSet() as knobs:
        try:
            path.apply(testbed.hops)
            for hop in testbed.hops:
                for port in hop.ports:
                    # Else a veth hands the tag over beside the frame.
                    knobs.apply(hop.host, offloads(port.interface, {"txvlan": False}))
            try:
                generator = testbed.generator(family)
            except TestbedError as error:
                if "cannot run BPF programs on live frames" not in str(error):
                    raise
                pytest.skip(str(error))
            try:
                for size, probe_rate, vary in ((64, 0, "ports"), (333, 1000, "addresses"), (1518, 0, "ports")):
                    frames = Frames(family, size, directions=directions, vlan=4094)
                    frames = replace(frames, probe_rate=probe_rate, vary=vary)
                    trial, seen = generator.trial(20e3, 0.1, frames), FramesSeen()
                    seen.take(trial, path)
                    assert trial.forwarded == trial.offered > 0
                    assert (trial.seen.latency is None) == (not probe_rate)
                    assert seen.looked_at >= 4
                    assert (seen.examples, seen.returned, seen.fault) == ([], 0, "")
            finally:
                generator.close()
        finally:
            assert path.restore() == []

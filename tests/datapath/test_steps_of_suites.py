"""The gate's own paths by steps: real packets go through them, a planted fault is named, and nothing of them stays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gate_keywords import path_of

from pdrgate.data_paths.catalogue import DATA_PATHS, DataPath, data_path
from pdrgate.data_paths.network_state import NetworkState
from pdrgate.data_paths.set_up import SetUpStep
from pdrgate.errors import SutError
from pdrgate.gate.sut.probe import probe_path
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames

pytestmark = pytest.mark.datapath

PATHS = ("The SUT Translates Addresses", "The SUT Filters By A Hundred Rules", "The SUT Tunnels By VXLAN",
         "The SUT Bridges", "The SUT Queues By FQ CoDel")  # fmt: skip
FAULTS = {
    "The SUT Translates Addresses": "nft 'add chain ip gate t { type filter hook forward priority 0; policy drop; }'",
    "The SUT Filters By A Hundred Rules": "nft add rule ip gate passing ip daddr 198.18.0.0/16 drop",
    "The SUT Tunnels By VXLAN": "for half in 0 128; do ip route replace blackhole 198.18.$half.0/17; done",
    "The SUT Bridges": "bridge link set dev $OUT state 0",
    "The SUT Queues By FQ CoDel": "ip link set $OUT down",
}
"""What stops every packet, as one more step."""


@pytest.fixture(scope="module", params=[1, 3])
def testbed(request: pytest.FixtureRequest, make_testbed) -> NetnsTestbed:
    return make_testbed("packet", hops=request.param)


def frames_of(name: str) -> tuple[str, Frames]:
    on, _, traffic = path_of(name)
    frames = DATA_PATHS[on].frames
    return on, frames if traffic is None else replace(frames, chosen=traffic)


def applied(path: DataPath, testbed: NetnsTestbed) -> None:
    """Set the path up, where this machine's kernel has what its steps take."""
    try:
        path.apply(testbed.hops)
    except SutError as error:
        if not any(lacks in str(error) for lacks in ("kind is unknown", "Unknown device type", "not supported")):
            raise
        path.restore()
        pytest.skip(f"this machine's kernel lacks it: {error}")


@pytest.mark.parametrize("name", PATHS)
def test_packets_go_through_and_nothing_stays(testbed: NetnsTestbed, name: str) -> None:
    on, frames = frames_of(name)
    before = [NetworkState.of(hop.host) for hop in testbed.hops]
    path = data_path(on, set_up=path_of(name)[1])
    try:
        applied(path, testbed)
        generator = testbed.generator(4)
        try:
            probe_path(path, testbed, generator, frames)
            trial = generator.trial(5e3, 0.2, frames)
        finally:
            generator.close()
    finally:
        assert path.restore() == []
    assert trial.forwarded == trial.offered > 0
    assert [NetworkState.of(hop.host) for hop in testbed.hops] == before


@pytest.mark.parametrize("name", PATHS)
def test_a_fault_in_the_steps_is_told_before_anything_is_measured(testbed: NetnsTestbed, name: str) -> None:
    on, frames = frames_of(name)
    set_up = path_of(name)[1]
    faulty = replace(set_up, steps=(*set_up.steps, SetUpStep(FAULTS[name])))
    path = data_path(on, set_up=faulty)
    try:
        applied(path, testbed)
        generator = testbed.generator(4)
        try:
            with pytest.raises(SutError, match=r"forwards none of \d+ packets"):
                probe_path(path, testbed, generator, frames)
        finally:
            generator.close()
    finally:
        assert path.restore() == []

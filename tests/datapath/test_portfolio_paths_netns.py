"""Each path of the portfolio in namespaces: packets go through, a planted fault is told, and nothing of it stays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from portfolio_paths import FILES, scenario_of_path

from pdrgate.data_paths.catalogue import DataPath, SetUp, data_path
from pdrgate.data_paths.network_state import NetworkState
from pdrgate.data_paths.set_up import set_up_of
from pdrgate.gate.sut.probe import probe_path
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.values.errors import SutError

pytestmark = pytest.mark.datapath

CARRYING = [name for name in FILES if not (scenario_of_path(name).ends_at_sut or scenario_of_path(name).set_up is None)]
"""Paths that steps set up, and that packets go through; the others have tests of their own."""
OF_ONE_ROUTER = ("nat_both_ways", "srv6_encapsulation")
"""Paths that a second router would do once more: it has nothing left to translate, or encapsulates again."""
STOPPING = {
    "nat": "nft 'add chain ip gate t { type filter hook forward priority 0; policy drop; }'",
    "firewall": "nft add rule ip gate passing ip daddr 198.18.0.0/16 drop",
    "gre": "for half in 0 128; do ip route replace blackhole 198.18.$half.0/17; done",
    "ipip": "for half in 0 128; do ip route replace blackhole 198.18.$half.0/17; done",
    "vxlan": "for half in 0 128; do ip route replace blackhole 198.18.$half.0/17; done",
    "bridge": "bridge link set dev $OUT state 0",
    "bridge_of_10000": "bridge link set dev $OUT state 0",
    "set_of_10000": "nft add rule ip gate passing drop",
    "container": "ip -n pdrgate-c$HOP route delete default",
    "packet_ring": "kill -STOP $(cat relay.pid)",
    "packet_socket": "kill -STOP $(cat relay.pid)",
    "xdp_socket": "kill -STOP $(cat relay.pid)",
    "srv6_encapsulation": "ip -6 route add blackhole 2001:2:0:1:8000::/66",
}
"""What stops every packet, as one more step; on other paths a rule drops all that leave."""
DROPPED = "nft 'add table inet stop; add chain inet stop s { type filter hook postrouting priority 300; policy drop; }'"


@pytest.fixture(scope="module", params=[1, 3])
def testbed(request: pytest.FixtureRequest, make_testbed) -> NetnsTestbed:
    return make_testbed("packet", hops=request.param)


def applied(path: DataPath, testbed: NetnsTestbed) -> None:
    """Set the path up, where this machine has what its steps take."""
    try:
        path.apply(testbed.hops)
    except SutError as error:
        path.restore()
        pytest.skip(f"this machine lacks it: {error}")


@pytest.mark.parametrize("name", CARRYING)
def test_packets_go_through_and_nothing_stays(testbed: NetnsTestbed, name: str) -> None:
    if name in OF_ONE_ROUTER and len(testbed.hops) > 1:
        pytest.skip("a path of one router")
    scenario = scenario_of_path(name)
    before = [NetworkState.of(hop.host) for hop in testbed.hops]
    path = data_path(scenario.data_path, set_up=scenario.set_up)
    try:
        applied(path, testbed)
        generator = testbed.generator(path.family)
        try:
            probe_path(path, testbed, generator, scenario.frames, scenario.counts)
            trial = generator.trial(5e3, 0.2, scenario.frames)
        finally:
            generator.close()
    finally:
        assert path.restore() == []
    assert trial.forwarded == trial.offered > 0
    assert [NetworkState.of(hop.host) for hop in testbed.hops] == before


@pytest.mark.parametrize("testbed", [1], indirect=True)
@pytest.mark.parametrize("name", CARRYING)
def test_a_fault_in_the_steps_is_told_before_anything_is_measured(testbed: NetnsTestbed, name: str) -> None:
    scenario = scenario_of_path(name)
    if scenario.counts == "handled":
        pytest.skip("packets that are handled may come to any end")
    more = set_up_of([STOPPING.get(name, DROPPED)])
    assert scenario.set_up is not None
    faulty: SetUp = replace(scenario.set_up, steps=(*scenario.set_up.steps, *more.steps))
    path = data_path(scenario.data_path, set_up=faulty)
    try:
        applied(path, testbed)
        generator = testbed.generator(path.family)
        try:
            with pytest.raises(SutError, match=r"forwards none of \d+ (?:IPv\d )?packets"):
                probe_path(path, testbed, generator, scenario.frames)
        finally:
            generator.close()
    finally:
        assert path.restore() == []

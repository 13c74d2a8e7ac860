"""What slows a path of the portfolio down is named by the function that it is in: a planted fault for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from portfolio_paths import FILES, scenario_of_path

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.catalogue import SetUp, data_path
from pdrgate.data_paths.replacing import Replaces
from pdrgate.data_paths.set_up import set_up_of
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.sut.trial_measurer import TrialMeasurer
from pdrgate.history.trials import TrialFile
from pdrgate.knobs import KnobSet, batching
from pdrgate.measurands.cost import packet_cost
from pdrgate.measurands.replacement import per_replacement
from pdrgate.observers.replacing_observer import ReplacingObserver
from pdrgate.phase import Phase
from pdrgate.stretch import Belonging
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.delivery import counted_by

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]

LOAD, DURATION = 8e3, 0.1
PASSING = (
    "nft 'add table ip more; add chain ip more more { type filter hook forward priority 5; }; "
    "add rule ip more more udp sport 7 drop'",
    "nft_do_chain",
)
COMING = PASSING[0].replace("hook forward", "hook input"), "nft_do_chain"
LEAVING = (
    "tc qdisc add dev {0} clsact && tc filter add dev {0} egress matchall action pass",
    "mall_classify",
)
AT_PORT = LEAVING[0].format("$OUT"), LEAVING[1]
AT_TUNNEL = LEAVING[0].format("gate0"), LEAVING[1]
AT_WAY_OUT = "tc filter add dev gate0 egress matchall action pass", LEAVING[1]
REPLACED = "replaced with: "
"""Begins what is done at each replacement, and not before all of them."""
FAULTS: Mapping[str, tuple[str, str]] = {
    "bridge": ("ip link set gate0 type bridge vlan_filtering 1", "vlan|allowed"),
    "bridge_of_10000": ("ip link set gate0 type bridge vlan_filtering 1", "vlan|allowed"),
    "conntrack": ("nft add rule ip gate passing ct mark 7 drop", "nft_ct_get"),
    "container": AT_WAY_OUT,
    "egress_cake": AT_PORT,
    "egress_fq": AT_PORT,
    "egress_noqueue": AT_PORT,
    "egress_pfifo_fast": AT_PORT,
    "firewall": (
        "for n in $(seq 100); do nft add rule ip gate passing udp sport $n drop || exit; done",
        "nft_do_chain",
    ),
    "firewall_of_1000": ("nft -f rules", "nft_do_chain"),
    "flows_64k": AT_PORT,
    "flowtable": ("nft flush chain ip gate passing", "ip_forward"),
    "fq_codel": AT_PORT,
    "gre": AT_TUNNEL,
    "ipip": AT_TUNNEL,
    "ipsec": AT_WAY_OUT,
    "ipsec_null": AT_WAY_OUT,
    "ipv4_routing": AT_PORT,
    "ipv4_routing_of_many_flows": AT_PORT,
    "ipv6_routing": AT_PORT,
    "ipv6_routing_of_large_frames": AT_PORT,
    "ipvs": AT_PORT,
    "macvlan": AT_TUNNEL,
    "memory_group": COMING,
    "nat": PASSING,
    "nat_both_ways": PASSING,
    "no_early_demux": ("sysctl -qw net.ipv4.ip_early_demux=1", "udp_v4_early_demux"),
    "no_gro": AT_PORT,
    "routes_1000": AT_PORT,
    "routes_100000": AT_PORT,
    "packet_ring": AT_PORT,
    "packet_socket": AT_PORT,
    "routes_replaced": ("ip monitor route >/dev/null 2>&1 &\nundo: killall ip", "do_one_broadcast|netlink_broadcast"),
    "rp_filter": AT_PORT,
    "rules_replaced": ("nft monitor >/dev/null 2>&1 &\nundo: killall nft", "nf_tables_fill_rule_info"),
    "set_of_10000": ("nft add rule ip gate passing ip daddr @blocked drop", "nft_r?hash_lookup"),
    "set_replaced": (f"{REPLACED}ipset create more hash:ip && ipset destroy more", "ip_set_create$"),
    "slow_egress": AT_PORT,
    "srv6_encapsulation": AT_PORT,
    "srv6_end": AT_PORT,
    "tc_redirect": ("tc filter add dev $OUT egress matchall action pass", LEAVING[1]),
    "tap_segments": PASSING,
    "udp_connected_10000": COMING,
    "udp_delivery": COMING,
    "udp_delivery_to_four": COMING,
    "udp_gro": AT_PORT,
    "udp_send": COMING,
    "udp_send_segments": COMING,
    "udp_sockets_10000": COMING,
    "vlan": AT_PORT,
    "vxlan": AT_TUNNEL,
    "wireguard": AT_WAY_OUT,
    "xdp_socket": (
        "sysctl -qw kernel.bpf_stats_enabled=1\nundo: sysctl -qw kernel.bpf_stats_enabled=0",
        "sched_clock$",
    ),
}
"""A step more for each path, and what the function is called that it costs instructions in; others have `USUAL`."""
USUAL = PASSING


@pytest.fixture
def metered(shared_testbed, cloud: KernelBuild) -> VmTestbed:
    return shared_testbed(cloud, metered=True)


def with_fault(scenario: Scenario, fault: str) -> SetUp:
    plain = scenario.set_up or SetUp(())
    if fault.startswith(REPLACED):
        assert plain.replacement is not None
        command = f"{plain.replacement.command} && {fault.removeprefix(REPLACED)}"
        return replace(plain, replacement=replace(plain.replacement, command=command))
    more = set_up_of(fault.splitlines())
    return replace(plain, steps=(*plain.steps, *more.steps))


def functions_on(
    testbed: VmTestbed, scenario: Scenario, set_up: SetUp | None, folder: Path
) -> Mapping[str, tuple[float, float]]:
    """Instructions and calls, by function, of the path with this set-up: for a packet, or for a replacement."""
    if set_up is not None:
        testbed.furnish(set_up.programs, set_up.words)
    path = data_path(scenario.data_path, None, scenario.delivery, scenario.streams, set_up=set_up)
    knobs, file = KnobSet(), TrialFile(folder / "trials.jsonl")
    try:
        path.apply(testbed.hops)
        testbed.pin(scenario.pinning)
        for port in testbed.hops[0].ports:
            for knob in batching(port.interface, scenario.gro, scenario.wait):
                knobs.apply(testbed.guest, knob)
        generator = counted_by(path.arrivals, testbed.generator(path.family))
        try:
            measurer = TrialMeasurer(
                generator, scenario.frames, testbed.observers(), file, Belonging("fault", boot=testbed.boot_id, pair=1),
                counting=testbed.executed.counting(), tracing=(), busy=testbed.executed.busy,
                replacing=(ReplacingObserver(path.replace),) if isinstance(path, Replaces) else (),
            )  # fmt: skip
            generator.trial(LOAD, DURATION, scenario.frames)
            if scenario.replaces:
                return per_replacement(measurer.measure(LOAD / 8, DURATION, Phase.REPLACEMENT))
            found = packet_cost([measurer.measure(LOAD, DURATION, Phase.COST)])
        finally:
            generator.close()
    finally:
        file.close()
        assert [*knobs.restore(), *path.restore()] == []
    assert found is not None
    return found.functions


@pytest.mark.parametrize("name", FILES)
def test_a_fault_is_named_by_the_function_that_it_is_in(metered: VmTestbed, tmp_path: Path, name: str) -> None:
    scenario = scenario_of_path(name)
    if scenario.streams is not None:
        pytest.skip("a closed loop has no packets to count")
    if scenario.data_path.startswith("xdp"):
        pytest.skip("packets pass no rule and no queue; tests of programs make these slower")
    fault, function = FAULTS.get(name, USUAL)
    (tmp_path / "plain").mkdir()
    plain = functions_on(metered, scenario, scenario.set_up, tmp_path / "plain")
    slower = functions_on(metered, scenario, with_fault(scenario, fault), tmp_path)
    costs = [
        sum(each for one, (each, _) in functions.items() if re.search(function, one)) for functions in (plain, slower)
    ]
    print(f"{name}: {function} {costs[0]:.0f} -> {costs[1]:.0f} instructions")
    assert costs[1] > 1.1 * costs[0]

"""Chosen traffic through tunnels, tags and segments of a guest's kernel: each packet is known again at their ends."""

from __future__ import annotations

import pytest
from whole_frames import layers

from pdrgate.data_paths.catalogue import data_path
from pdrgate.data_paths.set_up import set_up_of
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.chosen.traffic_words import chosen_traffic
from pdrgate.traffic.frames import Frames

pytestmark = pytest.mark.guest

SUT_IN, SUT_IN6 = "10.211.0.2", "fd00:211:0::2"
"""The router's addresses where forward traffic comes in; see `KernelNetwork`."""
LOOSE = "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done"
BEHIND = "203.0.113.0/24"
IPV4_UDP = ("ethernet", "ipv4", "udp")


@pytest.fixture(scope="module")
def testbed(shared_testbed, cloud) -> VmTestbed:
    return shared_testbed(cloud)


@pytest.mark.parametrize(
    ("steps", "words", "comes"),
    [
        (
            (f"ip link add gate0 type ipip local {SUT_IN}", "ip link set gate0 up"),
            f"udp dst=@out in ipip dst={SUT_IN}", IPV4_UDP,
        ),
        (
            (f"ip link add gate0 type gre local {SUT_IN} key 5", "ip link set gate0 up"),
            f"tcp flags=S dst=@out in gre key=5 dst={SUT_IN}", ("ethernet", "ipv4", "tcp"),
        ),
        (
            ("ip link add gate0 address 02:00:00:00:00:02 type vxlan id 7 dstport 4789", "ip link set gate0 up"),
            f"udp dst=@out in vxlan vni=7 dst={SUT_IN}", IPV4_UDP,
        ),
        (
            (
                "ip link add gate0 type ipip local 10.211.1.1 remote $OUT_PEER_IP4", "ip link set gate0 up",
                f"ip route add {BEHIND} dev gate0",
            ),
            "icmp dst=203.0.113.1-203.0.113.9 flows=9", ("ethernet", "ipv4", "ipv4", "icmp"),
        ),
        (
            (
                "ip link add gate0 type gre local 10.211.1.1 remote $OUT_PEER_IP4 key 9", "ip link set gate0 up",
                f"ip route add {BEHIND} dev gate0",
            ),
            "udp dst=203.0.113.1", ("ethernet", "ipv4", "gre", "ipv4", "udp"),
        ),
        (
            (
                "ip link add gate0 type vxlan id 7 remote $OUT_PEER_IP4 dstport 4789 dev $OUT noudpcsum",
                "ip link set gate0 up",
                "ip address add 10.7.0.1/24 dev gate0",
                "ip neighbour add 10.7.0.2 lladdr 02:00:00:00:00:99 dev gate0", f"ip route add {BEHIND} via 10.7.0.2",
            ),
            "tcp flags=SA dst=203.0.113.1 size=333",
            ("ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv4", "tcp"),
        ),
        (
            (
                "ip link add link $IN name gate7 type vlan id 7", "ip link set gate7 up",
                "ip link add link $OUT name gate8 type vlan id 8", "ip link set gate8 up",
                "ip address add 10.8.0.1/24 dev gate8",
                "ip neighbour add 10.8.0.2 lladdr $OUT_PEER_MAC dev gate8", f"ip route add {BEHIND} via 10.8.0.2",
            ),
            "udp vlan=7 dst=203.0.113.1", ("ethernet", "vlan", "ipv4", "udp"),
        ),
        (
            (
                "ip -6 route add fd00:99::/64 encap seg6 mode encap segs 2001:2:0:1::5,2001:2:0:1::6 dev $OUT",
            ),
            "udp src=fd00:98::1 dst=fd00:99::1", ("ethernet", "ipv6", "srh", "ipv6", "udp"),
        ),
        (
            (
                "nft 'add table ip gate; add chain ip gate leaving { type nat hook postrouting priority srcnat; }'",
                "nft add rule ip gate leaving oifname $OUT masquerade",
            ),
            "udp dst=@out src=10.0.0.0/16 flows=200 fragments=2 size=300", ("ethernet", "ipv4", "fragment"),
        ),
    ],
    ids=["ipip-ends", "gre-ends", "vxlan-ends", "ipip-begins", "gre-begins", "vxlan-begins", "vlans", "srv6", "nat"],
)  # fmt: skip
def test_each_packet_is_known_again(
    testbed: VmTestbed, steps: tuple[str, ...], words: str, comes: tuple[str, ...]
) -> None:
    set_up = set_up_of((*steps, LOOSE))
    testbed.furnish(set_up.programs, set_up.words)
    path = data_path("ip-routing", set_up=set_up)
    try:
        path.apply(testbed.hops)
        generator = testbed.generator(4)
        try:
            trial = generator.trial(5e3, 0.1, Frames(4, chosen=chosen_traffic([words])))
        finally:
            generator.close()
    finally:
        path.restore()
    assert trial.forwarded == trial.offered > 0
    assert trial.aside.frames
    assert {tuple(layers(bytes.fromhex(one.got)))[: len(comes)] for one in trial.aside.frames} == {comes}

"""Steps of a user's own in a guest: programs and modules that they name get there, and nothing of them stays."""

from __future__ import annotations

import pytest

from pdrgate.data_paths.catalogue import DATA_PATHS, data_path
from pdrgate.data_paths.network_state import NetworkState
from pdrgate.data_paths.set_up import set_up_of
from pdrgate.testbeds.vm.vm_testbed import VmTestbed

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def testbed(shared_testbed, cloud) -> VmTestbed:
    return shared_testbed(cloud)


@pytest.mark.parametrize(
    "steps",
    [
        (
            "nft 'add table ip gate; add chain ip gate leaving { type nat hook postrouting priority srcnat; }'",
            "nft add rule ip gate leaving oifname $OUT masquerade",
            "nft list table ip gate",
        ),
        (
            "ip link add gate0 type vxlan id 7 dstport 4789 remote $OUT_PEER_IP4 dev $OUT",
            "ip link add gate1 type bridge", "ip link set gate0 master gate1", "bridge link show",
            "tc qdisc replace dev $OUT root htb default 1",
            "tc class add dev $OUT parent 1: classid 1:1 htb rate 1gbit || tc qdisc show dev $OUT",
        ),
    ],
    ids=["nat", "links"],
)  # fmt: skip
def test_what_steps_name_gets_into_a_guest(testbed: VmTestbed, steps: tuple[str, ...]) -> None:
    (hop,) = testbed.hops
    set_up = set_up_of(steps)
    testbed.furnish(set_up.programs, set_up.words)
    before = NetworkState.of(hop.host)
    path = data_path("ip-routing", set_up=set_up)
    try:
        path.apply(testbed.hops)
        generator = testbed.generator(4)
        try:
            trial = generator.trial(5e3, 0.1, DATA_PATHS["ip-routing"].frames)
        finally:
            generator.close()
    finally:
        assert path.restore() == []
    assert trial.forwarded == trial.offered > 0
    assert NetworkState.of(hop.host) == before


def test_nftables_get_their_checksum_where_it_is_a_module(shared_testbed, plain) -> None:
    """Debian's kernel for machines of metal has it so, and libcrc32c is refused without it."""
    guest = shared_testbed(plain)
    set_up = set_up_of(("nft add table ip gate", "undo: nft delete table ip gate"))
    guest.furnish(set_up.programs, set_up.words)
    path = data_path("ip-routing", set_up=set_up)
    try:
        path.apply(guest.hops)
    finally:
        assert path.restore() == []

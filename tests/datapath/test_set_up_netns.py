"""Steps of a user's own on real namespaces: they run, packets feel them, and nothing of them stays."""

from __future__ import annotations

import pytest

from pdrgate.data_paths.catalogue import DATA_PATHS, DataPath, data_path
from pdrgate.data_paths.network_state import KnownNetworks, NetworkState, network_number
from pdrgate.data_paths.set_up import set_up_of
from pdrgate.data_paths.standing_base import StandingBase
from pdrgate.record.trial import Trial
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.values.errors import SutError, ToolError

pytestmark = pytest.mark.datapath


@pytest.fixture(scope="module")
def testbed(make_testbed) -> NetnsTestbed:
    return make_testbed("packet", hops=1)


def path_with(*steps: str, on: str = "ip-routing", told: list[str] | None = None) -> DataPath:
    return data_path(on, set_up=set_up_of(steps), report=[].append if told is None else told.append)


def sent(testbed: NetnsTestbed, path: DataPath) -> Trial:
    generator = testbed.generator(4)
    try:
        return generator.trial(5e3, 0.1, DATA_PATHS[path.name].frames)
    finally:
        generator.close()


def test_a_router_that_translates_addresses(testbed: NetnsTestbed) -> None:
    told: list[str] = []
    path = path_with(
        "nft add table ip gate",
        "nft 'add chain ip gate leaving { type nat hook postrouting priority srcnat; }'",
        'nft "add rule ip gate leaving oifname $OUT counter masquerade"',
        "nft list table ip gate",
        told=told,
    )
    try:
        path.apply(testbed.hops)
        trial = sent(testbed, path)
        own = testbed.hops[0].host.run("nft", "list", "table", "ip", "gate").stdout
    finally:
        assert path.restore() == []
    assert trial.forwarded == trial.offered > 0
    sources = {bytes.fromhex(frame.got)[26:30] for frame in trial.aside.frames}
    assert sources == {bytes((10, 211, 1, 1))}
    assert "counter packets 0" not in own
    assert any("masquerade" in line for line in told)
    assert "table ip gate" not in testbed.hops[0].host.run("nft", "list", "tables").stdout


def test_a_rule_that_drops_is_felt(testbed: NetnsTestbed) -> None:
    """The planted fault."""
    path = path_with(
        "nft add table ip gate",
        "nft 'add chain ip gate everything { type filter hook forward priority 0; policy drop; }'",
    )
    try:
        path.apply(testbed.hops)
        assert sent(testbed, path).forwarded == 0
    finally:
        assert path.restore() == []


def test_steps_see_their_ports_and_nothing_else_is_set_up(testbed: NetnsTestbed) -> None:
    told: list[str] = []
    path = path_with(
        "echo $IN $OUT $IN_MAC $OUT_PEER_MAC $OUT_IP4 $IN_PEER_IP6 $HOP; ip -br address", on="bare-ipv4", told=told
    )
    (hop,) = testbed.hops
    try:
        path.apply(testbed.hops)
    finally:
        assert path.restore() == []
    assert told[1].split() == [
        hop.ingress.interface, hop.egress.interface, hop.ingress.mac, hop.egress.peer_mac, "10.211.1.1",
        "fd00:211:0::1", "1",
    ]  # fmt: skip
    assert not any("10.211." in line for line in told[2:])


def test_what_steps_made_is_taken_away_without_their_undo(testbed: NetnsTestbed) -> None:
    (hop,) = testbed.hops
    before = NetworkState.of(hop.host)
    path = path_with(
        "ip link add gate0 type veth peer gate0p", "ip link set gate0 up", "ip address add 192.0.2.1/24 dev gate0",
        "ip address add 192.0.2.9/32 dev $IN", "ip route add 203.0.113.0/24 dev gate0",
        "ip -6 route add 2001:db8:7::/48 dev $OUT", "ip rule add to 203.0.113.7 table 77", "nft add table inet gate",
        "ip neighbour add 192.0.2.77 lladdr 02:00:00:00:00:77 dev gate0 nud permanent",
        "tc qdisc add dev $OUT clsact", "tc qdisc replace dev $IN root pfifo limit 77",
    )  # fmt: skip
    try:
        path.apply(testbed.hops)
        assert len(list(before.new_in(NetworkState.of(hop.host)))) > 10
    finally:
        assert path.restore() == []
    assert NetworkState.of(hop.host) == before


def test_one_number_tells_whether_a_network_is_another_one(testbed: NetnsTestbed) -> None:
    (hop,) = testbed.hops
    port = hop.ingress.interface
    alone = network_number(hop.host)
    assert alone == network_number(hop.host) != ""
    for words in ("add gate0 type veth peer gate0p", "set gate0 addrgenmode none up", "set gate0p addrgenmode none up"):
        hop.host.run("ip", "link", *words.split())
    hop.host.run("ip", "address", "add", "192.0.2.1/24", "dev", "gate0")
    before = network_number(hop.host)
    assert before != alone
    for made, undone in (
        ("ip address add 192.0.2.9/32 dev gate0", "ip address delete 192.0.2.9/32 dev gate0"),
        ("ip route add 203.0.113.0/24 dev gate0", "ip route delete 203.0.113.0/24 dev gate0"),
        ("ip -6 route add unreachable 2001:db8:7::/48", "ip -6 route delete unreachable 2001:db8:7::/48"),
        ("ip rule add to 203.0.113.7 table 77", "ip rule delete to 203.0.113.7 table 77"),
        ("ip neighbour add 192.0.2.7 lladdr 02:00:00:00:00:77 dev gate0 nud permanent",
         "ip neighbour delete 192.0.2.7 dev gate0"),
        (f"tc qdisc add dev {port} clsact", f"tc qdisc delete dev {port} clsact"),
        ("nft add table inet gate", "nft delete table inet gate"),
    ):  # fmt: skip
        hop.host.run("sh", "-c", made)
        assert network_number(hop.host) != before, made
        hop.host.run("sh", "-c", undone)
        assert network_number(hop.host) == before, undone
    hop.host.run("ip", "link", "delete", "gate0")
    assert network_number(hop.host) == alone


def test_the_router_beneath_stays_for_the_next_scenario(testbed: NetnsTestbed) -> None:
    (hop,) = testbed.hops
    bare, networks, base = NetworkState.of(hop.host), KnownNetworks(), StandingBase()

    def path(*steps: str, on: str = "ip-routing") -> DataPath:
        return data_path(on, set_up=set_up_of(steps), networks=networks, base=base)

    first = path("nft add table inet gate", "ip route add 203.0.113.0/24 dev $OUT")
    first.apply(testbed.hops)
    assert first.restore() == []
    left = dict(bare.new_in(NetworkState.of(hop.host)))
    assert left.keys() == {"address", "neighbour", "route", "IPv6 route"}
    assert "198.1" in left["route"]
    second = path("ip route flush dev $OUT scope global")
    second.apply(testbed.hops)
    second.restore()  # what the scenario broke is not left to the next one
    assert NetworkState.of(hop.host) == bare
    third = path("true")
    try:
        third.apply(testbed.hops)
        trial = sent(testbed, third)
        assert trial.forwarded == trial.offered > 0
        assert third.restore() == []
        path("true", on="bare-ipv4")
        assert NetworkState.of(hop.host) == bare
    finally:
        base.leave()


def test_ipsec_that_was_there_before_stays(testbed: NetnsTestbed) -> None:
    (hop,) = testbed.hops
    add = "ip xfrm policy add src 192.0.2.{0}/32 dst 192.0.2.99/32 dir out"
    if hop.host.script(add.format(1)).exit_code:
        pytest.skip("this machine's kernel has no IPsec")
    before = NetworkState.of(hop.host)
    path = path_with(add.format(2))
    try:
        path.apply(testbed.hops)
        assert NetworkState.of(hop.host) != before
    finally:
        assert path.restore() == []
    assert NetworkState.of(hop.host) == before
    assert "192.0.2.1" in hop.host.run("ip", "xfrm", "policy").stdout


def test_an_undo_runs_and_what_is_missing_then_is_told(testbed: NetnsTestbed) -> None:
    (hop,) = testbed.hops
    path = path_with("sysctl -qw net.ipv4.ip_default_ttl=77", "undo: sysctl -qw net.ipv4.ip_default_ttl=64")
    path.apply(testbed.hops)
    assert hop.host.read("/proc/sys/net/ipv4/ip_default_ttl").strip() == "77"
    assert path.restore() == []
    assert hop.host.read("/proc/sys/net/ipv4/ip_default_ttl").strip() == "64"
    hop.host.run("ip", "link", "add", "gate1", "type", "veth", "peer", "gate1p")
    path = path_with("ip link delete gate1")
    path.apply(testbed.hops)
    assert path.restore()[:1] == [
        f"{hop.host.name} has no more the link `gate1`, which it had before the scenario's set-up; put it back"
    ]


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (
            "ip link add gate2 type nosuchkind",
            "with exit code 2: Error: Unknown device type.; has this kernel what the step",
        ),
        (
            "no-such-program",
            "with exit code 127: no-such-program: not found; is that program installed, or put on the SUT?",
        ),
        ("echo ')' >&2; exit 7", "with exit code 7: )"),
        ("( true", "with exit code 2: sh: 1: Syntax error"),
    ],
)
def test_a_step_that_fails_is_told_with_what_it_said(testbed: NetnsTestbed, step: str, why: str) -> None:
    path = path_with("true", step)
    with pytest.raises((SutError, ToolError)) as raised:
        path.apply(testbed.hops)
    assert path.restore() == []
    assert f"step 2 of the set-up, `{step}`, failed on {testbed.hops[0].host.name} {why}" in str(raised.value)

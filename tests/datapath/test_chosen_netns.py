"""Chosen traffic through real kernels: each packet is known again, whatever the SUT does to its headers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from whole_frames import layers

from pdrgate.data_paths.paths.kernel_routing import Routing
from pdrgate.record.trial import Trial
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.chosen.traffic_words import chosen_traffic
from pdrgate.traffic.embedded import EmbeddedGenerator
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError, UsageError

pytestmark = pytest.mark.datapath

LOW = 20e3
SUT_IN = "10.211.0.2"
"""The router's address where forward traffic comes in; see `KernelNetwork`."""


@pytest.fixture(scope="module", params=["xdp", "packet"])
def testbed(request: pytest.FixtureRequest, make_testbed: Any) -> Iterator[NetnsTestbed]:
    testbed = make_testbed(request.param, 1)
    paths = [Routing(6), Routing(4)]
    for path in paths:
        path.apply(testbed.hops)
    testbed.set_buffer(4096)
    testbed.pin("1 cpu")
    host = testbed.hops[0].host
    for interface in ("all", "default", *(port.interface for port in testbed.hops[0].ports)):
        host.run("sysctl", "-qw", f"net.ipv4.conf.{interface}.rp_filter=0")
    yield testbed
    for path in paths:
        path.restore()
    testbed.close()


class Generators:
    """The generator of a testbed, of the IP version that was asked for last: two cannot be on its ports."""

    def __init__(self, testbed: NetnsTestbed) -> None:
        self._testbed = testbed
        self._open: tuple[int, EmbeddedGenerator] | None = None

    def of(self, family: int) -> EmbeddedGenerator:
        if self._open is None or self._open[0] != family:
            self.close()
            try:
                made = self._testbed.generator(family)
            except TestbedError as error:
                if "cannot run BPF programs on live frames" not in str(error):
                    raise
                pytest.skip(str(error))
            assert isinstance(made, EmbeddedGenerator)
            self._open = family, made
        return self._open[1]

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()


@pytest.fixture(scope="module")
def generators(testbed: NetnsTestbed) -> Iterator[Generators]:
    made = Generators(testbed)
    yield made
    made.close()


@pytest.fixture
def generator(generators: Generators) -> EmbeddedGenerator:
    return generators.of(4)


@pytest.fixture
def generator6(generators: Generators) -> EmbeddedGenerator:
    return generators.of(6)


def frames(*words: str, family: Any = 4, **more: Any) -> Frames:
    chosen = chosen_traffic(words)
    return Frames(family, chosen=chosen, directions=chosen.directions, **more)


def trial(generator: EmbeddedGenerator, asked: Frames, load: float = LOW, duration: float = 0.1) -> Trial:
    """A trial that the generator did not limit, where the machine lets it have its CPU."""
    for _ in range(20):
        made = generator.trial(load, duration, asked)
        if not made.generator_limited:
            break
    assert made.offered > 0
    return made


def all_come(made: Trial) -> bool:
    return (made.forwarded, made.aside.refused, made.aside.returned) == (made.offered, 0, 0)


@pytest.mark.parametrize(
    "words",
    [
        "udp",
        "udp dst=198.18.0.1 dport=53 src=10.0.0.0/16 flows=1000",
        "tcp flags=S dport=80",
        "tcp flags=A size=1518",
        "icmp",
        "ip proto=99",
        "udp payload=hello size=200 tos=0xb8 ttl=9",
        "udp fragments=2 size=200",
        "udp fragments=4 size=1518",
        "udp src=10.9.0.1 dst=10.9.0.2 in ipip",
        "udp src=10.9.0.1 dst=10.9.0.2 in gre key=5",
        "tcp flags=S src=fd00::1 dst=fd00::2 vlan=3 in vxlan vni=7",
        "udp in ipip in gre in vxlan",
        "udp size=64 weight=7; udp size=570 weight=4; udp size=1518",
        "udp flows=10000 draw=zipf dst=@out",
        "udp; tcp flags=SA from=out",
    ],
)
def test_each_packet_is_routed_and_known_again(generator: EmbeddedGenerator, words: str) -> None:
    asked = frames(words)
    made = trial(generator, asked)
    assert all_come(made)
    for one in made.aside.frames:
        sent, got = bytes.fromhex(one.sent), bytes.fromhex(one.got)
        assert layers(sent) == layers(got)
        assert len(sent) == len(got)
        assert sent[22] - got[22] == 1  # the time to live
        assert sent[26:] == got[26:]


@pytest.mark.parametrize(
    "words",
    ["udp", "icmpv6", "udp fragments=3", "udp src=10.9.0.1 dst=10.9.0.2 in srv6 via=2001:2:0:1::9", "udp in gre",
     "tcp flags=S src=10.0.0.1 dst=10.0.0.2 in vxlan"],
)  # fmt: skip
def test_ipv6_too(generator6: EmbeddedGenerator, words: str) -> None:
    made = trial(generator6, frames(words, family=6))
    assert all_come(made)


def test_probes_of_chosen_traffic_tell_the_latency(generator: EmbeddedGenerator) -> None:
    made = trial(generator, frames("udp flows=50; tcp flags=S size=512", probe_rate=1000), duration=0.3)
    assert all_come(made)
    assert made.seen.latency is not None
    assert made.seen.latency.count == pytest.approx(made.offered / 21, rel=0.1)
    assert 0 < made.seen.latency.p50 <= made.seen.latency.p99 <= made.seen.latency.max < 1


def test_tables_follow_each_other_and_the_built_in_frames_stay(generator: EmbeddedGenerator) -> None:
    for words in ("udp flows=5 size=1518", "tcp flags=S flows=9000", "icmp", "udp flows=5 size=1518"):
        assert all_come(trial(generator, frames(words)))
        assert all_come(trial(generator, Frames(4)))


def test_what_is_lost_is_lost(generator: EmbeddedGenerator) -> None:
    """Of two halves one has nowhere to go."""
    made = trial(generator, frames("udp; udp dst=203.0.113.1"))
    assert made.forwarded == pytest.approx(made.offered / 2, abs=1)


# --- What SUTs do to packets ---


@pytest.fixture
def on_sut(testbed: NetnsTestbed) -> Iterator[Any]:
    """Runs commands on the router; what undoes each is run at the end."""
    host = testbed.hops[0].host
    hop = testbed.hops[0]
    names = {"IN": hop.ingress.interface, "OUT": hop.egress.interface, "OUT_PEER": hop.egress.peer_mac}
    undo: list[str] = []

    def run(command: str, undone_by: str = "") -> None:
        undo.append(undone_by.format(**names))
        done = host.run("sh", "-ec", command.format(**names), check=False)
        if "Unknown device type" in done.stderr or "Operation not supported" in done.stderr:
            pytest.skip(f"this kernel cannot do it: {command}")
        assert not done.exit_code, done.stderr

    yield run
    for command in reversed(undo):
        if command:
            host.run("sh", "-ec", command, check=False)


@pytest.mark.parametrize("words", ["udp flows=4 dst=@out", "udp fragments=2 size=200", "udp; tcp flags=SA from=out"])
def test_a_flow_that_keeps_its_order_has_no_packet_overtaken(generator: EmbeddedGenerator, words: str) -> None:
    made = trial(generator, frames(words))
    assert all_come(made)
    assert (made.aside.numbered, made.aside.overtaken) == (made.forwarded, 0)


def test_packets_that_are_overtaken_are_counted(generator: EmbeddedGenerator, on_sut: Any) -> None:
    """Every fourth packet goes first out of a queue that grows."""
    on_sut(
        "nft 'add table ip pdr; add chain ip pdr passing {{ type filter hook forward priority 0; }}; "
        "add rule ip pdr passing numgen inc mod 4 0 meta priority set 0:7'",
        "nft delete table ip pdr",
    )
    on_sut(
        "tc qdisc replace dev {OUT} root handle 1: htb default 1 && "
        "tc class add dev {OUT} parent 1: classid 1:1 htb rate 2mbit && "
        "tc qdisc add dev {OUT} parent 1:1 pfifo_fast",
        "tc qdisc delete dev {OUT} root",
    )
    made = trial(generator, frames("udp flows=3 dst=@out"), load=10e3)
    assert made.aside.numbered == made.forwarded > 0
    assert made.aside.overtaken > 0.2 * made.forwarded


def test_masquerade(generator: EmbeddedGenerator, on_sut: Any) -> None:
    on_sut(
        "nft 'add table ip pdr; add chain ip pdr post {{ type nat hook postrouting priority srcnat; }}; "
        "add rule ip pdr post oifname {OUT} masquerade'",
        "nft delete table ip pdr",
    )
    for words in ("udp dport=53 src=10.0.0.0/16 flows=1000", "icmp flows=20", "udp fragments=2 size=300 flows=40"):
        made = trial(generator, frames(words))
        assert all_come(made), words
        assert made.aside.frames
        sources = {bytes.fromhex(one.got)[26:30] for one in made.aside.frames}
        assert sources == {bytes((10, 211, 1, 1))}
        assert all(layers(bytes.fromhex(one.got)) == layers(bytes.fromhex(one.sent)) for one in made.aside.frames)


def test_destination_nat_of_a_syn(generator: EmbeddedGenerator, on_sut: Any) -> None:
    on_sut(
        "nft 'add table ip pdr; add chain ip pdr pre {{ type nat hook prerouting priority dstnat; }}; "
        "add rule ip pdr pre tcp dport 80 dnat to 198.18.0.77:8080'",
        "nft delete table ip pdr",
    )
    made = trial(generator, frames("tcp flags=S dst=203.0.113.9 dport=80 flows=100"))
    assert all_come(made)
    got = [bytes.fromhex(one.got) for one in made.aside.frames]
    assert {(frame[30:34], frame[36:38]) for frame in got} == {(bytes((198, 18, 0, 77)), (8080).to_bytes(2))}
    assert all(layers(frame) == ["ethernet", "ipv4", "tcp"] for frame in got)


def test_a_tunnel_ends_and_another_begins(generator: EmbeddedGenerator, on_sut: Any) -> None:
    """IPIP in, VXLAN out: what is last in the packet stays last."""
    on_sut(f"ip link add pdrtun type ipip local {SUT_IN} && ip link set pdrtun up", "ip link delete pdrtun")
    on_sut("sysctl -qw net.ipv4.conf.pdrtun.rp_filter=0")
    made = trial(generator, frames(f"udp dst=@out flows=50 in ipip dst={SUT_IN}"))
    assert all_come(made)
    assert {tuple(layers(bytes.fromhex(one.got))) for one in made.aside.frames} == {("ethernet", "ipv4", "udp")}
    on_sut(
        "ip link add pdrvx type vxlan id 7 remote 198.18.0.9 dstport 4789 && ip link set pdrvx up && "
        "ip address add 10.7.0.1/24 dev pdrvx && "
        "ip neighbour add 10.7.0.2 lladdr 02:00:00:00:00:99 dev pdrvx && ip route add 203.0.113.0/24 via 10.7.0.2",
        "ip link delete pdrvx",
    )
    made = trial(generator, frames(f"udp dst=203.0.113.5 flows=50 in ipip dst={SUT_IN}"))
    assert all_come(made)
    inner = ("ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv4", "udp")
    assert {tuple(layers(bytes.fromhex(one.got))) for one in made.aside.frames} == {inner}


def test_gre_and_vxlan_end(generator: EmbeddedGenerator, on_sut: Any) -> None:
    on_sut(f"ip link add pdrgre type gre local {SUT_IN} key 5 && ip link set pdrgre up", "ip link delete pdrgre")
    assert all_come(trial(generator, frames(f"tcp flags=S dst=@out in gre key=5 dst={SUT_IN}")))
    on_sut(
        "ip link add pdrvx address 02:00:00:00:00:02 type vxlan id 7 dstport 4789 && ip link set pdrvx up",
        "ip link delete pdrvx",
    )
    assert all_come(trial(generator, frames(f"icmp dst=@out in vxlan vni=7 dst={SUT_IN}")))


def test_a_vlan_ends_and_another_begins(generator: EmbeddedGenerator, on_sut: Any) -> None:
    on_sut("ip link add link {IN} pdrv7 type vlan id 7 && ip link set pdrv7 up", "ip link delete pdrv7")
    on_sut(
        "ip link add link {OUT} pdrv8 type vlan id 8 && ip link set pdrv8 up && ip address add 10.8.0.1/24 dev pdrv8 "
        "&& ip neighbour add 10.8.0.2 lladdr {OUT_PEER} dev pdrv8 && ip route add 203.0.113.0/24 via 10.8.0.2",
        "ip link delete pdrv8",
    )
    made = trial(generator, frames("udp vlan=7 dst=203.0.113.1"))
    assert all_come(made)
    assert {bytes.fromhex(one.got)[12:16] for one in made.aside.frames} == {bytes.fromhex("81000008")}


def test_a_bridge_by_the_far_stations_address(generator: EmbeddedGenerator, on_sut: Any) -> None:
    on_sut("ip link add pdrbr type bridge && ip link set pdrbr up", "ip link delete pdrbr")
    on_sut("ip link set {IN} master pdrbr && ip link set {OUT} master pdrbr",
           "ip link set {IN} nomaster && ip link set {OUT} nomaster")  # fmt: skip
    made = trial(generator, frames("udp dmac=@out ttl=7"))
    assert all_come(made)
    assert all(one.got == one.sent for one in made.aside.frames)


def test_segments_are_put_on(generator6: EmbeddedGenerator, on_sut: Any) -> None:
    on_sut(
        "ip -6 route add fd00:99::/64 encap seg6 mode encap segs 2001:2:0:1::5,2001:2:0:1::6 dev {OUT}",
        "ip -6 route delete fd00:99::/64",
    )
    made = trial(generator6, frames("udp dst=fd00:99::1 flows=9", family=6))
    assert all_come(made)
    assert {tuple(layers(bytes.fromhex(one.got)))[:3] for one in made.aside.frames} == {("ethernet", "ipv6", "srh")}


def test_a_capture_is_replayed(generator: EmbeddedGenerator, tmp_path: Path) -> None:
    made = trial(generator, frames("udp flows=30 size=120"))
    captured = [bytes.fromhex(one.sent) for one in made.aside.frames]
    file = tmp_path / "some.pcap"
    file.write_bytes(
        struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
        + b"".join(struct.pack("<IIII", 0, 0, len(one), len(one)) + one for one in captured)
    )
    replayed = trial(generator, frames(str(file)))
    assert all_come(replayed)
    assert {len(one.got) // 2 for one in replayed.aside.frames} == {116 + 16}


def test_traffic_comes_from_behind(generator: EmbeddedGenerator) -> None:
    with pytest.raises(UsageError, match="from=out says which"):
        Frames(4, chosen=chosen_traffic(["udp"]), directions=2)
    assert all_come(trial(generator, frames("udp from=out")))

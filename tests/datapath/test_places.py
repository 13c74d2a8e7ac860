"""Planted losses: each lost packet has a place, and the place is the planted one.

One chain of two hops for all of them. What the machine itself loses meanwhile is little beside what was planted, so
tests ask for nearly all of the loss, never for a rate.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from flat_values import changed

from pdrgate.data_paths.catalogue import NETWORKS, Hop
from pdrgate.data_paths.paths.kernel_routing import Routing
from pdrgate.hosts.host import CommandError, Host, netns_host
from pdrgate.observers.accounting import losses
from pdrgate.observers.reading import nested
from pdrgate.observers.watching import watching
from pdrgate.results.losses import LossResult
from pdrgate.testbeds.drop_watch import NamespaceDrops, inode
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator

pytestmark = pytest.mark.datapath

LOW, DURATION = 20e3, 0.1
FLAT_OUT = 5e6
"""More than any engine can send, and what the SUT forwards."""
PORT = 0x9000
"""A UDP port that the generator may send to, and tells its trials apart by."""
FEW = 50
"""Packets that the machine may lose besides, of some thousand."""

BPF = """\
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
char _license[] SEC("license") = "GPL";
SEC("xdp") int drops(struct xdp_md *ctx) { return XDP_DROP; }
/* What is not lost comes after it, so that nothing is under way when a trial has ended. */
unsigned int seen = 0;
#define OF(many) (seen++ % (many))
SEC("xdp/aborts") int aborts(struct xdp_md *ctx) { return OF(2) ? XDP_PASS : XDP_ABORTED; }
SEC("xdp/invalid") int invalid(struct xdp_md *ctx) { return OF(2) ? XDP_PASS : 77; }
SEC("xdp/nowhere") int nowhere(struct xdp_md *ctx) { return OF(2) ? XDP_PASS : bpf_redirect(99999, 0); }
SEC("xdp/back") int back(struct xdp_md *ctx) { return OF(2) ? XDP_PASS : bpf_redirect(ctx->ingress_ifindex, 0); }
SEC("xdp/unsent") int unsent(struct xdp_md *ctx) { return OF(2) ? XDP_PASS : bpf_redirect(4242, 0); }
SEC("xdp/some") int some(struct xdp_md *ctx)
{
	unsigned int at = OF(4);

	return at == 0 ? XDP_ABORTED : at == 1 ? XDP_DROP : XDP_PASS;
}
SEC("tc") int shot(struct __sk_buff *skb) { return 2; }
/* The last hop that an IPv6 packet may make; there is no checksum over it. */
SEC("tc/last") int last_hop(struct __sk_buff *skb)
{
	char one = 1;

	bpf_skb_store_bytes(skb, 14 + 7, &one, 1, 0);
	return 0;
}
"""

DEAF = """\
import socket, sys
family = socket.AF_INET6 if sys.argv[1] == "6" else socket.AF_INET
deaf = socket.socket(family, socket.SOCK_DGRAM)
deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
deaf.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", int(sys.argv[2])))
print("up", flush=True)
sys.stdin.read()
"""

SENDS = """\
import socket
for _ in range(100):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", ("127.0.0.1", 9))
"""


@dataclasses.dataclass
class Rig:
    testbed: NetnsTestbed
    opened: tuple[int, Generator] | None = None
    """The generator of an IP version: a port takes one at a time."""

    @property
    def first(self) -> Hop:
        return self.testbed.hops[0]

    @property
    def second(self) -> Hop:
        return self.testbed.hops[1]

    def generator(self, family: Literal[4, 6]) -> Generator:
        if self.opened is None or self.opened[0] != family:
            self.close()
            self.opened = (family, self.testbed.generator(family))
            self.lose(family)  # neighbours and caches are warm
        return self.opened[1]

    def close(self) -> None:
        if self.opened is not None:
            self.opened[1].close()
            self.opened = None

    def lose(self, family: Literal[4, 6] = 6, load: float = LOW, **more: Any) -> LossResult:
        """What became of one trial's packets."""
        generator = self.generator(family)
        with watching(self.testbed.observers()) as watch:
            trial = generator.trial(load, DURATION, Frames(family, **more))
        seen = watch.observation
        return losses(changed(trial, counters_before=nested(seen.before), counters_after=nested(seen.after)))


@pytest.fixture(scope="module")
def rig(make_testbed: Callable[..., NetnsTestbed]) -> Iterator[Rig]:
    testbed = make_testbed(hops=2)
    paths = [Routing(6), Routing(4)]
    for path in paths:
        path.apply(testbed.hops)
    testbed.set_buffer(4096)
    testbed.pin("1 cpu")
    rig = Rig(testbed)
    yield rig
    rig.close()


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The object file of `BPF`."""
    folder = tmp_path_factory.mktemp("bpf")
    (folder / "plant.c").write_text(BPF)
    multiarch = subprocess.run(("gcc", "-print-multiarch"), capture_output=True, text=True, check=True).stdout.strip()
    command = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{multiarch}", "-c", "plant.c", "-o", "plant.o")
    subprocess.run(command, cwd=folder, check=True)
    return folder / "plant.o"


def asked(host: Host, *argv: str) -> None:
    """Run a command; where the kernel has not what it asks for, there is nothing to test."""
    try:
        host.run(*argv)
    except CommandError as error:
        pytest.skip(f"this kernel has no such thing: {error}")


@contextlib.contextmanager
def sysctl(host: Host, name: str, value: str) -> Iterator[None]:
    path = "/proc/sys/" + name
    before = host.read(path)
    host.write(path, value)
    yield
    host.write(path, before)


@contextlib.contextmanager
def removed_route(host: Host, family: int, network: object) -> Iterator[None]:
    (found,) = host.run_json("ip", "-j", f"-{family}", "route", "show", str(network))
    host.run("ip", f"-{family}", "route", "delete", str(network))
    yield
    host.run("ip", f"-{family}", "route", "add", str(network), "via", found["gateway"], "dev", found["dev"])


@contextlib.contextmanager
def rules(host: Host, rule: str) -> Iterator[None]:
    """A rule of nftables for what is forwarded."""
    asked(host, "nft", "add table ip6 planted")
    try:
        asked(host, "nft", "add chain ip6 planted forwarded { type filter hook forward priority 0; }")
        asked(host, "nft", f"add rule ip6 planted forwarded {rule}")
        yield
    finally:
        host.run("nft", "delete table ip6 planted")


def check(account: LossResult, words: str, share: float = 0.5) -> None:
    """At least a share of what was offered is lost, nearly all of it at that place, hardly anything unexplained."""
    assert account.offered >= 10 * FEW and account.lost >= share * account.offered, account.sentence()
    assert account.most is not None, account.sentence()
    assert words in account.most.where, account.sentence()
    assert account.lost - account.most.packets <= FEW + account.lost // 100, account.sentence()
    assert abs(account.unexplained) <= FEW, account.sentence()


def test_a_sound_trial_loses_nothing_anywhere(rig: Rig) -> None:
    account = rig.lose()
    assert account.lost <= FEW, account.sentence()
    assert abs(account.unexplained) <= FEW, account.sentence()


def test_a_small_backlog(rig: Rig) -> None:
    rig.testbed.set_buffer(4)
    try:
        account = rig.lose(load=FLAT_OUT)
    finally:
        rig.testbed.set_buffer(4096)
    check(account, f"in the backlog of CPU {rig.testbed.sut_cpus[0]}", share=0.01)
    assert account.most is not None
    assert account.most.hint == "netdev_max_backlog"


@pytest.mark.parametrize("family", [4, 6])
def test_a_missing_route(rig: Rig, family: Literal[4, 6]) -> None:
    with removed_route(rig.second.host, family, NETWORKS[family].forward):
        account = rig.lose(family)
    check(account, "without a route at hop2")


def test_the_limit_of_a_qdisc(rig: Rig) -> None:
    qdisc = ("dev", rig.second.egress.interface, "root")
    asked(rig.second.host, "tc", "qdisc", "add", *qdisc, "tbf", "rate", "1mbit", "burst", "3000", "limit", "6000")
    try:
        account = rig.lose()
    finally:
        rig.second.host.run("tc", "qdisc", "delete", *qdisc)
    check(account, f"in the qdisc tbf of {rig.second.egress.interface} at hop2")


def test_a_policer(rig: Rig) -> None:
    host, port = rig.second.host, rig.second.ingress.interface
    asked(host, "tc", "qdisc", "add", "dev", port, "clsact")
    try:
        asked(
            host, "tc", "filter", "add", "dev", port, "ingress", "u32", "match", "u32", "0", "0",
            "action", "police", "rate", "1mbit", "burst", "10k", "drop",
        )  # fmt: skip
        account = rig.lose()
    finally:
        host.run("tc", "qdisc", "delete", "dev", port, "clsact")
    check(account, f"by the tc program of {port} at hop2")


def test_a_tc_program(rig: Rig, programs: Path) -> None:
    host, port = rig.second.host, rig.second.ingress.interface
    host.run("tc", "qdisc", "add", "dev", port, "clsact")
    try:
        host.run("tc", "filter", "add", "dev", port, "ingress", "bpf", "da", "obj", str(programs), "sec", "tc")
        account = rig.lose()
    finally:
        host.run("tc", "qdisc", "delete", "dev", port, "clsact")
    check(account, f"by the tc program of {port} at hop2")


def test_an_expired_hop_limit(rig: Rig, programs: Path) -> None:
    host, port = rig.first.host, rig.first.ingress.interface
    host.run("tc", "qdisc", "add", "dev", port, "clsact")
    try:
        host.run("tc", "filter", "add", "dev", port, "ingress", "bpf", "da", "obj", str(programs), "sec", "tc/last")
        account = rig.lose()
    finally:
        host.run("tc", "qdisc", "delete", "dev", port, "clsact")
    check(account, "with an expired hop limit or a bad header at hop1")


def test_an_xdp_program_of_the_driver(rig: Rig, programs: Path) -> None:
    host, port = rig.second.host, rig.second.ingress.interface
    host.run("ip", "link", "set", port, "xdpdrv", "obj", str(programs), "sec", "xdp")
    try:
        account = rig.lose()
    finally:
        host.run("ip", "link", "set", port, "xdpdrv", "off")
    check(account, f"by the XDP program of {port} at hop2")


def test_the_reverse_path_filter(rig: Rig) -> None:
    host, port = rig.second.host, rig.second.ingress.interface
    with sysctl(host, f"net/ipv4/conf/{port}/rp_filter", "1"), removed_route(host, 4, NETWORKS[4].reverse):
        account = rig.lose(4)
    check(account, "at the reverse path filter at hop2")


def test_a_small_mtu(rig: Rig) -> None:
    host, port = rig.second.host, rig.second.egress.interface
    host.run("ip", "link", "set", port, "mtu", "1280")
    try:
        account = rig.lose(size=1518)
    finally:
        host.run("ip", "link", "set", port, "mtu", "1500")
    check(account, "too big for the next link at hop2")


@pytest.mark.parametrize("family", [4, 6])
def test_a_small_socket_buffer(rig: Rig, family: Literal[4, 6]) -> None:
    host, network = rig.second.host, str(NETWORKS[family].forward)
    local = (f"-{family}", "route", "add", "local", network, "dev", "lo", "table", "local")
    host.run("ip", "link", "set", "lo", "up")
    host.run("ip", *local)
    namespace = host.name.removeprefix("netns:")
    command = ("ip", "netns", "exec", namespace, sys.executable, "-c", DEAF, str(family), str(PORT))
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as deaf:
            assert deaf.stdout is not None and deaf.stdout.readline() == b"up\n"
            rig.generator(family)._tags = iter((PORT,))  # type: ignore[attr-defined]
            account = rig.lose(family)
            deaf.communicate()
    finally:
        host.run("ip", f"-{family}", "route", "delete", *local[3:])
    check(account, "in full socket buffers at hop2")


def test_a_full_table_of_connections(rig: Rig) -> None:
    tracked = Path("/proc/sys/net/netfilter/nf_conntrack_count")
    if not tracked.exists() or int(tracked.read_text()):
        pytest.skip("this kernel tracks no connections, or the machine's own, which must not suffer")
    most = tracked.with_name("nf_conntrack_max")
    before = most.read_text()
    with rules(rig.second.host, "ct state new counter"):
        most.write_text("4")  # one for all namespaces
        try:
            account = rig.lose(flows=4096)
        finally:
            most.write_text(before)
    check(account, "in the connection table at hop2")


@pytest.mark.parametrize("rule", ["drop", "limit rate over 1000/second drop"], ids=["rule", "policer"])
def test_a_rule_of_nftables(rig: Rig, rule: str) -> None:
    """Nothing counts it but the reasons for drops."""
    with rules(rig.second.host, rule):
        account = rig.lose()
    check(account, "by a rule of netfilter at hop2")


def test_a_generic_xdp_program(rig: Rig, programs: Path) -> None:
    host, port = rig.second.host, rig.second.ingress.interface
    host.run("ip", "link", "set", port, "xdpgeneric", "obj", str(programs), "sec", "xdp")
    try:
        account = rig.lose()
    finally:
        host.run("ip", "link", "set", port, "xdpgeneric", "off")
    check(account, "by the XDP program at hop2")


def test_what_the_generator_has_received_is_not_counted(rig: Rig) -> None:
    """It drops all of that: to count it would cost each packet that is forwarded."""
    rig.lose()
    reasons = rig.testbed._drops._reasons
    assert isinstance(reasons, NamespaceDrops)
    before = sum(reasons.read().values())
    account = rig.lose()
    assert account.lost <= FEW, account.sentence()
    assert sum(reasons.read().values()) - before <= FEW


@contextlib.contextmanager
def xdp(host: Host, port: str, mode: str, programs: Path, section: str) -> Iterator[None]:
    host.run("ip", "link", "set", port, mode, "obj", str(programs), "sec", section)
    try:
        yield
    finally:
        host.run("ip", "link", "set", port, mode, "off")


@pytest.mark.parametrize("mode", ["xdpdrv", "xdpgeneric"])
@pytest.mark.parametrize(
    ("program", "words", "hint"),
    [
        ("aborts", "by an XDP program that aborted", "XDP_ABORTED"),
        ("invalid", "by an XDP program that returned no valid action", "xdp:xdp_exception"),
        ("nowhere", "by a failed redirect of XDP", "xdp:xdp_redirect_err"),
    ],
)
def test_an_xdp_program_that_is_at_fault(
    rig: Rig, programs: Path, mode: str, program: str, words: str, hint: str
) -> None:
    """Driver, port and the kernel's reasons count its packets too: they are one place's."""
    host, port = rig.second.host, rig.second.ingress.interface
    with xdp(host, port, mode, programs, f"xdp/{program}"):
        account = rig.lose()
    check(account, f"{words} on {port} at hop2", share=0.45)
    assert account.most is not None and account.most.hint == hint, account.sentence()


def test_what_xdp_sends_back_is_lost_where_nobody_wants_it(rig: Rig, programs: Path) -> None:
    with xdp(rig.second.host, rig.second.ingress.interface, "xdpdrv", programs, "xdp/back"):
        account = rig.lose()
    check(account, "for another MAC address at hop1", share=0.45)


def test_what_xdp_redirects_to_a_port_that_cannot_send_it(rig: Rig, programs: Path) -> None:
    """A veth hands its peer no frame of XDP that is too long for that one."""
    host, port = rig.second.host, rig.second.ingress.interface
    host.run("ip", "link", "add", "p0", "index", "4242", "type", "veth", "peer", "name", "p1", "mtu", "68")
    try:
        host.run("ethtool", "-K", "p1", "gro", "on")  # it polls: else it takes none at all
        for one in ("p0", "p1"):
            host.run("ip", "link", "set", one, "up")
        with xdp(host, port, "xdpdrv", programs, "xdp/unsent"):
            account = rig.lose(size=200)
    finally:
        host.run("ip", "link", "delete", "p0")
    check(account, "redirected by XDP and not sent at hop2", share=0.45)  # p0 is no port of the SUT
    assert account.most is not None and account.most.hint == "xdp:xdp_devmap_xmit", account.sentence()


@pytest.mark.parametrize(("mode", "whose"), [("xdpdrv", " of {}"), ("xdpgeneric", "")])
def test_an_xdp_program_that_gives_up_some_packets_and_drops_others(
    rig: Rig, programs: Path, mode: str, whose: str
) -> None:
    host, port = rig.second.host, rig.second.ingress.interface
    with xdp(host, port, mode, programs, "xdp/some"):
        account = rig.lose()
    aborted = account.at(f"by an XDP program that aborted on {port} at hop2")
    dropped = account.at(f"by the XDP program{whose.format(port)} at hop2")
    assert aborted > account.offered / 5 and abs(aborted - dropped) <= FEW, account.sentence()
    assert abs(account.lost - aborted - dropped) <= FEW, account.sentence()
    assert abs(account.unexplained) <= FEW, account.sentence()


def test_what_xdp_gives_up_in_other_namespaces_is_not_the_suts(rig: Rig, programs: Path) -> None:
    rig.lose()  # from now on it is counted
    reasons = rig.testbed._drops._reasons
    assert isinstance(reasons, NamespaceDrops)
    name = f"pdrgate-others-{os.getpid()}"
    subprocess.run(("ip", "netns", "add", name), check=True)
    try:
        with netns_host(name) as others:
            others.run("ip", "link", "set", "lo", "up")
            with xdp(others, "lo", "xdpgeneric", programs, "xdp/aborts"), watching(rig.testbed.observers()) as watch:
                others.run(sys.executable, "-c", SENDS)
        seen = [drop for drop in reasons._xdp.read() if drop.netns == inode(name)]
    finally:
        subprocess.run(("ip", "netns", "delete", name), check=True)
    assert {(drop.port, drop.xdp_name) for drop in seen} == {("lo", "XDP_ABORTED")}
    assert not [str(counter) for counter in watch.observation.after if counter.name.startswith("XDP_ABORTED lo")]


def test_a_neighbour_that_nobody_is(rig: Rig) -> None:
    host, port = rig.second.host, rig.second.egress.interface
    (found,) = host.run_json("ip", "-j", "-6", "route", "show", str(NETWORKS[6].forward))
    route = ("ip", "-6", "route", "replace", str(NETWORKS[6].forward), "dev", port)
    # Those that still wait for the neighbour when the trial is over are no more than this.
    host.run("sysctl", "-q", "-w", f"net.ipv6.neigh.{port}.unres_qlen=3")
    host.run(*route, "via", "fd00:dead::1", "onlink")
    try:
        account = rig.lose()
    finally:
        host.run(*route, "via", found["gateway"])
    check(account, "without a neighbour at hop2")

"""What changes of a path's set-up cost here, and what guests estimate: programs that hand packets to namespaces.

    sudo .venv/bin/python tests/bench/fidelity/paths.py [--kernel PACKAGE] [--cpu NAME] [--only WORD…]

Each set-up is a network namespace between two veth pairs, and all stand at once. A program writes packets and hands
them to the namespace, which handles each before the next run. So a run takes what its packets take, on one CPU.
Set-ups take turns here in an order drawn by lot. A turn counts by its least burst. A set-up counts by its least turn,
for where others use the machine turns are of two kinds, and half again as slow. The median is printed, too, and half of
what lies between the quartiles. A metered guest has the same set-ups. Prices of events and a model of a CPU say what
that comes to. Choose a kernel for the guest that is like this machine's, and a command line. Network namespaces called
path-NUMBER are made and deleted.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hardware import on_hardware
from model import Kernel, in_model
from programs import Program
from scipy.stats import spearmanr
from this_cpu import caches
from timing.timed_trace import Model, cpu_named

from pdrgate.guests.furnishing import Furnished
from pdrgate.guests.metering.memory.memory_meter import TRACED_STEPS
from pdrgate.hosts.host import Host, ShellHost
from pdrgate.measurands.counted.estimated_cycles import cycle_weights

RUNNER = Path(__file__).parent / "repeat.c"
_PACKETS = 4
"""Packets of a run."""
_FIRST_PORT = 1000
_PROGRAMS = ("ip", "nft", "tc", "bridge", "ethtool", "seq", "sh")
_WORDS = ("veth", "bridge", "vxlan", "nft", "tc")
"""What a guest's kernel needs modules for."""
_RULES = (
    "for one in $(seq {}); do echo add rule ip gate passing udp dport $one udp sport $one drop; done | sut nft -f -"
)
_CHAIN = "sut nft 'add table ip gate; add chain ip gate passing { type filter hook forward priority filter; }'"
_GATEWAY = "203.0.113.2"
_STAND = f"""\
set -e
NS=path-$1
sut() {{ ip netns exec $NS "$@"; }}
gateway() {{
    ip -n $NS address add $2 dev $1
    ip -n $NS neighbour add $3 lladdr 02:00:00:00:00:99 dev $1
    ip -n $NS route replace default via $3 dev $1
}}
ip netns add $NS
sut sh -c 'cd /proc/sys/net && echo 1 >ipv6/conf/all/disable_ipv6 && cd ipv4 && echo 1 >ip_forward
for one in conf/*/rp_filter conf/*/send_redirects; do echo 0 >$one; done'
ip link add feed$1 index $2 type veth peer name in netns $NS address 02:00:00:00:00:01
ip link add sink$1 type veth peer name out netns $NS
for one in feed$1 sink$1; do echo 1 >/proc/sys/net/ipv6/conf/$one/disable_ipv6; ip link set $one up; done
sut sh -c 'for one in in out; do echo 0 >/proc/sys/net/ipv4/conf/$one/rp_filter; ip link set $one up; done'
ip -n $NS address add 192.0.2.1/24 dev in
gateway out 203.0.113.1/24 {_GATEWAY}
"""
_ROUTED, _MANY, _SEGMENTS = "IPv4 routing", "10 000 destinations, one route", "segments of TCP, GRO"


@dataclass(frozen=True)
class SetUp:
    """What packets pass, and what that is a change of."""

    name: str
    steps: Sequence[str] = ()
    """A script for the namespace $NS, in which `sut` runs commands."""
    base: str = _ROUTED
    kind: str = "UDP"
    runs: int = 512
    """Runs that a memory trial counts."""
    slow_stores: bool = False
    """Whether loads must wait for stores before them, which is no matter of the namespace (SSBD)."""

    def program(self, number: int) -> Program:
        """What hands packets to it."""
        defines: dict[str, str | int] = {"PORT": _FIRST_PORT + number, "PACKETS": _PACKETS}
        defines |= {"UDP": {}, "many": {"DESTINATIONS": 10_000}, "TCP": {"SEGMENTS": 1, "PACKETS": 8}}[self.kind]
        length = 1514 if self.kind == "TCP" else 64
        return Program("path", self.name, "packets", defines, length, runs=self.runs, steps=TRACED_STEPS)

    @property
    def packets(self) -> int:
        """Packets of a run."""
        return int(self.program(0).defines["PACKETS"])


_BRIDGE = (
    "ip -n $NS address flush dev out",
    "ip -n $NS link add br0 up type bridge",
    "ip -n $NS link set out master br0",
)
_TO_SINK = "sut bridge fdb add 02:00:00:00:00:99 dev out master static"
SET_UPS = (
    SetUp(_ROUTED),
    SetUp(_MANY, kind="many"),
    SetUp(_SEGMENTS, ("ethtool -K feed$1 tso off", "sut ethtool -K in gro on"), kind="TCP"),
    SetUp("rp_filter", ("sut sh -c 'echo 1 >/proc/sys/net/ipv4/conf/in/rp_filter'",)),
    SetUp("100 rules of nftables", (_CHAIN, _RULES.format(100))),
    SetUp("1000 rules of nftables", (_CHAIN, _RULES.format(1000)), runs=64),
    SetUp("a set of 10 000 addresses", (
        _CHAIN, "sut nft 'add set ip gate bad { type ipv4_addr; }'",
        "for net in $(seq 40); do for one in $(seq 250); do echo add element ip gate bad { 10.9.$net.$one }; done; "
        "done | sut nft -f -", "sut nft add rule ip gate passing ip saddr @bad drop",
    )),
    SetUp("connection tracking", (_CHAIN, "sut nft add rule ip gate passing ct state invalid drop")),
    SetUp("NAT", (
        "sut nft 'add table ip gate; add chain ip gate leaving { type nat hook postrouting priority srcnat; }'",
        "sut nft add rule ip gate leaving oifname out masquerade",
    )),
    SetUp("100 policy rules", (
        "for one in $(seq 100); do echo rule add pref $one from 172.16.$one.0/24 table 7; done | ip -n $NS -batch -",
    )),
    SetUp("10 000 routes", (
        "for net in $(seq 0 39); do for one in $(seq 0 249); do at=$((net * 250 + one)); "
        f"echo route add 10.$((at / 256)).$((at % 256)).0/24 via {_GATEWAY} dev out; done; done | ip -n $NS -batch -",
    ), base=_MANY, kind="many"),
    SetUp("100 filters of tc", (
        "sut tc qdisc add dev in clsact",
        "for one in $(seq 100); do echo filter add dev in ingress prio 1 protocol ip u32 match ip dport $one 0xffff "
        "flowid 1:1; done | sut tc -batch -",
    )),
    SetUp("a class of HTB", (
        "sut tc qdisc add dev out root handle 1: htb default 1",
        "sut tc class add dev out parent 1: classid 1:1 htb rate 100gbit quantum 60000",
    )),
    SetUp("a bridge", (*_BRIDGE, _TO_SINK, f"gateway br0 203.0.113.1/24 {_GATEWAY}")),
    SetUp("a bridge behind a veth", (
        *_BRIDGE, _TO_SINK, "ip -n $NS link add near up type veth peer name far",
        "ip -n $NS link set far master br0 up", f"gateway near 203.0.113.1/24 {_GATEWAY}",
    )),
    SetUp("a VXLAN", (
        f"ip -n $NS link add vx up type vxlan id 7 remote {_GATEWAY} dstport 4789 dev out",
        "gateway vx 198.51.100.1/24 198.51.100.2",
    )),
    SetUp("GRO off", base=_SEGMENTS, kind="TCP"),
    SetUp("loads wait for stores (SSBD)", slow_stores=True),
)  # fmt: skip
"""All; those without steps of their own are what others are a change of."""


@dataclass(frozen=True)
class Cost:
    """What a packet takes, in nanoseconds."""

    here: float
    """The least of all turns on this machine."""
    usual: float
    """The median of all turns."""
    scatter: float
    """Half of what lies between the quartiles of the turns."""
    priced: float
    """By prices of events; not a number where a guest cannot have the set-up, as the next."""
    modelled: float
    """By the model of a CPU."""


def costs(chosen: Sequence[SetUp], asked: argparse.Namespace) -> dict[str, Cost]:
    """What a packet of each takes here, and by both estimates."""
    programs = [one.program(number) for number, one in enumerate(chosen)]

    def prepare(host: Host) -> None:
        for number, one in enumerate(chosen):
            host.run(
                "sh", "-c", "\n".join((_STAND, *one.steps)), "sh", f"{number}", f"{_FIRST_PORT + number}", timeout=300.0
            )

    with tempfile.TemporaryDirectory() as place, ShellHost("this machine", ("sh",)) as host:
        folder = Path(place)
        runner, slow = folder / "repeat", folder / "repeat-slow-stores"
        for binary, more in ((runner, ()), (slow, ("-DSLOW_STORES",))):
            subprocess.run(("gcc", "-O2", "-Wall", "-static", "-s", *more, str(RUNNER), "-o", str(binary)), check=True)
        slowed = {program.title: slow for program, one in zip(programs, chosen, strict=True) if one.slow_stores}
        try:
            prepare(host)
            here = on_hardware(programs, folder, runner, asked.rounds, slowed)
            for number, one in enumerate(chosen):
                (link,) = host.run_json("ip", "-j", "-s", "link", "show", f"sink{number}")
                print(f"{one.name}: {link['stats64']['rx']['packets']} frames arrived here")
        finally:
            for number in range(len(chosen)):
                host.run("ip", "netns", "delete", f"path-{number}", check=False)
        in_guest = [one for one in programs if one.title not in slowed]
        kernel = Kernel.asked(asked)

        def furnish(guest: Host) -> None:
            Furnished(guest, kernel.build).add(_PROGRAMS, _WORDS)
            prepare(guest)

        counted = in_model(in_guest, folder, runner, kernel, caches(), folder, furnish)
        model, cpu, weights = Model(folder), cpu_named(asked.cpu), cycle_weights()
        found = {}
        for one, program in zip(chosen, programs, strict=True):
            taken, seen = here[program.title], counted.get(program.title)
            lower, _, upper = statistics.quantiles(taken.turns, n=4)
            estimates = (math.nan, math.nan)
            if seen is not None:
                estimates = (seen.events.of(weights.cycles).total, model.timed(cpu, seen.executed).cycles)
            cycles = (taken.cycles, statistics.median(taken.turns), (upper - lower) / 2, *estimates)
            found[one.name] = Cost(*(each * taken.nanoseconds / one.packets for each in cycles))
        return found


def main() -> None:
    """Measure, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    Kernel.add_options(parser)
    parser.add_argument("--rounds", type=int, default=21, help="turns of each set-up on this machine's CPU")
    parser.add_argument("--cpu", default="intel-6-207", help="whose model is taken; prices are the gate's")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="changes that have one of these words in their names")
    asked = parser.parse_args()
    bases = {one.base for one in SET_UPS}
    changes = [one for one in SET_UPS if one.name not in bases]
    changes = [one for one in changes if not asked.only or any(word in one.name for word in asked.only)]
    bases = {one.base for one in changes}
    found = costs([*(one for one in SET_UPS if one.name in bases), *changes], asked)
    print("\n| set-up | least, ns a packet | median | prices of events | model of a CPU |\n|---|---|---|---|---|")
    for name, one in found.items():
        print(
            f"| {name} | {one.here:.0f} | {one.usual:.0f} ± {one.scatter:.0f} | {one.priced:.0f} | {one.modelled:.0f} |"
        )
    print("\n| change | here | prices of events | error | model of a CPU | error |\n|---|---|---|---|---|---|")
    for one in changes:
        before, after = found[one.base], found[one.name]
        print(
            f"| {one.name} | {after.here / before.here - 1:+.1%} | {after.priced / before.priced - 1:+.1%} | "
            f"{_off(before, after, 'priced'):+.0%} | {after.modelled / before.modelled - 1:+.1%} | "
            f"{_off(before, after, 'modelled'):+.0%} |"
        )
    for name in ("priced", "modelled"):
        pairs = [(found[one.base], found[one.name]) for one in changes if not math.isnan(found[one.name].priced)]
        real = [after.here - before.here for before, after in pairs]
        told = [getattr(after, name) - getattr(before, name) for before, after in pairs]
        of_change = statistics.median(abs(_off(before, after, name)) for before, after in pairs)
        of_added = statistics.median(abs(one / other - 1) for one, other in zip(told, real, strict=True))
        print(
            f"{name}: {len(pairs)} changes; rank correlation of what they add {spearmanr(told, real).statistic:.3f}; "
            f"median error of a change {of_change:.0%}, of what it adds {of_added:.0%}"
        )


def _off(before: Cost, after: Cost, name: str) -> float:
    """How much an estimate's ratio of two set-ups is off the measured one, relative."""
    return getattr(after, name) / getattr(before, name) / (after.here / before.here) - 1.0


if __name__ == "__main__":
    main()

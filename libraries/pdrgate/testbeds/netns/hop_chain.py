"""The namespaces of a run, and the veth pairs between them: TG - hop 1 - … - hop N - back to the TG."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Sequence

from pdrgate.data_paths.catalogue import Hop, Port, Station
from pdrgate.data_paths.contract import directions
from pdrgate.data_paths.steering import CpuMapSteering
from pdrgate.hosts.cpus import CpuPlan
from pdrgate.hosts.host import Host, ShellHost, local_host, netns_host
from pdrgate.knobs import KnobSet, offloads, sysctl
from pdrgate.observers.namespace_counters import NamespaceCounters
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.safety.journal import NAMESPACE_PREFIX, Journal
from pdrgate.traffic.frames import Path
from pdrgate.values.errors import PdrGateError, TestbedError

_TG_PORTS = ("t0", "t1")
SUT_PORTS = ("in0", "out0")
"""The ports of each hop, in the order of forward traffic."""
_XMIT_ERRORS = "_xdp_xmit_errors"
"""Suffix of veth's counters of frames that the peer's ring had no room for."""


class HopChain:
    """Namespaces and links from `make` to `close`; the links carry packets after `up`.

    Args:
        hops: routers in a row, 1 to 8.
        cpus: who gets which CPU; the links have a queue for each of the SUT's.
        steerings: those of native XDP at the chain's two ends.
        journal: where namespaces are noted for the case that this process is killed.
    """

    def __init__(
        self, hops: int, cpus: CpuPlan, steerings: tuple[CpuMapSteering, CpuMapSteering], journal: Journal
    ) -> None:
        self._cpus = cpus
        self._steerings = steerings
        self._journal = journal
        self._local = local_host()
        self._made: list[str] = []
        run = secrets.token_hex(3)
        self.tg = f"{NAMESPACE_PREFIX}-{run}-tg"
        """The generator's namespace."""
        self.suts = tuple(f"{NAMESPACE_PREFIX}-{run}-sut{number}" for number in range(1, hops + 1))
        """The namespaces of the hops, in the order of forward traffic."""
        self.nodes = ("tg", *(f"hop{number}" for number in range(1, hops + 1)))
        """Names of the namespaces in counters, the generator's first."""
        self.hops: tuple[Hop, ...] = ()
        """The routers, in the order of forward traffic."""
        self.knobs = KnobSet()
        """Settings inside the namespaces, which end with them."""
        self._tg: ShellHost | None = None
        self._counters: dict[str, NamespaceCounters] = {}
        """Counters of each namespace, by node."""

    def make(self) -> None:
        """Make namespaces and links. Raises TestbedError; what was made is then removed by `close`."""
        for name in (self.tg, *self.suts):
            self._journal.namespace(name)
            self._made.append(name)  # before: an interruption may come when it is just made
            self._local.run("ip", "netns", "add", name)
        for node, name in zip(self.nodes, (self.tg, *self.suts), strict=True):
            self._counters[node] = NamespaceCounters(name)
        self._tg = netns_host(self.tg)
        hosts = [netns_host(name) for name in self.suts]
        for host in (self._tg, *hosts):
            # No address of its own, no router solicitation, no listener report: only test packets on these links.
            self.knobs.apply(host, sysctl("net.ipv6.conf.default.disable_ipv6", 1), missing="skip")
        macs = [f"02:70:64:72:00:{number:02x}" for number in range(2 * len(hosts) + 2)]
        queues = ("numrxqueues", str(len(self._cpus.sut)), "numtxqueues", str(len(self._cpus.sut)))
        ends = self._ends(self._tg, hosts)
        for at in range(0, len(ends), 2):
            (near, one), (far, other) = ends[at], ends[at + 1]
            self._local.run(
                "ip", "link", "add", one, "netns", _namespace(near), "address", macs[at], *queues,
                "type", "veth", "peer", "name", other, "netns", _namespace(far), "address", macs[at + 1], *queues,
            )  # fmt: skip
        self.hops = tuple(self._hop(host, number, macs) for number, host in enumerate(hosts))
        for hop in self.hops:
            for port in hop.ports:
                self.knobs.apply(hop.host, offloads(port.interface, {"gro": True, "tso": False}))

    def _hop(self, host: Host, number: int, macs: list[str]) -> Hop:
        assert self._tg is not None
        first, last = number == 0, number == len(self.suts) - 1
        before, into, out, after = macs[2 * number : 2 * number + 4]
        station = Station(self._tg, Port(_TG_PORTS[0], before, into), self._cpus.generator) if first else None
        return Hop(
            host,
            Port(SUT_PORTS[0], into, before, self._steerings[0] if first else None),
            Port(SUT_PORTS[1], out, after, self._steerings[1] if last else None),
            cpus=self._cpus.sut,
            station=station,
        )

    @staticmethod
    def _ends(tg: Host, hosts: Sequence[Host]) -> list[tuple[Host, str]]:
        """The ends of the links in the order of forward traffic: each two are one link."""
        return [(tg, _TG_PORTS[0]), *((host, end) for host in hosts for end in SUT_PORTS), (tg, _TG_PORTS[1])]

    def up(self) -> None:
        """Set the links up."""
        assert self._tg is not None
        for host, interface in self._ends(self._tg, [hop.host for hop in self.hops]):
            host.run("ip", "link", "set", interface, "up")

    def paths(self, family: int) -> tuple[Path, Path]:
        """The two directions of test traffic of an IP version, for the generator."""
        return directions(family, _TG_PORTS, self.hops[0].ingress, self.hops[-1].egress, len(self.hops))

    def counters(self) -> dict[Counter, int]:
        """The counters of this machine's CPUs, of interfaces and protocols by hop, and of wires.

        The generator's ports have only what they dropped. A wire has what its sender could not hand over.
        """
        ports = dict(zip(self.nodes, (_TG_PORTS, *(SUT_PORTS for _ in self.hops)), strict=True))
        asked = {node: self._counters[node].begin(interfaces) for node, interfaces in ports.items()}
        found: dict[Counter, int] = {}
        for node, reading in asked.items():
            for counter, value in reading.result().items():
                if node != "tg" or counter.place.of_port:
                    place = counter.place
                    found[Counter(place if place.of_machine else place.of(node), counter.name)] = value
        return found | self._wires(found)

    def _wires(self, counters: Reading) -> dict[Counter, int]:
        """Packets that the peer of each receiving port could not hand over: skbs, and frames of XDP
        (`veth_get_stats64`)."""
        ends = [Place("interface", _TG_PORTS[0]).of("tg")]
        for node in self.nodes[1:]:
            ends += (Place("interface", port).of(node) for port in SUT_PORTS)
        ends.append(Place("interface", _TG_PORTS[1]).of("tg"))
        errors: dict[Place, int] = defaultdict(int)
        for counter, value in counters.items():
            if counter.name.endswith(_XMIT_ERRORS):
                errors[counter.place] += value
        found: dict[Counter, int] = {}
        for at, receiver in enumerate(ends):
            sender = ends[at ^ 1]
            frames = errors[Place("driver", sender.name).of(sender.node)]
            wire = Place("wire", receiver.name).of(receiver.node)
            found[Counter(wire, "frames")] = frames
            found[Counter(wire, "skbs")] = counters[Counter(sender, "tx_dropped")] - frames
        return found

    def close(self) -> None:
        """Remove the namespaces. Calling it twice is harmless. Raises TestbedError when one stays; the next call tries
        again."""
        failures: list[str] = []
        for one in self._counters.values():
            one.close()
        for hop in self.hops:
            hop.host.close()
        if self._tg is not None:
            self._tg.close()
        for name in reversed(self._made.copy()):
            try:
                if self._local.exists(f"/run/netns/{name}"):
                    self._local.run("ip", "netns", "delete", name)
            except PdrGateError as error:
                # It stays in the list: the next call tries again.
                failures.append(str(error))
            else:
                self._made.remove(name)
        self._local.close()
        if failures:
            raise TestbedError("; ".join(failures))


def _namespace(host: Host) -> str:
    return host.name.removeprefix("netns:")

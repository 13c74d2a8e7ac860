"""The namespaces of a run, and the veth pairs between them: TG - hop 1 - … - hop N - back to the TG."""

from __future__ import annotations

import secrets
from collections import defaultdict

from pdrgate.data_paths.catalogue import Hop, Port, Station
from pdrgate.data_paths.contract import directions
from pdrgate.data_paths.steering import CpuMapSteering
from pdrgate.hosts.cpus import CpuPlan
from pdrgate.hosts.host import Host, local_host
from pdrgate.knobs import KnobSet, offloads
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.own_namespace import OwnNamespace
from pdrgate.traffic.frames import Path
from pdrgate.values.errors import all_closed

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
        run = secrets.token_hex(3)
        names = ("tg", *(f"sut{number}" for number in range(1, hops + 1)))
        self._namespaces = tuple(OwnNamespace(f"{run}-{name}", journal) for name in names)
        self.tg, *suts = (one.name for one in self._namespaces)
        """The generator's namespace."""
        self.suts = tuple(suts)
        """The namespaces of the hops, in the order of forward traffic."""
        self.nodes = ("tg", *(f"hop{number}" for number in range(1, hops + 1)))
        """Names of the namespaces in counters, the generator's first."""
        self.hops: tuple[Hop, ...] = ()
        """The routers, in the order of forward traffic."""
        self.knobs = KnobSet()
        """Settings inside the namespaces, which end with them."""

    def make(self) -> None:
        """Make namespaces and links. Raises TestbedError; what was made is then removed by `close`."""
        for one in self._namespaces:
            one.make()
        hosts = [one.host for one in self._namespaces[1:]]
        macs = [f"02:70:64:72:00:{number:02x}" for number in range(2 * len(hosts) + 2)]
        queues = ("numrxqueues", str(len(self._cpus.sut)), "numtxqueues", str(len(self._cpus.sut)))
        ends = self._ends()
        with local_host() as here:
            for at in range(0, len(ends), 2):
                (near, one_end), (far, other_end) = ends[at], ends[at + 1]
                here.run(
                    "ip", "link", "add", one_end, "netns", _namespace(near), "address", macs[at], *queues, "type",
                    "veth", "peer", "name", other_end, "netns", _namespace(far), "address", macs[at + 1], *queues,
                )  # fmt: skip
        self.hops = tuple(self._hop(host, number, macs) for number, host in enumerate(hosts))
        for hop in self.hops:
            for port in hop.ports:
                self.knobs.apply(hop.host, offloads(port.interface, {"gro": True, "tso": False}))

    def _hop(self, host: Host, number: int, macs: list[str]) -> Hop:
        first, last = number == 0, number == len(self.suts) - 1
        before, into, out, after = macs[2 * number : 2 * number + 4]
        station = (
            Station(self._namespaces[0].host, Port(_TG_PORTS[0], before, into), self._cpus.generator) if first else None
        )
        return Hop(
            host,
            Port(SUT_PORTS[0], into, before, self._steerings[0] if first else None),
            Port(SUT_PORTS[1], out, after, self._steerings[1] if last else None),
            cpus=self._cpus.sut,
            station=station if first else None,
        )

    def _ends(self) -> list[tuple[Host, str]]:
        """The ends of the links in the order of forward traffic: each two are one link."""
        tg, *hosts = (one.host for one in self._namespaces)
        return [(tg, _TG_PORTS[0]), *((host, end) for host in hosts for end in SUT_PORTS), (tg, _TG_PORTS[1])]

    def up(self) -> None:
        """Set the links up."""
        for host, interface in self._ends():
            host.run("ip", "link", "set", interface, "up")

    def paths(self, family: int) -> tuple[Path, Path]:
        """The two directions of test traffic of an IP version, for the generator."""
        return directions(family, _TG_PORTS, self.hops[0].ingress, self.hops[-1].egress, len(self.hops))

    def counters(self) -> dict[Counter, int]:
        """The counters of this machine's CPUs, of interfaces and protocols by hop, and of wires.

        The generator's ports have only what they dropped. A wire has what its sender could not hand over.
        """
        ports = (_TG_PORTS, *(SUT_PORTS for _ in self.hops))
        readings = [one.counters.begin(own) for one, own in zip(self._namespaces, ports, strict=True)]
        found: dict[Counter, int] = {}
        for node, reading in zip(self.nodes, readings, strict=True):
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
        all_closed(*(one.close for one in reversed(self._namespaces)))


def _namespace(host: Host) -> str:
    return host.name.removeprefix("netns:")

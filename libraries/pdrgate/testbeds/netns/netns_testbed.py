"""The testbed local-netns: a chain of namespaces of this machine, TG - hop 1 - … - hop N - back to the TG.

    TG t0 ──veth── in0 HOP1 out0 ──veth── in0 HOP2 out0 ──veth── t1 TG

A veth hands each packet to its peer in the sender's own softirq, so without more the router would run inside the
generator. Receive packet steering (RPS) at the SUT's two edges moves all routing to the SUT's CPUs, where packets wait
in the per-CPU backlog: that queue is the SUT's receive buffer here. Inside the chain, and on the way back into the TG,
packets pass by NAPI (GRO on, TSO off at the sending end) and not by that same backlog: else they would compete with
arriving ones for it, and be lost behind the router. tc programs and generic XDP run behind RPS, native XDP before it:
there a cpumap takes its place, and its queue that of the backlog, see `pdrgate.data_paths.steering`.
"""

from __future__ import annotations

import os
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from typing import Any

from pdrgate.data_paths.catalogue import NETWORKS, Hop, Port, Station, segment
from pdrgate.data_paths.steering import CpuMapSteering
from pdrgate.errors import PdrGateError, TestbedError, closed_on_error
from pdrgate.hosts.cpus import CpuPlan, format_cpu_list
from pdrgate.hosts.host import Host, ShellHost, local_host, netns_host
from pdrgate.knobs import (
    KernelThreadNice,
    KnobSet,
    PlannedKnob,
    knobs_text,
    offloads,
    plan_knobs,
    rps_knobs,
    sysctl,
)
from pdrgate.observers.environment import Environment, capture_environment
from pdrgate.observers.heartbeat import PERIOD, Heartbeat, HeartbeatObserver
from pdrgate.observers.namespace_counters import NamespaceCounters
from pdrgate.observers.processor import ProcessorWatch
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.observers.watching import CounterObserver, Observer
from pdrgate.safety.journal import NAMESPACE_PREFIX, Journal
from pdrgate.testbeds.drop_watch import AnyDropReasons, DropWatch, drop_reasons_here, inode
from pdrgate.testbeds.processor_counting import CountedByProcessor
from pdrgate.testbeds.protocol import Pinning, first_cpus
from pdrgate.testbeds.sharing import BACKLOG
from pdrgate.traffic.embedded import EmbeddedGenerator, Engine
from pdrgate.traffic.frames import Path
from pdrgate.traffic.generator import Generator

_TG_PORTS = ("t0", "t1")
_INGRESS, _EGRESS = "in0", "out0"
_XMIT_ERRORS = "_xdp_xmit_errors"
"""How veth's counters of frames end that the peer's ring had no room for."""
_DEFAULT_BUFFER = 1000
"""Packets, as the kernel's own default for the backlog."""


class NetnsTestbed(CountedByProcessor):
    """The namespaces of one run, from `__init__` to `close`; every change is in the journal before it is made.

    Args:
        hops: routers in a row, 1 to 8.
        cpus: who gets which CPU.
        journal: where changes are noted for the case that this process is killed.
        isolate: whether packet work goes before other processes on the SUT's CPUs.
        section: the knobs of the testbed file; those of ports are each hop's, those of CPUs this machine's.

    Raises:
        TestbedError: namespaces, veth pairs or a setting cannot be had; what was made is removed again.
    """

    def __init__(
        self,
        hops: int,
        cpus: CpuPlan,
        journal: Journal,
        *,
        engine: Engine = "auto",
        isolate: bool = True,
        section: Mapping[str, Any] | None = None,
    ) -> None:
        self._cpus = cpus
        self._journal = journal
        self._engine: Engine = engine
        self._local = local_host()
        self._knobs = KnobSet(journal)
        self._inner = KnobSet()
        """Settings inside the namespaces, which end with them."""
        self._made: list[str] = []
        run = secrets.token_hex(3)
        self._tg_namespace = f"{NAMESPACE_PREFIX}-{run}-tg"
        self._sut_namespaces = tuple(f"{NAMESPACE_PREFIX}-{run}-sut{number}" for number in range(1, hops + 1))
        self._hops: tuple[Hop, ...] = ()
        self._steerings = tuple(CpuMapSteering(cpus.sut, _DEFAULT_BUFFER, isolate) for _ in _TG_PORTS)
        """Those of the SUT's two edges, for native XDP."""
        self._tg: ShellHost | None = None
        self._counters: dict[str, NamespaceCounters] = {}
        """By node."""
        self._section = section or {}
        self._skipped: list[str] = []
        """What is lacking here: knobs of the file (of the first hop, for all are alike), a heartbeat."""
        self._heartbeats: dict[int, Heartbeat] = {}
        """By CPU; those of CPUs that no longer forward stay, and wait."""
        self._steered: tuple[int, ...] = cpus.sut
        """The CPUs that forward as things are."""
        self._watched = True
        """Whether there can be heartbeats here."""
        self._drops = DropWatch(self._count_drops)
        self._executed = ProcessorWatch(self._local)
        with closed_on_error(self.close):
            self._build(plan_knobs(self._section, (_INGRESS, _EGRESS)))
            if isolate:
                # Under load softirqs run in ksoftirqd, an ordinary process: what else runs on that CPU would be
                # measured as a slower router.
                for cpu in cpus.sut:
                    self._knobs.apply(self._local, KernelThreadNice(f"ksoftirqd/{cpu}", "-20"), missing="skip")
            self._heartbeat()

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The routers, in the order of forward traffic."""
        return self._hops

    @property
    def machine(self) -> Host:
        """This one."""
        return self._local

    @property
    def boot_id(self) -> str:
        """The start of this machine, for its kernel is the SUT: the first 8 digits of its boot id."""
        return self._local.read("/proc/sys/kernel/random/boot_id")[:8]

    @property
    def sut_cpus(self) -> tuple[int, ...]:
        """The CPUs that route."""
        return self._cpus.sut

    def environment(self) -> Environment:
        """What this machine is, and the first hop's ports, which all hops' are like."""
        hop = self._hops[0]
        return capture_environment(self._local, (hop.ingress.interface, hop.egress.interface), hop.host)

    def generator(self, family: int) -> Generator:
        """A generator for traffic of an IP version; the caller closes it."""
        return EmbeddedGenerator(self._tg_namespace, self._cpus.generator, self._paths(family), self._engine)

    def _paths(self, family: int) -> tuple[Path, Path]:
        """The two directions of test traffic of an IP version, for the generator."""
        networks = NETWORKS[family]
        first, last = self._hops[0].ingress, self._hops[-1].egress
        segments = tuple(segment(number) for number in range(1, len(self._hops) + 1)) if family == 6 else ()

        def path(
            port: str,
            station: Port,
            source: IPv4Network | IPv6Network,
            to: IPv4Network | IPv6Network,
            by: tuple[IPv6Address, ...],
        ) -> Path:
            return Path(port, station.peer_mac, station.mac, source.network_address + 1, to.network_address, by)

        return (
            path(_TG_PORTS[0], first, networks.reverse, networks.forward, segments),
            path(_TG_PORTS[1], last, networks.forward, networks.reverse, segments[::-1]),
        )

    def set_buffer(self, packets: int) -> None:
        """Set how many packets wait per CPU of the SUT before they are dropped. For the whole machine, so put back."""
        if not 1 <= packets <= 1_000_000:
            raise TestbedError(f"a receive buffer of {packets} packets makes no sense; use 512, 1000 or 4096")
        self._knobs.apply(self._local, sysctl(BACKLOG, packets))
        for steering in self._steerings:
            steering.hold(packets)

    def pin(self, pinning: Pinning) -> None:
        """Choose the CPUs that do the SUT's packet work, whichever direction the packets come from."""
        if pinning == "unpinned":
            self._steer(tuple(sorted(set(os.sched_getaffinity(0)) - {self._cpus.generator})))
        else:
            self._steer(first_cpus(self._cpus.sut, pinning))

    def _steer(self, cpus: tuple[int, ...]) -> None:
        self._steered = cpus
        for hop, port in ((self._hops[0], self._hops[0].ingress), (self._hops[-1], self._hops[-1].egress)):
            for knob in rps_knobs(hop.host, port.interface, cpus):
                self._inner.apply(hop.host, knob)
        for steering in self._steerings:
            steering.steer(cpus)

    def check(self) -> tuple[str, ...]:
        """Nothing: with this machine's kernel this process would have died too."""
        return ()

    def counters(self) -> Reading:
        """The SUT's counters: those of this machine's CPUs once, those of interfaces and protocols by hop; of the
        generator's ports what they dropped; and of each wire what its sender could not hand over."""
        ports = {"tg": _TG_PORTS}
        ports |= {f"hop{at}": (hop.ingress.interface, hop.egress.interface) for at, hop in enumerate(self._hops, 1)}
        asked = {node: self._counters[node].begin(interfaces) for node, interfaces in ports.items()}
        found: dict[Counter, int] = {}
        for node, reading in asked.items():
            for counter, value in reading.result().items():
                if node != "tg" or counter.place.of_port:
                    place = counter.place
                    found[Counter(place if place.of_machine else place.of(node), counter.name)] = value
        found |= self._wires(found)
        for steering in self._steerings:
            for cpu, ticks in steering.ticks().items():
                found[Counter(Place.cpu(cpu), "process_ticks")] -= ticks  # a thread's, but the SUT's own work
        return found

    def _wires(self, counters: Reading) -> Reading:
        """By receiving port, what its peer could not hand over: skbs, and frames of XDP (`veth_get_stats64`)."""
        ends = [Place.interface(_TG_PORTS[0]).of("tg")]
        for number in range(1, len(self._hops) + 1):
            ends += (Place.interface(_INGRESS).of(f"hop{number}"), Place.interface(_EGRESS).of(f"hop{number}"))
        ends.append(Place.interface(_TG_PORTS[1]).of("tg"))
        errors: dict[Place, int] = defaultdict(int)
        for counter, value in counters.items():
            if counter.name.endswith(_XMIT_ERRORS):
                errors[counter.place] += value
        found: dict[Counter, int] = {}
        for at, receiver in enumerate(ends):
            sender = ends[at ^ 1]
            frames = errors[Place.driver(sender.name).of(sender.node)]
            wire = Place.wire(receiver.name).of(receiver.node)
            found[Counter(wire, "frames")] = frames
            found[Counter(wire, "skbs")] = counters[Counter(sender, "tx_dropped")] - frames
        return found

    def observers(self, shared: bool = False) -> tuple[Observer, ...]:
        """The counters around each trial, those of dropped packets by the kernel's reasons, and within a heartbeat on
        the CPUs that forward."""
        return (CounterObserver(self.counters), *self._drops.observers(), *self._heartbeat(shared))

    def _count_drops(self) -> AnyDropReasons:
        namespaces = (self._tg_namespace, *self._sut_namespaces)
        nodes = ("tg", *(f"hop{number}" for number in range(1, len(self._hops) + 1)))
        return drop_reasons_here(
            self._local, dict(zip(map(inode, namespaces), nodes, strict=True)),
            lambda: [steering.number for steering in self._steerings if steering.active],
            inode(self._tg_namespace),
        )  # fmt: skip

    def _heartbeat(self, shared: bool = False) -> tuple[Observer, ...]:
        """Nothing where there can be none: a container may have no real-time threads."""
        try:
            for cpu in self._steered if self._watched else ():
                if cpu not in self._heartbeats:
                    self._heartbeats[cpu] = Heartbeat(cpu)
        except TestbedError as error:
            self._watched = False
            self._skipped.append(f"{error}; whether the machine disturbs a trial is not seen")
        if not self._watched:
            return ()
        return (HeartbeatObserver([self._heartbeats[cpu] for cpu in self._steered], shared=shared),)

    def describe(self) -> dict[str, str]:
        """What makes results of this testbed comparable: part of the fingerprint."""
        facts = {"hops": str(len(self._hops)), "steering": "rps", "sut_cpus": str(len(self._cpus.sut))}
        if self._watched:
            facts["heartbeat"] = PERIOD  # it takes its share of the CPU, little as that is
        return facts | self._executed.describe() | ({"knobs": knobs_text(self._section)} if self._section else {})

    @property
    def steady(self) -> bool:
        """Its speed is what this machine or its hardware gives it."""
        return False

    @property
    def disposable(self) -> bool:
        """Some of its settings are this machine's."""
        return False

    def sentence(self) -> str:
        """The testbed in words."""
        return (
            f"{len(self._hops)} routed hop{'s' * (len(self._hops) != 1)} in namespaces; "
            f"generator on CPU {self._cpus.generator}, SUT on CPU {format_cpu_list(self._cpus.sut)}"
            + "".join(f"; {sentence}" for sentence in (*self._skipped, self._drops.missing) if sentence)
        )

    def close(self) -> None:
        """Remove the namespaces and put back all that was changed; may be called twice.

        Raises:
            TestbedError: something could not be undone; all else was, and the next start tries again.
        """
        failures: list[str] = []
        try:
            self._knobs.restore()
        except PdrGateError as error:
            failures.append(str(error))
        for heartbeat in self._heartbeats.values():
            heartbeat.close()
        for undo in (self._drops.close, self._executed.close):
            try:
                undo()
            except PdrGateError as error:
                failures.append(str(error))
        for one in self._counters.values():
            one.close()
        for hop in self._hops:
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

    def _build(self, planned: tuple[PlannedKnob, ...]) -> None:
        for name in (self._tg_namespace, *self._sut_namespaces):
            self._journal.namespace(name)
            self._made.append(name)  # before: an interruption may come when it is just made
            self._local.run("ip", "netns", "add", name)
        nodes = ("tg", *(f"hop{number}" for number in range(1, len(self._sut_namespaces) + 1)))
        for node, name in zip(nodes, (self._tg_namespace, *self._sut_namespaces), strict=True):
            self._counters[node] = NamespaceCounters(name)
        self._tg = netns_host(self._tg_namespace)
        hosts = [netns_host(name) for name in self._sut_namespaces]
        for host in (self._tg, *hosts):
            # No address of its own, no router solicitation, no listener report: only test packets on these links.
            self._inner.apply(host, sysctl("net.ipv6.conf.default.disable_ipv6", 1), missing="skip")
        ends = [(self._tg, _TG_PORTS[0]), *[(host, end) for host in hosts for end in (_INGRESS, _EGRESS)]]
        ends.append((self._tg, _TG_PORTS[1]))
        macs = [f"02:70:64:72:00:{number:02x}" for number in range(len(ends))]
        for at in range(0, len(ends), 2):
            (host, one), (peer, other) = ends[at], ends[at + 1]
            queues = ("numrxqueues", str(len(self._cpus.sut)), "numtxqueues", str(len(self._cpus.sut)))
            self._local.run(
                "ip", "link", "add", one, "netns", _namespace(host), "address", macs[at], *queues,
                "type", "veth", "peer", "name", other, "netns", _namespace(peer), "address", macs[at + 1], *queues,
            )  # fmt: skip
        self._hops = tuple(
            Hop(
                host,
                Port(_INGRESS, macs[2 * number + 1], macs[2 * number], None if number else self._steerings[0]),
                Port(
                    _EGRESS,
                    macs[2 * number + 2],
                    macs[2 * number + 3],
                    self._steerings[1] if number == len(hosts) - 1 else None,
                ),
                cpus=self._cpus.sut,
                station=None
                if number
                else Station(self._tg, Port(_TG_PORTS[0], macs[0], macs[1]), self._cpus.generator),
            )
            for number, host in enumerate(hosts)
        )
        for hop in self._hops:
            for port in (hop.ingress, hop.egress):
                self._inner.apply(hop.host, offloads(port.interface, {"gro": True, "tso": False}))
        self._turn([one for one in planned if not one.of_port])
        for host, interface in ends:
            host.run("ip", "link", "set", interface, "up")
        self._turn([one for one in planned if one.of_port])
        self._steer(self._cpus.sut)

    def _turn(self, planned: Iterable[PlannedKnob]) -> None:
        for one in planned:
            if one.of_whole_machine:
                if not self._knobs.apply(self._local, one.knob, one.missing) and not one.keeps:
                    self._skipped.append(self._knobs.skipped[-1])
                continue
            for hop in self._hops:
                applied = self._inner.apply(hop.host, one.knob, one.missing)
                if not applied and not one.keeps and hop is self._hops[0]:
                    self._skipped.append(self._inner.skipped[-1])


def _namespace(host: Host) -> str:
    return host.name.removeprefix("netns:")

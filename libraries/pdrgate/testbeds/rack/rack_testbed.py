"""The testbed rack: a SUT that is there already, reached by SSH or on this machine, between two ports of a generator.

    TG 0 ──────── port 1 SUT port 2 ──────── TG 1

The SUT goes on after the run, perhaps for others, so everything changed there is in the journal first: knobs of the
testbed file, forwarding, interrupts and buffers, and what a data path makes of the ports, which is taken away again.

A SUT with network cards takes packets in where its cards interrupt: their affinity is the pinning, their receive rings
are the buffer. Ports without interrupts of their own, as of a namespace, hand packets over in the sender's softirq:
there receive packet steering moves them to the SUT's CPUs, and the backlog is the buffer. A veth also needs GRO on and
TSO off at the SUT's ports (``knobs: {ports: {offloads: …}}``), see `pdrgate.testbeds.netns.netns_testbed`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pdrgate.data_paths.catalogue import Hop
from pdrgate.data_paths.contract import directions
from pdrgate.hosts.cpus import format_cpu_list
from pdrgate.hosts.host import Host, HostError, local_host
from pdrgate.hosts.ssh import SshConnection, SshHost
from pdrgate.knobs import KernelThreadNice, KnobSet, plan_knobs, sysctl
from pdrgate.knobs.port_network import PortNetwork
from pdrgate.observers.counters import read_counters
from pdrgate.observers.environment import Environment, capture_environment
from pdrgate.observers.processor import ProcessorCounting
from pdrgate.observers.reading import Reading
from pdrgate.observers.watching import CounterObserver, Observer
from pdrgate.safety.journal import Journal
from pdrgate.safety.sut_lock import SutLock
from pdrgate.testbeds.drop_watch import AnyDropReasons, DropWatch, drop_reasons_here, drop_reasons_of
from pdrgate.testbeds.rack.rack_buffer import RackBuffer
from pdrgate.testbeds.rack.rack_keys import PortConfig
from pdrgate.testbeds.rack.rack_machine import RackMachine
from pdrgate.testbeds.rack.rack_ports import RackStation, find_router
from pdrgate.testbeds.rack.rack_steering import RackSteering
from pdrgate.testbeds.rack.traffic_source import TrafficSource
from pdrgate.testbeds.testbed_base import Pinning, Testbed, first_cpus
from pdrgate.traffic.generator import Generator
from pdrgate.values.errors import TestbedError, all_closed, closed_on_error


class RackTestbed(Testbed):
    """A SUT between two ports of a generator, from `__init__` to `close`.

    Args:
        machine: the SUT's machine.
        router: the machine again, or the network namespace of it that the ports are in.
        ports: the SUT's ports, in the order of forward traffic.
        source: the generator; it is closed with the testbed.
        station: who talks TCP with the SUT's first port; None: the generator's port, where that can. It is closed with
            the testbed.
        cpus: CPUs that do the SUT's packet work; None where they are to be chosen.
        isolate: whether packet work goes before other processes on the SUT's CPUs.
        knobs: the testbed file's section, see `pdrgate.knobs.plan_knobs`.
        buffer: what a scenario's receive buffer is; auto: the receive ring where both ports have one that can be set.
        steering: how packet work gets to a scenario's CPUs; auto: by interrupts where both ports have them.
        lock: that of the SUT, where it is reached by SSH: its holder's, and looked after with the SUT.

    Raises:
        TestbedError: the SUT cannot be reached, a port is not there or has no link, or a setting cannot be had; what
            was changed is put back.
    """

    def __init__(
        self,
        machine: Host,
        router: Host,
        ports: Sequence[PortConfig],
        source: TrafficSource,
        journal: Journal,
        *,
        station: RackStation | None = None,
        cpus: Sequence[int] | None = None,
        isolate: bool = True,
        knobs: Mapping[str, Any] | None = None,
        buffer: Literal["auto", "ring", "backlog"] = "auto",
        steering: Literal["auto", "irq", "rps"] = "auto",
        lock: SutLock | None = None,
    ) -> None:
        self._machine = machine
        self._router = router
        self._source = source
        self._station = station
        self._knobs = KnobSet(journal)
        self._afterwards: list[Callable[[], None]] = []
        self._lock = lock
        self._drops = DropWatch(self._count_drops)
        self._counting = ProcessorCounting(machine, lambda: self._steering.cpus)
        self._knob_words: tuple[str, ...] = ()
        """The testbed file's knobs in words."""
        with closed_on_error(self.close):
            self._start = RackMachine(machine, journal)
            """State of the machine now."""
            self._hop = find_router(router, ports, source, station)
            self._cpus = self._start.plan(cpus, source.cpu, self._hop)
            if self._start.is_this_one:  # else its programs run where its scheduler likes
                self._hop = dataclasses.replace(self._hop, cpus=self._cpus)
            for interface in self._interfaces:  # what a data path makes of them is taken away again
                self._knobs.apply(router, PortNetwork(interface))
            self._apply(knobs or {})
            keeps = (knobs or {}).get("missing") == "skip"
            self._buffer = RackBuffer(machine, router, self._interfaces, self._knobs, buffer, keeps=keeps)
            self._steering = RackSteering(router, self._interfaces, self._knobs, steering)
            if isolate:
                # Under load softirqs run in ksoftirqd, an ordinary process: what else runs on that CPU would be
                # measured as a slower router.
                for cpu in self._cpus:
                    self._knobs.apply(machine, KernelThreadNice(f"ksoftirqd/{cpu}", "-20"), missing="skip")
            self._route()
            # A veth takes packets in the sender's softirq until they are steered away from it.
            self._steering.steer(self._cpus)

    # --- What it is ---

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The SUT, as the only router."""
        return (self._hop,)

    @property
    def machine(self) -> Host:
        """The SUT's machine."""
        return self._machine

    @property
    def boot_id(self) -> str:
        """The start of the SUT's machine: the first 8 digits of its boot id."""
        return self._start.boot_id[:8]

    @property
    def sut_cpus(self) -> tuple[int, ...]:
        """The SUT's CPUs that route."""
        return self._cpus

    @property
    def connections(self) -> dict[str, SshConnection]:
        """The SSH connections to the SUT, by alias."""
        if not isinstance(self._machine, SshHost):
            return {}
        return {self._machine.connection.target.alias: self._machine.connection}

    def environment(self) -> Environment:
        """Environment of the SUT."""
        return capture_environment(self._machine, self._interfaces, self._router)

    def describe(self) -> dict[str, str]:
        """Properties that results of this testbed need in common to be comparable: part of the fingerprint."""
        return {
            "sut": self._router.name,
            "steering": self._steering.kind,
            "buffer": self._buffer.describe(),
            "sut_cpus": str(len(self._cpus)),
            **self._counting.describe(),
            **({"knobs": "; ".join(self._knob_words)} if self._knob_words else {}),
            **(self._station.describe() if self._station is not None else {}),
        }

    def sentence(self) -> str:
        """The testbed in words."""
        skipped = "".join(f"; {sentence}" for sentence in (*self._knobs.skipped, self._drops.missing) if sentence)
        station = f"; {self._station.sentence()}" if self._station is not None else ""
        if fixed := self._buffer.fixed:
            skipped += f"; the backlog keeps its size, whatever a scenario asks for: {fixed}"
        return (
            f"SUT {self._router.name}, ports {' and '.join(self._interfaces)}, on CPU {format_cpu_list(self._cpus)} "
            f"({'interrupts' if self._steering.kind == 'irq' else 'packets'} steered there, the buffer is the "
            f"{self._buffer.kind}); {self._source.sentence()}{station}{skipped}"
        )

    # --- What it does ---

    def generator(self, family: int) -> Generator:
        """A generator for traffic of an IP version; the caller closes it."""
        return self._source.open(directions(family, self._source.ports, self._hop.ingress, self._hop.egress))

    def set_buffer(self, packets: int) -> None:
        """Set how many packets wait before they are dropped: in each receive ring, or per CPU in the backlog."""
        if not 1 <= packets <= 1_000_000:
            raise TestbedError(f"a receive buffer of {packets} packets makes no sense; use 512, 1000 or 4096")
        self._buffer.hold(packets)

    def pin(self, pinning: Pinning) -> None:
        """Choose the SUT's CPUs that do the packet work; with two CPUs queues take turns."""
        if pinning == "unpinned":
            free = tuple(cpu for cpu in self._start.online if not self._start.is_this_one or cpu != self._source.cpu)
            self._steering.steer(free, share=True)
        else:
            self._steering.steer(first_cpus(self._cpus, pinning))

    def counters(self) -> Reading:
        """Counters of the SUT's ports, its IP layers and its CPUs."""
        try:
            return read_counters(self._router, self._interfaces)
        except HostError:
            # Reading changes nothing: when the connection was lost on the way, it is made again for a second try.
            return read_counters(self._router, self._interfaces)

    def observers(self, shared: bool = False) -> tuple[Observer, ...]:
        """The counters around each trial, those of dropped packets by the kernel's reasons among them."""
        return (CounterObserver(self.counters), *self._drops.observers())

    @property
    def executed(self) -> ProcessorCounting:
        """Counting of the kernel on the CPUs that forward."""
        return self._counting

    def _count_drops(self) -> AnyDropReasons:
        if not self._start.is_this_one:
            return drop_reasons_of(self._machine)
        # The generator's kernel too, by whatever way it is reached: its drops are distinguished by namespaces.
        number = int(self._router.run("stat", "-L", "-c", "%i", "/proc/self/ns/net").stdout)
        local = local_host()
        self._afterwards.append(local.close)
        return drop_reasons_here(local, {number: ""})

    def check(self) -> tuple[str, ...]:
        """Find nothing wrong while the SUT runs on.

        Raises:
            TestbedError: it was restarted, so that its settings are gone; or another controller has taken it while the
                connection was lost.
        """
        if self._lock is not None:
            self._lock.renew()
        if self._station is not None:
            self._station.check()
        self._start.check()
        return ()

    def after_close(self, undo: Callable[[], None]) -> None:
        """Call ``undo`` once everything was put back."""
        self._afterwards.append(undo)

    def close(self) -> None:
        """Put everything back. Calling it twice is harmless.

        Raises:
            TestbedError: something could not be undone; all else was, and the next start tries again.
        """
        all_closed(
            self._drops.close, self._counting.close, self._knobs.restore, self._source.close, self._router.close,
            self._machine.close, *((self._station.close,) if self._station is not None else ()), *self._afterwards,
        )  # fmt: skip
        self._afterwards.clear()

    # --- How ---

    @property
    def _interfaces(self) -> tuple[str, str]:
        return self._hop.ingress.interface, self._hop.egress.interface

    def _apply(self, section: Mapping[str, Any]) -> None:
        planned = plan_knobs(section, self._interfaces)
        for plan in planned:
            self._knobs.apply(self._machine if plan.of_whole_machine else self._router, plan.knob, plan.missing)
        self._knob_words = tuple(plan.knob.describe() for plan in planned if not plan.keeps)

    def _route(self) -> None:
        """Let the SUT forward. A data path does so too, but is not in the journal."""
        for interface in self._interfaces:
            self._knobs.apply(self._router, sysctl(f"net/ipv6/conf/{interface}/disable_ipv6", 0), missing="skip")
        self._knobs.apply(self._router, sysctl("net/ipv6/conf/all/forwarding", 1), missing="skip")
        self._knobs.apply(self._router, sysctl("net/ipv4/ip_forward", 1))

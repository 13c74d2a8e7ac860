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
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path as FilePath
from typing import Any, Literal

from pdrgate.data_paths.catalogue import NETWORKS, Hop, Port, segment
from pdrgate.errors import PdrGateError, TestbedError, closed_on_error
from pdrgate.hosts.cpus import format_cpu_list, parse_cpu_list, plan_cpus
from pdrgate.hosts.host import Host, HostError, local_host
from pdrgate.hosts.ssh import SshConnection, SshHost
from pdrgate.knobs import (
    InterruptAffinity,
    KernelThreadNice,
    Knob,
    KnobSet,
    device_interrupts,
    each,
    in_turn,
    plan_knobs,
    rings,
    rps,
    rps_off,
    sysctl,
)
from pdrgate.knobs.port_network import PortNetwork
from pdrgate.observers.counters import read_counters
from pdrgate.observers.environment import Environment, capture_environment
from pdrgate.observers.processor import ProcessorWatch
from pdrgate.observers.reading import Reading
from pdrgate.observers.watching import CounterObserver, Observer
from pdrgate.safety.journal import Journal
from pdrgate.safety.sut_lock import SutLock
from pdrgate.testbeds.drop_watch import AnyDropReasons, DropWatch, drop_reasons_here, drop_reasons_of
from pdrgate.testbeds.processor_counting import CountedByProcessor
from pdrgate.testbeds.protocol import Pinning, first_cpus
from pdrgate.testbeds.rack.rack_keys import PortConfig
from pdrgate.testbeds.rack.rack_station import RackStation
from pdrgate.testbeds.rack.traffic_source import TrafficSource, link_address
from pdrgate.testbeds.sharing import BACKLOG
from pdrgate.traffic.frames import Path
from pdrgate.traffic.generator import Generator

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class RackTestbed(CountedByProcessor):
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
        self._journal = journal
        self._knobs = KnobSet(journal)
        self._afterwards: list[Callable[[], None]] = []
        self._lock = lock
        self._drops = DropWatch(self._count_drops)
        self._executed = ProcessorWatch(machine)
        self._steered: tuple[int, ...] = ()
        """The SUT's CPUs that forward as things are."""
        self._told: tuple[str, ...] = ()
        """The testbed file's knobs in words."""
        self._fixed = ""
        """Why the buffer stays as it is; empty where it is set."""
        with closed_on_error(self.close):
            self._boot_id = self._note_machine()
            self._hop = self._find_ports(ports)
            self._online = parse_cpu_list(machine.read("/sys/devices/system/cpu/online"))
            self._cpus = self._plan_cpus(cpus)
            if self._shared:  # else its programs run where its scheduler likes
                self._hop = dataclasses.replace(self._hop, cpus=self._cpus)
            self._leave_ports_to_data_paths()
            self._apply(knobs or {})
            self._buffer = self._buffer_kind(buffer)
            if self._buffer == "backlog" and (knobs or {}).get("missing") == "skip":
                self._fixed = sysctl(BACKLOG, 1).lacking(machine) or ""
            self._steering = self._steering_kind(steering)
            if isolate:
                # Under load softirqs run in ksoftirqd, an ordinary process: what else runs on that CPU would be
                # measured as a slower router.
                for cpu in self._cpus:
                    self._knobs.apply(machine, KernelThreadNice(f"ksoftirqd/{cpu}", "-20"), missing="skip")
            self._route()
            # A veth takes packets in the sender's softirq until they are steered away from it.
            self._steer(self._cpus)

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
        return self._boot_id[:8]

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
        """What the SUT is."""
        return capture_environment(self._machine, self._interfaces, self._router)

    def describe(self) -> dict[str, str]:
        """What makes results of this testbed comparable: part of the fingerprint."""
        return {
            "sut": self._router.name,
            "steering": self._steering,
            "buffer": f"{self._buffer}, not set" if self._fixed else self._buffer,
            "sut_cpus": str(len(self._cpus)),
            **self._executed.describe(),
            **({"knobs": "; ".join(self._told)} if self._told else {}),
            **(self._station.describe() if self._station is not None else {}),
        }

    @property
    def steady(self) -> bool:
        """Its speed is what this machine or its hardware gives it."""
        return False

    @property
    def disposable(self) -> bool:
        """It goes on without us."""
        return False

    def sentence(self) -> str:
        """The testbed in words."""
        skipped = "".join(f"; {sentence}" for sentence in (*self._knobs.skipped, self._drops.missing) if sentence)
        station = f"; {self._station.sentence()}" if self._station is not None else ""
        skipped += f"; the backlog keeps its size, whatever a scenario asks for: {self._fixed}" if self._fixed else ""
        return (
            f"SUT {self._router.name}, ports {' and '.join(self._interfaces)}, on CPU {format_cpu_list(self._cpus)} "
            f"({'interrupts' if self._steering == 'irq' else 'packets'} steered there, the buffer is the "
            f"{self._buffer}); {self._source.sentence()}{station}{skipped}"
        )

    # --- What it does ---

    def generator(self, family: int) -> Generator:
        """A generator for traffic of an IP version; the caller closes it."""
        networks = NETWORKS[family]

        def path(at: int, source: IPv4Network | IPv6Network, to: IPv4Network | IPv6Network) -> Path:
            port = self._hop.ports[at]
            first, by = source.network_address + 1, (segment(1),) if family == 6 else ()
            return Path(self._source.ports[at], port.peer_mac, port.mac, first, to.network_address, by)

        return self._source.open(
            (path(0, networks.reverse, networks.forward), path(1, networks.forward, networks.reverse))
        )

    def set_buffer(self, packets: int) -> None:
        """Set how many packets wait before they are dropped: in each receive ring, or per CPU in the backlog."""
        if not 1 <= packets <= 1_000_000:
            raise TestbedError(f"a receive buffer of {packets} packets makes no sense; use 512, 1000 or 4096")
        if self._fixed:
            return
        if self._buffer == "backlog":
            if lack := sysctl(BACKLOG, packets).lacking(self._machine):
                raise TestbedError(
                    f"a backlog of {packets} packets cannot be had: {lack}; write knobs: {{missing: skip}} to measure "
                    "with the one that is there, or log in outside the namespace and name it as sut.host.namespace"
                )
            self._knobs.apply(self._machine, sysctl(BACKLOG, packets))
            return
        for interface in self._interfaces:
            try:
                self._knobs.apply(self._router, rings(interface, {"rx": packets}))
            except TestbedError as error:
                raise TestbedError(
                    f"a receive ring of {packets} packets cannot be had: {error}; choose another size, or write "
                    "buffer: backlog in the testbed file"
                ) from error

    def pin(self, pinning: Pinning) -> None:
        """Choose the SUT's CPUs that do the packet work; with two CPUs queues take turns."""
        if pinning == "unpinned":
            free = tuple(cpu for cpu in self._online if not self._shared or cpu != self._source.cpu)
            self._steer(free, share=True)
        else:
            self._steer(first_cpus(self._cpus, pinning), share=False)

    def counters(self) -> Reading:
        """The SUT's counters: of its ports, its IP layers and its CPUs."""
        try:
            return read_counters(self._router, self._interfaces)
        except HostError:
            # Reading changes nothing: when the connection was lost on the way, it is made again for a second try.
            return read_counters(self._router, self._interfaces)

    def observers(self, shared: bool = False) -> tuple[Observer, ...]:
        """The counters around each trial, those of dropped packets by the kernel's reasons among them."""
        return (CounterObserver(self.counters), *self._drops.observers())

    def _count_drops(self) -> AnyDropReasons:
        if not self._shared:
            return drop_reasons_of(self._machine)
        # The generator's kernel too, by whatever way it is reached: what that drops is told apart by namespaces.
        number = int(self._router.run("stat", "-L", "-c", "%i", "/proc/self/ns/net").stdout)
        local = local_host()
        self._afterwards.append(local.close)
        return drop_reasons_here(local, {number: ""})

    def check(self) -> tuple[str, ...]:
        """Nothing, while the SUT runs on.

        Raises:
            TestbedError: it was restarted, so that its settings are gone; or another controller has taken it while the
                connection was lost.
        """
        if self._lock is not None:
            self._lock.renew()
        if self._station is not None:
            self._station.check()
        if (now := self._boot_of_machine()) != self._boot_id:
            raise TestbedError(
                f"{self._machine.name} was restarted during the run (boot {self._boot_id[:8]}, now {now[:8]}), so that "
                "its settings are gone; look why, and start again"
            )
        return ()

    def after_close(self, undo: Callable[[], None]) -> None:
        """Have ``undo`` called once everything was put back."""
        self._afterwards.append(undo)

    def close(self) -> None:
        """Put everything back; may be called twice.

        Raises:
            TestbedError: something could not be undone; all else was, and the next start tries again.
        """
        failures: list[str] = []
        for undo in (
            self._drops.close, self._executed.close, self._knobs.restore, self._source.close, self._router.close,
            self._machine.close, *((self._station.close,) if self._station is not None else ()),
        ):  # fmt: skip
            try:
                undo()
            except PdrGateError as error:
                failures.append(str(error))
        while self._afterwards:
            try:
                self._afterwards[0]()
            except PdrGateError as error:
                failures.append(str(error))
            self._afterwards.pop(0)  # only now: what was interrupted is tried once more
        if failures:
            raise TestbedError("; ".join(failures))

    # --- How ---

    @property
    def _interfaces(self) -> tuple[str, str]:
        return self._hop.ingress.interface, self._hop.egress.interface

    @property
    def _shared(self) -> bool:
        """Whether the SUT's machine is this one: its generator then must have a CPU of its own."""
        return self._boot_id == FilePath(_BOOT_ID).read_text().strip()

    def _note_machine(self) -> str:
        boot = self._boot_of_machine()
        if isinstance(self._machine, SshHost):
            self._journal.machine(self._machine.name, self._machine.to_record(), boot)
        return boot

    def _boot_of_machine(self) -> str:
        # By SSH it is known from the connection, and no command is needed.
        return self._machine.boot_id if isinstance(self._machine, SshHost) else self._machine.read(_BOOT_ID).strip()

    def _find_ports(self, ports: Sequence[PortConfig]) -> Hop:
        found = []
        for number, (port, station) in enumerate(zip(ports, self._source.stations(), strict=True)):
            key = f"sut.ports.{number}"
            interface = port.interface or _interface(self._router, port, key)
            mac = link_address(self._router, interface, key)
            faces = port.faces or station
            if faces is None:
                raise TestbedError(f"{key}: the generator does not tell the MAC address of its port; write it as faces")
            found.append(Port(interface, mac, faces))
        if found[0].interface == found[1].interface:
            raise TestbedError(f"sut.ports: both are {found[0].interface}; a router needs two")
        first = found[0]
        talks = self._station.facing(first) if self._station is not None else self._source.station(first)
        return Hop(self._router, *found, station=talks)

    def _plan_cpus(self, cpus: Sequence[int] | None) -> tuple[int, ...]:
        if self._shared and self._source.cpu is not None:
            return plan_cpus(self._source.cpu, cpus, set(self._online) & os.sched_getaffinity(0)).sut
        if cpus is None:
            return (self._near_cpu(),)
        if absent := sorted(set(cpus) - set(self._online)):
            raise TestbedError(
                f"sut.cpus: {self._machine.name} has no CPU {format_cpu_list(absent)}, but CPUs "
                f"{format_cpu_list(self._online)}; choose of these or write auto"
            )
        return tuple(sorted(cpus))

    def _near_cpu(self) -> int:
        """A CPU of the first port's NUMA node, and not CPU 0, which all else runs on."""
        listed = f"/sys/class/net/{self._interfaces[0]}/device/local_cpulist"
        near = parse_cpu_list(self._router.read(listed)) if self._router.exists(listed) else ()
        usable = [cpu for cpu in near if cpu in self._online] or list(self._online)
        return next((cpu for cpu in usable if cpu != 0), usable[0])

    def _leave_ports_to_data_paths(self) -> None:
        for interface in self._interfaces:
            self._knobs.apply(self._router, PortNetwork(interface))

    def _apply(self, section: Mapping[str, Any]) -> None:
        planned = plan_knobs(section, self._interfaces)
        for plan in planned:
            self._knobs.apply(self._machine if plan.of_whole_machine else self._router, plan.knob, plan.missing)
        self._told = tuple(plan.knob.describe() for plan in planned if not plan.keeps)

    def _route(self) -> None:
        """Let the SUT forward. A data path does so too, but is not in the journal."""
        for interface in self._interfaces:
            self._knobs.apply(self._router, sysctl(f"net/ipv6/conf/{interface}/disable_ipv6", 0), missing="skip")
        self._knobs.apply(self._router, sysctl("net/ipv6/conf/all/forwarding", 1), missing="skip")
        self._knobs.apply(self._router, sysctl("net/ipv4/ip_forward", 1))

    def _buffer_kind(self, wanted: Literal["auto", "ring", "backlog"]) -> Literal["ring", "backlog"]:
        lacks = _lacks(self._router, (rings(interface, {"rx": 1}) for interface in self._interfaces))
        if wanted == "ring" and lacks:
            raise TestbedError(f"sut.buffer: {lacks[0]}; write backlog or auto")
        return "backlog" if wanted == "backlog" or lacks else "ring"

    def _steering_kind(self, wanted: Literal["auto", "irq", "rps"]) -> Literal["irq", "rps"]:
        without = [one for one in self._interfaces if not device_interrupts(self._router, one)]
        if wanted == "irq" and without:
            raise TestbedError(
                f"sut.steering: {without[0]} on {self._router.name} has no interrupts of its own; write rps or auto"
            )
        return "rps" if wanted == "rps" or without else "irq"

    def _steer(self, cpus: tuple[int, ...], share: bool = False) -> None:
        """Bring packet work to CPUs: every queue to one of them, or, with ``share``, to all as the kernel likes."""
        self._steered = cpus
        for number, interface in enumerate(self._interfaces):
            if self._steering == "rps":
                self._knobs.apply(self._router, rps(interface, each(cpus)))
                continue
            # The second port begins with another CPU than the first: ports may have one queue each.
            begin = number % len(cpus)
            self._knobs.apply(self._router, rps_off(interface), missing="skip")
            self._knobs.apply(
                self._router,
                InterruptAffinity(interface, each(cpus) if share else in_turn(cpus[begin:] + cpus[:begin])),
            )


def _interface(router: Host, port: PortConfig, key: str) -> str:
    """The interface with the port's MAC or PCI address."""
    if port.pci is not None:
        names = router.run("ls", f"/sys/bus/pci/devices/{port.pci}/net", check=False).stdout.split()
        if len(names) != 1:
            raise TestbedError(
                f"{key}: {router.name} has {'several interfaces' if names else 'no interface'} at PCI address "
                f"{port.pci}; see ethtool -i, and is the card bound to a kernel driver?"
            )
        return names[0]
    links = router.run_json("ip", "-j", "link", "show")
    names = [link["ifname"] for link in links if link.get("address") == port.mac]
    if len(names) != 1:
        raise TestbedError(
            f"{key}: {router.name} has {'several interfaces' if names else 'no interface'} with the address "
            f"{port.mac}; name the port by interface, see ip link"
        )
    return str(names[0])


def _lacks(host: Host, knobs: Iterable[Knob]) -> list[str]:
    """Why a host cannot have these knobs, one sentence for each that it lacks."""
    return [lack for knob in knobs if (lack := knob.lacking(host)) is not None]

"""The testbed local-vm: a kernel build in a guest, two virtio-net ports, and the generator at their other ends.

    TG t0 ──TAP── eth0 GUEST eth1 ──TAP── t1 TG

The TAPs lie in the TG's namespace, where QEMU runs too; there is no bridge and no vhost. A packet that the generator
sends waits in the TAP's queue (txqueuelen) until QEMU moves it to the guest's receive ring. QEMU leaves packets in the
TAP's queue while the ring is full, so the two are one receive buffer of the SUT: what finds both full is dropped by the
TAP and counted as refused. The generator never waits. What the guest sends, QEMU writes to the other TAP at once.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path as FilePath
from typing import Any, Self

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.catalogue import NETWORKS, Hop, Port, Station, segment
from pdrgate.errors import TestbedError, closed_on_error
from pdrgate.guests.accelerator import AcceleratorChoice, KvmRecord, choose_accelerator
from pdrgate.guests.furnishing import furnish
from pdrgate.guests.guest import BOOT_PATIENCE, Guest, GuestConfig, GuestError
from pdrgate.guests.guest_clock import GuestClock
from pdrgate.guests.metering import CpuSpeed, SpeedChoice, SpeedObserver, SpeedRecord, VcpuMeter, unheld_speed
from pdrgate.guests.metering.function_counts import BusyProgram, FunctionObserver, why_unmetered
from pdrgate.guests.metering.stacks import StackObserver
from pdrgate.guests.metering.symbols import KernelSymbols, read_symbols, tells_symbols
from pdrgate.guests.qemu import RINGS, TX_RING, NetworkPort, cpu_model, qemu_version
from pdrgate.hosts.answers import understood
from pdrgate.hosts.cpus import CpuPlan, format_cpu_list
from pdrgate.hosts.host import Host, ShellHost, local_host, netns_host
from pdrgate.knobs import (
    InterruptAffinity,
    KnobSet,
    PlannedKnob,
    each,
    knobs_text,
    plan_knobs,
    rps_knobs,
    sysctl,
)
from pdrgate.observers.counters import read_counters
from pdrgate.observers.environment import Environment, capture_environment
from pdrgate.observers.namespace_counters import NamespaceCounters
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.observers.watching import CounterObserver, Observer
from pdrgate.safety.journal import NAMESPACE_PREFIX, Journal
from pdrgate.testbeds.drop_watch import DropWatch, drop_reasons_of
from pdrgate.testbeds.protocol import Pinning
from pdrgate.traffic.embedded import EmbeddedGenerator, Engine
from pdrgate.traffic.frames import Path
from pdrgate.traffic.generator import Generator

DEFAULT_RING = 256
DEFAULT_BUFFER = 1000 + DEFAULT_RING
"""Packets that wait for the guest unless a scenario says otherwise: Linux's own queue of a TAP, and the ring."""

_TAPS = ("t0", "t1")
_TAP_MACS = ("02:70:64:72:01:00", "02:70:64:72:01:03")
_GUEST_MACS = ("02:70:64:72:01:01", "02:70:64:72:01:02")
_MAX_BUFFER = 100_000

_LARGEST = 64
"""Bits of a kernel's counter."""

_in_turn = threading.Lock()
"""Held by who waits for a guest: what the first one shows of accelerator and speed holds for those beside it."""


class VmTestbed:
    """A build booted in a guest between the generator's two ports, from `__init__` to `close`.

    It boots from `__init__` on, so that two can at once, and is there after `ready`. The start is tried twice.

    Args:
        build: the kernel under test.
        cpus: who gets which CPU; QEMU runs on the SUT's.
        journal: where changes are noted for the case that this process is killed.
        folder: where console logs go.
        speed: at which the guest's CPU is held while a trial lasts; ``auto`` is ``full`` where that cannot be.
        ring: packets that each port's receive ring holds; one of `RINGS`.
        section: the knobs of the testbed file, all of them the guest's.
        patience: seconds for which a guest that boots may be silent.

    Raises:
        BuildError: the build cannot be booted in a guest.
        GuestError: it does not come up.
        TestbedError: QEMU, a namespace or a setting cannot be had. What was made is removed again.
    """

    def __init__(
        self,
        build: KernelBuild,
        cpus: CpuPlan,
        journal: Journal,
        folder: FilePath,
        *,
        machine: GuestConfig | None = None,
        engine: Engine = "auto",
        speed: CpuSpeed = "full",
        ring: int = DEFAULT_RING,
        section: Mapping[str, Any] | None = None,
        patience: float = BOOT_PATIENCE,
    ) -> None:
        if ring not in RINGS:
            raise TestbedError(f"a receive ring of {ring} packets cannot be had; use {', '.join(map(str, RINGS))}")
        self._cpus = cpus
        self._engine: Engine = engine
        self._ring = ring
        self._machine = machine or GuestConfig(cpus=cpus.sut)
        if speed != "full" and self._machine.vcpus == 1:
            self._machine = replace(self._machine, metered=True)
        elif isinstance(speed, int):
            raise TestbedError(
                f"a guest of {self._machine.vcpus} virtual CPUs cannot be held at a constant speed; give it one "
                "(sut.vcpus), or leave out sut.cpu_speed"
            )
        self._wanted_speed: CpuSpeed = speed
        self._speeds = SpeedRecord(journal.path.parent, journal.path.name)
        self._speed = SpeedChoice(0, "")
        """At which it is held, once it is up."""
        self._holding: SpeedObserver | None = None
        self._named = False
        """Whether its kernel tells where its functions lie."""
        self._symbols: KernelSymbols | None = None
        """Where, as of when counting was last asked for."""
        self._build, self._journal, self._folder = build, journal, folder
        self._patience = patience
        self._record = KvmRecord(journal.path.parent)
        self._local = local_host()
        self._namespace = f"{NAMESPACE_PREFIX}-{secrets.token_hex(3)}-tg"
        self._made = False
        """Whether the namespace is there, or may be."""
        self._closing = threading.RLock()
        self._tg: ShellHost | None = None
        self._tg_counters: NamespaceCounters | None = None
        self._guest: Guest | None = None
        self._hops: tuple[Hop, ...] = ()
        self._inner = KnobSet()
        """Settings inside guest and namespace, which end with them."""
        self._section = section or {}
        self._skipped: list[str] = []
        """Which knobs of the file are lacking in the guest."""
        self._drops = DropWatch(lambda: drop_reasons_of(self.guest, self._function_names))
        """They end with the guest."""
        with closed_on_error(self.close):
            self._build_tg(journal)
            self._guest = self._start(self._choose())

    def ready(self) -> Self:
        """Wait until the guest is up, and set its ports up; before all else. Raises as `__init__` says."""
        if self._hops:
            return self  # a guest says once that it is up
        with closed_on_error(self.close), understood(self.guest.name):
            with _in_turn:
                self._boot()
                self._speed = self._choose_speed()
            clock = GuestClock(self.guest)
            self._named = self.guest.meter is not None and tells_symbols(self.guest)
            self._build_ports()
            self.set_buffer(DEFAULT_BUFFER)
            clock.check()
        return self

    def stand_back(self) -> None:
        """Have the guest stay behind others until `hurry`, and run on any CPU of the testbed until `take_place`."""
        self.guest.stand_back()

    def hurry(self) -> None:
        """Have the guest go before other processes from now on, where the testbed file lets it."""
        if self._guest is not None:  # else it is closed, as whoever waits for it learns
            self._guest.hurry()

    def take_place(self) -> None:
        """Have the guest run on the SUT's CPUs only."""
        self.guest.take_place()

    def _boot(self) -> None:
        """Wait for the guest; only its start is tried again, never a measurement.

        Whether KVM boots kernels, the first guest shows that it was chosen for. When that one is silent and the same
        build comes up by emulation, it was KVM, and all guests until the next start of this machine are emulated; once
        one has come up by KVM, a silent one is a fault of its build. So guests of one comparison never run by both.
        """
        choice = self._choose()
        if choice.name != self.guest.accelerator.name:
            # What a guest that was booted at the same time has shown meanwhile.
            self._restart(choice)
        patience = self._patience if choice.patience is None else min(choice.patience, self._patience)
        try:
            self.guest.wait(patience)
        except GuestError as error:
            if choice.patience is None or error.crash is not None:
                self._restart(choice)
                self.guest.wait(self._patience)
                return
            why = f"by KVM, chosen because {choice.why}, {error.brief}"
            self._restart(AcceleratorChoice("tcg", why))
            self.guest.wait(self._patience)
            self._record.write(False, why)
        else:
            if choice.patience is not None:
                self._record.write(True, "it has booted a guest since this machine was started")

    def _choose_speed(self) -> SpeedChoice:
        meter = self.guest.meter
        if meter is None:
            if isinstance(self._wanted_speed, int):
                raise TestbedError(
                    "only an emulated guest can be held at a constant speed, and this one runs by KVM; use "
                    "accelerator: tcg in the testbed file, or cpu_speed: full"
                )
            return SpeedChoice(0, "")
        return self._speeds.choose(self._wanted_speed, partial(self._unheld_speed, meter))

    def _unheld_speed(self, meter: VcpuMeter) -> float:
        self.guest.count()
        return unheld_speed(meter, self.busy)

    def _choose(self) -> AcceleratorChoice:
        return choose_accelerator(self._machine.accelerator, self._record)

    def _restart(self, choice: AcceleratorChoice) -> None:
        before = self.guest
        before.close()
        self._guest = self._start(choice)
        if before.stands_back:
            self._guest.stand_back()

    def _start(self, choice: AcceleratorChoice) -> Guest:
        ports = [NetworkPort(tap, mac, self._ring) for tap, mac in zip(_TAPS, _GUEST_MACS, strict=True)]
        return Guest(
            self._build, self._machine, self._journal, self._folder,
            ports=ports, namespace=self._namespace, accelerator=choice,
        )  # fmt: skip

    @property
    def guest(self) -> Guest:
        """The guest, to ask for its faults, warnings and taint."""
        if self._guest is None:
            raise TestbedError("there is no guest: the testbed is closed")
        return self._guest

    @property
    def machine(self) -> Host:
        """The guest."""
        return self.guest

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The guest, as the only router."""
        return self._hops

    @property
    def boot_id(self) -> str:
        """This boot of the build."""
        return self.guest.boot_id

    @property
    def sut_cpus(self) -> tuple[int, ...]:
        """This machine's CPUs that QEMU runs on."""
        return self._cpus.sut

    @property
    def steady(self) -> bool:
        """Where the guest's CPU is held at a constant speed."""
        return self._speed.speed > 0

    @property
    def disposable(self) -> bool:
        """A guest has nothing that stays."""
        return True

    def environment(self) -> Environment:
        """What the guest is."""
        hop = self._hops[0]
        return capture_environment(self.guest, (hop.ingress.interface, hop.egress.interface))

    def furnish(self, programs: Collection[str], words: Collection[str]) -> None:
        """A guest has nothing of this machine but what is put there."""
        furnish(self.guest, self._build, programs, words)

    def generator(self, family: int) -> Generator:
        """A generator for traffic of an IP version; the caller closes it."""
        return EmbeddedGenerator(
            self._namespace,
            self._cpus.generator,
            self._paths(family),
            self._engine,
            asleep=self.steady,
            on_sent=self._let_drain,
        )

    def _let_drain(self) -> None:
        """A queue of 4096 packets takes a guest of constant speed longer than most trials."""
        if self._holding is not None:
            self._holding.let_go()

    def _paths(self, family: int) -> tuple[Path, Path]:
        networks = NETWORKS[family]

        def path(at: int, source: IPv4Network | IPv6Network, to: IPv4Network | IPv6Network) -> Path:
            first, by = source.network_address + 1, (segment(1),) if family == 6 else ()
            return Path(_TAPS[at], _TAP_MACS[at], _GUEST_MACS[at], first, to.network_address, by)

        return path(0, networks.reverse, networks.forward), path(1, networks.forward, networks.reverse)

    def set_buffer(self, packets: int) -> None:
        """Set how many packets wait at each port of the guest before they are dropped: its ring and the TAP's queue.

        The ring stays as it was booted, so that all kernels can be measured; the TAP's queue has the rest.
        """
        if not self._ring < packets <= _MAX_BUFFER:
            raise TestbedError(
                f"a receive buffer of {packets} packets cannot be had: the guest's ring has {self._ring} of them and "
                f"the queue before it at least one; use {self._ring + 1} to {_MAX_BUFFER}, or a smaller ring in the "
                "testbed file"
            )
        assert self._tg is not None
        queue = packets - self._ring
        for tap in _TAPS:
            self._tg.run("ip", "link", "set", tap, "txqueuelen", str(queue))
            told = self._tg.run_json("ip", "-j", "link", "show", tap)[0].get("txqlen")
            if told != queue:
                raise TestbedError(f"set the queue of {tap} to {queue} packets, but it reads back {told}")

    def pin(self, pinning: Pinning) -> None:
        """Choose the guest's CPUs that do the packet work: those that its ports interrupt; RPS is off.

        ``1 cpu``: both ports interrupt CPU 0. ``2 cpus``: one CPU for each port. ``unpinned``: any CPU, as the guest's
        kernel likes.
        """
        vcpus = self._machine.vcpus
        if pinning != "unpinned" and (wanted := int(pinning.split()[0])) > vcpus:
            raise TestbedError(
                f"pinning to {pinning} needs {wanted} virtual CPUs, and the guest has {vcpus}; give it more with "
                "sut.vcpus in the testbed file"
            )
        hop = self._hops[0]
        for number, port in enumerate((hop.ingress, hop.egress)):
            cpus = {"unpinned": tuple(range(vcpus)), "1 cpu": (0,), "2 cpus": (number,)}[pinning]
            if vcpus > 1:  # of one CPU, 30 commands would only find that it is asked for all of them
                self._inner.apply(self.guest, InterruptAffinity(port.interface, each(cpus)))
            for knob in rps_knobs(self.guest, port.interface, ()):
                self._inner.apply(self.guest, knob, missing="skip")

    def check(self) -> tuple[str, ...]:
        """New faults on the guest's console that it survived. Raises GuestError when it did not."""
        return tuple(crash.sentence() for crash in self.guest.check())

    def counters(self) -> Reading:
        """The guest's counters; the TAPs' at places of ``tg``; of the CPUs that QEMU runs on, what others had of them.

        Times are this machine's, for in an emulated guest they mean nothing: ``steal_ticks``, and, where QEMU has one
        CPU, ``other_ticks``, the processes' other than QEMU. Reading all this takes 2 to 4 of the latter, so that only
        more of them tell of a disturbance. What the TAP dropped at full queues is its ``tx_dropped``, exact with the
        packet engine; with xdp the kernel counts one for each batch.
        """
        hop = self._hops[0]
        assert self._tg_counters is not None
        # The machine's first: reading the guest's is work for QEMU.
        own = self.guest.cpu_ticks()
        machine = self._tg_counters.begin(_TAPS).result()
        # Programs take an emulated guest 30 ms each, and a run has hundreds of trials.
        with understood(self.guest.name):
            inside = read_counters(self.guest, (hop.ingress.interface, hop.egress.interface), programs=False)
            if any(value.bit_length() > _LARGEST for value in inside.values()):
                raise ValueError(f"a counter of more than {_LARGEST} bits")
        found = {counter: value for counter, value in inside.items() if counter.place.kind != "cpu"}
        for counter, value in machine.items():
            if counter.place.kind == "interface":
                found[Counter(counter.place.of("tg"), counter.name)] = value
        for place in map(Place.cpu, self._cpus.sut):
            stolen = Counter(place, "steal_ticks")
            found[stolen] = machine[stolen]
        if len(self._cpus.sut) == 1:
            place = Place.cpu(self._cpus.sut[0])
            found[Counter(place, "other_ticks")] = machine[Counter(place, "process_ticks")] - own
        return found

    def observers(self, shared: bool = False) -> tuple[Observer, ...]:
        """The counters around each trial; within them, so that reading does not take long, the CPU's constant speed."""
        counters: tuple[Observer, ...] = (CounterObserver(self.counters), *self._drops.observers())
        meter = self.guest.meter
        self.guest.count()
        if meter is None or not self._speed.speed:
            return counters
        self._holding = self._holding or SpeedObserver(meter, self._speed.speed, self.guest.go_first)
        return (*counters, self._holding)

    def _function_names(self) -> KernelSymbols:
        """Those of the guest's kernel, which it would take 2.4 s to tell itself."""
        return read_symbols(self.guest, self.guest.build.image)

    def counting(self) -> tuple[Observer, ...]:
        """What the guest's kernel executes, by function."""
        guest = self.guest
        if guest.meter is None or self.uncounted:
            return ()
        self._symbols = read_symbols(guest, guest.build.image)
        self._program.start()
        return (FunctionObserver(guest.meter, self._symbols),)

    def tracing(self) -> tuple[Observer, ...]:
        """Who called whom, by the same names."""
        meter = self.guest.meter
        return (StackObserver(meter, self._symbols),) if meter is not None and self._symbols is not None else ()

    @property
    def uncounted(self) -> str:
        """Why it is not counted what the guest's kernel executes; empty when it is."""
        if self.guest.meter is None:
            return why_unmetered(self.guest.accelerator.name, self._machine.vcpus)
        return "" if self._named else f"{self.guest.build.name} tells no addresses of its functions (CONFIG_KALLSYMS)"

    @property
    def exact(self) -> bool:
        """An emulator counts."""
        return True

    def busy(self) -> contextlib.AbstractContextManager[object]:
        """Have a program use the guest's CPU all the time."""
        return self._program.runs()

    @cached_property
    def _program(self) -> BusyProgram:
        return BusyProgram(self.guest)

    def describe(self) -> dict[str, str]:
        """What makes results of this testbed comparable: part of the fingerprint."""
        return {
            "accelerator": self.guest.accelerator.name,
            "boot": self.guest.protocol,
            "qemu": qemu_version(),
            "cpu_model": cpu_model(self.guest.accelerator.name),
            "cpu_speed": str(self._speed),
            "vcpus": str(self._machine.vcpus),
            "memory": f"{self._machine.memory} MiB",
            "ring": str(self._ring),
            "sut_cpus": str(len(self._cpus.sut)),
            **({"knobs": knobs_text(self._section)} if self._section else {}),
        }

    def sentence(self) -> str:
        """The testbed in words."""
        guest = self.guest
        note = f", for {guest.build.note}," if guest.build.note else ""
        return (
            f"{guest.build.name} ({guest.build.release}){note} in a guest by {guest.accelerator.name.upper()} "
            f"({guest.accelerator.why}), {self._held}booted in {guest.boot_time or 0:.1f} s"
            f"{'' if guest.protocol == 'pvh' else ' as a bzImage'}; generator on CPU "
            f"{self._cpus.generator}, guest on CPU {format_cpu_list(self._cpus.sut)}"
            + "".join(f"; {one}" for one in (guest.confinement.sentence, *self._skipped, self._drops.missing) if one)
        )

    @property
    def _held(self) -> str:
        return f"its CPU held at {self._speed} ({self._speed.why}), " if self._speed.speed else ""

    def close(self) -> None:
        """End the guest and remove the namespace; may be called twice. Raises TestbedError when something stays."""
        # One that comes up ahead of its turn, in a thread, closes itself when it is ended from here.
        with self._closing:
            self._close()

    def _close(self) -> None:
        if self._guest is not None:
            self._guest.close()
            self._guest = None
            if self._holding is not None and self._wanted_speed == "auto":
                self._speeds.step_down(self._speed.speed, self._holding.late, self._holding.trials)
        if self._tg_counters is not None:
            self._tg_counters.close()
            self._tg_counters = None
        if self._tg is not None:
            self._tg.close()
            self._tg = None
        if self._made:
            try:
                # A recovery may have been here: of a run that was interrupted while this testbed was open.
                if self._local.exists(f"/run/netns/{self._namespace}"):
                    self._local.run("ip", "netns", "delete", self._namespace)
                self._made = False  # only now: what failed or was interrupted is tried once more
            finally:
                self._local.close()

    def _build_tg(self, journal: Journal) -> None:
        journal.namespace(self._namespace)
        self._made = True  # before: an interruption may come when it is just made
        self._local.run("ip", "netns", "add", self._namespace)
        self._tg = netns_host(self._namespace)
        self._tg_counters = NamespaceCounters(self._namespace)
        # No address of its own, no router solicitation, no listener report: only test packets on these links.
        self._inner.apply(self._tg, sysctl("net.ipv6.conf.default.disable_ipv6", 1), missing="skip")

    def _build_ports(self) -> None:
        assert self._tg is not None
        for tap, mac in zip(_TAPS, _TAP_MACS, strict=True):
            self._tg.run("ip", "link", "set", tap, "address", mac, "up")
        by_mac = self.guest.interfaces()
        if missing := [mac for mac in _GUEST_MACS if mac not in by_mac]:
            raise TestbedError(f"{self.guest.name} has no interface with the address {missing[0]}; see its console")
        interfaces = [by_mac[mac] for mac in _GUEST_MACS]
        ends = [Port(*end) for end in zip(interfaces, _GUEST_MACS, _TAP_MACS, strict=True)]
        station = Station(self._tg, Port(_TAPS[0], _TAP_MACS[0], _GUEST_MACS[0]), self._cpus.generator)
        self._hops = (Hop(self.guest, *ends, station=station),)
        self._inner.apply(self.guest, sysctl("net.ipv6.conf.default.disable_ipv6", 1), missing="skip")
        for port in ends:
            self._inner.apply(self.guest, sysctl(f"net/ipv6/conf/{port.interface}/disable_ipv6", 1), missing="skip")
            self._check_ring(port.interface)
        planned = plan_knobs(self._section, interfaces)
        self._turn([one for one in planned if not one.of_port])
        for port in ends:
            self.guest.run("ip", "link", "set", port.interface, "up")
        self._turn([one for one in planned if one.of_port])

    def _turn(self, planned: Iterable[PlannedKnob]) -> None:
        for one in planned:
            if not self._inner.apply(self.guest, one.knob, one.missing) and not one.keeps:
                self._skipped.append(self._inner.skipped[-1])

    def _check_ring(self, interface: str) -> None:
        """QEMU 10.0 offers 1024 whatever it was given; the kernel then makes a ring smaller."""
        if self._told_ring(interface) == self._ring:
            return
        self.guest.run("ethtool", "-G", interface, "rx", str(self._ring), "tx", str(TX_RING), check=False)
        if (told := self._told_ring(interface)) != self._ring:
            raise TestbedError(
                f"{self.guest.name} was given receive rings of {self._ring} packets, and {interface} reads back "
                f"{told or 'none'}"
            )

    def _told_ring(self, interface: str) -> int | None:
        told = self.guest.run("ethtool", "-g", interface).stdout
        match = re.search(r"Current hardware settings:\s+RX:\s+(\d+)", told)
        return int(match[1]) if match else None

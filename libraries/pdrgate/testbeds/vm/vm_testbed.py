"""The testbed local-vm: a kernel build in a guest, two virtio-net ports, and the generator at their other ends.

    TG t0 ──TAP── eth0 GUEST eth1 ──TAP── t1 TG

The TAPs lie in the TG's namespace, where QEMU runs too; there is no bridge and no vhost. A packet that the generator
sends waits in the TAP's queue (txqueuelen) until QEMU moves it to the guest's receive ring. QEMU leaves packets in the
TAP's queue while the ring is full, so the two are one receive buffer of the SUT: what finds both full is dropped by the
TAP and counted as refused. The generator never waits. What the guest sends, QEMU writes to the other TAP at once.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path as FilePath
from typing import Any, Self

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.catalogue import Hop
from pdrgate.guests.emulator.qemu import RINGS, cpu_in_words, qemu_version
from pdrgate.guests.furnishing import Furnished
from pdrgate.guests.guest import BOOT_PATIENCE, Guest
from pdrgate.guests.guest_clock import GuestClock, WrongClockError
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.metering import CpuSpeed, SpeedRecord
from pdrgate.guests.metering.function_counts import BusyProgram
from pdrgate.guests.metering.memory.cache_levels import SERVER
from pdrgate.guests.metering.symbols import read_symbols
from pdrgate.hosts.answers import understood
from pdrgate.hosts.cpus import CpuPlan, format_cpu_list
from pdrgate.hosts.host import Host
from pdrgate.knobs import (
    InterruptAffinity,
    KnobSet,
    each,
    knobs_text,
    plan_knobs,
    rps_off,
    sysctl,
)
from pdrgate.observers.counters import read_counters
from pdrgate.observers.environment import Environment, capture_environment
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.observers.watching import CounterObserver, Observer
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.drop_watch import DropWatch, drop_reasons_of
from pdrgate.testbeds.testbed_base import Pinning, Testbed
from pdrgate.testbeds.vm.guest_counting import GuestCounting
from pdrgate.testbeds.vm.guest_ring import check_ring
from pdrgate.testbeds.vm.guest_start import GuestStart
from pdrgate.testbeds.vm.held_speed import HeldSpeed, with_meter
from pdrgate.testbeds.vm.standing_guest import StandingGuest
from pdrgate.testbeds.vm.tap_namespace import GUEST_MACS, TapNamespace
from pdrgate.traffic.embedded import QUIET, Bursts, EmbeddedGenerator, Engine
from pdrgate.values.errors import TestbedError, closed_on_error

DEFAULT_RING = 256
DEFAULT_BUFFER = 1000 + DEFAULT_RING
"""Packets that wait for the guest unless a scenario says otherwise: Linux's own queue of a TAP, and the ring."""

_MAX_BUFFER = 100_000
_WHOLE_TRIAL = 8192
"""Packets of a TAP's queue: more than a trial sends in which CPUs execute in turn.

A TAP has room for as many in each of its queues, and 100 000 took this machine's kernel 6.6 s.
"""

_SLOW = 0.5
"""Seconds without a packet that end a drain, where a guest may be as slow as with each access seen."""

_LARGEST = 64
"""Bits of a kernel's counter."""

_GATHERS = 0.001
"""Seconds in which a counted guest's packets are gathered before QEMU sends them. Each time it interrupts the guest,
which costs a packet 1300 instructions: else 0.02 to 0.3 times a packet, by when its main loop gets a CPU."""

_BOOTS = 4
"""Boots of which one has to measure its clock rightly: with 25 processes for two CPUs, several in a row did not."""

_in_turn = threading.Lock()
"""Lock of the wait for a guest: what the first guest shows of accelerator and speed holds for those beside it."""


class VmTestbed(Testbed):
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
        counted: whether what is measured is counted and not timed, so that how late packets leave does not matter.
        patience: seconds for which a guest that boots may be silent.

    Raises:
        BuildError: the build cannot be booted in a guest.
        GuestError: it does not come up.
        TestbedError: QEMU, a namespace or a setting cannot be had. What was made is removed again.
    """

    disposable = boots = True

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
        counted: bool = False,
    ) -> None:
        if ring not in RINGS:
            raise TestbedError(f"a receive ring of {ring} packets cannot be had; use {', '.join(map(str, RINGS))}")
        self._cpus = cpus
        self._engine: Engine = engine
        self._ring = ring
        own = machine or GuestConfig(cpus=cpus.sut)
        self._machine = with_meter(replace(own, ticks=counted and own.vcpus == 1), speed)
        self._speed = HeldSpeed(speed, SpeedRecord(journal.path.parent, journal.path.name))
        self._counting: GuestCounting | None = None
        self._closing = threading.RLock()
        self._taps = TapNamespace(journal)
        self._start = GuestStart(
            build, self._machine, journal, folder,
            ports=self._taps.network_ports(
                ring, self._machine.vcpus, _GATHERS if counted else 0.0, spread=self._machine.shares
            ),
            namespace=self._taps.name, patience=patience,
        )  # fmt: skip
        self._hops: tuple[Hop, ...] = ()
        self._inner = KnobSet()
        """Settings inside the guest, which end with it."""
        self._section = section or {}
        self._waiting = DEFAULT_BUFFER - ring
        """Packets that wait in the queue of each TAP."""
        self._drops = DropWatch(
            lambda: drop_reasons_of(self.guest, partial(read_symbols, self.guest, self.guest.build.image))
        )
        """The drop reasons, which end with the guest. The guest itself would take 2.4 s to print the names of its
        functions."""
        with closed_on_error(self.close):
            self._taps.make()
            self._start.begin()

    def ready(self) -> Self:
        """Wait until the guest is up, and set its ports up; before all else. Raises as `__init__` says."""
        if self._hops:
            return self  # a guest says once that it is up
        with closed_on_error(self.close), understood(self.guest.name):
            for left in reversed(range(_BOOTS)):
                try:
                    self._come_up()
                    break
                except WrongClockError:
                    if not left:
                        raise
                    self._hops = ()
                    self._inner.skipped.clear()
                    self._start.again()
        return self

    def _come_up(self) -> None:
        """Wait for the guest and set its ports up. Raises TestbedError."""
        # How one of several CPUs runs is certain, so that it keeps nobody waiting.
        with contextlib.nullcontext() if self._machine.shares else _in_turn:
            self._start.wait()
            program = BusyProgram(self.guest)
            self._speed.choose(self.guest, program.runs)
        clock = GuestClock(self.guest)
        self._counting = GuestCounting(self.guest, program, self._machine.vcpus, self._lead_to)
        self._build_ports()
        self.set_buffer(DEFAULT_BUFFER)
        clock.check()

    def standing(self) -> StandingGuest:
        """The testbed for scenarios that are counted on it, one after the other."""
        return StandingGuest(self)

    def stand_back(self) -> None:
        """Keep the guest behind others until `hurry`, and let it run on any CPU of the testbed until `take_place`."""
        self.guest.stand_back()

    def hurry(self) -> None:
        """Let the guest go before other processes from now on, if the testbed file allows it."""
        self._start.hurry()

    def take_place(self) -> None:
        """Make the guest run on the SUT's CPUs only."""
        self.guest.take_place()

    @property
    def guest(self) -> Guest:
        """The guest, to ask for its faults, warnings and taint."""
        return self._start.guest

    @property
    def machine(self) -> Host:
        """The guest, as the machine that is the SUT."""
        return self.guest

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The guest, as the only router."""
        return self._hops

    @property
    def boot_id(self) -> str:
        """Identity of this boot of the build among others."""
        return self.guest.boot_id

    @property
    def sut_cpus(self) -> tuple[int, ...]:
        """CPUs of this machine that QEMU runs on."""
        return self._cpus.sut

    @property
    def steady(self) -> bool:
        """Whether the guest's CPU is held at a constant speed."""
        return self._speed.constant

    def environment(self) -> Environment:
        """Environment of the guest."""
        hop = self._hops[0]
        return capture_environment(self.guest, (hop.ingress.interface, hop.egress.interface))

    def furnish(self, programs: Collection[str], words: Collection[str]) -> None:
        """A guest has nothing of this machine but what is put there."""
        self._furnished.add(programs, words)

    @cached_property
    def _furnished(self) -> Furnished:
        return Furnished(self.guest, self.guest.build)

    def generator(self, family: int, quiet: float = QUIET, bursts: Bursts | None = None) -> EmbeddedGenerator:
        """A generator for traffic of an IP version; the caller closes it. The others: see `EmbeddedGenerator`."""
        return EmbeddedGenerator(
            self._taps.name,
            self._cpus.generator,
            self._taps.paths(family),
            # A CPU is to have packets as long as the other has: only those that are sent one by one are spread.
            "packet" if self._machine.shares else self._engine,
            asleep=self.steady,
            ring=self._ring,
            quiet=max(quiet, _SLOW) if self._machine.shares else quiet,
            bursts=bursts,
            on_sent=self._speed.let_go,
        )

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
        self._waiting = packets - self._ring
        self._taps.hold(self._waiting)

    def _lead_to(self, cpus: int) -> None:
        """Steer packets to the first ``cpus`` CPUs, where all packets of a trial wait; 0: as the scenario has it."""
        self._taps.take_first_queues(cpus)
        self._taps.hold(max(_WHOLE_TRIAL, self._waiting) if cpus else self._waiting)

    def pin(self, pinning: Pinning) -> None:
        """Choose the guest's CPUs that do the packet work: those that its ports interrupt; RPS is off.

        ``1 cpu``: both ports interrupt CPU 0. ``2 cpus``: one CPU for each port. ``unpinned``: any CPU, as the guest's
        kernel likes. A guest that records which lines its CPUs share has a queue of each port on each CPU.
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
            # Of one CPU, 30 commands would only find that it is asked for all of them.
            if vcpus > 1 and not self._machine.shares:
                self._inner.apply(self.guest, InterruptAffinity(port.interface, each(cpus)))
            self._inner.apply(self.guest, rps_off(port.interface), missing="ignore")
        self.take_first_queues()

    def pace(self, short: bool) -> str:
        """Hold the guest's CPU at a lower speed on a short data path, see `HeldSpeed.pace`."""
        return self._speed.pace(short)

    def take_first_queues(self) -> None:
        """Make the one CPU of a guest receive by one queue of each port, now that its data path is set up."""
        self._taps.take_first_queues()

    def check(self) -> tuple[str, ...]:
        """New faults on the guest's console that it survived, and what nobody knows of its kernel for want of names.

        Raises GuestError when it did not survive them.
        """
        unknown = self._counting.unknown if self._counting is not None else ()
        return (*(crash.sentence() for crash in self.guest.check()), *unknown)

    def counters(self) -> Reading:
        """The guest's counters, the TAPs' at places of ``tg``, and the time that others had of QEMU's CPUs.

        Times are this machine's, for in an emulated guest they mean nothing: ``steal_ticks``, and, if QEMU has one CPU,
        ``other_ticks``, the processes' other than QEMU. Reading all this takes 2 to 4 of the latter, so that only more
        of them indicate a disturbance. Packets that the TAP dropped at full queues are its ``tx_dropped``, exact with
        the packet engine; with xdp the kernel counts one for each batch.
        """
        hop = self._hops[0]
        # The machine's first: reading the guest's is work for QEMU.
        own = self.guest.cpu_ticks()
        machine = self._taps.counters()
        # Programs take an emulated guest 30 ms each, and a run has hundreds of trials.
        with understood(self.guest.name):
            inside = read_counters(self.guest, (hop.ingress.interface, hop.egress.interface), programs=False)
            if any(value.bit_length() > _LARGEST for value in inside.values()):
                raise ValueError(f"a counter of more than {_LARGEST} bits")
        found = {counter: value for counter, value in inside.items() if counter.place.kind != "cpu"}
        found |= _of_taps(machine)
        for cpu in self._cpus.sut:
            stolen = Counter(Place("cpu", str(cpu)), "steal_ticks")
            found[stolen] = machine[stolen]
        if len(self._cpus.sut) == 1:
            place = Place("cpu", str(self._cpus.sut[0]))
            found[Counter(place, "other_ticks")] = machine[Counter(place, "process_ticks")] - own
        return found

    def outer_counters(self) -> Reading:
        """The TAPs' counters alone, at places of ``tg``: reading them is no work for the guest."""
        return _of_taps(self._taps.counters())

    def taken(self) -> int:
        """Packets that QEMU has taken from the TAPs so far."""
        return self._taps.taken()

    def observers(self, shared: bool = False) -> tuple[Observer, ...]:
        """The counters around each trial; within them, so that reading does not take long, the CPU's constant speed."""
        return (CounterObserver(self.counters), *self._drops.observers(), *self._speed.observers(self.guest))

    @property
    def executed(self) -> GuestCounting | None:
        """Counting of the guest's kernel, once the guest is up."""
        return self._counting

    def describe(self) -> dict[str, str]:
        """Properties that results of this testbed need in common to be comparable: part of the fingerprint."""
        return {
            "accelerator": self.guest.accelerator.name,
            "boot": self.guest.protocol,
            "qemu": qemu_version(self.guest.build.architecture),
            "cpu": cpu_in_words(self.guest.build.architecture, self.guest.accelerator.name, self._machine.cpu),
            "cpu_speed": str(self._speed.choice),
            "vcpus": str(self._machine.vcpus),
            "memory": f"{self._machine.memory} MiB",
            "ring": str(self._ring),
            "sut_cpus": str(len(self._cpus.sut)),
            **({"caches": str(self._machine.caches)} if self._machine.caches != SERVER else {}),
            **({"model": self._machine.model} if self._machine.model else {}),
            **({"knobs": knobs_text(self._section)} if self._section else {}),
        }

    def sentence(self) -> str:
        """The testbed in words."""
        guest = self.guest
        held = f"{sentence}, " if (sentence := self._speed.sentence()) else ""
        note = f", for {guest.build.note}," if guest.build.note else ""
        remarks = (guest.confinement.sentence, *self._inner.skipped, self._drops.missing)
        return (
            f"{guest.build.name} ({guest.build.release}){note} in a guest by {guest.accelerator.name.upper()} "
            f"({guest.accelerator.why}), {held}booted in {guest.boot_time or 0:.1f} s"
            f"{' as a bzImage' if guest.protocol == 'bzimage' else ''}; generator on CPU "
            f"{self._cpus.generator}, guest on CPU {format_cpu_list(self._cpus.sut)}"
            + "".join(f"; {one}" for one in remarks if one)
        )

    def close(self) -> None:
        """End the guest and remove the namespace. Calling it twice is harmless. Raises TestbedError when something
        stays."""
        # One that comes up ahead of its turn, in a thread, closes itself when it is ended from here.
        with self._closing:
            self._start.end()
            self._speed.close()
            self._taps.close()

    def _build_ports(self) -> None:
        self._taps.up()
        by_mac = self.guest.interfaces()
        if missing := [mac for mac in GUEST_MACS if mac not in by_mac]:
            raise TestbedError(f"{self.guest.name} has no interface with the address {missing[0]}; see its console")
        interfaces = [by_mac[mac] for mac in GUEST_MACS]
        ends = self._taps.guest_ports(interfaces)
        station = self._taps.station(self._cpus.generator)
        self._hops = (Hop(self.guest, *ends, station=station),)
        self._inner.apply(self.guest, sysctl("net.ipv6.conf.default.disable_ipv6", 1), missing="ignore")
        for interface in ("default", *(port.interface for port in ends)):
            # An address that is on trial for a second (RFC 4862, DAD) makes packets of that second cheaper.
            self._inner.apply(self.guest, sysctl(f"net/ipv6/conf/{interface}/accept_dad", 0), missing="ignore")
        for port in ends:
            self._inner.apply(self.guest, sysctl(f"net/ipv6/conf/{port.interface}/disable_ipv6", 1), missing="ignore")
            check_ring(self.guest, port.interface, self._ring)
        planned = plan_knobs(self._section, interfaces)
        for of_port in (False, True):
            for one in planned:
                if one.of_port is of_port:
                    self._inner.apply(self.guest, one.knob, one.missing)
            if not of_port:
                for port in ends:
                    self.guest.run("ip", "link", "set", port.interface, "up")


def _of_taps(machine: Reading) -> dict[Counter, int]:
    """Counters of this machine for the TAPs, at places of ``tg``."""
    return {
        Counter(counter.place.of("tg"), counter.name): value
        for counter, value in machine.items()
        if counter.place.kind == "interface"
    }

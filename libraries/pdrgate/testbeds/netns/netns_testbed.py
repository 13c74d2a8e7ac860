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
from collections.abc import Iterable, Mapping
from typing import Any

from pdrgate.data_paths.catalogue import Hop
from pdrgate.data_paths.steering import CpuMapSteering
from pdrgate.hosts.cpus import CpuPlan, format_cpu_list
from pdrgate.hosts.host import Host, local_host
from pdrgate.knobs import (
    KernelThreadNice,
    KnobSet,
    PlannedKnob,
    each,
    knobs_text,
    plan_knobs,
    rps,
    sysctl,
)
from pdrgate.observers.environment import Environment, capture_environment
from pdrgate.observers.heartbeat import HeartbeatWatch
from pdrgate.observers.processor import ProcessorCounting
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.observers.watching import CounterObserver, Observer
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.drop_watch import AnyDropReasons, DropWatch, drop_reasons_here, inode
from pdrgate.testbeds.netns.hop_chain import SUT_PORTS, HopChain
from pdrgate.testbeds.sharing import BACKLOG
from pdrgate.testbeds.testbed_base import Pinning, Testbed, first_cpus
from pdrgate.traffic.embedded import EmbeddedGenerator, Engine
from pdrgate.traffic.generator import Generator
from pdrgate.values.errors import TestbedError, all_closed, closed_on_error

_DEFAULT_BUFFER = 1000
"""Packets, as the kernel's own default for the backlog."""


class NetnsTestbed(Testbed):
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
        self._engine: Engine = engine
        self._local = local_host()
        self._knobs = KnobSet(journal)
        first, last = (CpuMapSteering(cpus.sut, _DEFAULT_BUFFER, isolate) for _ in SUT_PORTS)
        self._steerings = (first, last)
        """The steering of native XDP at the SUT's two edges."""
        self.chain = HopChain(hops, cpus, self._steerings, journal)
        """The namespaces, and the links between them."""
        self._section = section or {}
        self._heartbeats = HeartbeatWatch()
        self._steered: tuple[int, ...] = cpus.sut
        """The CPUs that forward as things are."""
        self._drops = DropWatch(self._count_drops)
        self._counting = ProcessorCounting(self._local, lambda: self._steered)
        with closed_on_error(self.close):
            self._build(plan_knobs(self._section, SUT_PORTS))
            if isolate:
                # Under load softirqs run in ksoftirqd, an ordinary process: what else runs on that CPU would be
                # measured as a slower router.
                for cpu in cpus.sut:
                    self._knobs.apply(self._local, KernelThreadNice(f"ksoftirqd/{cpu}", "-20"), missing="ignore")
            self._heartbeats.observers(self._steered)

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The routers, in the order of forward traffic."""
        return self.chain.hops

    @property
    def machine(self) -> Host:
        """Host of this machine."""
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
        """Environment of this machine, and of the first hop's ports, which all hops' are like."""
        hop = self.hops[0]
        return capture_environment(self._local, (hop.ingress.interface, hop.egress.interface), hop.host)

    def generator(self, family: int) -> Generator:
        """A generator for traffic of an IP version; the caller closes it."""
        return EmbeddedGenerator(self.chain.tg, self._cpus.generator, self.chain.paths(family), self._engine)

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
        first, last = self.hops[0], self.hops[-1]
        for hop, port in ((first, first.ingress), (last, last.egress)):
            self.chain.knobs.apply(hop.host, rps(port.interface, each(cpus)))
        for steering in self._steerings:
            steering.steer(cpus)

    def counters(self) -> Reading:
        """The SUT's counters, see `HopChain.counters`, but for what threads that steer for it have used of CPUs."""
        found = self.chain.counters()
        for steering in self._steerings:
            for cpu, ticks in steering.ticks().items():
                found[Counter(Place("cpu", str(cpu)), "process_ticks")] -= ticks  # a thread's, but the SUT's own work
        return found

    def observers(self, shared: bool = False) -> tuple[Observer, ...]:
        """The counters around each trial, those of dropped packets by the kernel's reasons, and within a heartbeat on
        the CPUs that forward."""
        return (
            CounterObserver(self.counters),
            *self._drops.observers(),
            *self._heartbeats.observers(self._steered, shared=shared),
        )

    def _count_drops(self) -> AnyDropReasons:
        numbers = map(inode, (self.chain.tg, *self.chain.suts))
        return drop_reasons_here(
            self._local, dict(zip(numbers, self.chain.nodes, strict=True)),
            lambda: [steering.number for steering in self._steerings if steering.active],
            inode(self.chain.tg),
        )  # fmt: skip

    @property
    def executed(self) -> ProcessorCounting:
        """Counting of the kernel on the CPUs that forward."""
        return self._counting

    def describe(self) -> dict[str, str]:
        """Properties that results of this testbed need in common to be comparable: part of the fingerprint."""
        return {
            "hops": str(len(self.hops)),
            "steering": "rps",
            "sut_cpus": str(len(self._cpus.sut)),
            **self._heartbeats.describe(),
            **self._counting.describe(),
            **({"knobs": knobs_text(self._section)} if self._section else {}),
        }

    def sentence(self) -> str:
        """The testbed in words."""
        skipped = (*self._knobs.skipped, *self.chain.knobs.skipped)
        lacking = (*skipped, self._heartbeats.missing, self._drops.missing)
        return (
            f"{len(self.hops)} routed hop{'s' * (len(self.hops) != 1)} in namespaces; "
            f"generator on CPU {self._cpus.generator}, SUT on CPU {format_cpu_list(self._cpus.sut)}"
            + "".join(f"; {sentence}" for sentence in lacking if sentence)
        )

    def close(self) -> None:
        """Remove the namespaces and put back all that was changed. Calling it twice is harmless.

        Raises:
            TestbedError: something could not be undone; all else was, and the next start tries again.
        """
        all_closed(
            self._knobs.restore, self._heartbeats.close, self._drops.close, self._counting.close, self.chain.close,
            self._local.close,
        )  # fmt: skip

    def _build(self, planned: tuple[PlannedKnob, ...]) -> None:
        self.chain.make()
        self._turn([one for one in planned if not one.of_port])
        self.chain.up()
        self._turn([one for one in planned if one.of_port])
        self._steer(self._cpus.sut)

    def _turn(self, planned: Iterable[PlannedKnob]) -> None:
        for one in planned:
            if one.of_whole_machine:
                self._knobs.apply(self._local, one.knob, one.missing)
                continue
            for number, hop in enumerate(self.hops):
                # What is lacking is reported for the first hop, for all are alike.
                missing = "ignore" if number and one.missing == "skip" else one.missing
                self.chain.knobs.apply(hop.host, one.knob, missing)

"""Keywords that run eBPF programs on packets, each by itself: no port, no load."""

from __future__ import annotations

from pathlib import Path

from robot.api.deco import keyword

from pdrgate.bpf.filling import check_setup
from pdrgate.builds.bpf_build import bpf_build
from pdrgate.builds.named_build import named_build
from pdrgate.builds.program_setup import Attach, program_setup
from pdrgate.gate.comparisons.packet_vectors.packet_vector import PacketVectors
from pdrgate.gate.comparisons.packet_vectors.vectors_comparison import VectorsComparison
from pdrgate.keywords.log import show_scenario
from pdrgate.keywords.state import State
from pdrgate.values.errors import TestbedError


class PacketKeywords:
    """A capture in place of traffic."""

    def __init__(self, state: State) -> None:
        self._state = state

    @keyword(name="Compare EBPF Builds On Packets")
    def compare_ebpf_builds_on_packets(
        self,
        candidate: str,
        baseline: str,
        packets: Path,
        attach: Attach = "auto",
        maps: Path | None = None,
        rodata: tuple[str, ...] = (),
        replaces: str = "",
        kernel: str = "",
    ) -> None:
        """Runs two eBPF programs on each packet of a capture, by BPF_PROG_RUN, on one kernel.

        ``packets`` is a pcap or pcapng file of Ethernet frames, 1024 at most. Each packet is run some times, with the
        packet and the maps as they were at first. What the program returns, and what it leaves of the packet, is
        compared. In a guest of constant speed the instructions of the program and of all that it calls are counted. The
        data path of the test lies beneath, so a program that asks the kernel's routing tables gets answers from it.

        Programs may be of any kind that BPF_PROG_RUN runs on a packet: XDP, tc, socket filters, cgroup_skb, sk_lookup,
        flow dissectors, LWT and netfilter. ``kernel`` is booted under both. All else is as in `Compare EBPF Builds`.

        | Compare EBPF Builds On Packets    candidate=new.o    baseline=old.o    packets=dns.pcap
        | Packets Should Be Answered Alike
        """
        session, test = self._state.current.session, self._state.test
        if test.measurement is not None:
            raise TestbedError("the scenario is being measured; run programs on packets in a test of its own")
        setup = program_setup(attach, maps, rodata, replaces).and_then(test.setup)
        first = check_setup(bpf_build(baseline, None, setup, on_packets=True))
        second = check_setup(bpf_build(candidate, first.kind, setup, on_packets=True))
        capture = PacketVectors.read(packets)
        comparison = VectorsComparison(
            session, test.scenario, {"baseline": first, "candidate": second}, capture, test=test.name,
            kernel=named_build(kernel) if kernel else None,
        )  # fmt: skip
        test.measurement = comparison
        comparison.measure()
        session.observer.said(str(comparison.judgement))
        show_scenario(comparison, (), searched=False)

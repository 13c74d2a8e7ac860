"""Runs of an eBPF program on packets that no port has received: BPF_PROG_RUN, of the bpf(2) system call."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pdrgate.bpf.packet_contexts import context_of
from pdrgate.bpf.programs import LoadedProgram, loaded
from pdrgate.builds.bpf_build import BpfBuild, ProgramKind
from pdrgate.hosts.answers import understood
from pdrgate.hosts.host import Host
from pdrgate.hosts.piped_program import PipedProgram
from pdrgate.traffic import native
from pdrgate.values.errors import SutError

_TIMEOUT = 120.0
"""Seconds: an emulated guest takes its time, and longer where maps have many elements."""
_NAMED = 4
"""Maps that a sentence lists."""
ALWAYS_RUN = 2
"""Runs of a packet beside those that are asked for."""
_NOT_SUPPORTED = 524
"""ENOTSUPP, which user space has no name for."""
_VERDICTS: Mapping[ProgramKind, Mapping[int, str]] = {
    "xdp": {0: "XDP_ABORTED", 1: "XDP_DROP", 2: "XDP_PASS", 3: "XDP_TX", 4: "XDP_REDIRECT"},
    "tc": {
        0: "TC_ACT_OK", 1: "TC_ACT_RECLASSIFY", 2: "TC_ACT_SHOT", 3: "TC_ACT_PIPE", 4: "TC_ACT_STOLEN",
        5: "TC_ACT_QUEUED", 6: "TC_ACT_REPEAT", 7: "TC_ACT_REDIRECT", 8: "TC_ACT_TRAP", 0xFFFFFFFF: "TC_ACT_UNSPEC",
    },
    "cgroup_skb": {0: "drop (0)", 1: "pass (1)"},
    "sk_lookup": {0: "SK_DROP", 1: "SK_PASS"},
    "flow_dissector": {0: "BPF_OK", 2: "BPF_DROP", 129: "BPF_FLOW_DISSECTOR_CONTINUE"},
    "lwt": {0: "BPF_OK", 2: "BPF_DROP", 7: "BPF_REDIRECT", 128: "BPF_LWT_REROUTE"},
    "netfilter": {0: "NF_DROP", 1: "NF_ACCEPT"},
}  # fmt: skip
"""The names of what programs return (linux/bpf.h, linux/pkt_cls.h, linux/netfilter.h)."""


class RefusedPacketError(SutError):
    """The kernel does not run the program on a packet."""


@dataclass(frozen=True, slots=True)
class PacketRun:
    """Results of several runs of a program on the same packet and maps."""

    verdict: int = 0
    output: bytes = b""
    """The packet after the first run; the keys that it found if the program is a flow dissector."""
    again: bytes = b""
    """The packet, or the keys, after the last run."""
    others: int = 0
    """Number of runs that returned another verdict than the first."""
    refused: int = 0
    """The errno with which the kernel refused to run it; 0 if it ran."""
    changed: int = 0
    """Elements of its maps that the first run changed, or made."""
    unsteady: bool = False
    """Whether later runs, of the same packet and the same maps, changed other elements."""
    nanoseconds: tuple[int, ...] = ()
    """Nanoseconds by the kernel's clock of each run between the first and the last."""


class PacketRuns:
    """Loaded program that is run on packets, from `__init__` to `close`.

    Each run gets its packet and the maps as they were at the start. It must be closed while the program is pinned.

    Args:
        port: number of the interface that packets come in at, passed to an XDP program if the kernel allows it.

    Raises:
        TestbedError: the host cannot run the runner.
    """

    def __init__(self, program: LoadedProgram, packets: Sequence[bytes], port: int = 0) -> None:
        self._host = program.host
        self._folder = self._host.folder("packets")
        contexts = [context_of(program.build.kind, packet, port) for packet in packets]
        self._host.put(f"{self._folder}/packets", b"".join(one.record for one in contexts))
        self._runner: PipedProgram | None = None
        try:
            self._runner = PipedProgram(
                self._host, native.build().vectors, program.pin, f"{self._folder}/packets",
                what="the runner of eBPF programs",
            )  # fmt: skip
            with understood(self._host.name):
                answer = self._runner.ask_at_once("maps")
                self.unkept = tuple(map(str, answer["unkept"]))
                """The names of its maps that do not become what they were before each run."""
        except BaseException:
            self.close()
            raise

    def run(self, number: int, times: int = 0) -> PacketRun:
        """Run the program on packet ``number``, counted from 0, twice and so many times more. Raises TestbedError."""
        assert self._runner is not None
        answer = self._runner.ask_at_once(f"run {number} {times}", _TIMEOUT)
        with understood(self._host.name):
            if "errno" in answer:
                return PacketRun(refused=int(answer["errno"]))
            return PacketRun(
                int(answer["verdict"]), bytes.fromhex(answer["output"]), bytes.fromhex(answer["again"]),
                int(answer["others"]), changed=int(answer["changed"]), unsteady=bool(answer["unsteady"]),
                nanoseconds=tuple(map(int, answer["ns"])),
            )  # fmt: skip

    def close(self) -> None:
        """End the runner. Calling it twice is harmless. Raises TestbedError when the host cannot be asked."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()
        self._host.run("rm", "-rf", self._folder, check=False)


def verdict_name(kind: ProgramKind, verdict: int) -> str:
    """The kernel's name of what a program returned; the number if it has none."""
    return _VERDICTS.get(kind, {}).get(verdict, str(verdict))


_PASSED = (
    "for the kernel's router behind the program add --scenario path-ipv{0}-routing, to count what it passes add "
    "--set fate=passed"
)
_DROPPED = "to count what it drops add --set fate=dropped"
_REMEDIES = {
    "XDP_PASS": _PASSED, "TC_ACT_OK": _PASSED, "TC_ACT_UNSPEC": _PASSED, "XDP_DROP": _DROPPED, "TC_ACT_SHOT": _DROPPED,
    "XDP_TX": "to count what it sends back add --set fate=returned",
    "XDP_ABORTED": "the program failed: look at what it does with such a packet",
}  # fmt: skip
"""Options with which packets count that a program answers so."""


def refusal_in_words(number: int) -> str:
    """Why a kernel did not run a program on a packet, by its errno."""
    return "it runs no programs of this kind so" if number == _NOT_SUPPORTED else os.strerror(number)


@dataclass(frozen=True, slots=True)
class PacketOutcome:
    """Outcome of a program's run on a packet."""

    verdict: str
    """The kernel's name of the returned value."""
    output: bytes
    """The packet as it left it."""
    empty: tuple[str, ...]
    """Its maps that have no element, by their names."""

    def remedy(self, family: int) -> str:
        """Options with which packets of an IP version count, if they get this verdict; empty where there are none."""
        return _REMEDIES.get(self.verdict, "").format(family)

    def __str__(self) -> str:
        sentence = f"the program returns {self.verdict}"
        if not self.empty:
            return sentence
        named = ", ".join(self.empty[:_NAMED]) + ("" if len(self.empty) <= _NAMED else " and others")
        return f"{sentence}; empty maps, which a file fills (--set maps=FILE): {named}"


def packet_outcome(
    host: Host, build: BpfBuild, names: Mapping[str, str], packet: bytes, port: int = 0
) -> PacketOutcome:
    """Load a build once more, with its maps filled, and run its program on a packet.

    Args:
        names: names of the SUT with their values.
        port: number of the interface that the packet comes in at, passed to an XDP program if the kernel allows it.

    Raises:
        RefusedPacketError: the kernel does not run this program, or not on such a packet.
        TestbedError: it does not load.
    """
    with loaded(host, build, "xdp" if build.kind == "xdp" else "classifier", names) as program:
        runs: PacketRuns | None = None
        try:
            runs = PacketRuns(program, [packet], port)
            done = runs.run(0)
        finally:
            if runs is not None:
                runs.close()
            program.leave()
    if done.refused:
        raise RefusedPacketError(
            f"{host.name} does not run {build.label} on a packet of {len(packet)} bytes "
            f"({refusal_in_words(done.refused)}); measure it on a data path"
        )
    return PacketOutcome(
        verdict_name(build.kind, done.verdict),
        done.output,
        tuple(name for name, one in program.maps.items() if one.empty),
    )

"""What an eBPF program does with a packet that no port has received: BPF_PROG_RUN, of the bpf(2) system call."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from pdrgate.bpf.programs import loaded
from pdrgate.builds.bpf_build import BpfBuild, ProgramKind
from pdrgate.errors import SutError
from pdrgate.hosts.answers import understood
from pdrgate.hosts.host import Host
from pdrgate.hosts.sent_program import sent
from pdrgate.traffic import native

_TIMEOUT = 60.0
"""Seconds: an emulated guest takes its time."""
_NAMED = 4
"""Maps that a sentence lists."""
_VERDICTS: Mapping[ProgramKind, Mapping[int, str]] = {
    "xdp": {0: "XDP_ABORTED", 1: "XDP_DROP", 2: "XDP_PASS", 3: "XDP_TX", 4: "XDP_REDIRECT"},
    "tc": {
        0: "TC_ACT_OK", 1: "TC_ACT_RECLASSIFY", 2: "TC_ACT_SHOT", 3: "TC_ACT_PIPE", 4: "TC_ACT_STOLEN",
        5: "TC_ACT_QUEUED", 6: "TC_ACT_REPEAT", 7: "TC_ACT_REDIRECT", 8: "TC_ACT_TRAP", 0xFFFFFFFF: "TC_ACT_UNSPEC",
    },
}  # fmt: skip
"""The names of what programs return (linux/bpf.h, linux/pkt_cls.h)."""


class RefusedPacketError(SutError):
    """The kernel does not run the program on a packet."""


@dataclass(frozen=True, slots=True)
class PacketOutcome:
    """What a program did with a packet."""

    verdict: str
    """What it returned, by the kernel's name of it."""
    output: bytes
    """The packet as it left it."""
    empty: tuple[str, ...]
    """Its maps that have no element, by their names."""

    def __str__(self) -> str:
        told = f"given such a packet, the program returns {self.verdict}"
        if not self.empty:
            return told
        named = ", ".join(self.empty[:_NAMED]) + ("" if len(self.empty) <= _NAMED else " and others")
        return f"{told}; its maps {named} are empty: --maps FILE fills them"


def packet_outcome(
    host: Host, build: BpfBuild, names: Mapping[str, str], packet: bytes, port: int = 0
) -> PacketOutcome:
    """Load a build once more, with its maps filled, and run its program on a packet.

    Args:
        names: what is known of the SUT.
        port: the number of the interface that it comes in at, of which an XDP program is told where that can be.

    Raises:
        RefusedPacketError: the kernel does not run this program, or not on such a packet.
        TestbedError: it does not load.
    """
    with loaded(host, build, "xdp" if build.kind == "xdp" else "classifier", names) as program:
        folder = host.folder("packets")
        try:
            runner = sent(host, native.build().vectors, folder, "the runner of eBPF programs")
            host.put(f"{folder}/packets", struct.pack("<I", len(packet)) + packet)
            done = host.run(runner, program.pin, f"{folder}/packets", "0", "1", "1", str(port), timeout=_TIMEOUT)
        finally:
            host.run("rm", "-rf", folder, check=False)
            program.leave()
        with understood(host.name):
            told = dict(json.loads(done.stdout))
            if "error" in told:
                raise RefusedPacketError(
                    f"{host.name} does not run {build.label} on a packet of {len(packet)} bytes (error "
                    f"{told['error']}); measure it on a data path"
                )
            verdict = int(told["verdict"])
            return PacketOutcome(
                _VERDICTS.get(build.kind, {}).get(verdict, str(verdict)),
                bytes.fromhex(told["output"]),
                tuple(name for name, one in program.maps.items() if one.empty),
            )

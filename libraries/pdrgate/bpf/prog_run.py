"""What an eBPF program does with packets that no port has received: BPF_PROG_RUN, of the bpf(2) system call.

Each packet is handed to the program as it is, every time: the kernel's own repetition gives a program what its last run
has left of a packet, so that a balancer sends on the first one and lets pass all that follow.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pdrgate.bpf.programs import LoadedProgram
from pdrgate.builds.bpf_build import ProgramKind
from pdrgate.errors import SutError
from pdrgate.hosts.answers import understood
from pdrgate.hosts.host import Host
from pdrgate.hosts.sent_program import sent
from pdrgate.traffic import native

_TIMEOUT = 120.0
"""Seconds: an emulated guest takes its time."""
_VERDICTS: dict[ProgramKind, dict[int, str]] = {
    "xdp": {0: "XDP_ABORTED", 1: "XDP_DROP", 2: "XDP_PASS", 3: "XDP_TX", 4: "XDP_REDIRECT"},
    "tc": {
        0: "TC_ACT_OK", 1: "TC_ACT_RECLASSIFY", 2: "TC_ACT_SHOT", 3: "TC_ACT_PIPE", 4: "TC_ACT_STOLEN",
        5: "TC_ACT_QUEUED", 6: "TC_ACT_REPEAT", 7: "TC_ACT_REDIRECT", 8: "TC_ACT_TRAP", 0xFFFFFFFF: "TC_ACT_UNSPEC",
    },
    "lwt": {0: "BPF_OK", 2: "BPF_DROP", 7: "BPF_REDIRECT", 128: "BPF_LWT_REROUTE"},
    "flow_dissector": {0: "BPF_OK", 2: "BPF_DROP", 129: "BPF_FLOW_DISSECTOR_CONTINUE"},
    "cgroup_skb": {0: "drop", 1: "pass"},
}  # fmt: skip
"""The names of what programs return (linux/bpf.h, linux/pkt_cls.h); of a socket filter it is a length."""


class RefusedPacketError(SutError):
    """The kernel does not run the program on a packet."""


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """What a program did with a packet."""

    verdict: int
    """The number that it returned."""
    output: bytes
    """The packet as it left it."""


def verdict_name(kind: ProgramKind, verdict: int) -> str:
    """The name of what a program of a kind returned: ``XDP_DROP``; a number where it has none."""
    return _VERDICTS.get(kind, {}).get(verdict, str(verdict))


class PacketRuns:
    """Packets on a host that programs are run on, while `packet_runs` is open."""

    def __init__(self, host: Host, runner: str, file: str, count: int) -> None:
        self._host = host
        self._runner = runner
        self._file = file
        self.count = count

    def outcomes(
        self, program: LoadedProgram, first: int = 0, count: int | None = None, times: int = 1
    ) -> list[ProgramOutcome]:
        """Run a program on some of the packets, one after the other, each so many times; tell its last runs.

        Raises:
            RefusedPacketError: the kernel does not run this program, or not on such a packet.
            CommandError: the program is not pinned any more.
        """
        wanted = self.count - first if count is None else count
        done = self._host.run(
            self._runner, program.pin, self._file, str(first), str(wanted), str(times), timeout=_TIMEOUT
        )
        with understood(self._host.name):
            told = [dict(json.loads(line)) for line in done.stdout.splitlines()]
            if len(told) != wanted:
                raise ValueError(f"{len(told)} outcomes of {wanted} packets")
            return [self._outcome(program, first + at, one) for at, one in enumerate(told)]

    def _outcome(self, program: LoadedProgram, number: int, told: dict[str, Any]) -> ProgramOutcome:
        if "error" in told:
            code = int(told["error"])
            # ENOTSUPP, which the C library has no words for.
            why = "it runs programs of this kind only where packets arrive" if code == 524 else os.strerror(code)
            if code == errno.EINVAL:
                why += ": too short, too long, or this kind of program takes none"
            raise RefusedPacketError(
                f"{self._host.name} does not run {program.build.label} on packet {number + 1}: {why}; leave that "
                "packet out, or measure the program on a data path"
            )
        return ProgramOutcome(int(told["verdict"]), bytes.fromhex(told["output"]))


@contextlib.contextmanager
def packet_runs(host: Host, packets: Sequence[bytes]) -> Iterator[PacketRuns]:
    """Bring packets to a host; within the context programs can be run on them. Raises CommandError."""
    folder = host.folder("packets")
    try:
        runner = sent(host, native.build().vectors, folder, "the runner of eBPF programs")
        content = b"".join(struct.pack("<I", len(packet)) + packet for packet in packets)
        file = f"{folder}/packets"
        host.write(f"{file}.b64", base64.b64encode(content).decode())
        host.run("sh", "-c", 'base64 -d <"$1.b64" >"$1"', "sh", file)
        yield PacketRuns(host, runner, file, len(packets))
    finally:
        host.run("rm", "-rf", folder, check=False)

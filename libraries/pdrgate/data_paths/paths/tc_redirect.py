"""Redirection by tc programs."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from pdrgate.bpf.programs import LoadedProgram, loaded
from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.contract import Hop, Port
from pdrgate.data_paths.forwarded_frames import redirected
from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.program_path import ProgramPath, Sent, is_ours
from pdrgate.data_paths.slowdowns import EGRESS_FILTER
from pdrgate.data_paths.steps import Step
from pdrgate.errors import TestbedError
from pdrgate.hosts.host import Host
from pdrgate.traffic.frames import Frames

PORTS = "pdrgate_ports"
"""The map that tells a tc program where packets go: an ifindex to ifindex, destination and source MAC (16 bytes)."""
_IS_PORTS = ("hash", 4, 16)
_FILTER = ("prio", "1", "handle", "1")


class TcRedirect(ProgramPath):
    """A patch panel: a tc program at the ingress of both ports sends packets out of the other one.

    Args:
        program: the build under test; pdrgate's own by default. A map `PORTS` of it is filled.
    """

    def __init__(self, program: BpfBuild | None = None) -> None:
        super().__init__("tc-redirect", 6, program, "tc_redirect")

    @property
    def mode(self) -> str:
        return "tc ingress"

    def sentence(self) -> str:
        return self._with("tc programs at ingress")

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return redirected(frame, self._hops, direction) if self._hops else None

    def programs(self, hops: Sequence[Hop], build: BpfBuild) -> Iterator[Step]:
        for hop in hops:
            yield _Attached(hop, build, self._sent)


class _Attached:
    """The program is at both ports of a hop."""

    def __init__(self, hop: Hop, build: BpfBuild, sent: Sent) -> None:
        self._hop = hop
        self._build = build
        self._sent = sent
        self._at: list[str] = []
        """Interfaces with a qdisc of ours."""

    def apply(self) -> None:
        hop = self._hop
        with loaded(hop.host, self._build, "classifier") as program:
            if is_ours(program.maps, PORTS, _IS_PORTS):
                for port, other in (hop.ports, hop.ports[::-1]):
                    _tell(program, port, other)
            for port in hop.ports:
                self._attach(program, port.interface)
            self._sent.add(hop.host, program.maps)

    def read_back(self) -> None:
        """`_attach` has done so."""

    def undo(self) -> Sequence[str]:
        told = []
        while self._at:
            try:
                self._hop.host.run("tc", "qdisc", "delete", "dev", self._at.pop(), "clsact")
            except TestbedError as error:
                told.append(str(error))
        return told

    def _attach(self, program: LoadedProgram, interface: str) -> None:
        host = program.host
        host.run("tc", "qdisc", "add", "dev", interface, "clsact")
        self._at.append(interface)
        host.run(
            "tc", "filter", "add", "dev", interface, "ingress", *_FILTER, "bpf", "direct-action",
            "object-pinned", program.pin,
        )  # fmt: skip
        shown: list[dict[str, Any]] = host.run_json("tc", "-j", "filter", "show", "dev", interface, "ingress")
        numbers = [one["options"]["prog"]["id"] for one in shown if "prog" in one.get("options", {})]
        if numbers != [program.number]:
            raise TestbedError(
                f"attached tc program {program.number} to {interface} on {host.name}, but {numbers or 'none'} reads "
                "back; does something there change its filters?"
            )


def _tell(program: LoadedProgram, port: Port, other: Port) -> None:
    host = program.host
    way = struct.pack("=I", _index(host, other)) + _mac(other.peer_mac) + _mac(other.mac)
    program.fill(PORTS, struct.pack("=I", _index(host, port)), way)


def _index(host: Host, port: Port) -> int:
    return int(host.read(f"/sys/class/net/{port.interface}/ifindex"))


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


PATHS = (
    PathDescription(
        name="tc-redirect",
        title="redirection by tc",
        help="A tc program sends each packet out of the other port.",
        make=lambda asked: TcRedirect(asked.program),
        frames=Frames(6),
        tag="tc",
        program="tc",
        slowdowns=(EGRESS_FILTER,),
    ),
)

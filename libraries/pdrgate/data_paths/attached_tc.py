"""Steps that put a tc program in the way of packets, at the SUT's ports: as a filter of a qdisc, or by links of tcx."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from pdrgate.bpf.programs import LoadedProgram, loaded
from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.builds.program_setup import ATTACHES
from pdrgate.data_paths.attached_links import AttachedLinks
from pdrgate.data_paths.attached_programs import Sent, interface_number, is_ours, sut_names
from pdrgate.data_paths.contract import Hop, Port
from pdrgate.data_paths.steps import Step
from pdrgate.values.errors import TestbedError

WAYS = "pdrgate_ports"
"""Name of the map in which a tc program finds where packets go: an ifindex to ifindex, destination and source MAC (16
bytes)."""
_IS_WAYS = ("hash", 4, 16)
_FILTER = ("prio", "1", "handle", "1")


class AttachedTc(Step):
    """The program is a filter at ports of a hop, for what comes in there or for what leaves."""

    def __init__(self, hop: Hop, ports: Sequence[Port], build: BpfBuild, sent: Sent) -> None:
        self._hop = hop
        self._ports = tuple(ports)
        self._build = build
        self._sent = sent
        self._direction = _direction(build)

    def apply(self) -> None:
        with loaded(self._hop.host, self._build, "classifier", sut_names(self._hop)) as program:
            self._undo.append(program.leave)
            _fill_ways(program, self._hop)
            for port in self._ports:
                self._attach(program, port.interface)
            self._sent.add(program)

    def _attach(self, program: LoadedProgram, interface: str) -> None:
        host = program.host
        host.run("tc", "qdisc", "add", "dev", interface, "clsact")
        self._undo.append(partial(host.run, "tc", "qdisc", "delete", "dev", interface, "clsact"))
        host.run(
            "tc", "filter", "add", "dev", interface, self._direction, *_FILTER, "bpf", "direct-action",
            "object-pinned", program.pin,
        )  # fmt: skip
        shown: list[dict[str, Any]] = host.run_json("tc", "-j", "filter", "show", "dev", interface, self._direction)
        numbers = [one["options"]["prog"]["id"] for one in shown if "prog" in one.get("options", {})]
        if numbers != [program.number]:
            raise TestbedError(
                f"attached tc program {program.number} to {interface} on {host.name}, but {numbers or 'none'} reads "
                "back; does something there change its filters?"
            )


def attached_tc(hop: Hop, ports: Sequence[Port], build: BpfBuild, sent: Sent) -> Step:
    """The step that has a build's program at ports of a hop, as its set-up says: by filters, or by links of tcx."""
    if not build.setup.attach.startswith("tcx-"):
        return AttachedTc(hop, ports, build, sent)

    def links() -> Sequence[str]:
        return [f"tcx {_direction(build)} {interface_number(hop.host, port)}" for port in ports]

    return AttachedLinks(hop, build, "classifier", sent, links, lambda program: _fill_ways(program, hop))


def tc_hook(build: BpfBuild | None) -> str:
    """Hook that a build's tc program is attached to, in words: ``tc ingress``."""
    asked = "auto" if build is None else build.setup.attach
    return (asked if ATTACHES.get(asked) == "tc" else "tc-ingress").replace("-", " ")


def _direction(build: BpfBuild) -> Literal["ingress", "egress"]:
    return "egress" if tc_hook(build).endswith(" egress") else "ingress"


def _fill_ways(program: LoadedProgram, hop: Hop) -> None:
    """Fill the map `WAYS` of a program that has it: for each port, the other port and the MACs of a frame that leaves
    there."""
    if not is_ours(program.maps, WAYS, _IS_WAYS):
        return
    for port, other in (hop.ports, hop.ports[::-1]):
        way = struct.pack("=I", interface_number(hop.host, other)) + _mac(other.peer_mac) + _mac(other.mac)
        program.fill(WAYS, struct.pack("=I", interface_number(hop.host, port)), way)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))

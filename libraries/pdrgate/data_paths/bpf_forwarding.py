"""Data paths by eBPF programs: XDP routing and tc redirection. The kernel's own routing lies below them.

So a program may ask the FIB, and what it lets pass is forwarded all the same. Whether the programs carry the traffic is
therefore told by counters only: their own, and the kernel's, which must not count.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pdrgate.bpf.programs import BpfMap, LoadedProgram, XdpMode, attach_xdp, counts, detach_xdp, driver, loaded, refusal
from pdrgate.builds.bpf_build import BpfBuild, own_build
from pdrgate.data_paths.contract import Hop, Port
from pdrgate.data_paths.forwarded_frames import redirected
from pdrgate.data_paths.routing import Routing
from pdrgate.errors import TestbedError
from pdrgate.hosts.host import CommandError, Host

COUNTERS = "pdrgate_counts"
"""The map whose first element, summed over CPUs, is what a program has sent on; programs under test may lack it."""

PORTS = "pdrgate_ports"
"""The map that tells a tc program where packets go: an ifindex to ifindex, destination and source MAC (16 bytes)."""
_IS_COUNTERS = ("percpu_array", 4, 8)
_IS_PORTS = ("hash", 4, 16)
"""Kind and sizes of key and value. A map of pdrgate's is told by its name and by these: any other is the program's."""

_FILTER = ("prio", "1", "handle", "1")


class _BpfPath:
    """What the two have in common: routing below, what is to be undone, and whose counters tell."""

    def __init__(self, family: Literal[4, 6], program: BpfBuild | None, own: str) -> None:
        self._family: Literal[4, 6] = family
        self._program = program
        self._own = own
        self._routing = Routing(family)
        self._undo: list[Callable[[], None]] = []
        self._counters: list[tuple[Host, int]] = []
        self._uncounted = False

    @property
    def family(self) -> Literal[4, 6]:
        return self._family

    @property
    def by_kernel(self) -> bool:
        return False

    @property
    def arrivals(self) -> None:
        return None

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return self._routing.forwarded(frame, direction)

    @property
    def of_user(self) -> bool:
        return self._program is not None

    def redirected(self) -> int | None:
        if self._uncounted or not self._counters:
            return None
        return sum(counts(host, number)[0] for host, number in self._counters)

    def restore(self) -> list[str]:
        told = []
        self._counters.clear()
        self._uncounted = False
        while self._undo:
            try:
                self._undo.pop()()
            except TestbedError as error:
                told.append(str(error))
        return told + self._routing.restore()

    def _build(self) -> BpfBuild:
        return self._program or own_build(self._own)

    def _with(self, sentence: str) -> str:
        return f"{sentence}, program {self._program.label}" if self._program else sentence

    def _count(self, host: Host, maps: Mapping[str, BpfMap]) -> None:
        if _is_ours(maps, COUNTERS, _IS_COUNTERS):
            self._counters.append((host, maps[COUNTERS].number))
        else:
            self._uncounted = True


def _is_ours(maps: Mapping[str, BpfMap], name: str, layout: tuple[str, int, int]) -> bool:
    found = maps.get(name)
    return found is not None and (found.kind, found.key_size, found.value_size) == layout


class XdpRouting(_BpfPath):
    """IPv4 or IPv6 routing by an XDP program at both ports of every hop.

    Args:
        program: the build under test; pdrgate's own router by default.
        mode: native XDP, in the driver, or generic, behind it; ``auto`` takes native where all ports can.
    """

    def __init__(
        self,
        family: Literal[4, 6],
        program: BpfBuild | None = None,
        mode: Literal["auto", "native", "generic"] = "auto",
    ) -> None:
        super().__init__(family, program, "xdp_router")
        self._wanted = mode
        self._mode: XdpMode | None = None
        self._driver = ""
        self._why = ""

    @property
    def name(self) -> str:
        return f"xdp-ipv{self._family}-routing"

    @property
    def mode(self) -> str:
        return f"XDP {self._mode} ({self._driver})" if self._mode else "XDP"

    def sentence(self) -> str:
        return self._with(f"XDP {self._mode} ({self._driver}{self._why and f': {self._why}'})" if self._mode else "XDP")

    def describe(self) -> Mapping[str, str]:
        return {"data_path_mode": self.mode}

    def apply(self, hops: Sequence[Hop]) -> None:
        build = self._build()
        self._routing.apply(hops)
        self._driver = driver(hops[0].host, hops[0].ingress.interface)
        self._why = "asked for" if self._wanted == "generic" else ""
        if self._wanted == "generic":
            self._attach_all(hops, build, "generic")
            return
        try:
            self._attach_all(hops, build, "native")
        except CommandError as error:
            if self._wanted == "native":
                raise TestbedError(
                    f"{error.host} has no native XDP for {self._driver}: {refusal(error)}; use mode auto or generic"
                ) from error
            self._why = refusal(error)
            self._take_off()
            self._attach_all(hops, build, "generic")

    def restore(self) -> list[str]:
        self._mode = None
        return super().restore()

    def _attach_all(self, hops: Sequence[Hop], build: BpfBuild, mode: XdpMode) -> None:
        for hop in hops:
            with loaded(hop.host, build, "xdp") as program:
                for port in hop.ports:
                    self._attach(program, port, mode)
                self._count(hop.host, program.maps)
        self._mode = mode

    def _attach(self, program: LoadedProgram, port: Port, mode: XdpMode) -> None:
        host = program.host
        if port.steering is not None and mode == "native":
            self._count(host, port.steering.begin(host, port.interface, program.build))
            self._undo.append(port.steering.end)
        else:
            attach_xdp(program, port.interface, mode)
            self._undo.append(lambda: detach_xdp(host, port.interface, mode))

    def _take_off(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._counters.clear()
        self._uncounted = False


class TcRedirect(_BpfPath):
    """A patch panel: a tc program at the ingress of both ports sends packets out of the other one.

    Args:
        program: the build under test; pdrgate's own by default. A map `PORTS` of it is filled.
    """

    def __init__(self, program: BpfBuild | None = None) -> None:
        super().__init__(6, program, "tc_redirect")
        self._hops: tuple[Hop, ...] = ()

    @property
    def name(self) -> str:
        return "tc-redirect"

    @property
    def mode(self) -> str:
        return "tc ingress"

    def sentence(self) -> str:
        return self._with("tc programs at ingress")

    def describe(self) -> Mapping[str, str]:
        return {"data_path_mode": self.mode}

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return redirected(frame, self._hops, direction) if self._hops else None

    def apply(self, hops: Sequence[Hop]) -> None:
        build = self._build()
        self._hops = tuple(hops)
        self._routing.apply(hops)
        for hop in hops:
            with loaded(hop.host, build, "classifier") as program:
                if _is_ours(program.maps, PORTS, _IS_PORTS):
                    for port, other in (hop.ports, hop.ports[::-1]):
                        self._tell(program, port, other)
                for port in hop.ports:
                    self._attach(program, port)
                self._count(hop.host, program.maps)

    def _tell(self, program: LoadedProgram, port: Port, other: Port) -> None:
        host = program.host
        way = struct.pack("=I", _index(host, other)) + _mac(other.peer_mac) + _mac(other.mac)
        program.fill(PORTS, struct.pack("=I", _index(host, port)), way)

    def _attach(self, program: LoadedProgram, port: Port) -> None:
        host, interface = program.host, port.interface
        host.run("tc", "qdisc", "add", "dev", interface, "clsact")
        self._undo.append(lambda: _remove(host, interface))
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


def _remove(host: Host, interface: str) -> None:
    host.run("tc", "qdisc", "delete", "dev", interface, "clsact")


def _index(host: Host, port: Port) -> int:
    return int(host.read(f"/sys/class/net/{port.interface}/ifindex"))


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))

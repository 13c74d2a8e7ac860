"""IPv4 and IPv6 routing by an XDP program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from pdrgate.bpf.programs import LoadedProgram, XdpMode, attach_xdp, detach_xdp, driver, loaded, refusal
from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.contract import Hop, Port
from pdrgate.data_paths.forwarded_frames import routed
from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.program_path import ProgramPath, Sent
from pdrgate.data_paths.slowdowns import routes_beside
from pdrgate.data_paths.steps import Step
from pdrgate.errors import TestbedError
from pdrgate.hosts.host import CommandError
from pdrgate.traffic.frames import Frames

_Wanted = Literal["auto", "native", "generic"]


class XdpRouting(ProgramPath):
    """IPv4 or IPv6 routing by an XDP program at both ports of every hop.

    Args:
        program: the build under test; pdrgate's own router by default.
        mode: native XDP, in the driver, or generic, behind it; ``auto`` takes native where all ports can.
    """

    def __init__(self, family: Literal[4, 6], program: BpfBuild | None = None, mode: _Wanted = "auto") -> None:
        super().__init__(_name(family), family, program, "xdp_router")
        self._wanted: _Wanted = mode
        self._attached: _Attached | None = None

    @property
    def mode(self) -> str:
        return f"XDP {attached.mode} ({attached.driver})" if (attached := self._attached) else "XDP"

    def sentence(self) -> str:
        if (attached := self._attached) is None:
            return self._with("XDP")
        return self._with(f"XDP {attached.mode} ({attached.driver}{attached.why and f': {attached.why}'})")

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return routed(frame, self._hops, direction) if self._hops else None

    def programs(self, hops: Sequence[Hop], build: BpfBuild) -> Iterator[Step]:
        attached = _Attached(hops, build, self._wanted, self._sent)
        yield attached
        self._attached = attached

    def restore(self) -> list[str]:
        self._attached = None
        return super().restore()


class _Attached:
    """The program is at all ports, in one mode."""

    def __init__(self, hops: Sequence[Hop], build: BpfBuild, wanted: _Wanted, sent: Sent) -> None:
        self._hops = hops
        self._build = build
        self._wanted: _Wanted = wanted
        self._sent = sent
        self._undo: list[Callable[[], None]] = []
        self.mode: XdpMode = "generic"
        self.driver = ""
        self.why = "asked for" if wanted == "generic" else ""
        """Why it is not a faster mode."""

    def apply(self) -> None:
        first = self._hops[0]
        self.driver = driver(first.host, first.ingress.interface)
        if self._wanted == "generic":
            self._attach_all("generic")
            return
        try:
            self._attach_all("native")
        except CommandError as error:
            if self._wanted == "native":
                raise TestbedError(
                    f"{error.host} has no native XDP for {self.driver}: {refusal(error)}; use mode auto or generic"
                ) from error
            self.why = refusal(error)
            while self._undo:
                self._undo.pop()()
            self._sent.clear()
            self._attach_all("generic")

    def read_back(self) -> None:
        """`attach_xdp` has done so."""

    def undo(self) -> Sequence[str]:
        told = []
        while self._undo:
            try:
                self._undo.pop()()
            except TestbedError as error:
                told.append(str(error))
        return told

    def _attach_all(self, mode: XdpMode) -> None:
        for hop in self._hops:
            with loaded(hop.host, self._build, "xdp") as program:
                for port in hop.ports:
                    self._attach(program, port, mode)
                self._sent.add(hop.host, program.maps)
        self.mode = mode

    def _attach(self, program: LoadedProgram, port: Port, mode: XdpMode) -> None:
        host = program.host
        if port.steering is not None and mode == "native":
            self._sent.add(host, port.steering.begin(host, port.interface, program.build))
            self._undo.append(port.steering.end)
        else:
            attach_xdp(program, port.interface, mode)
            self._undo.append(lambda: detach_xdp(host, port.interface, mode))


def _name(family: Literal[4, 6]) -> str:
    return f"xdp-ipv{family}-routing"


def _description(family: Literal[4, 6]) -> PathDescription:
    return PathDescription(
        name=_name(family),
        title=f"IPv{family} routing by XDP",
        help=f"An XDP program routes IPv{family}, by the kernel's tables.",
        make=lambda asked: XdpRouting(family, asked.program),
        frames=Frames(family),
        tag=f"xdp-ipv{family}",
        program="xdp",
        slowdowns=(routes_beside(family),),  # what XDP redirects passes no filter
    )


PATHS = (_description(6), _description(4))

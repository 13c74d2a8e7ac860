"""IPv4 and IPv6 routing by an XDP program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.attached_programs import AttachedXdp, WantedMode
from pdrgate.data_paths.contract import Hop
from pdrgate.data_paths.forwarded_frames import routed
from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.program_path import ProgramPath
from pdrgate.data_paths.slowdowns import routes_beside
from pdrgate.data_paths.steps import Step
from pdrgate.record.fate import Fate
from pdrgate.traffic.frames import Frames


class XdpRouting(ProgramPath):
    """IPv4 or IPv6 routing by an XDP program at both ports of every hop.

    Args:
        program: the build under test; pdrgate's own router by default.
        mode: native XDP, in the driver, or generic, behind it; ``auto`` takes native where all ports can.
        fate: of packets, see `AttachedXdp`.
    """

    def __init__(
        self,
        family: Literal[4, 6],
        program: BpfBuild | None = None,
        mode: WantedMode = "auto",
        fate: Fate = "forwarded",
    ) -> None:
        super().__init__(_name(family), family, program, "xdp_router", routed)
        self._wanted: WantedMode = mode
        self._fate = fate
        self._attached: AttachedXdp | None = None

    @property
    def mode(self) -> str:
        return attached.words if (attached := self._attached) else "XDP"

    def sentence(self) -> str:
        return self._with(attached.sentence if (attached := self._attached) else "XDP")

    def programs(self, hops: Sequence[Hop], build: BpfBuild) -> Iterator[Step]:
        attached = AttachedXdp(hops, build, self._wanted, self._sent, self._fate)
        yield attached
        self._attached = attached

    def restore(self) -> list[str]:
        self._attached = None
        return super().restore()


def _name(family: Literal[4, 6]) -> str:
    return f"xdp-ipv{family}-routing"


def _description(family: Literal[4, 6]) -> PathDescription:
    return PathDescription(
        name=_name(family),
        title=f"IPv{family} routing by XDP",
        help=f"An XDP program routes IPv{family}, by the kernel's tables.",
        make=lambda asked: XdpRouting(family, asked.program, fate=asked.fate),
        frames=Frames(family),
        program="xdp",
        slowdowns=(routes_beside(family),),  # what XDP redirects passes no filter
    )


PATHS = (_description(6), _description(4))

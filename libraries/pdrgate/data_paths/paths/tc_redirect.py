"""Redirection by tc programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.attached_programs import program_ports
from pdrgate.data_paths.attached_tc import attached_tc, tc_hook
from pdrgate.data_paths.contract import Hop
from pdrgate.data_paths.forwarded_frames import redirected
from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.program_path import ProgramPath
from pdrgate.data_paths.slowdowns import EGRESS_FILTER
from pdrgate.data_paths.steps import Step
from pdrgate.record.fate import Fate
from pdrgate.traffic.frames import Frames


class TcRedirect(ProgramPath):
    """A patch panel: a tc program at the ingress of both ports sends packets out of the other one.

    Args:
        program: the build under test; pdrgate's own by default. A map ``pdrgate_ports`` of it is filled.
    """

    def __init__(self, program: BpfBuild | None = None, fate: Fate = "forwarded") -> None:
        super().__init__("tc-redirect", 6, program, "tc_redirect", redirected)
        self._fate = fate

    @property
    def mode(self) -> str:
        return tc_hook(self._program)

    def sentence(self) -> str:
        return self._with(f"programs at {tc_hook(self._program)}")

    def programs(self, hops: Sequence[Hop], build: BpfBuild) -> Iterator[Step]:
        for hop, ports in program_ports(hops, self._fate):
            yield attached_tc(hop, ports, build, self._sent)


PATHS = (
    PathDescription(
        name="tc-redirect",
        title="redirection by tc",
        help="A tc program sends each packet out of the other port.",
        make=lambda asked: TcRedirect(asked.program, asked.fate),
        frames=Frames(6),
        program="tc",
        slowdowns=(EGRESS_FILTER,),
    ),
)

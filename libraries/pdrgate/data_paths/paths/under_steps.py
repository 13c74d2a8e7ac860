"""What scenarios with steps of their own stand on: the kernel's router for both IP versions, or nothing at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pdrgate.data_paths.contract import Hop
from pdrgate.data_paths.forwarded_frames import routed
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.slowdowns import EGRESS_FILTER
from pdrgate.data_paths.steps import Step, SteppedPath
from pdrgate.traffic.frames import Frames


class DualRouting(SteppedPath):
    """The kernel forwards IPv4 and IPv6, by a route and a static neighbour of each in each direction."""

    def __init__(self) -> None:
        super().__init__("ip-routing", 4)

    def sentence(self) -> str:
        return "the kernel routes"

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return routed(frame, self._hops, direction) if self._hops else None

    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        for family in (4, 6):
            yield from KernelNetwork(family).routed(hops)


class Bare(SteppedPath):
    """The SUT is as it came up; whatever carries packets, the scenario's own steps make."""

    def __init__(self, family: Literal[4, 6]) -> None:
        super().__init__(f"bare-ipv{family}", family)

    def sentence(self) -> str:
        return "nothing is set up"

    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        return iter(())


def _bare(family: Literal[4, 6]) -> PathDescription:
    return PathDescription(
        name=f"bare-ipv{family}",
        title=f"IPv{family} through what the scenario's steps set up",
        help=f"Nothing is set up but what the steps of `Set Up SUT` do; IPv{family} is sent.",
        make=lambda asked: Bare(family),
        frames=Frames(family),
        slowdowns=(EGRESS_FILTER,),
        alone=False,
    )


PATHS = (
    PathDescription(
        name="ip-routing",
        title="IP routing",
        help="The kernel routes IPv4 and IPv6; IPv4 is sent.",
        make=lambda asked: DualRouting(),
        frames=Frames(4),
        slowdowns=(EGRESS_FILTER,),
        under_steps=True,
    ),
    _bare(4),
    _bare(6),
)

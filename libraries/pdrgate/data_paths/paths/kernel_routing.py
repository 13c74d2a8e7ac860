"""The kernel's own router, for IPv4 and IPv6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pdrgate.data_paths.contract import Hop
from pdrgate.data_paths.forwarded_frames import routed
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.slowdowns import EGRESS_FILTER, routes_beside
from pdrgate.data_paths.steps import Step, SteppedPath
from pdrgate.traffic.frames import Frames


class Routing(SteppedPath):
    """The kernel's own forwarding, by a route and a static neighbour in each direction.

    Args:
        family: the IP version that is sent.
        families: those that are routed; without any, whatever carries packets comes of a scenario's own steps.
    """

    def __init__(self, family: Literal[4, 6], name: str = "", families: Sequence[Literal[4, 6]] | None = None) -> None:
        self._families = (family,) if families is None else families
        super().__init__(name or f"ipv{family}-routing", family, routed if self._families else None)

    def sentence(self) -> str:
        return "the kernel routes" if self._families else "nothing is set up"

    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        for family in self._families:
            yield from KernelNetwork(family).routed(hops)


def _description(family: Literal[4, 6]) -> PathDescription:
    return PathDescription(
        name=f"ipv{family}-routing",
        title=f"IPv{family} routing",
        help=f"The kernel routes IPv{family}.",
        make=lambda asked: Routing(family),
        frames=Frames(family),
        slowdowns=(EGRESS_FILTER, routes_beside(family)),
    )


PATHS = (_description(6), _description(4))

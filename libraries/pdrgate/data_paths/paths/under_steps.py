"""What scenarios with steps of their own stand on: the kernel's router for both IP versions, or nothing at all."""

from __future__ import annotations

from typing import Literal

from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.paths.kernel_routing import Routing
from pdrgate.data_paths.slowdowns import EGRESS_FILTER
from pdrgate.traffic.frames import Frames


def _bare(family: Literal[4, 6]) -> PathDescription:
    name = f"bare-ipv{family}"
    return PathDescription(
        name=name,
        title=f"IPv{family} through what the scenario's steps set up",
        help=f"Nothing is set up but what the steps of `Set Up SUT` do; IPv{family} is sent.",
        make=lambda asked: Routing(family, name, ()),
        frames=Frames(family),
        slowdowns=(EGRESS_FILTER,),
        alone=False,
    )


PATHS = (
    PathDescription(
        name="ip-routing",
        title="IP routing",
        help="The kernel routes IPv4 and IPv6; IPv4 is sent.",
        make=lambda asked: Routing(4, "ip-routing", (4, 6)),
        frames=Frames(4),
        slowdowns=(EGRESS_FILTER,),
        under_steps=True,
    ),
    _bare(4),
    _bare(6),
)

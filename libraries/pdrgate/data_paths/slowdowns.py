"""Work that packets do not need, put in their way: slowdowns of a size that can be chosen, for each data path.

No knob of theirs is part of what a build does: a classifier that matches nothing at the ports' egress, where the
kernel's router and tc programs hand packets over; routes beside the packets' own, where an XDP program asks the
kernel's tables. Both cost a packet as many instructions as there are steps, times a constant, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pdrgate.data_paths.contract import NETWORKS, Hop
from pdrgate.knobs import MOST_INSTRUCTIONS, Knob, egress_filter, most_side_routes, side_routes


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A way to slow a data path down."""

    name: str
    one: str
    """What is planted of one step, in words."""
    several: str
    """Words for several planted steps, with ``{}`` for their number."""
    most: int
    """Largest size of the slowdown, in steps."""
    knobs: Callable[[Hop, int], tuple[Knob, ...]]
    """What puts so many steps into the way through a hop."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A slowdown of some size."""

    slowdown: Slowdown
    steps: int
    """The size of the slowdown, in steps from 1 on."""

    def knobs(self, hop: Hop) -> tuple[Knob, ...]:
        """What plants it in a hop."""
        return self.slowdown.knobs(hop, self.steps)

    def __str__(self) -> str:
        return self.slowdown.one if self.steps == 1 else self.slowdown.several.format(self.steps)


def _filters(hop: Hop, steps: int) -> tuple[Knob, ...]:
    return tuple(egress_filter(port.interface, steps) for port in hop.ports)


EGRESS_FILTER = Slowdown(
    "egress-filter", "a filter of one BPF instruction at each port's egress",
    "a filter of {} BPF instructions at each port's egress", MOST_INSTRUCTIONS, _filters,
)  # fmt: skip


def routes_beside(family: int) -> Slowdown:
    """Routes of this IP version, which the packets' own stand among."""
    networks = [str(network) for network in (NETWORKS[family].forward, NETWORKS[family].reverse)]

    def knobs(hop: Hop, steps: int) -> tuple[Knob, ...]:
        return tuple(side_routes(network, steps) for network in networks)

    most = min(map(most_side_routes, networks))
    return Slowdown(
        "side-routes", "one route beside the packets' own", "{} routes beside the packets' own", most, knobs
    )

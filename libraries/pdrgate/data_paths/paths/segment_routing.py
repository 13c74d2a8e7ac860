"""SRv6 End on every hop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv6Network
from typing import Any

from pdrgate.data_paths.contract import Hop, segment
from pdrgate.data_paths.forwarded_frames import segments_ended
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.slowdowns import EGRESS_FILTER
from pdrgate.data_paths.steps import Command, Step, SteppedPath
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError


class SegmentRouting(SteppedPath):
    """SRv6 End (RFC 8986, section 4.1) on every hop: each is one segment of the packets' routing header.

    A hop takes a packet for its own segment, makes the next segment the destination, and routes to it. The last segment
    of the list is the address at which the traffic ends. Neighbouring hops know each other's segments.
    """

    def __init__(self) -> None:
        super().__init__("srv6-end", 6, segments_ended)

    def sentence(self) -> str:
        return "the kernel does SRv6 End on every hop"

    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        network = KernelNetwork(6)
        yield from network.routed(hops)
        for number, hop in enumerate(hops, start=1):
            yield _segment_end(hop, f"{segment(number)}/128")
            if number < len(hops):
                yield network.route(hop, IPv6Network(segment(number + 1)), hop.egress, network.address(number, 2))
            if number > 1:
                yield network.route(hop, IPv6Network(segment(number - 1)), hop.ingress, network.address(number - 1, 1))


def _segment_end(hop: Hop, own: str) -> Command:
    """A hop ends a segment."""
    host, port = hop.host, ("dev", hop.ingress.interface)

    def check() -> None:
        routes: list[dict[str, Any]] = host.run_json("ip", "-j", "-6", "route", "show", own)
        if not any(_ends_segments(route) for route in routes):
            raise TestbedError(
                f"{host.name} was given the segment {own}, but reads back {routes or 'no route'}; "
                "does something there remove routes?"
            )

    route = ("route", "add", own, "encap", "seg6local", "action", "End", *port)
    return KernelNetwork(6).ip(host, route, ("route", "delete", own, *port), check, "CONFIG_IPV6_SEG6_LWTUNNEL")


def _ends_segments(route: Mapping[str, Any]) -> bool:
    """Whether a route ends segments: what is encapsulated stands beside the rest in iproute2 6.1, below ``encap`` in
    6.15."""
    encap = route.get("encap")
    told = encap if isinstance(encap, Mapping) else {"encap_type": encap, "action": route.get("action")}
    return (told.get("encap_type"), told.get("action")) == ("seg6local", "End")


PATHS = (
    PathDescription(
        name="srv6-end",
        title="SRv6 End",
        help="Each hop is a segment of the packets' routing header.",
        make=lambda asked: SegmentRouting(),
        frames=Frames(6, segments=True),
        slowdowns=(EGRESS_FILTER,),
    ),
)

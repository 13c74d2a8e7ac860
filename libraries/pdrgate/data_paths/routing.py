"""The kernel's own router, for IPv4, IPv6 and segment routing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv6Network
from typing import Any, Literal

from pdrgate.data_paths.contract import NETWORKS, Hop, segment
from pdrgate.data_paths.forwarded_frames import routed, segments_ended
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.errors import TestbedError
from pdrgate.hosts.host import CommandError


class Routing:
    """The kernel's own IPv4 or IPv6 forwarding, by a route and a static neighbour in each direction."""

    def __init__(self, family: Literal[4, 6]) -> None:
        self._network = KernelNetwork(family)
        self._hops: tuple[Hop, ...] = ()

    @property
    def name(self) -> str:
        return f"ipv{self.family}-routing"

    @property
    def family(self) -> Literal[4, 6]:
        return self._network.family

    @property
    def mode(self) -> str:
        return "kernel"

    @property
    def by_kernel(self) -> bool:
        return True

    @property
    def arrivals(self) -> None:
        return None

    def sentence(self) -> str:
        return "the kernel routes"

    def describe(self) -> Mapping[str, str]:
        return {}

    def redirected(self) -> int | None:
        return None

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return routed(frame, self._hops, direction) if self._hops else None

    @property
    def of_user(self) -> bool:
        return False

    def apply(self, hops: Sequence[Hop]) -> None:
        self._hops = tuple(hops)
        networks, network = NETWORKS[self.family], self._network
        for number, hop in enumerate(hops, start=1):
            self._allow_forwarding(hop)
            network.connect(hop.host, hop.ingress, link=number - 1, side=2)
            network.connect(hop.host, hop.egress, link=number, side=1)
            network.route(hop, networks.forward, hop.egress, via=network.address(number, 2))
            network.route(hop, networks.reverse, hop.ingress, via=network.address(number - 1, 1))
        for hop in hops:
            network.verify_route(hop, networks.forward, hop.egress)
            network.verify_route(hop, networks.reverse, hop.ingress)

    def restore(self) -> list[str]:
        return self._network.restore()

    def _allow_forwarding(self, hop: Hop) -> None:
        if self.family == 6:
            for port in hop.ports:
                self._network.set(hop.host, f"net/ipv6/conf/{port.interface}/disable_ipv6", 0)
            self._network.set(hop.host, "net/ipv6/conf/all/forwarding", 1)
        else:
            self._network.set(hop.host, "net/ipv4/ip_forward", 1)


class SegmentRouting(Routing):
    """SRv6 End (RFC 8986, section 4.1) on every hop: each is one segment of the packets' routing header.

    A hop takes a packet for its own segment, makes the next segment the destination, and routes to it. The last segment
    of the list is the address at which the traffic ends. Neighbouring hops know each other's segments.
    """

    def __init__(self) -> None:
        super().__init__(6)

    @property
    def name(self) -> str:
        return "srv6-end"

    def sentence(self) -> str:
        return "the kernel does SRv6 End on every hop"

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return segments_ended(frame, self._hops, direction) if self._hops else None

    def apply(self, hops: Sequence[Hop]) -> None:
        super().apply(hops)
        network = self._network
        for number, hop in enumerate(hops, start=1):
            self._end_here(hop, f"{segment(number)}/128")
            if number < len(hops):
                network.route(hop, IPv6Network(segment(number + 1)), hop.egress, via=network.address(number, 2))
            if number > 1:
                network.route(hop, IPv6Network(segment(number - 1)), hop.ingress, via=network.address(number - 1, 1))
        for number, hop in enumerate(hops, start=1):
            self._verify_end(hop, f"{segment(number)}/128")

    def _end_here(self, hop: Hop, own: str) -> None:
        route = (own, "encap", "seg6local", "action", "End", "dev", hop.ingress.interface)
        try:
            self._network.run(
                hop.host, ("route", "add", *route), ("route", "delete", own, "dev", hop.ingress.interface)
            )
        except CommandError as error:
            raise TestbedError(
                f"{hop.host.name} does not take the segment {own}: {error}; has its kernel CONFIG_IPV6_SEG6_LWTUNNEL?"
            ) from error

    def _verify_end(self, hop: Hop, own: str) -> None:
        routes: list[dict[str, Any]] = hop.host.run_json("ip", "-j", "-6", "route", "show", own)
        if not any(_ends_segments(route) for route in routes):
            raise TestbedError(
                f"{hop.host.name} was given the segment {own}, but reads back {routes or 'no route'}; "
                "does something there remove routes?"
            )


def _ends_segments(route: Mapping[str, Any]) -> bool:
    """Of iproute2 6.1 what is encapsulated stands beside the rest of a route, of 6.15 below ``encap``."""
    encap = route.get("encap")
    told = encap if isinstance(encap, Mapping) else {"encap_type": encap, "action": route.get("action")}
    return (told.get("encap_type"), told.get("action")) == ("seg6local", "End")

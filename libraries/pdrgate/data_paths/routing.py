"""The kernel's own router, for IPv4, IPv6 and segment routing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Literal

from pdrgate.data_paths.contract import NETWORKS, Hop, Port, segment
from pdrgate.errors import TestbedError
from pdrgate.hosts.host import CommandError, Host
from pdrgate.knobs import KnobSet, sysctl


class Routing:
    """The kernel's own IPv4 or IPv6 forwarding, by a route and a static neighbour in each direction.

    Neighbours are static so that no resolution ever runs, and loses packets, during a trial. Each hop reaches its
    neighbours through link networks of its own: 10.211.LINK.0/24 or fd00:211:LINK::/64.
    """

    def __init__(self, family: Literal[4, 6]) -> None:
        self._family: Literal[4, 6] = family
        self._undo: list[tuple[Host, tuple[str, ...]]] = []
        self._knobs = KnobSet()

    @property
    def name(self) -> str:
        return f"ipv{self._family}-routing"

    @property
    def family(self) -> Literal[4, 6]:
        return self._family

    @property
    def mode(self) -> str:
        return "kernel"

    @property
    def by_kernel(self) -> bool:
        return True

    def sentence(self) -> str:
        return "the kernel routes"

    def describe(self) -> Mapping[str, str]:
        return {}

    def redirected(self) -> int | None:
        return None

    def apply(self, hops: Sequence[Hop]) -> None:
        networks = NETWORKS[self._family]
        for number, hop in enumerate(hops, start=1):
            self._allow_forwarding(hop)
            self._link(hop, hop.ingress, link=number - 1, side=2)
            self._link(hop, hop.egress, link=number, side=1)
            self._route(hop, networks.forward, hop.egress, via=self._address(number, 2))
            self._route(hop, networks.reverse, hop.ingress, via=self._address(number - 1, 1))
        for hop in hops:
            self._verify(hop, networks.forward, hop.egress)
            self._verify(hop, networks.reverse, hop.ingress)

    def restore(self) -> list[str]:
        told = []
        while self._undo:
            host, command = self._undo.pop()
            try:
                host.run(*command)
            except TestbedError as error:
                told.append(str(error))
        return told + self._knobs.restore()

    def _allow_forwarding(self, hop: Hop) -> None:
        if self._family == 6:
            for interface in (hop.ingress.interface, hop.egress.interface):
                self._knobs.apply(hop.host, sysctl(f"net/ipv6/conf/{interface}/disable_ipv6", 0))
            self._knobs.apply(hop.host, sysctl("net/ipv6/conf/all/forwarding", 1))
        else:
            self._knobs.apply(hop.host, sysctl("net/ipv4/ip_forward", 1))

    def _link(self, hop: Hop, port: Port, link: int, side: int) -> None:
        own, peer = self._address(link, side), self._address(link, 3 - side)
        address = (f"{own}/{24 if self._family == 4 else 64}", "dev", port.interface)
        nodad = ("nodad",) if self._family == 6 else ()
        self._do(hop.host, ("address", "add", *address, *nodad), ("address", "delete", *address))
        neighbour = (peer, "lladdr", port.peer_mac, "dev", port.interface)
        self._do(
            hop.host,
            ("neighbour", "replace", *neighbour, "nud", "permanent"),
            ("neighbour", "delete", peer, "dev", port.interface),
        )

    def _route(self, hop: Hop, network: IPv4Network | IPv6Network, port: Port, via: str) -> None:
        route = (str(network), "via", via, "dev", port.interface)
        self._do(hop.host, ("route", "add", *route), ("route", "delete", *route))

    def _do(self, host: Host, command: tuple[str, ...], undo: tuple[str, ...]) -> None:
        tool = ("ip", f"-{self._family}")
        host.run(*tool, *command)
        self._undo.append((host, tool + undo))

    def _address(self, link: int, side: int) -> str:
        return f"10.211.{link}.{side}" if self._family == 4 else f"fd00:211:{link}::{side}"

    def _verify(self, hop: Hop, network: IPv4Network | IPv6Network, port: Port) -> None:
        """The kernel's own answer to where a test packet goes, and to whom."""
        probe = str(network.network_address + 1)
        try:
            routes: list[dict[str, Any]] = hop.host.run_json("ip", "-j", f"-{self._family}", "route", "get", probe)
        except CommandError as error:
            raise TestbedError(f"{hop.host.name} does not know where to send {probe}: {error}") from error
        device, gateway = routes[0].get("dev"), routes[0].get("gateway")
        if device != port.interface:
            raise TestbedError(
                f"{hop.host.name} sends {probe} out of {device} and not {port.interface}; "
                f"does another route there cover {network}?"
            )
        neighbours: list[dict[str, Any]] = hop.host.run_json(
            "ip", "-j", f"-{self._family}", "neighbour", "show", "dev", port.interface
        )
        known = {entry["dst"]: entry.get("lladdr") for entry in neighbours}
        if known.get(gateway) != port.peer_mac:
            raise TestbedError(
                f"{hop.host.name} has {known.get(gateway)} as the neighbour {gateway} on {port.interface}, "
                f"not {port.peer_mac}; does something there remove static neighbours?"
            )


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

    def apply(self, hops: Sequence[Hop]) -> None:
        super().apply(hops)
        for number, hop in enumerate(hops, start=1):
            self._end_here(hop, f"{segment(number)}/128")
            if number < len(hops):
                self._route(hop, IPv6Network(segment(number + 1)), hop.egress, via=self._address(number, 2))
            if number > 1:
                self._route(hop, IPv6Network(segment(number - 1)), hop.ingress, via=self._address(number - 1, 1))
        for number, hop in enumerate(hops, start=1):
            self._verify_end(hop, f"{segment(number)}/128")

    def _end_here(self, hop: Hop, own: str) -> None:
        route = (own, "encap", "seg6local", "action", "End", "dev", hop.ingress.interface)
        try:
            self._do(hop.host, ("route", "add", *route), ("route", "delete", own, "dev", hop.ingress.interface))
        except CommandError as error:
            raise TestbedError(
                f"{hop.host.name} does not take the segment {own}: {error}; has its kernel CONFIG_IPV6_SEG6_LWTUNNEL?"
            ) from error

    def _verify_end(self, hop: Hop, own: str) -> None:
        routes: list[dict[str, Any]] = hop.host.run_json("ip", "-j", "-6", "route", "show", own)
        if not any(route.get("encap") == "seg6local" and route.get("action") == "End" for route in routes):
            raise TestbedError(
                f"{hop.host.name} was given the segment {own}, but reads back {routes or 'no route'}; "
                "does something there remove routes?"
            )

"""What the data paths of the kernel's own need: addresses, static neighbours and routes, as steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Literal

from pdrgate.data_paths.contract import NETWORKS, Hop, Port
from pdrgate.data_paths.ip_calls import IpCall, IpCalls, ip_answers
from pdrgate.data_paths.steps import Command, Step, Sysctls
from pdrgate.hosts.host import CommandError, Host
from pdrgate.values.errors import TestbedError


@dataclass(frozen=True, slots=True)
class KernelNetwork:
    """Addresses, neighbours and routes of one IP version.

    Neighbours are static so that no resolution ever runs, and loses packets, during a trial. Each hop reaches its
    neighbours through link networks of its own: 10.211.LINK.0/24 or fd00:211:LINK::/64.
    """

    family: Literal[4, 6]

    def ip(
        self, host: Host, command: tuple[str, ...], undo: tuple[str, ...], check: Callable[[], None] | None = None
    ) -> Command:
        """A call of ``ip``, undone by another one."""
        tool = ("ip", f"-{self.family}")
        made = Command(host, tool + command, tool + undo)
        if check is not None:
            made.check = check
        return made

    def address(self, link: int, side: int) -> str:
        """The address of a station on a link; side 1 is the one that forward traffic comes from."""
        return f"10.211.{link}.{side}" if self.family == 4 else f"fd00:211:{link}::{side}"

    def _forwarding(self, hop: Hop) -> Sysctls:
        """The host routes."""
        if self.family == 4:
            return Sysctls(hop.host, {"net/ipv4/ip_forward": 1})
        enabled = {f"net/ipv6/conf/{port.interface}/disable_ipv6": 0 for port in hop.ports}
        return Sysctls(hop.host, {**enabled, "net/ipv6/conf/all/forwarding": 1})

    def connected(self, host: Host, port: Port, link: int, side: int) -> Iterator[Step]:
        """A port has its address on a link, and knows the other station."""
        yield IpCalls(host, self.family, self._connecting(port, link, side), lambda: None)

    def routed(self, hops: Sequence[Hop]) -> Iterator[Step]:
        """Every hop routes forward traffic out of its egress, and reverse traffic out of its ingress."""
        networks = NETWORKS[self.family]
        for number, hop in enumerate(hops, start=1):
            yield self._forwarding(hop)
            routes = (
                _Route(networks.forward, hop.egress, self.address(number, 2)),
                _Route(networks.reverse, hop.ingress, self.address(number - 1, 1)),
            )
            calls = [
                *self._connecting(hop.ingress, link=number - 1, side=2),
                *self._connecting(hop.egress, link=number, side=1),
                *(one.call for one in routes),
            ]
            yield IpCalls(hop.host, self.family, calls, partial(self._verify, hop, routes))

    def route(self, hop: Hop, network: IPv4Network | IPv6Network, port: Port, via: str) -> IpCalls:
        """What goes to ``network`` leaves by a port, to whom it should."""
        route = _Route(network, port, via)
        return IpCalls(hop.host, self.family, (route.call,), partial(self._verify, hop, (route,)))

    def route_of(self, host: Host, probe: str, *more: str) -> dict[str, Any]:
        """The kernel's own answer to where a test packet goes. Raises TestbedError when it has none."""
        try:
            routes: list[dict[str, Any]] = host.run_json("ip", "-j", f"-{self.family}", "route", "get", probe, *more)
        except CommandError as error:
            raise TestbedError(f"{host.name} does not know where to send {probe}: {error}") from error
        return routes[0]

    def _connecting(self, port: Port, link: int, side: int) -> tuple[IpCall, IpCall]:
        own, peer = self.address(link, side), self.address(link, 3 - side)
        address = (f"{own}/{24 if self.family == 4 else 64}", "dev", port.interface)
        nodad = ("nodad",) if self.family == 6 else ()
        neighbour = (peer, "lladdr", port.peer_mac, "dev", port.interface)
        return (
            IpCall(("address", "add", *address, *nodad), ("address", "delete", *address)),
            IpCall(
                ("neighbour", "replace", *neighbour, "nud", "permanent"),
                ("neighbour", "delete", peer, "dev", port.interface),
            ),
        )

    def _verify(self, hop: Hop, routes: Sequence[_Route]) -> None:
        """See that a packet for each network leaves as it should. Raises TestbedError when it does not."""
        questions = [
            question for one in routes
            for question in (("route", "get", one.probe), ("neighbour", "show", "dev", one.port.interface))
        ]  # fmt: skip
        try:
            answers = ip_answers(hop.host, self.family, questions)
        except CommandError as error:
            probe = error.completed.argv[-1]
            raise TestbedError(f"{hop.host.name} does not know where to send {probe}: {error}") from error
        for one, (route,), neighbours in zip(routes, answers[::2], answers[1::2], strict=True):
            one.verify(hop.host.name, route, neighbours)


@dataclass(frozen=True, slots=True)
class _Route:
    """What goes to ``network`` leaves by a port, to whom it should."""

    network: IPv4Network | IPv6Network
    port: Port
    via: str

    @property
    def call(self) -> IpCall:
        route = (str(self.network), "via", self.via, "dev", self.port.interface)
        return IpCall(("route", "add", *route), ("route", "delete", *route))

    @property
    def probe(self) -> str:
        """An address there."""
        return str(self.network.network_address + (self.network.num_addresses > 1))

    def verify(self, host: str, route: Mapping[str, Any], neighbours: Sequence[Mapping[str, Any]]) -> None:
        """See that the kernel's own answer to where a packet goes is this. Raises TestbedError when it is not."""
        device, gateway = route.get("dev"), route.get("gateway")
        if device != self.port.interface:
            raise TestbedError(
                f"{host} sends {self.probe} out of {device} and not {self.port.interface}; "
                f"does another route there cover {self.network}?"
            )
        known = {entry["dst"]: entry.get("lladdr") for entry in neighbours}
        if known.get(str(gateway)) != self.port.peer_mac:
            raise TestbedError(
                f"{host} has {known.get(str(gateway))} as the neighbour {gateway} on {self.port.interface}, "
                f"not {self.port.peer_mac}; does something there remove static neighbours?"
            )

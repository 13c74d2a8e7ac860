"""What the data paths of the kernel's own need: addresses, static neighbours and routes, as steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Literal

from pdrgate.data_paths.contract import NETWORKS, Hop, Port
from pdrgate.data_paths.steps import Command, KnobSetting, Step
from pdrgate.errors import TestbedError
from pdrgate.hosts.host import CommandError, Host
from pdrgate.knobs import sysctl


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

    def forwarding(self, hop: Hop) -> Iterator[Step]:
        """The host routes."""
        if self.family == 6:
            for port in hop.ports:
                yield KnobSetting(hop.host, sysctl(f"net/ipv6/conf/{port.interface}/disable_ipv6", 0))
            yield KnobSetting(hop.host, sysctl("net/ipv6/conf/all/forwarding", 1))
        else:
            yield KnobSetting(hop.host, sysctl("net/ipv4/ip_forward", 1))

    def connected(self, host: Host, port: Port, link: int, side: int) -> Iterator[Step]:
        """A port has its address on a link, and knows the other station."""
        own, peer = self.address(link, side), self.address(link, 3 - side)
        address = (f"{own}/{24 if self.family == 4 else 64}", "dev", port.interface)
        nodad = ("nodad",) if self.family == 6 else ()
        yield self.ip(host, ("address", "add", *address, *nodad), ("address", "delete", *address))
        neighbour = (peer, "lladdr", port.peer_mac, "dev", port.interface)
        yield self.ip(
            host,
            ("neighbour", "replace", *neighbour, "nud", "permanent"),
            ("neighbour", "delete", peer, "dev", port.interface),
        )

    def routed(self, hops: Sequence[Hop]) -> Iterator[Step]:
        """Every hop routes forward traffic out of its egress, and reverse traffic out of its ingress."""
        networks = NETWORKS[self.family]
        for number, hop in enumerate(hops, start=1):
            yield from self.forwarding(hop)
            yield from self.connected(hop.host, hop.ingress, link=number - 1, side=2)
            yield from self.connected(hop.host, hop.egress, link=number, side=1)
            yield self.route(hop, networks.forward, hop.egress, via=self.address(number, 2))
            yield self.route(hop, networks.reverse, hop.ingress, via=self.address(number - 1, 1))

    def route(self, hop: Hop, network: IPv4Network | IPv6Network, port: Port, via: str) -> Command:
        """What goes to ``network`` leaves by a port, to whom it should."""
        route = (str(network), "via", via, "dev", port.interface)
        return self.ip(
            hop.host, ("route", "add", *route), ("route", "delete", *route),
            lambda: self._verify_route(hop, network, port),
        )  # fmt: skip

    def route_of(self, host: Host, probe: str, *more: str) -> dict[str, Any]:
        """The kernel's own answer to where a test packet goes. Raises TestbedError when it has none."""
        try:
            routes: list[dict[str, Any]] = host.run_json("ip", "-j", f"-{self.family}", "route", "get", probe, *more)
        except CommandError as error:
            raise TestbedError(f"{host.name} does not know where to send {probe}: {error}") from error
        return routes[0]

    def _verify_route(self, hop: Hop, network: IPv4Network | IPv6Network, port: Port) -> None:
        probe = str(network.network_address + (network.num_addresses > 1))
        route = self.route_of(hop.host, probe)
        device, gateway = route.get("dev"), route.get("gateway")
        if device != port.interface:
            raise TestbedError(
                f"{hop.host.name} sends {probe} out of {device} and not {port.interface}; "
                f"does another route there cover {network}?"
            )
        neighbours: list[dict[str, Any]] = hop.host.run_json(
            "ip", "-j", f"-{self.family}", "neighbour", "show", "dev", port.interface
        )
        known = {entry["dst"]: entry.get("lladdr") for entry in neighbours}
        if known.get(str(gateway)) != port.peer_mac:
            raise TestbedError(
                f"{hop.host.name} has {known.get(str(gateway))} as the neighbour {gateway} on {port.interface}, "
                f"not {port.peer_mac}; does something there remove static neighbours?"
            )

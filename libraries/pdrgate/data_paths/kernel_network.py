"""What the data paths of the kernel's own need: addresses, static neighbours and routes, and how they go again."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Any, Literal

from pdrgate.data_paths.contract import Hop, Port
from pdrgate.errors import TestbedError
from pdrgate.hosts.host import CommandError, Host
from pdrgate.knobs import KnobSet, sysctl


class KernelNetwork:
    """Addresses, neighbours, routes and settings of one IP version on some hosts, until `restore`.

    Neighbours are static so that no resolution ever runs, and loses packets, during a trial. Each hop reaches its
    neighbours through link networks of its own: 10.211.LINK.0/24 or fd00:211:LINK::/64. All methods raise TestbedError
    when a host refuses.
    """

    def __init__(self, family: Literal[4, 6]) -> None:
        self.family: Literal[4, 6] = family
        self._undo: list[tuple[Host, tuple[str, ...]]] = []
        self._knobs = KnobSet()

    def restore(self) -> list[str]:
        """Undo all, also after something failed half-way; sentences on what could not be done as expected."""
        told = []
        while self._undo:
            host, command = self._undo.pop()
            try:
                host.run(*command)
            except TestbedError as error:
                told.append(str(error))
        return told + self._knobs.restore()

    def set(self, host: Host, name: str, value: int) -> None:
        """Set a sysctl, ``net/ipv6/conf/all/forwarding``."""
        self._knobs.apply(host, sysctl(name, value))

    def run(self, host: Host, command: tuple[str, ...], undo: tuple[str, ...]) -> None:
        """Run ``ip`` with these arguments, and with those of ``undo`` at the end."""
        tool = ("ip", f"-{self.family}")
        host.run(*tool, *command)
        self._undo.append((host, tool + undo))

    def address(self, link: int, side: int) -> str:
        """The address of a station on a link; side 1 is the one that forward traffic comes from."""
        return f"10.211.{link}.{side}" if self.family == 4 else f"fd00:211:{link}::{side}"

    def connect(self, host: Host, port: Port, link: int, side: int) -> None:
        """Give a port its address on a link, and tell it the other station."""
        own, peer = self.address(link, side), self.address(link, 3 - side)
        address = (f"{own}/{24 if self.family == 4 else 64}", "dev", port.interface)
        nodad = ("nodad",) if self.family == 6 else ()
        self.run(host, ("address", "add", *address, *nodad), ("address", "delete", *address))
        neighbour = (peer, "lladdr", port.peer_mac, "dev", port.interface)
        self.run(
            host,
            ("neighbour", "replace", *neighbour, "nud", "permanent"),
            ("neighbour", "delete", peer, "dev", port.interface),
        )

    def route(self, hop: Hop, network: IPv4Network | IPv6Network, port: Port, via: str) -> None:
        """Send what goes to ``network`` out of a port."""
        route = (str(network), "via", via, "dev", port.interface)
        self.run(hop.host, ("route", "add", *route), ("route", "delete", *route))

    def route_of(self, host: Host, probe: str, *more: str) -> dict[str, Any]:
        """The kernel's own answer to where a test packet goes."""
        try:
            routes: list[dict[str, Any]] = host.run_json("ip", "-j", f"-{self.family}", "route", "get", probe, *more)
        except CommandError as error:
            raise TestbedError(f"{host.name} does not know where to send {probe}: {error}") from error
        return routes[0]

    def verify_route(self, hop: Hop, network: IPv4Network | IPv6Network, port: Port) -> None:
        """The kernel sends test packets out of a port, and to whom it should."""
        probe = str(network.network_address + 1)
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

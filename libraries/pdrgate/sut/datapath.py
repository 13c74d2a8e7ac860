"""Data paths: what makes the SUT forward. Each is applied to a chain of hops, read back, and restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Literal, Protocol

from pdrgate.errors import TestbedError
from pdrgate.sut.host import CommandError, Host
from pdrgate.sut.knobs import KnobSet, sysctl


@dataclass(frozen=True, slots=True)
class Port:
    """An interface of the SUT and the station that it faces."""

    interface: str
    mac: str
    peer_mac: str


@dataclass(frozen=True, slots=True)
class Hop:
    """One router of the SUT: forward traffic comes in at ``ingress`` and leaves by ``egress``."""

    host: Host
    ingress: Port
    egress: Port


@dataclass(frozen=True, slots=True)
class Networks:
    """Where the test traffic goes. Forward traffic goes from ``reverse`` to ``forward``, the other way round back."""

    forward: IPv4Network | IPv6Network
    reverse: IPv4Network | IPv6Network


NETWORKS: dict[int, Networks] = {
    4: Networks(IPv4Network("198.18.0.0/16"), IPv4Network("198.19.0.0/16")),
    6: Networks(IPv6Network("2001:2:0:1::/64"), IPv6Network("2001:2:0:2::/64")),
}
"""Of the blocks reserved for benchmarking: 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180)."""


class DataPath(Protocol):
    """A way for packets through the SUT."""

    @property
    def name(self) -> str: ...

    @property
    def family(self) -> Literal[4, 6]: ...

    def apply(self, hops: Sequence[Hop]) -> None:
        """Set the path up on every hop, then read it back.

        Raises:
            TestbedError: a hop refuses, or does not forward as it was told.
        """

    def restore(self) -> list[str]:
        """Undo what `apply` did, also after it failed half-way; sentences on what could not be done as expected."""


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


DATA_PATHS: dict[str, tuple[str, Literal[4, 6]]] = {
    "ipv6-routing": ("IPv6 routing", 6),
    "ipv4-routing": ("IPv4 routing", 4),
}
"""Names that suites may use: how a person calls the data path, and the IP version of its traffic."""


def data_path(name: str) -> DataPath:
    """A new data path of that name.

    Raises:
        TestbedError: there is none.
    """
    if name not in DATA_PATHS:
        raise TestbedError(f"there is no data path {name!r}; there are {', '.join(DATA_PATHS)}")
    return Routing(DATA_PATHS[name][1])

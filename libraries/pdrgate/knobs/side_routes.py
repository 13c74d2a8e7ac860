"""Routes beside the one that packets take: each makes the search for it a step longer."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_network

from pdrgate.hosts.host import Host
from pdrgate.knobs.knob import Knob

_PROTOCOL = ("proto", "211")
"""Protocol number that marks these routes as ours. No routing daemon has that number."""
_COOKIE = 16
"""Last bits of an address, which the generator fills."""
_SERVICES = range(4, 256, 4)
"""Values of the IPv4 type of service that routes may ask for, without 0, which packets of ours have."""


@dataclass(frozen=True, slots=True)
class SideRoutes(Knob):
    """Unreachable routes within a network, which no packet of ours takes.

    In IPv6 their prefixes branch off, bit by bit, from the first address of the network: the tree has a node more on
    the way to it. In IPv4 they are routes to the network for other types of service, which are tried before the one
    that is for all.
    """

    kind = "side-routes"

    network: str
    value: str

    def describe(self) -> str:
        return f"routes beside those to {self.network}: {self.value}"

    def lacking(self, host: Host) -> str | None:
        most = most_side_routes(self.network)
        return f"there are at most {most} of them" if int(self.value) > most else None

    def read(self, host: Host) -> str:
        return str(len(host.run_json("ip", "-j", self._family, "route", "show", "root", self.network, *_PROTOCOL)))

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        return min(int(old), int(wanted)) <= int(actual) <= max(int(old), int(wanted))

    @property
    def _family(self) -> str:
        return f"-{ip_network(self.network).version}"

    def _set(self, host: Host, wanted: str) -> None:
        routes, now, count = _routes(self.network), int(self.read(host)), int(wanted)
        for route in routes[now:count]:
            host.run("ip", self._family, "route", "add", "unreachable", *route, *_PROTOCOL)
        for route in reversed(routes[count:now]):
            host.run("ip", self._family, "route", "delete", "unreachable", *route, *_PROTOCOL)
        what = f"the number of routes beside those to {self.network}"
        self._read_back(host, wanted, what, "does a routing daemon there remove routes?")


def side_routes(network: str, count: int) -> SideRoutes:
    """The side routes of a network: as many as asked for, from 1 to `most_side_routes`."""
    return SideRoutes(network, str(count))


def most_side_routes(network: str) -> int:
    """Largest number of side routes."""
    return len(_routes(network))


def _routes(network: str) -> list[tuple[str, ...]]:
    whole = ip_network(network)
    if not isinstance(whole, IPv6Network):
        return [(network, "tos", f"{service:#04x}") for service in _SERVICES]
    lengths = range(whole.prefixlen + 1, whole.max_prefixlen - _COOKIE + 1)
    first = int(whole.network_address)
    return [(f"{IPv6Address(first | 1 << (whole.max_prefixlen - length))}/{length}",) for length in lengths]

"""What the data paths of the kernel's own need: addresses, static neighbours and routes, as steps."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Literal

from pdrgate.data_paths.contract import NETWORKS, Hop, Port
from pdrgate.data_paths.steps import Command, Step, Sysctls
from pdrgate.hosts.host import CommandError, Completed, Host, NoJsonError
from pdrgate.values.errors import TestbedError


@dataclass(frozen=True, slots=True)
class KernelNetwork:
    """Addresses, neighbours and routes of one IP version.

    Neighbours are static so that no resolution ever runs, and loses packets, during a trial. Each hop reaches its
    neighbours through link networks of its own: 10.211.LINK.0/24 or fd00:211:LINK::/64.
    """

    family: Literal[4, 6]

    def ip(
        self, host: Host, command: tuple[str, ...], undo: tuple[str, ...], check: Callable[[], None] | None = None,
        needs: str = "",
    ) -> Command:  # fmt: skip
        """A call of ``ip``, undone by another one; the rest as `Command` has it."""
        tool = ("ip", f"-{self.family}")
        return Command(host, tool + command, tool + undo, check, needs)

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


_COUNTED = ("link", "show", "dev", "lo")
_END = "end of calls"


@dataclass(frozen=True, slots=True)
class IpCall:
    """Words of a call of ``ip``, and of the one that undoes it."""

    words: tuple[str, ...]
    undo: tuple[str, ...] = ()


class IpCalls(Step):
    """Calls of one IP version that are made together, and undone together in reverse.

    Args:
        check: reads back what they did.
    """

    def __init__(self, host: Host, family: int, calls: Sequence[IpCall], check: Callable[[], None]) -> None:
        self._host = host
        self._family = family
        self._calls = tuple(calls)
        self._check = check
        self._done = 0

    def apply(self) -> None:
        self._done, error = _made(self._host, self._family, [call.words for call in self._calls])
        if error is not None:
            raise error

    def read_back(self) -> None:
        self._check()

    def undo(self) -> Sequence[str]:
        left, self._done = [call.undo for call in reversed(self._calls[: self._done])], 0
        sentences = []
        while left:
            made, error = _made(self._host, self._family, left)
            sentences += [] if error is None else [str(error)]
            left = left[made + 1 :]
        return sentences


def ip_answers(host: Host, family: int, questions: Sequence[tuple[str, ...]]) -> list[Any]:
    """What ``ip`` answers to several questions, as JSON. Raises TestbedError where it has no answer to one."""
    completed = _batch(host, family, questions, "-j")
    lines = [line for line in completed.stdout.splitlines() if line.strip()]
    if completed.exit_code:
        raise _error(host, family, questions, len(lines), completed)
    try:
        return [json.loads(line) for line in lines]
    except (ValueError, RecursionError) as error:
        told = f"`ip -j -{family}` on {host.name} printed no JSON ({error}); is that program too old there?"
        raise NoJsonError(told) from error


def _made(host: Host, family: int, calls: Sequence[tuple[str, ...]]) -> tuple[int, CommandError | None]:
    """Make calls until one fails: how many were made, and why the next was not."""
    # Most calls end ip where they fail, and it prints no number. So each call is followed by one that prints a line.
    counted = [one for call in calls for one in (call, _COUNTED)]
    completed = _batch(host, family, counted, "-o")
    made = sum(line.startswith("1: lo") for line in completed.stdout.splitlines())
    return made, _error(host, family, calls, made, completed) if completed.exit_code else None


def _batch(host: Host, family: int, calls: Sequence[tuple[str, ...]], option: str) -> Completed:
    lines = "\n".join(shlex.join(words) for words in calls)
    return host.script(f"ip {option} -{family} -batch - <<'{_END}'\n{lines}\n{_END}")


def _error(
    host: Host, family: int, calls: Sequence[tuple[str, ...]], number: int, completed: Completed
) -> CommandError:
    """Why the call of that number, from 0, failed."""
    call = calls[min(number, len(calls) - 1)]
    why = "\n".join(line for line in completed.stderr.splitlines() if not line.startswith("Command failed -"))
    ended = Completed(call, completed.exit_code, completed.stdout, why)
    return CommandError(host.name, f"`{shlex.join(('ip', f'-{family}', *call))}`", ended)

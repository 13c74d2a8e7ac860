"""Steps that put an eBPF program in the way of packets by routes of a hop.

A route calls the program (``encap bpf``, or a segment of its own, End.BPF), or leads through a pair of netkit devices
where the program is, as into a container.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

from pdrgate.bpf.programs import loaded
from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.attached_programs import Sent, sut_names
from pdrgate.data_paths.contract import NETWORKS, Hop, segment
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.steps import Step
from pdrgate.hosts.host import CommandError
from pdrgate.values.errors import TestbedError

_SEGMENTS = "seg6local"


class _ByRoutes(Step):
    """Routes of a hop lead its packets to a build's program.

    Args:
        number: of the hop, from 1 on.
        family: the IP version of the packets.
    """

    def __init__(self, hop: Hop, number: int, build: BpfBuild, family: Literal[4, 6], sent: Sent) -> None:
        self._hop = hop
        self._number = number
        self._build = build
        self._family = family
        self._sent = sent


class AttachedRoutes(_ByRoutes):
    """The routes that a hop's packets take call a build's program; built as `_ByRoutes`."""

    @property
    def _at(self) -> str:
        """When a route calls it: in, out, xmit, or seg6local."""
        return self._build.section.removeprefix("?").removeprefix("lwt_")

    def apply(self) -> None:
        host = self._hop.host
        with loaded(host, self._build, self._build.load_as, sut_names(self._hop)) as program:
            self._undo.append(program.leave)
            for plain, calling in self._routes(program.pin):
                # By name, so that what the route was is there again.
                self._undo.append(partial(self._replace, plain))
                try:
                    self._replace(calling)
                except CommandError as error:
                    raise TestbedError(
                        f"{host.name} takes no route that calls {self._build.program} ({self._build.section}): "
                        f"{error}; has its kernel CONFIG_LWTUNNEL_BPF, and for segments CONFIG_IPV6_SEG6_BPF?"
                    ) from error
            self._sent.add(program)

    def _replace(self, route: Sequence[str]) -> None:
        self._hop.host.run("ip", f"-{self._family}", "route", "replace", *route)

    def _routes(self, pin: str) -> Sequence[tuple[Sequence[str], Sequence[str]]]:
        """Each route as it is, and as it calls a pinned program."""
        if self._at == _SEGMENTS:
            own = (f"{segment(self._number)}/128", "encap", _SEGMENTS, "action")
            port = ("dev", self._hop.ingress.interface)
            return (((*own, "End", *port), (*own, "End.BPF", "endpoint", "pinned", pin, *port)),)
        return [
            ((network, *way), (network, "encap", "bpf", self._at, "pinned", pin, *way))
            for network, way in _ways(self._hop, self._number, self._family)
        ]


def _ways(hop: Hop, number: int, family: Literal[4, 6]) -> Iterator[tuple[str, Sequence[str]]]:
    """Each network of the traffic with its way out of a hop, which has a number from 1 on."""
    networks, network = NETWORKS[family], KernelNetwork(family)
    yield str(networks.forward), ("via", network.address(number, 2), "dev", hop.egress.interface)
    yield str(networks.reverse), ("via", network.address(number - 1, 1), "dev", hop.ingress.interface)


_DEVICE = "pdrgate-nk"
_TABLE = "5476"
"""Table of routes, and the preference of the rule that leads there, for what comes out of the pair."""


class AttachedNetkit(_ByRoutes):
    """A hop routes its packets into one device of a pair, whose program a build is, and on from the other device.

    Built as `_ByRoutes`.
    """

    @property
    def _side(self) -> str:
        """The device whose packets call it, ``primary`` or ``peer``, as they leave there."""
        return self._build.section.removeprefix("?").partition("/")[2] or "primary"

    def apply(self) -> None:
        primary, peer, number = self._pair()
        into, out_of = (peer, primary) if self._side == "peer" else (primary, peer)
        rule = ("iif", out_of, "lookup", _TABLE, "pref", _TABLE)
        self._ip("rule", "add", *rule)
        self._undone_by(("rule", "delete", *rule))
        routes = list(_ways(self._hop, self._number, self._family))
        for to, way in routes:
            self._ip("route", "add", to, *way, "table", _TABLE)
            self._undone_by(("route", "delete", to, "table", _TABLE))
        link = f"netkit {self._side} {number}"
        host, build = self._hop.host, self._build
        program = self._enter(loaded(host, build, build.load_as, sut_names(self._hop), links=[link]))
        self._undo.append(program.leave)
        for to, way in routes:
            self._undone_by(("route", "replace", to, *way))
            self._ip("route", "replace", to, "dev", into)
        self._sent.add(program)

    def _pair(self) -> tuple[str, str, int]:
        """A new pair of devices that are up: both names, and the number of the first one."""
        host = self._hop.host
        try:
            host.run("ip", "link", "add", _DEVICE, "type", "netkit")
        except CommandError as error:
            raise TestbedError(
                f"{host.name} has no netkit devices ({error}); they need Linux 6.7 with CONFIG_NETKIT"
            ) from error
        self._undo.append(partial(host.run, "ip", "link", "delete", _DEVICE))
        (made,) = host.run_json("ip", "-j", "link", "show", "dev", _DEVICE)
        link: dict[str, Any] = made
        peer = str(link["link"])
        for device in (_DEVICE, peer):
            if self._family == 6:
                host.write(f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6", "0")
            host.run("ip", "link", "set", "dev", device, "up")
        return _DEVICE, peer, int(link["ifindex"])

    def _undone_by(self, words: Sequence[str]) -> None:
        self._undo.append(partial(self._ip, *words))

    def _ip(self, *words: str) -> None:
        self._hop.host.run("ip", f"-{self._family}", *words)

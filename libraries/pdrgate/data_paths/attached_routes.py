"""Steps that let routes of a hop call an eBPF program: those with ``encap bpf``, and segments of its own (End.BPF)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pdrgate.bpf.programs import loaded
from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.attached_programs import LastingStep, Sent, sut_names
from pdrgate.data_paths.contract import NETWORKS, Hop, segment
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.hosts.host import CommandError
from pdrgate.values.errors import TestbedError

_SEGMENTS = "seg6local"


class AttachedRoutes(LastingStep):
    """The routes that a hop's packets take call a build's program.

    Args:
        number: of the hop, from 1 on.
        family: the IP version of the packets.
    """

    def __init__(self, hop: Hop, number: int, build: BpfBuild, family: Literal[4, 6], sent: Sent) -> None:
        super().__init__()
        self._hop = hop
        self._number = number
        self._build = build
        self._family = family
        self._sent = sent
        self._at = build.section.removeprefix("?").removeprefix("lwt_")
        """When a route calls it: in, out, xmit, or seg6local."""

    def apply(self) -> None:
        host = self._hop.host
        with loaded(host, self._build, self._build.load_as, sut_names(self._hop)) as program:
            self._undo.callback(program.leave)
            for plain, calling in self._routes(program.pin):
                # By name, so that what the route was is there again.
                self._undo.callback(self._replace, plain)
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
        hop, number, networks, network = self._hop, self._number, NETWORKS[self._family], KernelNetwork(self._family)
        if self._at == _SEGMENTS:
            own = (f"{segment(number)}/128", "encap", _SEGMENTS, "action")
            port = ("dev", hop.ingress.interface)
            return (((*own, "End", *port), (*own, "End.BPF", "endpoint", "pinned", pin, *port)),)
        found = []
        for where, via, port_name in (
            (networks.forward, network.address(number, 2), hop.egress.interface),
            (networks.reverse, network.address(number - 1, 1), hop.ingress.interface),
        ):
            way = ("via", via, "dev", port_name)
            found.append(((str(where), *way), (str(where), "encap", "bpf", self._at, "pinned", pin, *way)))
        return found

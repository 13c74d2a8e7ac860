"""The end host: UDP packets are delivered to programs that read sockets of the SUT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pdrgate.data_paths.contract import NETWORKS, Hop
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.receivers import ReceiverProgram, Receivers
from pdrgate.data_paths.slowdowns import EGRESS_FILTER, routes_beside
from pdrgate.data_paths.steps import Command, KnobSetting, Started, Step, SteppedPath
from pdrgate.knobs import sysctl
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError


class UdpDelivery(SteppedPath):
    """Delivery to receivers on the hop where traffic comes in; further hops have nothing to do.

    All addresses that traffic goes to are the hop's own, and it forwards nothing.
    """

    def __init__(self, family: Literal[4, 6], receivers: Receivers) -> None:
        super().__init__(_name(family), family)
        self._receivers = receivers
        self._started: Started[ReceiverProgram] | None = None

    @property
    def mode(self) -> str:
        return "sockets"

    @property
    def by_kernel(self) -> bool:
        return False

    @property
    def arrivals(self) -> ReceiverProgram | None:
        return self._started.program if self._started is not None else None

    def sentence(self) -> str:
        return f"UDP sockets of {self._receivers.count} receivers"

    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        hop, network = hops[0], KernelNetwork(self.family)
        if self.family == 6:
            yield KnobSetting(hop.host, sysctl(f"net/ipv6/conf/{hop.ingress.interface}/disable_ipv6", 0))
        yield from network.connected(hop.host, hop.ingress, link=0, side=2)
        yield network.route(hop, NETWORKS[self.family].reverse, hop.ingress, via=network.address(0, 1))
        yield self._local(hop, network)
        self._started = Started(lambda: ReceiverProgram(hop.host, self._receivers, self.family, hop.cpus))
        yield self._started

    def _local(self, hop: Hop, network: KernelNetwork) -> Command:
        """What traffic goes to is the host's own."""
        networks = NETWORKS[self.family]

        def check() -> None:
            probe, sender = (str(one.network_address + 1) for one in (networks.forward, networks.reverse))
            route = network.route_of(hop.host, probe, "from", sender, "iif", hop.ingress.interface)
            if route.get("type") != "local":
                raise TestbedError(
                    f"{hop.host.name} does not take packets to {probe} for its own, but as "
                    f"{route.get('type', 'unicast')}; does another route there cover {networks.forward}?"
                )

        what, words = self._own(hop, str(networks.forward))
        return network.ip(hop.host, (what, "add", *words), (what, "delete", *words), check)

    def _own(self, hop: Hop, network: str) -> tuple[str, tuple[str, ...]]:
        """What makes a network the host's own: an address of its loopback device, or a route.

        With a local route of IPv4, though it be gone again, the kernel looks each source of a packet up until its
        network namespace ends, and each data path that comes after costs more.
        """
        if self.family == 4:
            (device,) = hop.host.run_json("ip", "-j", "link", "show", "dev", "lo")
            if "UP" in device["flags"]:
                return "address", (network, "dev", "lo")
        return "route", ("local", network, "dev", hop.ingress.interface, "table", "local")


def _name(family: Literal[4, 6]) -> str:
    return "udp-delivery" if family == 4 else "udp6-delivery"


def _description(family: Literal[4, 6]) -> PathDescription:
    return PathDescription(
        name=_name(family),
        title="UDP delivery" if family == 4 else "UDP delivery over IPv6",
        help=f"The packets end at programs that read UDP sockets over IPv{family}.",
        make=lambda asked: UdpDelivery(family, asked.receivers),
        frames=Frames(family),
        fate="delivered",
        slowdowns=(EGRESS_FILTER, routes_beside(family)),
    )


PATHS = (_description(4), _description(6))

"""The end host: UDP packets are delivered to programs that read sockets of the SUT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pdrgate.data_paths.contract import NETWORKS, Hop
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.receivers import ReceiverProgram, Receivers
from pdrgate.errors import TestbedError


class UdpDelivery:
    """Delivery to receivers on the hop where traffic comes in; further hops have nothing to do.

    All addresses that traffic goes to are the hop's own, and it forwards nothing.
    """

    def __init__(self, family: Literal[4, 6], receivers: Receivers) -> None:
        self._network = KernelNetwork(family)
        self._receivers = receivers
        self._program: ReceiverProgram | None = None

    @property
    def name(self) -> str:
        return "udp-delivery" if self.family == 4 else "udp6-delivery"

    @property
    def family(self) -> Literal[4, 6]:
        return self._network.family

    @property
    def mode(self) -> str:
        return "sockets"

    @property
    def by_kernel(self) -> bool:
        return False

    @property
    def arrivals(self) -> ReceiverProgram | None:
        return self._program

    def sentence(self) -> str:
        return f"UDP sockets of {self._receivers.count} receivers"

    def describe(self) -> Mapping[str, str]:
        return {}

    def redirected(self) -> int | None:
        return None

    def forwarded(self, frame: bytes, direction: int) -> None:
        return None

    @property
    def of_user(self) -> bool:
        return False

    def apply(self, hops: Sequence[Hop]) -> None:
        hop, network, networks = hops[0], self._network, NETWORKS[self.family]
        if self.family == 6:
            network.set(hop.host, f"net/ipv6/conf/{hop.ingress.interface}/disable_ipv6", 0)
        network.connect(hop.host, hop.ingress, link=0, side=2)
        network.route(hop, networks.reverse, hop.ingress, via=network.address(0, 1))
        local = ("local", str(networks.forward), "dev", hop.ingress.interface, "table", "local")
        network.run(hop.host, ("route", "add", *local), ("route", "delete", *local))
        network.verify_route(hop, networks.reverse, hop.ingress)
        probe, sender = (str(one.network_address + 1) for one in (networks.forward, networks.reverse))
        route = network.route_of(hop.host, probe, "from", sender, "iif", hop.ingress.interface)
        if route.get("type") != "local":
            raise TestbedError(
                f"{hop.host.name} does not take packets to {probe} for its own, but as {route.get('type', 'unicast')}; "
                f"does another route there cover {networks.forward}?"
            )
        self._program = ReceiverProgram(hop.host, self._receivers, self.family, hop.cpus)

    def restore(self) -> list[str]:
        told = []
        program, self._program = self._program, None
        if program is not None:
            try:
                program.close()
            except TestbedError as error:
                told.append(str(error))
        return told + self._network.restore()

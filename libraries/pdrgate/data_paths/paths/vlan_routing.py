"""The kernel's own router behind a VLAN: IPv4 comes in tagged and leaves tagged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pdrgate.data_paths.contract import Hop, Port
from pdrgate.data_paths.forwarded_frames import routed
from pdrgate.data_paths.kernel_network import KernelNetwork
from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.slowdowns import EGRESS_FILTER, routes_beside
from pdrgate.data_paths.steps import Command, KnobSetting, Step, SteppedPath
from pdrgate.hosts.host import Host
from pdrgate.knobs import offloads
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

_NAME = "vlan-ipv4-routing"
_VLAN = 7
_INTERFACES = ("pdrvlan-in", "pdrvlan-out")
"""Interfaces of each hop: those of the ingress and of the egress."""


class VlanRouting(SteppedPath):
    """IPv4 forwarding from one VLAN interface to another, both of the same VLAN."""

    def __init__(self) -> None:
        super().__init__(_NAME, 4, routed)

    def sentence(self) -> str:
        return f"the kernel routes between interfaces of VLAN {_VLAN}"

    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        behind = []
        for hop in hops:
            for port, interface in zip(hop.ports, _INTERFACES, strict=True):
                # A veth would hand the tag over beside the frame, where nobody at the other end looks for it.
                yield KnobSetting(hop.host, offloads(port.interface, {"txvlan": False}), missing="skip")
                yield from _tagged(hop.host, port, interface)
            ingress, egress = (replace(port, interface=name) for port, name in zip(hop.ports, _INTERFACES, strict=True))
            behind.append(replace(hop, ingress=ingress, egress=egress))
        yield from KernelNetwork(4).routed(behind)


def _tagged(host: Host, port: Port, interface: str) -> Iterator[Step]:
    """An interface for what is of the VLAN at a port; it has the port's MAC address."""

    def check() -> None:
        (link,) = host.run_json("ip", "-j", "-d", "link", "show", "dev", interface)
        data = link.get("linkinfo", {}).get("info_data", {})
        if (link.get("link"), data.get("id")) != (port.interface, _VLAN):
            raise TestbedError(
                f"{interface} on {host.name} was made for VLAN {_VLAN} of {port.interface}, but reads back VLAN "
                f"{data.get('id')} of {link.get('link')}; does something there change it?"
            )

    link = ("link", port.interface, "name", interface, "type", "vlan", "id", str(_VLAN))
    yield Command(host, ("ip", "link", "add", *link), ("ip", "link", "delete", interface), check, "CONFIG_VLAN_8021Q")
    yield Command(host, ("ip", "link", "set", interface, "up"), ("ip", "link", "set", interface, "down"))


PATHS = (
    PathDescription(
        name=_NAME,
        title="IPv4 routing behind a VLAN",
        help=f"The kernel routes IPv4 that comes and goes with the tag of VLAN {_VLAN}.",
        make=lambda asked: VlanRouting(),
        frames=Frames(4, vlan=_VLAN),
        slowdowns=(EGRESS_FILTER, routes_beside(4)),
    ),
)

"""The SUT's ports of a rack, found by what a testbed file calls them."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.data_paths.catalogue import Hop, Port
from pdrgate.hosts.host import Host
from pdrgate.testbeds.rack.rack_keys import PortConfig
from pdrgate.testbeds.rack.rack_station import RackStation
from pdrgate.testbeds.rack.traffic_source import TrafficSource, found_link
from pdrgate.values.errors import TestbedError


def find_router(
    host: Host, ports: Sequence[PortConfig], source: TrafficSource, station: RackStation | None = None
) -> Hop:
    """The SUT with its two ports, in the order of forward traffic.

    Args:
        station: who talks TCP with the first port; None: the port of ``source``, where that can.

    Raises:
        TestbedError: a port is not there or has no link, or both are the same.
    """
    found = []
    for number, (port, address) in enumerate(zip(ports, source.stations(), strict=True)):
        key = f"sut.ports.{number}"
        link = found_link(host, port.interface or _interface(host, port, key), key)
        faces = port.faces or address
        if faces is None:
            raise TestbedError(f"{key}: the generator does not report the MAC address of its port; write it as faces")
        found.append(Port(link.interface, link.mac, faces))
    first, second = found
    if first.interface == second.interface:
        raise TestbedError(f"sut.ports: both are {first.interface}; a router needs two")
    talks = station.facing(first) if station is not None else source.station(first)
    return Hop(host, first, second, station=talks)


def _interface(router: Host, port: PortConfig, key: str) -> str:
    """The interface with the port's MAC or PCI address."""
    if port.pci is not None:
        names = router.run("ls", f"/sys/bus/pci/devices/{port.pci}/net", check=False).stdout.split()
        if len(names) != 1:
            raise TestbedError(
                f"{key}: {router.name} has {'several interfaces' if names else 'no interface'} at PCI address "
                f"{port.pci}; see ethtool -i, and is the card bound to a kernel driver?"
            )
        return names[0]
    links = router.run_json("ip", "-j", "link", "show")
    names = [link["ifname"] for link in links if link.get("address") == port.mac]
    if len(names) != 1:
        raise TestbedError(
            f"{key}: {router.name} has {'several interfaces' if names else 'no interface'} with the address "
            f"{port.mac}; name the port by interface, see ip link"
        )
    return str(names[0])

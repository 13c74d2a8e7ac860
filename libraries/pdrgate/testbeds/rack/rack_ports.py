"""The SUT's ports of a rack, found by what a testbed file calls them, and the station that talks TCP with one."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.data_paths.catalogue import Hop, Port, Station
from pdrgate.hosts.host import Host
from pdrgate.hosts.ssh import SshHost
from pdrgate.knobs import KnobSet
from pdrgate.knobs.port_network import PortNetwork
from pdrgate.safety.journal import Journal
from pdrgate.safety.sut_lock import SutLock
from pdrgate.testbeds.rack.rack_keys import PortConfig
from pdrgate.testbeds.rack.traffic_source import TrafficSource, found_link
from pdrgate.values.errors import TestbedError, all_closed, closed_on_error

_KEY = "station.interface"


class RackStation:
    """An interface that the SUT's first port faces, from `__init__` to `close`.

    Args:
        machine: the machine that the interface is of.
        router: the machine again, or the network namespace of it that the interface is in.
        cpu: of its programs and its packet work;
        None: as its scheduler likes.
        lock: lock of its machine, if that is not the SUT's. The station holds it, and checks it with the machine.

    Raises:
        TestbedError: it cannot be reached, or the interface is not there or has no link.
    """

    def __init__(
        self,
        machine: Host,
        router: Host,
        interface: str,
        journal: Journal,
        *,
        cpu: int | None,
        lock: SutLock | None,
    ) -> None:
        self._machine = machine
        self._router = router
        self._interface = interface
        self._cpu = cpu
        self._lock = lock
        self._knobs = KnobSet(journal)
        with closed_on_error(self.close):
            if isinstance(machine, SshHost):
                journal.machine(machine.name, machine.to_record(), machine.boot_id)
            link = found_link(router, interface, _KEY)
            self._interface, self._mac = link.interface, link.mac
            # What a transfer makes of it is taken away again, also after a killed run.
            self._knobs.apply(router, PortNetwork(link.interface))

    def facing(self, sut: Port) -> Station:
        """The station at the other end of a port of the SUT."""
        return Station(self._router, Port(self._interface, self._mac, sut.mac), self._cpu)

    def describe(self) -> dict[str, str]:
        """Properties of the station that results need in common to be comparable."""
        return {"station": self._router.name}

    def sentence(self) -> str:
        """The station in words."""
        return f"TCP with {self._router.name}, port {self._interface}"

    def check(self) -> None:
        """Take the lock again where the connection was lost. Raises TestbedError when somebody else has it."""
        if self._lock is not None:
            self._lock.renew()

    def close(self) -> None:
        """Put the interface back. Calling it twice is harmless.

        Raises:
            TestbedError: something could not be undone; the next start tries again.
        """
        all_closed(self._knobs.restore, self._router.close, self._machine.close)


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
    for number, (port, address) in enumerate(zip(ports, source.stations, strict=True)):
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

"""Generators of a rack: their two ports, and the resources of this machine that they need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.data_paths.contract import Port, Station
from pdrgate.hosts.host import Host, local_host, netns_host
from pdrgate.knobs import KnobSet, sysctl
from pdrgate.knobs.port_network import PortNetwork
from pdrgate.safety.journal import Journal
from pdrgate.traffic.embedded import EmbeddedGenerator, Engine
from pdrgate.traffic.frames import Path
from pdrgate.traffic.generator import Generator
from pdrgate.traffic.trex.trex_config import TRexConfig
from pdrgate.values.errors import PdrGateError, TestbedError, closed_on_error


class TrafficSource(ABC):
    """Two ports of a TG, the first facing the SUT's first port. The defaults are those of another machine."""

    ports: tuple[str, str]
    """Their names, as the generator's paths have them."""
    cpu: int | None = None
    """The CPU of this machine that is kept busy; None if that is another machine's."""
    stations: tuple[str | None, str | None] = (None, None)
    """The MAC addresses of the ports; None if only the testbed file has them."""

    def station(self, sut: Port) -> Station | None:
        """The first port with the network stack of its machine, facing a port of the SUT; None if it has none."""
        return None

    @abstractmethod
    def open(self, paths: Sequence[Path]) -> Generator:
        """A generator for these directions; the caller closes it. Raises TestbedError."""

    @abstractmethod
    def sentence(self) -> str:
        """The generator in words."""

    def close(self) -> None:  # noqa: B027 - of TRex nothing is changed but during trials
        """Put the ports back. Calling it twice is harmless."""


class EmbeddedSource(TrafficSource):
    """The embedded generator on two interfaces of this machine.

    Raises:
        TestbedError: an interface is not there or has no link.
    """

    def __init__(
        self, ports: tuple[str, str], cpu: int, journal: Journal, *, namespace: str | None, engine: Engine
    ) -> None:
        self.ports = ports
        self.cpu: int = cpu
        self._namespace = namespace
        self._engine: Engine = engine
        self._host: Host = netns_host(namespace) if namespace else local_host()
        self._knobs = KnobSet(journal)
        with closed_on_error(self.close):
            first, second = (found_link(self._host, port, "generator.ports") for port in ports)
            self.ports = (first.interface, second.interface)
            self.stations = (first.mac, second.mac)
            for port in self.ports:
                # What a transfer over it makes of it, and what a generator that was killed leaves there, goes again.
                self._knobs.apply(self._host, PortNetwork(port))
                # No address of its own, no router solicitation, no listener report: only test packets on these links.
                self._knobs.apply(self._host, sysctl(f"net/ipv6/conf/{port}/disable_ipv6", 1), missing="skip")

    def station(self, sut: Port) -> Station | None:
        # Nobody generates while TCP is measured.
        return Station(self._host, Port(self.ports[0], sut.peer_mac, sut.mac), self.cpu)

    def open(self, paths: Sequence[Path]) -> Generator:
        return EmbeddedGenerator(self._namespace, self.cpu, paths, self._engine)

    def sentence(self) -> str:
        where = f" of namespace {self._namespace}" if self._namespace else ""
        return f"generator on CPU {self.cpu}, ports {' and '.join(self.ports)}{where}"

    def close(self) -> None:
        try:
            self._knobs.restore()
        finally:
            self._host.close()


class TRexSource(TrafficSource):
    """Two ports of a TRex server."""

    def __init__(self, config: TRexConfig) -> None:
        self._config = config
        first, second = map(str, config.ports)
        self.ports = first, second

    def open(self, paths: Sequence[Path]) -> Generator:
        # Only here: its client takes seconds to load, and other testbeds do without.
        from pdrgate.traffic.trex import TRexGenerator

        return TRexGenerator(self._config, paths)

    def sentence(self) -> str:
        return f"TRex at {self._config.address}, ports {' and '.join(self.ports)}"


@dataclass(frozen=True, slots=True)
class Link:
    """An interface that has a link."""

    interface: str
    """The kernel's name of it. ip also takes alternative names, such as that before an upgrade; /proc does not."""
    mac: str


def found_link(host: Host, interface: str, key: str) -> Link:
    """The interface of a name, which has a link.

    Raises:
        TestbedError: it is not there, down or without a link; ``key`` is where the testbed file names it.
    """
    try:
        links = host.run_json("ip", "-j", "link", "show", "dev", interface)
    except PdrGateError as error:
        known = host.run("ls", "/sys/class/net").stdout.split()
        if interface in known:
            raise
        if (plain := interface.partition("@")[0]) != interface and plain in known:
            return found_link(host, plain, key)  # ip shows a link's other end behind the name
        raise TestbedError(
            f"{key}: {host.name} has no interface {interface}, but {', '.join(known)}; name one of these"
        ) from error
    link = links[0]
    if "UP" not in link.get("flags", ()):
        raise TestbedError(f"{key}: {interface} on {host.name} is down; bring it up: ip link set {interface} up")
    if "LOWER_UP" not in link["flags"]:
        raise TestbedError(
            f"{key}: {interface} on {host.name} has no link; check cable and far end, see ethtool {interface}"
        )
    return Link(str(link["ifname"]), str(link["address"]))

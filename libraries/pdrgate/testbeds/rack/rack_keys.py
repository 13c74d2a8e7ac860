"""The keys that only the file of a rack has: ports and station, and what no schema can say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Resource
from pdrgate.testbeds.config import TREX
from pdrgate.testbeds.rack.rack_host import HostConfig
from pdrgate.testbeds.sharing import cores
from pdrgate.testbeds.yaml_lines import Key

if TYPE_CHECKING:
    from pdrgate.safety.sut_lock import SutLock
    from pdrgate.testbeds.rack.rack_ports import RackStation


@dataclass(frozen=True, slots=True)
class PortConfig:
    """A port of the SUT by interface, MAC address or PCI address: one of the three."""

    interface: str | None = None
    mac: str | None = None
    pci: str | None = None
    faces: str | None = None
    """The MAC address of the generator's port at the other end; None if that can be read."""

    @classmethod
    def read(cls, port: Mapping[str, str]) -> PortConfig:
        """The port of a file without faults. The kernel writes addresses in small letters, and so does this."""
        return cls(**{key: value if key == "interface" else value.lower() for key, value in port.items()})


@dataclass(frozen=True, slots=True)
class StationConfig:
    """The host that talks TCP with the SUT's first port, where the generator's port does not."""

    host: HostConfig
    interface: str
    cpu: int | None = None
    """The CPU of its programs and its packet work; None leaves that to its scheduler."""

    @classmethod
    def read(cls, source: Path, station: Mapping[str, Any]) -> StationConfig:
        """The station of a file without faults."""
        cpu = station.get("cpu", "auto")
        host = HostConfig.read(source, station["host"], "station")
        return cls(host, station["interface"], None if cpu == "auto" else int(cpu))

    def resources(self) -> Iterator[Resource]:
        """Resources of the station: its host if that is another machine, else its parts of this one."""
        if self.host.ssh is not None:
            yield self.host.resource()
            return
        inside = f" of namespace {self.host.namespace}" if self.host.namespace else ""
        yield Resource("interface", f"{self.interface}{inside}")
        yield from cores(() if self.cpu is None else (self.cpu,))

    def open(self, journal: Journal, lock: SutLock | None) -> RackStation:
        """Reach the host, by the connection of ``lock`` where its holder has one. Raises TestbedError."""
        from pdrgate.testbeds.rack.rack_ports import RackStation

        machine, router = self.host.reach(lock)
        return RackStation(machine, router, self.interface, journal, cpu=self.cpu, lock=lock)


def wrong_ports(content: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    """Faults of the ports: a port has one name, and TRex does not report the MAC address of its own."""
    for index, port in enumerate(content["sut"]["ports"]):
        key: Key = ("sut", "ports", index)
        if len(named := [name for name in ("interface", "mac", "pci") if name in port]) != 1:
            yield key, f"is named by {' and '.join(named) or 'nothing'}; name it by one of interface, mac and pci"
        if content["generator"]["kind"] == TREX and "faces" not in port:
            yield key, "the key faces is missing; write the MAC address of TRex's port at the other end"


def wrong_passwords(key: Key, host: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    """A host is entered by a key or by a password, and so is the one that it is reached through."""
    for within, one in (((), host), (("jump",), host.get("jump", {}))):
        if "key" in one and "password_env" in one:
            yield (*key, *within, "password_env"), "there is a key too; keep the key, or the password"

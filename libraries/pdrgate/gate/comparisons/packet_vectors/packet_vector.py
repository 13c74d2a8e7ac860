"""The packets of a capture that programs are run on, each that is unlike the others once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pdrgate.traffic.chosen.capture_file import captured_packets
from pdrgate.values.errors import DataError

MOST_VECTORS = 1024
"""Packets of a capture: each takes some hundredths of a second for each build, several times."""


@dataclass(frozen=True, slots=True)
class PacketVector:
    """A packet of a capture."""

    number: int
    """Its number in the capture, from 1: of equal ones the first."""
    packet: bytes
    copies: int
    """How many packets of the capture are equal to it, itself among them."""


@dataclass(frozen=True, slots=True)
class PacketVectors:
    """Packets of a capture, on which programs are run."""

    name: str
    sha256: str
    packets: int
    vectors: tuple[PacketVector, ...]

    @classmethod
    def read(cls, path: Path) -> PacketVectors:
        """The packets of a capture file. Raises DataError when it holds none that programs could be run on."""
        try:
            found = captured_packets(path, MOST_VECTORS)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except (DataError, OSError) as error:
            raise DataError(f"packets: {error}") from error
        first: dict[bytes, int] = {}
        copies: dict[bytes, int] = {}
        for number, packet in enumerate(found, start=1):
            first.setdefault(packet, number)
            copies[packet] = copies.get(packet, 0) + 1
        vectors = tuple(PacketVector(number, packet, copies[packet]) for packet, number in first.items())
        return cls(path.name, digest, len(found), vectors)

    @property
    def title(self) -> str:
        """``41 packets of dns.pcap``."""
        return f"{self.packets} packet{'s' * (self.packets != 1)} of {self.name}"

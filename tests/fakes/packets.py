"""Takes frames apart and sums their checksums anew: a parser that shares no code with the generator."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address


def ones_complement_sum(data: bytes) -> int:
    """RFC 1071: of data with a right checksum in it this is 0xffff."""
    total = (sum(data[::2]) << 8) + sum(data[1::2])
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    return total


@dataclass(frozen=True)
class Decoded:
    destination_mac: str
    source_mac: str
    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    hops: int
    source_port: int
    destination_port: int
    payload: bytes


@functools.lru_cache(maxsize=1024)  # of a trial's frames most are the same bytes, those of a few flows
def decode(frame: bytes) -> Decoded:
    """Take a UDP frame apart and check every length and checksum in it."""
    macs = [":".join(f"{byte:02x}" for byte in frame[at : at + 6]) for at in (0, 6)]
    (ethertype,) = struct.unpack("!H", frame[12:14])
    packet = frame[14:]
    if ethertype == 0x86DD:
        first, length, protocol, hops = struct.unpack("!IHBB", packet[:8])
        assert first == 0x60000000
        source, destination = packet[8:24], packet[24:40]
        udp = packet[40:]
        pseudo = source + destination + struct.pack("!IHBB", length, 0, 0, protocol)
    else:
        assert ethertype == 0x0800
        version, _, total, _, fragment, hops, protocol = struct.unpack("!BBHHHBB", packet[:10])
        assert version == 0x45
        assert fragment == 0x4000  # may not be fragmented
        assert ones_complement_sum(packet[:20]) == 0xFFFF
        source, destination, udp = packet[12:16], packet[16:20], packet[20:]
        length = total - 20
        pseudo = source + destination + struct.pack("!BBH", 0, protocol, length)
    assert protocol == 17
    assert length == len(udp)
    source_port, destination_port, udp_length, checksum = struct.unpack("!HHHH", udp[:8])
    assert udp_length == len(udp)
    assert checksum != 0
    assert ones_complement_sum(pseudo + udp) == 0xFFFF
    return Decoded(macs[0], macs[1], ip_address(source), ip_address(destination), hops, source_port,
                   destination_port, udp[8:])  # fmt: skip

"""Headers of frames, around what they carry, with their checksums: made here, and found in a frame."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

LONGEST_FRAME = 1514
"""Bytes of a frame without FCS."""
SHORTEST_FRAME = 60
"""Bytes of the shortest frame without FCS. A card fills up a shorter one, behind the mark."""
IPV4, IPV6, MPLS = 0x0800, 0x86DD, 0x8847
ETHERTYPE = {4: IPV4, 6: IPV6}
ETHERNET_HEADER, VLAN_TAG = 14, 4
IP_HEADER, UDP_HEADER, TCP_HEADER, ICMP_HEADER = {4: 20, 6: 40}, 8, 20, 8
"""Bytes of the headers; of IP by version."""
FRAGMENT_NEXT, ROUTING_NEXT = 44, 43
"""Next headers of IPv6 (RFC 8200)."""
VXLAN_PORT = 4789
ECHO = {4: 8, 6: 128}
"""The type of an echo request, of ICMP and ICMPv6."""
FLAGS = "FSRPAUEC"
"""TCP's, from the lowest bit on (RFC 9293, section 3.1)."""

TAGGED, TAGGED_TWICE = 0x8100, 0x88A8
"""The EtherTypes of an IEEE 802.1Q tag, and of the outer one of two (802.1ad)."""
_TAGS = (TAGGED, TAGGED_TWICE)
_HAS_KEY = 0x2000
_DESTINATION_OPTIONS = 60
_DONT_FRAGMENT, _MORE = 0x4000, 0x2000
_SEGMENT_ROUTING = 4


def words_sum(data: bytes) -> int:
    """Sum of the big-endian 16-bit words of ``data``, without folding (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    return int(sum(struct.unpack(f"!{len(data) // 2}H", data)))


def checksum(total: int) -> int:
    """The Internet checksum (RFC 1071) of words that add up to ``total``."""
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def network_layer(frame: bytes | bytearray, at: int = 0) -> tuple[int, int]:
    """The EtherType of what an Ethernet frame that begins ``at`` carries, behind all its tags, and where that
    begins."""
    kind, at = int.from_bytes(frame[at + 12 : at + 14]), at + ETHERNET_HEADER
    while kind in _TAGS:
        kind, at = int.from_bytes(frame[at + 2 : at + 4]), at + VLAN_TAG
    return kind, at


def ipv4_header(frame: bytes | bytearray, at: int) -> int:
    """Bytes of the IPv4 header that begins there, with its options."""
    return max(IP_HEADER[4], 4 * (frame[at] & 15))


def ipv4_checksum(frame: bytes | bytearray, at: int) -> bytes:
    """The correct checksum of the IPv4 header that begins there."""
    covered = bytes(frame[at : at + 10] + frame[at + 12 : at + ipv4_header(frame, at)])
    return struct.pack("!H", checksum(words_sum(covered)))


def complete_ipv4(frame: bytearray) -> None:
    """Sum the header of a frame that carries IPv4 anew; others stay as they are."""
    kind, at = network_layer(frame)
    if kind == IPV4 and len(frame) >= at + IP_HEADER[4]:
        frame[at + 10 : at + 12] = ipv4_checksum(frame, at)


def ethernet(destination: bytes, source: bytes, vlans: Sequence[int], ethertype: int, carried: bytes) -> bytes:
    """A frame, without FCS; of two tags the outer one is a service's (IEEE 802.1ad)."""
    kinds = (TAGGED_TWICE, TAGGED)[-len(vlans) :]
    tags = b"".join(struct.pack("!HH", kind, vlan) for kind, vlan in zip(kinds, vlans, strict=False))
    return destination + source + tags + struct.pack("!H", ethertype) + carried


def ipv4(source: bytes, destination: bytes, protocol: int, carried: bytes, *, ttl: int, tos: int,
         identification: int = 0, offset: int = 0, more: bool = False, fragment: bool = False) -> bytes:  # fmt: skip
    """A packet; of a fragment ``offset`` is in bytes, and ``more`` whether others follow. A whole one is atomic
    (RFC 6864): its identification says nothing."""
    flags = (_MORE if more else 0) | offset // 8 if fragment else _DONT_FRAGMENT
    header = bytearray(
        struct.pack("!BBHHHBBH", 0x45, tos, IP_HEADER[4] + len(carried), identification, flags, ttl, protocol, 0)
    )
    header += source + destination
    struct.pack_into("!H", header, 10, checksum(words_sum(bytes(header))))
    return bytes(header) + carried


def ipv6(source: bytes, destination: bytes, following: int, carried: bytes, *, ttl: int, tos: int) -> bytes:
    return struct.pack("!IHBB", 6 << 28 | tos << 20, len(carried), following, ttl) + source + destination + carried


def extended(count: int, following: int, carried: bytes) -> tuple[int, bytes]:
    """What IPv6 carries behind ``count`` headers of destination options (RFC 8200, section 4.6) that hold padding, and
    the protocol of the first."""
    for _ in range(count):
        following, carried = _DESTINATION_OPTIONS, struct.pack("!BBBBI", following, 0, 1, 4, 0) + carried
    return following, carried


def fragment_header(following: int, identification: int, offset: int, *, more: bool) -> bytes:
    """IPv6's (RFC 8200, section 4.5)."""
    return struct.pack("!BBHI", following, 0, offset | more, identification)


def routing_header(following: int, stops: Sequence[bytes]) -> bytes:
    """A segment routing header (RFC 8754, section 2) through these stops, all of them still to come."""
    last = len(stops) - 1
    head = struct.pack("!BBBBBBH", following, 2 * len(stops), _SEGMENT_ROUTING, last, last, 0, 0)
    return head + b"".join(reversed(stops))


def udp(source: bytes, destination: bytes, sport: int, dport: int, carried: bytes, *, summed: bool = True) -> bytes:
    """A datagram between two IP addresses; without a checksum, which IPv4 allows, where it is not ``summed``."""
    header = struct.pack("!HHHH", sport, dport, UDP_HEADER + len(carried), 0)
    if summed:
        sum_ = _transport_sum(source, destination, socket.IPPROTO_UDP, header + carried) or 0xFFFF
        header = header[:6] + struct.pack("!H", sum_)
    return header + carried


def tcp(source: bytes, destination: bytes, sport: int, dport: int, flags: int, options: bytes, carried: bytes) -> bytes:
    """A segment of no connection; its options are whole words of 4 bytes."""
    acknowledged = int(bool(flags & 1 << FLAGS.index("A")))
    words = (TCP_HEADER + len(options)) // 4
    header = struct.pack("!HHIIBBHHH", sport, dport, 1, acknowledged, words << 4, flags, 0xFFFF, 0, 0) + options
    sum_ = _transport_sum(source, destination, socket.IPPROTO_TCP, header + carried)
    return header[:16] + struct.pack("!H", sum_) + header[18:] + carried


def icmp(kind: int, code: int, identifier: int, carried: bytes, pseudo: tuple[bytes, bytes] | None = None) -> bytes:
    """A message with an identifier, sequence 1; of ICMPv6 ``pseudo`` are its addresses, which its checksum covers."""
    message = struct.pack("!BBHHH", kind, code, 0, identifier, 1) + carried
    sum_ = _transport_sum(*pseudo, socket.IPPROTO_ICMPV6, message) if pseudo else checksum(words_sum(message))
    return message[:2] + struct.pack("!H", sum_) + message[4:]


def gre(ethertype: int, key: int | None, carried: bytes) -> bytes:
    """RFC 2784, with a key RFC 2890."""
    more = b"" if key is None else struct.pack("!I", key)
    return struct.pack("!HH", 0 if key is None else _HAS_KEY, ethertype) + more + carried


def vxlan(vni: int, carried: bytes) -> bytes:
    """RFC 7348, section 5."""
    return struct.pack("!II", 0x08000000, vni << 8) + carried


def mpls(labels: Sequence[int], ttl: int, carried: bytes) -> bytes:
    """RFC 3032: a stack of labels, the top one first."""
    last = len(labels) - 1
    return (
        b"".join(struct.pack("!I", label << 12 | (at == last) << 8 | ttl) for at, label in enumerate(labels)) + carried
    )


def _transport_sum(source: bytes, destination: bytes, protocol: int, covered: bytes) -> int:
    pseudo = source + destination + struct.pack("!IHH", len(covered), 0, protocol)
    return checksum(words_sum(pseudo) + words_sum(covered))

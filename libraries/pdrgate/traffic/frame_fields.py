"""A frame taken apart into the fields of its headers, and two frames compared field by field.

What a checksum must be follows from what it covers. So a field that was changed together with its checksum is one
difference; a checksum that does not go with its frame is a difference whatever was expected. One that a kernel has left
to a card (on a virtual wire nobody completes it) is the sum of the pseudo header alone, and right.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address

from pdrgate.traffic import headers

_OFFSET = 0x1FFF
"""The bits that say where a fragment begins."""
_UDP_LENGTH, _UDP_CHECKSUM, _IP_CHECKSUM = "UDP length", "UDP checksum", "header checksum"
_PAYLOAD, _LENGTH = "payload", "frame length"
_COVERED = frozenset(
    {"source address", "destination address", "source port", "destination port", _PAYLOAD, _UDP_LENGTH}
)
"""Fields that a UDP checksum covers."""
_BYTES_A_LINE = 16
_IP_NAMES = {headers.IPV4: "IPv4", headers.IPV6: "IPv6"}
_PROTOCOLS = {"1": "ICMP", "6": "TCP", "17": "UDP", "47": "GRE", "50": "ESP", "58": "ICMPv6", "132": "SCTP"}
"""Names of protocols by their numbers (IANA, Protocol Numbers)."""


@dataclass(frozen=True, slots=True)
class Field:
    """Some bytes of a frame: from ``begin`` to before ``end``."""

    name: str
    begin: int
    end: int

    def text(self, frame: bytes) -> str:
        """The field's value in a frame, as a person reads it."""
        value = frame[self.begin : self.end]
        if len(value) < self.end - self.begin:
            return "cut off"
        if self.name.endswith("MAC"):
            return value.hex(":")
        if self.name.endswith("address"):
            return str(ip_address(value))
        if self.name.endswith(("checksum", "EtherType", "class and label")):
            return f"0x{value.hex()}"
        return str(int.from_bytes(value))


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of a frame that is not as it must be."""

    name: str
    must_be: str
    got: str
    broken: bool = False
    """Whether the frame contradicts itself by it, whatever was expected: a wrong checksum, bytes that are missing."""

    def __str__(self) -> str:
        """``hop limit 64 in place of 63``."""
        return f"{self.name} {self.got} in place of {self.must_be}"


def fields(frame: bytes) -> tuple[Field, ...]:
    """The fields of Ethernet, a VLAN tag, IP, a routing header and UDP, in their order; the payload is none of them."""
    return tuple(_fields(frame))


def frame_differences(must_be: bytes, got: bytes) -> tuple[Difference, ...]:
    """Fields in which ``got`` differs from ``must_be``; empty if there are none."""
    known = fields(must_be)
    found = [
        Difference(field.name, field.text(must_be), field.text(got))
        for field in known
        if must_be[field.begin : field.end] != got[field.begin : field.end] and not field.name.endswith("checksum")
    ]
    if len(got) != len(must_be):
        found.insert(0, Difference(_LENGTH, str(len(must_be)), str(len(got)), broken=_is_cut(got)))
    end = known[-1].end
    for at, (wanted, came) in enumerate(zip(must_be[end:], got[end:], strict=False)):
        if wanted != came:
            found.append(Difference(_PAYLOAD, f"0x{wanted:02x}", f"0x{came:02x} at its byte {at}"))
            break
    changed = {one.name for one in found}
    for field in known:
        if field.name == _IP_CHECKSUM and (right := _header_checksum(got)) is not None:
            if got[field.begin : field.end] != right:
                found.append(_sum_difference(field, right, got))
        elif field.name == _UDP_CHECKSUM and (sums := _udp_checksums(got)) is not None:
            value = got[field.begin : field.end]
            untouched = not changed & _COVERED and value == must_be[field.begin : field.end]
            if not untouched and value not in sums:
                is_ipv4 = headers.network_layer(got)[0] == headers.IPV4
                left_out = value == b"\0\0" and is_ipv4  # which IPv4 allows (RFC 768)
                found.append(replace(_sum_difference(field, sums[0], got), broken=not left_out))
    return tuple(found)


def frames_side_by_side(must_be: bytes, got: bytes) -> tuple[str, ...]:
    """Both frames in hex, line by line, with marks under the bytes that differ."""
    lines = []
    for at in range(0, max(len(must_be), len(got)), _BYTES_A_LINE):
        wanted, came = must_be[at : at + _BYTES_A_LINE], got[at : at + _BYTES_A_LINE]
        if wanted == came and at >= _BYTES_A_LINE * 6:
            continue  # of a long payload, what differs
        lines += [f"{at:04x} must be {wanted.hex(' ')}", f"     came    {came.hex(' ')}"]
        longest = max(len(wanted), len(came))
        marks = " ".join("^^" if wanted[i : i + 1] != came[i : i + 1] else "  " for i in range(longest)).rstrip()
        if marks:
            lines.append(f"             {marks}")
    return tuple(lines)


def frame_in_words(frame: bytes) -> str:
    """All fields in words, on one line."""
    fields_in_words = ", ".join(f"{field.name} {field.text(frame)}" for field in fields(frame))
    return f"{len(frame)} bytes: {fields_in_words}"


def packet_in_words(frame: bytes) -> str:
    """Protocols, destination and port in words: ``UDP over IPv6 to 2001:2:0:1::, port 53``."""
    values = {field.name: field.text(frame) for field in fields(frame)}
    kind, _ = headers.network_layer(frame)
    if kind not in _IP_NAMES:
        return f"a frame of EtherType 0x{kind:04x}"
    number = values.get("protocol") or values.get("header after the routing header") or values.get("next header", "")
    protocol = _PROTOCOLS.get(number, f"protocol {number}")
    port = f", port {values['destination port']}" if "destination port" in values else ""
    return f"{protocol} over {_IP_NAMES[kind]} to {values.get('destination address', 'nowhere')}{port}"


def _fields(frame: bytes) -> Iterator[Field]:
    yield Field("destination MAC", 0, 6)
    yield Field("source MAC", 6, 12)
    kind, at = headers.network_layer(frame)
    if at != headers.ETHERNET_HEADER:
        yield Field("tag's EtherType", 12, 14)
        yield Field("VLAN tag", 14, 16)
    yield Field("EtherType", at - 2, at)
    if kind == headers.IPV4:
        for name, begin, end in (
            ("version and header length", 0, 1), ("type of service", 1, 2), ("total length", 2, 4),
            ("identification", 4, 6), ("flags and fragment offset", 6, 8), ("time to live", 8, 9), ("protocol", 9, 10),
            (_IP_CHECKSUM, 10, 12), ("source address", 12, 16), ("destination address", 16, 20),
        ):  # fmt: skip
            yield Field(name, at + begin, at + end)
        if len(frame) < at + 20 or int.from_bytes(frame[at + 6 : at + 8]) & _OFFSET:
            return  # what a later fragment begins with is no header
        following, header = frame[at + 9 : at + 10], headers.ipv4_header(frame, at)
        if header > 20:
            yield Field("options", at + 20, at + header)
        at += header
    elif kind == headers.IPV6:
        for name, begin, end in (
            ("version, class and label", 0, 4), ("payload length", 4, 6), ("next header", 6, 7), ("hop limit", 7, 8),
            ("source address", 8, 24), ("destination address", 24, 40),
        ):  # fmt: skip
            yield Field(name, at + begin, at + end)
        following, at = frame[at + 6 : at + 7], at + 40
        if following == bytes([headers.ROUTING_NEXT]) and len(frame) > at + 8:
            length = 8 + 8 * frame[at + 1]
            yield Field("header after the routing header", at, at + 1)
            yield Field("routing header's length and type", at + 1, at + 3)
            yield Field("segments left", at + 3, at + 4)
            yield Field("routing header's rest", at + 4, at + 8)
            for number, begin in enumerate(range(at + 8, at + length, 16)):
                yield Field(f"segment {number} address", begin, begin + 16)
            following, at = frame[at : at + 1], at + length
    else:
        return
    if following == bytes([socket.IPPROTO_UDP]):
        for name, begin, end in (
            ("source port", 0, 2), ("destination port", 2, 4), (_UDP_LENGTH, 4, 6), (_UDP_CHECKSUM, 6, 8),
        ):  # fmt: skip
            yield Field(name, at + begin, at + end)


def _sum_difference(field: Field, right: bytes, got: bytes) -> Difference:
    return Difference(field.name, f"0x{right.hex()}", field.text(got), broken=True)


def _is_cut(frame: bytes) -> bool:
    """Whether the frame is shorter than its IP header says."""
    kind, at = headers.network_layer(frame)
    if kind == headers.IPV4:
        return len(frame) < at + int.from_bytes(frame[at + 2 : at + 4])
    return kind == headers.IPV6 and len(frame) < at + 40 + int.from_bytes(frame[at + 4 : at + 6])


def _header_checksum(frame: bytes) -> bytes | None:
    """Correct checksum of an IPv4 header; None if there is no such header."""
    kind, at = headers.network_layer(frame)
    return headers.ipv4_checksum(frame, at) if kind == headers.IPV4 and len(frame) >= at + 20 else None


def _udp_checksums(frame: bytes) -> tuple[bytes, bytes] | None:
    """Correct UDP checksums: completed, and left to a card; None if the frame lacks bytes that they cover."""
    by_name = {field.name: field for field in fields(frame)}
    if _UDP_CHECKSUM not in by_name:
        return None
    at = by_name[_UDP_CHECKSUM].begin - 6
    length = int.from_bytes(frame[at + 4 : at + 6])
    if length < headers.UDP_HEADER or len(frame) < at + length:
        return None
    source, destination = by_name["source address"], by_name["destination address"]
    to = frame[destination.begin : destination.end]
    if left := by_name.get("segments left"):  # the last stop counts (RFC 8200, section 8.1)
        last = by_name["segment 0 address"]
        to = frame[last.begin : last.end] if frame[left.begin] else to
    pseudo = headers.words_sum(frame[source.begin : source.end] + to + struct.pack("!HH", length, socket.IPPROTO_UDP))
    covered = frame[at : at + 6] + frame[at + 8 : at + length]
    whole = headers.checksum(pseudo + headers.words_sum(covered)) or 0xFFFF
    return struct.pack("!H", whole), struct.pack("!H", headers.checksum(pseudo) ^ 0xFFFF)

"""Captured frames with room for a mark: their last bytes, behind the innermost payload, in all lengths and checksums.

What a sender's card was to complete (a captured checksum is often not one yet) is complete then, too.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Literal

from pdrgate.traffic import headers
from pdrgate.traffic.chosen.chosen_traffic import CapturedTraffic
from pdrgate.traffic.chosen.surroundings import Surroundings
from pdrgate.traffic.chosen.tail_mark import MARK_ROOM
from pdrgate.values.errors import DataError

_BRIDGED = 0x6558
"""The EtherType of Ethernet in GRE."""
_OPTIONS = (0, 60)
"""Next headers of IPv6: hop-by-hop and destination options."""
_MOST_LAYERS = 16
_CHECKSUM = {
    socket.IPPROTO_UDP: 6, socket.IPPROTO_TCP: 16, socket.IPPROTO_ICMP: 2, socket.IPPROTO_ICMPV6: 2,
}  # fmt: skip
"""Offset of the checksum in a header of each protocol."""
_HEADER = {socket.IPPROTO_UDP: 8, socket.IPPROTO_TCP: 20, socket.IPPROTO_ICMP: 8, socket.IPPROTO_ICMPV6: 8}


class _FragmentError(Exception):
    """A packet is a part of one."""


@dataclass(frozen=True, slots=True)
class _Network:
    """An IP header that was found."""

    version: Literal[4, 6]
    at: int
    end: int
    """Offset of the packet's end."""
    final: int
    """Offset of the last destination, which checksums cover."""


@dataclass(frozen=True, slots=True)
class _Transport:
    protocol: int
    at: int
    network: _Network


def marked_frames(capture: CapturedTraffic, surroundings: Surroundings) -> list[tuple[bytes, ...]]:
    """The frames of a capture, from the testbed's station to the SUT; their last bytes are zeros, for the mark.

    Raises:
        DataError: a frame is too long, or a fragment, which has no room.
    """
    macs = surroundings.sut_mac + surroundings.source_mac
    made: list[tuple[bytes, ...]] = []
    for number, frame in enumerate(capture.frames, start=1):
        try:
            roomy = with_room(frame)
        except _FragmentError:
            raise DataError(
                f"{capture.name}: packet {number} is a fragment, whose offsets leave no room for a mark; leave it out, "
                "or choose fragments by words"
            ) from None
        if roomy is None:
            raise DataError(
                f"{capture.name}: packet {number} has {len(frame)} bytes, and {headers.LONGEST_FRAME} is the most; "
                "turn segmentation offload off where it is captured"
            )
        made.append((roomy if capture.keep_macs else macs + roomy[len(macs) :],))
    return made


def with_room(frame: bytes) -> bytes | None:
    """The frame, longer by a mark, or its payload's end in place of it where it would be too long; None if it is.

    What is no IP gets the mark behind it.

    Raises:
        _FragmentError: it carries a fragment.
    """
    networks, transports, start = _walked(frame)
    end = networks[0].end if networks else len(frame)
    grown = max(MARK_ROOM, headers.SHORTEST_FRAME - end)
    if end + grown > headers.LONGEST_FRAME:
        grown = 0
        if end > headers.LONGEST_FRAME or end - start < MARK_ROOM:
            return None
        made = bytearray(frame[: end - MARK_ROOM].ljust(end, b"\0"))
    else:
        made = bytearray(frame[:end].ljust(end + grown, b"\0"))
    for transport in reversed(transports):
        if transport.protocol == socket.IPPROTO_UDP and transport.network.end == end:
            _add(made, transport.at + 4, grown)
    for network in networks:
        if network.end == end:
            _add(made, network.at + (2 if network.version == 4 else 4), grown)
    for transport in reversed(transports):
        _sum_transport(made, transport)
    for network in networks:
        if network.version == 4:
            made[network.at + 10 : network.at + 12] = headers.ipv4_checksum(made, network.at)
    return bytes(made)


def _walked(frame: bytes) -> tuple[list[_Network], list[_Transport], int]:
    """The IP and transport headers of a frame, the outermost first, and where the innermost payload begins."""
    networks: list[_Network] = []
    transports: list[_Transport] = []
    kind, at = headers.network_layer(frame)
    while len(networks) < _MOST_LAYERS and (network := _network(frame, kind, at)) is not None:
        networks.append(network[0])
        protocol, at = network[1:]
        if protocol in _HEADER and at + _HEADER[protocol] <= network[0].end:
            transports.append(_Transport(protocol, at, network[0]))
            port = int.from_bytes(frame[at + 2 : at + 4])
            tunnelled = protocol == socket.IPPROTO_UDP and port == headers.VXLAN_PORT
            if protocol == socket.IPPROTO_TCP:
                at += max(20, frame[at + 12] >> 4 << 2)
            else:
                at += _HEADER[protocol]
            if not tunnelled:
                break
            kind, at = headers.network_layer(frame, at + 8)
        elif protocol in (socket.IPPROTO_IPIP, socket.IPPROTO_IPV6):
            kind = headers.IPV4 if protocol == socket.IPPROTO_IPIP else headers.IPV6
        elif protocol == socket.IPPROTO_GRE and at + 4 <= network[0].end:
            kind, at = _in_gre(frame, at)
        else:
            break
    return networks, transports, at


def _in_gre(frame: bytes, at: int) -> tuple[int, int]:
    flags, kind = struct.unpack_from("!HH", frame, at)
    at += 4 + sum(4 for bit in (0x8000, 0x2000, 0x1000) if flags & bit)
    return headers.network_layer(frame, at) if kind == _BRIDGED else (kind, at)


def _network(frame: bytes, kind: int, at: int) -> tuple[_Network, int, int] | None:
    """The IP header, the protocol behind it, and that protocol's offset; None if there is none."""
    if kind == headers.IPV4 and len(frame) >= at + 20 and frame[at] >> 4 == 4:
        header, end = 4 * (frame[at] & 15), at + int.from_bytes(frame[at + 2 : at + 4])
        if header < 20 or not at + header <= end <= len(frame):
            return None
        if int.from_bytes(frame[at + 6 : at + 8]) & 0x3FFF:
            raise _FragmentError
        return _Network(4, at, end, at + 16), frame[at + 9], at + header
    if kind == headers.IPV6 and len(frame) >= at + 40 and frame[at] >> 4 == 6:
        end = at + 40 + int.from_bytes(frame[at + 4 : at + 6])
        following, place, final = frame[at + 6], at + 40, at + 24
        while end <= len(frame) and following in (*_OPTIONS, headers.ROUTING_NEXT) and place + 8 <= end:
            length = 8 + 8 * frame[place + 1]
            if following == headers.ROUTING_NEXT and frame[place + 3] and length >= 24:
                # The last stop: of segment routing it is the first in the list, of other kinds the last.
                final = place + 8 if frame[place + 2] == 4 else place + length - 16
            following, place = frame[place], place + length
        if following == headers.FRAGMENT_NEXT:
            raise _FragmentError
        return (_Network(6, at, end, final), following, place) if place <= end <= len(frame) else None
    return None


def _add(frame: bytearray, at: int, grown: int) -> None:
    struct.pack_into("!H", frame, at, int.from_bytes(frame[at : at + 2]) + grown)


def _sum_transport(frame: bytearray, transport: _Transport) -> None:
    """Sum its checksum anew; a datagram that has none keeps none."""
    network, at, protocol = transport.network, transport.at, transport.protocol
    place = at + _CHECKSUM[protocol]
    if protocol == socket.IPPROTO_UDP and frame[place : place + 2] == b"\0\0":
        return
    if network.version == 4:
        end = network.at + int.from_bytes(frame[network.at + 2 : network.at + 4])
        ends = frame[network.at + 12 : network.at + 20]
    else:
        end = network.at + 40 + int.from_bytes(frame[network.at + 4 : network.at + 6])
        ends = frame[network.at + 8 : network.at + 24] + frame[network.final : network.final + 16]
    frame[place : place + 2] = b"\0\0"
    total = headers.words_sum(bytes(frame[at:end]))
    if protocol != socket.IPPROTO_ICMP:
        total += headers.words_sum(bytes(ends) + struct.pack("!IHH", end - at, 0, protocol))
    sum_ = headers.checksum(total)
    struct.pack_into("!H", frame, place, 0xFFFF if protocol == socket.IPPROTO_UDP and not sum_ else sum_)

"""Takes a frame of any layers apart and checks each length and checksum in it: shares no code with what makes them."""

from __future__ import annotations

import struct

from packets import ones_complement_sum


def layers(frame: bytes) -> list[str]:
    """The names of a frame's layers, the outermost first. Raises AssertionError where one contradicts itself."""
    kind, at, found = int.from_bytes(frame[12:14]), 14, ["ethernet"]
    while kind in (0x8100, 0x88A8):
        found.append("vlan")
        kind, at = int.from_bytes(frame[at + 2 : at + 4]), at + 4
    return found + _by_ethertype(kind, frame[at:])


def _by_ethertype(kind: int, packet: bytes) -> list[str]:
    if kind == 0x0800:
        return _ipv4(packet)
    if kind == 0x86DD:
        return _ipv6(packet)
    if kind == 0x8847:
        at = 0
        while not packet[at + 2] & 1:
            at += 4
        inner = packet[at + 4 :]
        return ["mpls"] + (_ipv4(inner) if inner[0] >> 4 == 4 else _ipv6(inner))
    return [f"0x{kind:04x}"]


def _ipv4(packet: bytes) -> list[str]:
    header = 4 * (packet[0] & 15)
    assert packet[0] >> 4 == 4
    assert int.from_bytes(packet[2:4]) == len(packet)
    assert ones_complement_sum(packet[:header]) == 0xFFFF
    if int.from_bytes(packet[6:8]) & 0x3FFF:
        return ["ipv4", "fragment"]
    pseudo = packet[12:20] + struct.pack("!BBH", 0, packet[9], len(packet) - header)
    return ["ipv4", *_carried(packet[9], packet[header:], pseudo)]


def _ipv6(packet: bytes) -> list[str]:
    assert packet[0] >> 4 == 6
    assert int.from_bytes(packet[4:6]) == len(packet) - 40
    following, at, destination, found = packet[6], 40, packet[24:40], ["ipv6"]
    if following == 43:
        assert packet[at + 2] == 4
        assert packet[at + 3] == packet[at + 4] == packet[at + 1] // 2 - 1
        assert packet[at + 8 + 16 * packet[at + 3] :][:16] == destination
        found.append("srh")
        destination = packet[at + 8 : at + 24]
        following, at = packet[at], at + 8 + 8 * packet[at + 1]
    while following == 60:
        assert packet[at + 1 : at + 8] == bytes((0, 1, 4, 0, 0, 0, 0))
        found.append("options")
        following, at = packet[at], at + 8
    if following == 44:
        return [*found, "fragment"]
    pseudo = packet[8:24] + destination + struct.pack("!IHBB", len(packet) - at, 0, 0, following)
    return found + _carried(following, packet[at:], pseudo)


def _carried(protocol: int, carried: bytes, pseudo: bytes) -> list[str]:
    match protocol:
        case 4:
            return _ipv4(carried)
        case 41:
            return _ipv6(carried)
        case 47:
            flags, kind = struct.unpack_from("!HH", carried)
            return ["gre", *_by_ethertype(kind, carried[8 if flags & 0x2000 else 4 :])]
        case 6:
            assert ones_complement_sum(pseudo + carried) == 0xFFFF
            return ["tcp"]
        case 1:
            assert ones_complement_sum(carried) == 0xFFFF
            return ["icmp"]
        case 58:
            assert ones_complement_sum(pseudo + carried) == 0xFFFF
            return ["icmpv6"]
        case 17:
            assert int.from_bytes(carried[4:6]) == len(carried)
            if len(pseudo) > 12 or carried[6:8] != b"\0\0":
                assert ones_complement_sum(pseudo + carried) == 0xFFFF
                assert carried[6:8] != b"\0\0"
            if int.from_bytes(carried[2:4]) == 4789:
                return ["udp", "vxlan", *layers(carried[16:])]
            return ["udp"]
    return [f"protocol {protocol}"]


def reassembled(fragments: list[bytes]) -> bytes:
    """The IPv4 frame that fragments are of, in their order."""
    whole = b""
    for frame in fragments:
        packet = frame[14:]
        assert (int.from_bytes(packet[6:8]) & 0x1FFF) * 8 == len(whole)
        assert bool(packet[6] & 0x20) == (frame is not fragments[-1])
        whole += packet[20:]
    header = bytearray(fragments[0][14:34])
    struct.pack_into("!H", header, 2, 20 + len(whole))
    header[6:8] = header[10:12] = b"\0\0"
    struct.pack_into("!H", header, 10, 0xFFFF - ones_complement_sum(bytes(header)))
    return fragments[0][:14] + bytes(header) + whole

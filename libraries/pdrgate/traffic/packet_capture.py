"""Packets of a capture file: pcap or pcapng, as tcpdump, Wireshark and test generators write them.

The file may be a stranger's: each length is looked at before it is believed, and nothing is read beyond the bounds.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from pathlib import Path

from pdrgate.errors import UsageError

MOST_PACKETS = 4096
LARGEST_PACKET = 1 << 16
"""Bytes of one packet."""
_LARGEST_FILE = 64 << 20
_ETHERNET = 1
"""LINKTYPE_ETHERNET; packets of other links have no header that a program at a port could read."""
_PCAP = {
    b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">",
}  # fmt: skip
"""The byte order, by what a pcap file begins with: times in microseconds or nanoseconds."""
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
"""Types of pcapng's blocks that say what packets are, or hold one (draft-ietf-opsawg-pcapng, section 4)."""
_ORDER = 0x1A2B3C4D


def packets_of(path: Path) -> tuple[bytes, ...]:
    """The packets of a capture file, in its order, each from its Ethernet header on.

    Raises:
        UsageError: the file cannot be read, is no capture, was cut, or holds none or too many; the message says which.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name a pcap or pcapng file") from error
    if len(content) > _LARGEST_FILE:
        raise UsageError(f"{path}: is larger than {_LARGEST_FILE >> 20} MiB; take some of its packets")
    found: list[bytes] = []
    try:
        found.extend(itertools.islice(_packets(content), MOST_PACKETS + 1))
    except struct.error as error:
        raise UsageError(f"{path}: is cut short after {len(found)} packets; write it again") from error
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
    if len(found) > MOST_PACKETS:
        raise UsageError(f"{path}: holds more than {MOST_PACKETS} packets; take some of them")
    if not found:
        raise UsageError(f"{path}: holds no packet; capture some: tcpdump -w {path.name} -c 100")
    return tuple(found)


def _packets(content: bytes) -> Iterator[bytes]:
    if (order := _PCAP.get(content[:4])) is not None:
        yield from _of_pcap(content, order)
    elif content[:4] == _SECTION.to_bytes(4, "big"):
        yield from _of_pcapng(content)
    else:
        raise ValueError("is no capture file; write one by tcpdump -w or as pcapng")


def _of_pcap(content: bytes, order: str) -> Iterator[bytes]:
    (link,) = struct.unpack_from(f"{order}I", content, 20)
    _check_link(link & 0xFFFF)
    at = 24
    while at < len(content):
        kept, length = struct.unpack_from(f"{order}II", content, at + 8)
        yield _packet(content, at + 16, kept, length)
        at += 16 + kept


def _of_pcapng(content: bytes) -> Iterator[bytes]:
    at, order, links = 0, "<", list[int]()
    while at < len(content):
        (kind,) = struct.unpack_from(f"{order}I", content, at)
        if kind == _SECTION:  # a palindrome: it reads alike in both orders, and tells which one follows
            order = "<" if struct.unpack_from("<I", content, at + 8) == (_ORDER,) else ">"
            links = []
        (size,) = struct.unpack_from(f"{order}I", content, at + 4)
        if size < 12 or size % 4:
            raise ValueError(f"has a block of {size} bytes at byte {at}, which no pcapng file has; write it again")
        if at + size > len(content):
            raise struct.error
        if kind == _INTERFACE:
            links.append(struct.unpack_from(f"{order}H", content, at + 8)[0])
        elif kind == _ENHANCED:
            interface, _, _, kept, length = struct.unpack_from(f"{order}5I", content, at + 8)
            yield _of_interface(content, links, interface, at + 28, kept, length)
        elif kind == _SIMPLE:
            (length,) = struct.unpack_from(f"{order}I", content, at + 8)
            yield _of_interface(content, links, 0, at + 12, min(length, size - 16), length)
        at += size


def _of_interface(content: bytes, links: list[int], interface: int, at: int, kept: int, length: int) -> bytes:
    if interface >= len(links):
        raise ValueError(f"has a packet of interface {interface}, which it does not describe; write it again")
    _check_link(links[interface])
    return _packet(content, at, kept, length)


def _packet(content: bytes, at: int, kept: int, length: int) -> bytes:
    if kept > LARGEST_PACKET:
        raise ValueError(f"has a packet of {kept} bytes; a port takes {LARGEST_PACKET} at most")
    if kept < length:
        raise ValueError(f"has only {kept} of a packet's {length} bytes; capture whole ones: tcpdump -s 0")
    if at + kept > len(content):
        raise struct.error
    return content[at : at + kept]


def _check_link(link: int) -> None:
    if link != _ETHERNET:
        raise ValueError(f"holds packets of link type {link}; capture Ethernet frames (link type 1)")

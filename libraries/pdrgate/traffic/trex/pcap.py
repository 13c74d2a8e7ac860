"""Packets of a capture file, for traffic that is given as one: Ethernet in the classic format, as TRex reads it."""

from __future__ import annotations

import pathlib
import struct

from pdrgate.errors import DataError

MAX_PACKETS = 1000
"""Each packet becomes a stream of its own; a server takes some thousands."""

_HEADER = struct.Struct("IHHiIII")
_RECORD = struct.Struct("IIII")
_MAGICS = {bytes.fromhex("d4c3b2a1"): "<", bytes.fromhex("4d3cb2a1"): "<"} | {
    bytes.fromhex("a1b2c3d4"): ">", bytes.fromhex("a1b23c4d"): ">",
}  # fmt: skip
_ETHERNET = 1
_SHORTEST, _LONGEST = 14, 9216


def captured_packets(path: pathlib.Path) -> tuple[bytes, ...]:
    """The packets of a capture, without FCS, in its order; their times are of no interest.

    Raises:
        DataError: it cannot be read, is no such capture, or holds no packets, truncated ones, or too many.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; give a capture file that can be read") from error
    order = _MAGICS.get(data[:4])
    if order is None or len(data) < _HEADER.size:
        raise DataError(f"{path} is no pcap file; convert it: editcap -F pcap IN OUT")
    link = struct.unpack_from(f"{order}{_HEADER.format}", data)[-1]
    if link & 0xFFFF != _ETHERNET:
        raise DataError(f"{path} was captured on link type {link}; capture Ethernet frames")
    found: list[bytes] = []
    offset = _HEADER.size
    while offset < len(data):
        if offset + _RECORD.size > len(data):
            raise DataError(f"{path} ends in the middle of packet {len(found) + 1}; capture it again")
        _, _, kept, length = struct.unpack_from(f"{order}{_RECORD.format}", data, offset)
        offset += _RECORD.size
        if kept != length or offset + kept > len(data):
            raise DataError(f"{path}: packet {len(found) + 1} was cut off; capture whole packets")
        if not _SHORTEST <= length <= _LONGEST:
            raise DataError(f"{path}: packet {len(found) + 1} has {length} bytes; use {_SHORTEST} to {_LONGEST}")
        found.append(data[offset : offset + kept])
        offset += kept
        if len(found) > MAX_PACKETS:
            raise DataError(f"{path} holds more than {MAX_PACKETS} packets; cut it: editcap -r IN OUT 1-{MAX_PACKETS}")
    if not found:
        raise DataError(f"{path} holds no packets; capture some")
    return tuple(found)

"""Frames of a capture file: Ethernet, in the classic format or in pcapng."""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Iterator

from pdrgate.values.errors import DataError

MOST_CAPTURED = 65536
_LARGEST = 256 << 20
_HEADER = struct.Struct("IHHiIII")
_RECORD = struct.Struct("IIII")
_MAGICS = {bytes.fromhex("d4c3b2a1"): "<", bytes.fromhex("4d3cb2a1"): "<"} | {
    bytes.fromhex("a1b2c3d4"): ">", bytes.fromhex("a1b23c4d"): ">",
}  # fmt: skip
_SECTION = bytes.fromhex("0a0d0d0a")
_ORDERS = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}
"""Byte order of a section of pcapng, by its byte-order magic."""
_INTERFACE, _SIMPLE, _ENHANCED = 1, 3, 6
"""Blocks of pcapng that matter here (draft-ietf-opsawg-pcapng, section 4)."""
_ETHERNET = 1
_SHORTEST, _LONGEST = 14, 9216


def captured_packets(path: pathlib.Path, most: int = MOST_CAPTURED) -> tuple[bytes, ...]:
    """The frames of a capture, without FCS, in its order; their times are of no interest.

    Raises:
        DataError: it cannot be read, is no such capture, or holds no frames, truncated ones, or more than ``most``.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; give a capture file that can be read") from error
    if len(data) > _LARGEST:
        raise DataError(f"{path} has more than {_LARGEST >> 20} MiB; cut it: editcap -r IN OUT 1-{most}")
    found: list[bytes] = []
    for length, frame in _pcapng(path, data) if data[:4] == _SECTION else _classic(path, data):
        number = len(found) + 1
        if length != len(frame):
            raise DataError(f"{path}: packet {number} was cut off; capture whole packets")
        if not _SHORTEST <= length <= _LONGEST:
            raise DataError(f"{path}: packet {number} has {length} bytes; use {_SHORTEST} to {_LONGEST}")
        found.append(frame)
        if len(found) > most:
            raise DataError(f"{path} holds more than {most} packets; cut it: editcap -r IN OUT 1-{most}")
    if not found:
        raise DataError(f"{path} holds no packets; capture some")
    return tuple(found)


def _classic(path: pathlib.Path, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each frame's length on the wire, and its captured bytes."""
    order = _MAGICS.get(data[:4])
    if order is None or len(data) < _HEADER.size:
        raise DataError(f"{path} is no pcap file; convert it: editcap -F pcap IN OUT")
    _check_link(path, struct.unpack_from(f"{order}{_HEADER.format}", data)[-1] & 0xFFFF)
    offset, number = _HEADER.size, 0
    while offset < len(data):
        number += 1
        if offset + _RECORD.size > len(data):
            raise DataError(f"{path} ends in the middle of packet {number}; capture it again")
        _, _, kept, length = struct.unpack_from(f"{order}{_RECORD.format}", data, offset)
        offset += _RECORD.size
        yield length, data[offset : offset + kept]
        offset += kept


def _pcapng(path: pathlib.Path, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Frames of a pcapng file with their lengths. Blocks that hold no frame are passed over."""
    offset, order = 0, "<"
    while offset < len(data):
        if data[offset : offset + 4] == _SECTION:
            order = _ORDERS.get(data[offset + 8 : offset + 12], "")
        if not order or len(data) < offset + 12:
            raise DataError(f"{path} is a damaged pcapng file; capture it again")
        kind, size = struct.unpack_from(f"{order}II", data, offset)
        if size < 12 or size % 4 or offset + size > len(data):
            raise DataError(f"{path} ends in the middle of a block; capture it again")
        body = data[offset + 8 : offset + size - 4]
        if kind == _INTERFACE and len(body) >= 2:
            _check_link(path, struct.unpack_from(f"{order}H", body)[0])
        elif kind == _ENHANCED and len(body) >= 20:
            kept, length = struct.unpack_from(f"{order}II", body, 12)
            yield length, body[20 : 20 + kept]
        elif kind == _SIMPLE and len(body) >= 4:
            (length,) = struct.unpack_from(f"{order}I", body)
            yield length, body[4 : 4 + length]
        offset += size


def _check_link(path: pathlib.Path, link: int) -> None:
    if link != _ETHERNET:
        raise DataError(f"{path} was captured on link type {link}; capture Ethernet frames")

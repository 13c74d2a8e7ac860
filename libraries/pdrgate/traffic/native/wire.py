"""Messages to the worker: ``struct request`` of wire.h, field by field.

Both definitions begin with the version and the size of what follows, so that a worker of other sources says so in one
line.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Sequence

from pdrgate.traffic.chosen.frame_table import FrameTable

VERSION = 12
HEADER_MAX = 226
"""Bytes of the longest header, with a VLAN tag, a routing header of nine segments and a probe's time stamp."""


class WireDirection(ctypes.Structure):
    """One direction of traffic: how its frames look; see `pdrgate.traffic.frames.Template`."""

    __slots__ = ()  # a misspelt name is an error
    _fields_ = (
        ("csum_sum", ctypes.c_uint32),
        ("probe_sum", ctypes.c_uint32),
        ("ip_sum", ctypes.c_uint32),
        ("plain", ctypes.c_uint8 * HEADER_MAX),
        ("probe", ctypes.c_uint8 * HEADER_MAX),
        ("first", ctypes.c_uint32),
    )


class Request(ctypes.Structure):
    """Request for one trial. The units of the fields stand in wire.h."""

    __slots__ = ()
    _fields_ = (
        ("version", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("count", ctypes.c_uint64),
        ("period_q16", ctypes.c_uint64),
        ("duration", ctypes.c_uint64),
        ("quiet", ctypes.c_uint64),
        ("limit", ctypes.c_uint64),
        ("live", ctypes.c_uint32),
        ("asleep", ctypes.c_uint32),
        ("batch", ctypes.c_uint32),
        ("flows", ctypes.c_uint32),
        ("directions", ctypes.c_uint32),
        ("v6", ctypes.c_uint32),
        ("vary_offset", ctypes.c_uint32),
        ("vary_in_ip", ctypes.c_uint32),
        ("probe_every", ctypes.c_uint32),
        ("routing", ctypes.c_uint32),
        ("vlan", ctypes.c_uint32),
        ("plain_len", ctypes.c_uint32),
        ("probe_len", ctypes.c_uint32),
        ("cookie", ctypes.c_uint32),
        ("tag", ctypes.c_uint32),
        ("sample_every", ctypes.c_uint32),
        ("marked", ctypes.c_uint32),
        ("mark", ctypes.c_uint32),
        ("returns", ctypes.c_uint32),
        ("taken", ctypes.c_uint32),
        ("ring", ctypes.c_uint32),
        ("chosen", ctypes.c_uint32),
        ("ordered", ctypes.c_uint32),
        ("room", ctypes.c_uint32),
        ("burst", ctypes.c_uint64),
        ("table", ctypes.c_uint64),
        ("dir", WireDirection * 2),
    )

    @classmethod
    def of(cls, ways: Sequence[WireDirection], **fields: int) -> Request:
        """A request of this version."""
        return cls(version=VERSION, size=ctypes.sizeof(cls), dir=tuple(ways), **fields)


def header(data: bytes) -> ctypes.Array[ctypes.c_uint8]:
    """Header bytes as a field holds them."""
    return (ctypes.c_uint8 * HEADER_MAX)(*data)


def chosen_table(table: FrameTable) -> bytes:
    """Bytes that follow a request with a table: ``struct chosen`` of wire.h for each frame, and the order."""
    room = (table.room + 7) // 8 * 8
    frames = (
        struct.pack("=II", len(frame), direction) + frame.ljust(room, b"\0")
        for frame, direction in zip(table.frames, table.directions, strict=True)
    )
    return b"".join((*frames, array("Q", table.order).tobytes()))

"""The mark in the last bytes of a chosen frame, by which a generator recognises its packets.

Destination, ports, flags and identification are the scenario's. The last bytes of a packet stay last whatever is put
before them or taken off: VLAN tags, tunnels, segment routing headers; and a translation of addresses leaves them alone.
The last of the mark's eight words makes their sum zero, in ones' complement. So every checksum that covers it, in any
layer and at an odd place too, is as it was computed with zeros in its place (RFC 1071, section 2).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from pdrgate.traffic.headers import checksum, words_sum

MARK_ROOM = 16
"""Bytes that a mark takes at the end of a packet."""
_FORMAT = struct.Struct("!QIH")


@dataclass(frozen=True, slots=True)
class TailMark:
    """Fields of a packet's mark: a number of 64 bits, two of 32 and 16 bits."""

    number: int
    """The packet's, from 0 on; of a latency probe the sending time, CLOCK_MONOTONIC in ns."""
    cookie: int
    """The generator's, another one in each run."""
    tag: int
    """The trial's and what kind of packet it is: see wire.h."""

    def __bytes__(self) -> bytes:
        fields = _FORMAT.pack(self.number, self.cookie, self.tag)
        return fields + struct.pack("!H", checksum(words_sum(fields)))

    @classmethod
    def of(cls, frame: bytes) -> Self | None:
        """The mark at the end of a frame; None if there is none."""
        end = frame[-MARK_ROOM:]
        if len(end) < MARK_ROOM or checksum(words_sum(end)):
            return None
        return cls(*_FORMAT.unpack(end[:-2])) if any(end) else None


def marked(frame: bytes, mark: bytes) -> bytes:
    """The frame with this mark in place of what its last bytes are."""
    return frame[:-MARK_ROOM] + mark

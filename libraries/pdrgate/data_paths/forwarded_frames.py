"""What becomes of a frame on its way: pure functions, from the frame that was sent to the one that must come back."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from pdrgate.data_paths.contract import Hop
from pdrgate.traffic.frames import checksum, words_sum

_ROUTING = 43
_SEGMENTS = 62
"""Where the segments begin, of a frame with a segment routing header right behind its IPv6 header."""


def redirected(frame: bytes, hops: Sequence[Hop], direction: int) -> bytes:
    """It leaves by the last hop's port, for who stands there; nothing else of it is touched.

    Args:
        direction: 0 for forward traffic, 1 for the other way round.
    """
    leaves = hops[0].ingress if direction else hops[-1].egress
    return bytes.fromhex((leaves.peer_mac + leaves.mac).replace(":", "")) + frame[12:]


def routed(frame: bytes, hops: Sequence[Hop], direction: int) -> bytes:
    """The same, with a hop limit, or a time to live and its checksum, of one less for each hop (RFC 8200, RFC 1812)."""
    made = bytearray(redirected(frame, hops, direction))
    if made[12:14] == b"\x86\xdd":
        made[21] -= len(hops)
    else:
        made[22] -= len(hops)
        struct.pack_into("!H", made, 24, checksum(words_sum(bytes(made[14:24] + made[26:34]))))
    return bytes(made)


def segments_ended(frame: bytes, hops: Sequence[Hop], direction: int) -> bytes:
    """The same, where each hop ends a segment and makes the next one the destination (RFC 8986, section 4.1)."""
    made = bytearray(routed(frame, hops, direction))
    if made[20] == _ROUTING:
        made[57] -= min(len(hops), made[57])
        following = _SEGMENTS + 16 * made[57]
        made[38:54] = made[following : following + 16]
    return bytes(made)

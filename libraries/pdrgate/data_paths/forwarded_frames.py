"""What becomes of a frame on its way: pure functions, from the frame that was sent to the one that must come back."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.data_paths.contract import Hop
from pdrgate.traffic.headers import IPV4, IPV6, ROUTING_NEXT, complete_ipv4, network_layer

_SEGMENTS = 48
"""The offset of the segments behind the beginning of an IPv6 header that a segment routing header follows."""


def redirected(frame: bytes, hops: Sequence[Hop], direction: int) -> bytes:
    """The frame that leaves by the last hop's port, for who stands there; nothing else of it is touched.

    Args:
        direction: 0 for forward traffic, 1 for the other way round.
    """
    leaves = hops[0].ingress if direction else hops[-1].egress
    return bytes.fromhex((leaves.peer_mac + leaves.mac).replace(":", "")) + frame[12:]


def routed(frame: bytes, hops: Sequence[Hop], direction: int) -> bytes:
    """The frame as the last hop's router sends it, with its hop limit or its time to live lower by one for each hop.

    The checksum of an IPv4 header follows (RFC 8200, RFC 1812).
    """
    made = bytearray(redirected(frame, hops, direction))
    kind, at = network_layer(made)
    limit = at + (7 if kind == IPV6 else 8)
    # What a user sends may be no IP, or not get so far: no router lets it pass.
    if kind in (IPV4, IPV6) and len(made) > limit:
        made[limit] = max(0, made[limit] - len(hops))
        complete_ipv4(made)
    return bytes(made)


def segments_ended(frame: bytes, hops: Sequence[Hop], direction: int) -> bytes:
    """The frame as it leaves the last hop, where each hop ends a segment and makes the next one the destination (RFC
    8986, section 4.1). Its hop limit is lower by one for each hop."""
    made = bytearray(routed(frame, hops, direction))
    _, at = network_layer(made)
    if made[at + 6] == ROUTING_NEXT:
        left = at + 43
        made[left] -= min(len(hops), made[left])
        following = at + _SEGMENTS + 16 * made[left]
        made[at + 24 : at + 40] = made[following : following + 16]
    return bytes(made)

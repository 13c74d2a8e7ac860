"""Frames as they were sent and as they came back, from what a server has captured.

A capture does not name streams. A frame is assigned to the stream whose packet it resembles most, and the fields that
vary within the stream are read from the frame. Frames unlike all streams are foreign traffic.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from pdrgate.record.trial import CarriedFrame
from pdrgate.traffic.headers import complete_ipv4
from pdrgate.traffic.trex.trex_streams import Stream

_MACS, _ETHERNET = 12, 14
_UNLIKE = 0.25
"""Share of differing bytes behind the MAC addresses above which a frame is foreign: a neighbour has other addresses."""


def carried(sent: Sequence[Stream], captured: Sequence[tuple[int, bytes]]) -> tuple[CarriedFrame, ...]:
    """The captured frames that belong to the streams.

    Args:
        sent: streams of all directions, which are numbered by their order.
        captured: port and received bytes of each frame.
    """
    senders = list(dict.fromkeys(stream.port for stream in sent))
    found = []
    for port, got in captured:
        each = [(_unlike(packet, got), stream, packet) for stream in sent for packet in (_packet(stream, got),)]
        unlike, stream, packet = min(each, key=lambda one: one[0])
        if unlike <= _UNLIKE:
            found.append(
                CarriedFrame(senders.index(stream.port), packet.hex(), got.hex(), returned=stream.port == port)
            )
    return tuple(found)


def _packet(stream: Stream, got: bytes) -> bytes:
    """The packet of a stream that a frame was, by the first of its sweeps that holds a value of the stream's."""
    packet = bytearray(stream.packet)
    steps = (_step(stream, number, got) for number in range(len(stream.sweeps)))
    step = next((one for one in steps if one is not None), 0)
    for sweep in stream.sweeps:
        struct.pack_into("!H", packet, sweep.offset, sweep.high - step if sweep.down else sweep.low + step)
    if stream.fix_ipv4:
        complete_ipv4(packet)
    return bytes(packet)


def _step(stream: Stream, number: int, got: bytes) -> int | None:
    sweep = stream.sweeps[number]
    if len(got) < sweep.offset + 2:
        return None
    (value,) = struct.unpack_from("!H", got, sweep.offset)
    if not sweep.low <= value <= sweep.high:
        return None
    return int(sweep.high - value if sweep.down else value - sweep.low)


def _unlike(packet: bytes, got: bytes) -> float:
    """Share of a packet's bytes behind the MAC addresses in which a frame differs; 1 for another EtherType."""
    if packet[_MACS:_ETHERNET] != got[_MACS:_ETHERNET]:
        return 1.0
    differ = sum(one != other for one, other in zip(packet[_ETHERNET:], got[_ETHERNET:], strict=False))
    return (differ + abs(len(packet) - len(got))) / (len(packet) - _ETHERNET)

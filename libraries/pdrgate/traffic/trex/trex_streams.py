"""Streams that TRex sends in a trial, of exact counts, made of the same `Frames` and `Path` values as elsewhere.

TRex's field engine cannot sum a UDP checksum on every card. So two fields vary against each other: while the field that
varies by flow goes up, the UDP destination port goes down, their sum stays, and with it the checksum. Only probes have
a wrong one (IPv6) or none (IPv4), for TRex writes a time stamp into their last 16 bytes as it sends.
"""

from __future__ import annotations

import dataclasses
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.traffic.chosen.frame_table import FrameTable
from pdrgate.traffic.frames import FCS, Frames, Path, template
from pdrgate.traffic.headers import checksum
from pdrgate.values.errors import UsageError

FLOW_STATS_PAYLOAD = 16
"""Bytes that a probe needs behind its UDP header."""
GROUPS = 32
"""Flow statistics ids in use, so that a packet that is late by a trial is not counted in the next one."""

MOST_FRAME_STREAMS = 1000
"""Each captured or chosen frame becomes a stream of its own; a server takes some thousands."""

_BASE_PORT = 0x8000
_UDP = 8
_MACS = 12


@dataclass(frozen=True, slots=True)
class FieldSweep:
    """A 16-bit field of the packet that takes all values from ``low`` to ``high`` in turn, upwards or downwards."""

    offset: int
    low: int
    high: int
    down: bool


@dataclass(frozen=True, slots=True)
class Stream:
    """Equal packets, or packets of equal length, that one port sends at one rate."""

    port: int
    packet: bytes
    """The packet without FCS."""
    count: int
    rate: float
    """Packets/s."""
    group: int
    """Flow statistics id, from 1; shared by the plain streams of a direction. 0: nobody counts the packets, and the
    server writes nothing into their headers."""
    probe: bool = False
    """The server stamps the packets with the time and keeps a histogram of their latency."""
    sweeps: tuple[FieldSweep, ...] = ()
    fix_ipv4: int = 0
    """Offset of the IPv4 header whose checksum is to be summed for each packet; 0 for none."""


def streams(
    frames: Frames,
    paths: Sequence[Path],
    count: int,
    duration: float,
    *,
    turn: int = 0,
    captures: Sequence[Sequence[bytes]] = (),
    table: FrameTable | None = None,
) -> tuple[Stream, ...]:
    """The streams of a trial of ``count`` packets, over all directions, in ``duration`` seconds.

    Args:
        turn: number of the trial; trials next to each other get different statistics ids.
        captures: packets of each direction, sent in turn instead of ``frames``.
        table: what is chosen, sent instead of both.

    Raises:
        UsageError: more directions than paths or captures, probes asked for with captures, marked packets, or more
            chosen frames than a server takes.
    """
    if frames.mark is not None:
        raise UsageError("TRex does not number the packets that a receiver reads; use the embedded generator")
    if frames.directions > len(paths):
        raise UsageError("traffic in both directions needs a testbed with two paths; this one has one")
    if table is not None:
        return _chosen(table, paths, count, duration, turn, round(frames.probe_rate * duration))
    if captures and frames.directions > len(captures):
        raise UsageError("traffic in both directions from captures needs two capture files; the testbed names one")
    if captures and frames.probe_rate:
        raise UsageError("packets of a capture cannot be latency probes; leave the probe rate at 0")
    probes = min(round(frames.probe_rate * duration), count // 2)
    made: list[Stream] = []
    for number, path in enumerate(paths[: frames.directions]):
        own = split(count, [1] * frames.directions)[number]
        own_probes = split(probes, [1] * frames.directions)[number]
        group = _group(turn, number)
        if captures:
            made += _captured(captures[number], path, own, duration, group)
        else:
            made += _plain(frames, path, own - own_probes, duration, group)
            made += _probes(frames, path, own_probes, duration, group + 1)
    return tuple(made)


def uncounted_streams(
    frames: Frames, paths: Sequence[Path], count: int, duration: float, *,
    captures: Sequence[Sequence[bytes]] = (), table: FrameTable | None = None,
) -> tuple[Stream, ...]:  # fmt: skip
    """Streams of the frames that nobody counts: without probes, and without statistics."""
    plain = dataclasses.replace(frames, probe_rate=0.0)
    return tuple(
        dataclasses.replace(stream, group=0)
        for stream in streams(plain, paths, count, duration, captures=captures, table=table)
    )


def split(count: int, weights: Sequence[int]) -> list[int]:
    """``count`` in whole parts as near to the weights as can be; earlier ones get what does not divide."""
    total = sum(weights)
    parts = [count * weight // total for weight in weights]
    by_rest = sorted(range(len(weights)), key=lambda place: -(count * weights[place] % total))
    for place in by_rest[: count - sum(parts)]:
        parts[place] += 1
    return parts


def _plain(frames: Frames, path: Path, count: int, duration: float, group: int) -> list[Stream]:
    shares = frames.shares
    counts = split(count, [weight for weight, _ in shares])
    return [
        _stream(share, path, part, duration, group) for (_, share), part in zip(shares, counts, strict=True) if part
    ]


def _probes(frames: Frames, path: Path, count: int, duration: float, group: int) -> list[Stream]:
    if not count:
        return []
    _, smallest = frames.shares[0]
    return [_stream(smallest, path, count, duration, group, probe=True)]


def _stream(frames: Frames, path: Path, count: int, duration: float, group: int, *, probe: bool = False) -> Stream:
    part = template(frames, path, tag=_BASE_PORT, probe_tag=_BASE_PORT)
    header = len(part.plain)
    if probe and part.plain_size < header + FLOW_STATS_PAYLOAD + FCS:
        # The template of a frame that is as long as a probe of TRex must be; it may be longer than one of ours.
        frames = dataclasses.replace(frames, size=header + FLOW_STATS_PAYLOAD + FCS)
        part = template(frames, path, tag=_BASE_PORT, probe_tag=_BASE_PORT)
    first = min(part.first, 0x10000 - frames.flows)
    last = frames.flows - 1
    sweeps = (
        FieldSweep(part.vary_offset, first, first + last, down=False),
        FieldSweep(header - _UDP + 2, _BASE_PORT, _BASE_PORT + last, down=True),
    )
    packet = bytearray(part.plain).ljust(part.plain_size - FCS, b"\0")
    struct.pack_into("!H", packet, sweeps[0].offset, sweeps[0].low)
    struct.pack_into("!H", packet, sweeps[1].offset, sweeps[1].high)
    if part.vary_in_ip and frames.family == 4:
        struct.pack_into("!H", packet, part.link_header + 10, checksum(part.ip_sum + first))
    if not (probe and frames.family == 4):
        # The template summed its own, lowest destination port; the two fields add up to the same in every packet.
        struct.pack_into("!H", packet, header - 2, checksum(part.csum_sum + first + last) or 0xFFFF)
    return Stream(
        port=int(path.port),
        packet=bytes(packet),
        count=count,
        rate=count / duration,
        group=group,
        probe=probe,
        sweeps=sweeps if frames.flows > 1 else (),
        fix_ipv4=part.link_header if part.vary_in_ip and frames.family == 4 and frames.flows > 1 else 0,
    )


def _captured(packets: Sequence[bytes], path: Path, count: int, duration: float, group: int) -> list[Stream]:
    macs = bytes.fromhex((path.destination_mac + path.source_mac).replace(":", ""))
    return [
        Stream(int(path.port), macs + packet[_MACS:], part, part / duration, group)
        for packet, part in zip(packets, split(count, [1] * len(packets)), strict=True)
        if part
    ]


def _chosen(
    table: FrameTable, paths: Sequence[Path], count: int, duration: float, turn: int, probes: int
) -> tuple[Stream, ...]:
    """A stream for each frame, with its share of the packets; probes are the frame that most packets are.

    Of a probe TRex writes the last 16 bytes itself, and no checksum makes up for them.
    """
    if len(table.frames) > MOST_FRAME_STREAMS:
        raise UsageError(
            f"TRex sends each chosen frame as a stream, and {len(table.frames)} are more than {MOST_FRAME_STREAMS}; "
            f"use flows={MOST_FRAME_STREAMS} or fewer"
        )
    shares = Counter(table.order)
    usual, _ = shares.most_common(1)[0]
    probes = min(probes, count // 2)
    parts = split(count - probes, [shares[number] for number in range(len(table.frames))])
    sent = [*((number, part, False) for number, part in enumerate(parts)), (usual, probes, True)]
    return tuple(
        Stream(
            port=int(paths[table.directions[number]].port),
            packet=table.frames[number],
            count=part,
            rate=part / duration,
            group=_group(turn, table.directions[number]) + probe,
            probe=probe,
        )
        for number, part, probe in sent
        if part
    )


def _group(turn: int, direction: int) -> int:
    """The statistics id of a direction's plain packets; the next one is its probes'."""
    return 1 + (4 * turn + 2 * direction) % GROUPS

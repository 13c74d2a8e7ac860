"""Frames of a trial for the embedded generator's worker, and how a frame that came back was sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pdrgate.record.trial import CarriedFrame
from pdrgate.traffic.chosen.frame_table import FrameTable
from pdrgate.traffic.chosen.tail_mark import MARK_ROOM, TailMark, marked
from pdrgate.traffic.frames import FCS, NUMBER_PAYLOAD, PROBE_PAYLOAD, Frames, Template
from pdrgate.traffic.native.wire import WireDirection, header

_ETHERNET = 14


@dataclass(frozen=True, slots=True)
class BuiltInFrames:
    """Frames of headers that vary by one word: the worker makes them."""

    frames: Frames
    templates: tuple[Template, ...]
    """Template of each direction."""
    cookie: int

    @property
    def ways(self) -> Sequence[WireDirection]:
        """Frames by direction, as the worker makes them."""
        return tuple(
            WireDirection(
                csum_sum=part.csum_sum,
                probe_sum=part.probe_sum,
                ip_sum=part.ip_sum,
                plain=header(part.plain),
                probe=header(part.probe),
                first=part.first,
            )
            for part in self.templates
        )

    def asked(self) -> Mapping[str, int]:
        """Fields of the worker's request, see wire.h."""
        same = self.templates[0]
        return {
            "flows": self.frames.flows,
            "v6": int(self.frames.family == 6),
            "vary_offset": same.vary_offset,
            "vary_in_ip": int(same.vary_in_ip),
            "routing": same.routing,
            "vlan": same.link_header - _ETHERNET,
            "plain_len": same.plain_size - FCS,
            "probe_len": same.probe_size - FCS,
            "cookie": self.cookie,
            "tag": same.tag,
            "marked": int(self.frames.mark is not None),
            "mark": self.frames.mark or 0,
        }

    def carried(self, direction: int, probe: int, returned: int, got: str) -> CarriedFrame | None:
        """The frame that came back, with the frame as it was sent.

        Its number, or its probe's time, is read from the frame itself. The number says its flow, so that a packet of
        another flow with this one's number is a wrong frame. A probe's flow is read from the frame.
        """
        frame = bytes.fromhex(got)
        part = self.templates[min(direction, len(self.templates) - 1)]
        head = len(part.probe if probe else part.plain)
        payload = frame[head : head + (PROBE_PAYLOAD if probe else self.frames.payload)]
        if probe or len(payload) < self.frames.payload:
            word = part.word(frame, self.frames.flows)
        else:
            number = int.from_bytes(payload[-NUMBER_PAYLOAD:], "big")
            word = (part.first + number // len(self.templates) % self.frames.flows) & 0xFFFF
        sent = part.frame(word, probe=bool(probe), payload=payload)
        return CarriedFrame(direction, sent.hex(), got, returned=bool(returned))


@dataclass(frozen=True, slots=True)
class ChosenFrames:
    """Frames of a table: the worker sends them as they are, but for their mark."""

    table: FrameTable
    cookie: int
    tag: int
    ways: Sequence[WireDirection] = ()

    def asked(self) -> Mapping[str, int]:
        usual = self.table.usual_length
        return {
            "flows": 1,
            "plain_len": usual,
            "probe_len": usual,
            "cookie": self.cookie,
            "tag": self.tag,
            "chosen": len(self.table.frames),
            "ordered": len(self.table.order),
            "room": self.table.room,
        }

    def carried(self, direction: int, probe: int, returned: int, got: str) -> CarriedFrame | None:
        """The frame that came back, with the frame as it was sent; None for a probe, whose mark holds its time instead
        of its frame's number."""
        frame = bytes.fromhex(got)
        mark = None if probe else TailMark.of(frame)
        if mark is None:
            return None
        sent = marked(self.table.sent(mark.number), frame[-MARK_ROOM:])
        return CarriedFrame(direction, sent.hex(), got, returned=bool(returned))


SentFrames = BuiltInFrames | ChosenFrames
"""The frames of one trial."""

"""Readings of one port: how long it sent, and how many of its packets were under way meanwhile.

TRex sends late rather than less: a server that cannot keep up sends every packet and takes longer, and neither its
queue-full counter nor its output errors need to show it. The server reports the stop of a port only within some tens of
milliseconds. So the lateness is measured by the progress of the sent packets between two readings, each of them between
two readings of our clock.

All readings are of the flow statistics. One answer has a flow's sent and returned packets, counted at the same moment
but for what a server needs to gather them: so the number under way is known far better than its time, and the packets
that a flow has sent are the clock by which the looks are taken. Apparent losses occur between counters of two ports,
read one after the other while traffic runs (trex-core, pull request 1212); these are not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from pdrgate.record.trial import LOOKS

END_LAG = 0.1
"""Seconds after the last packet within which a server reports that a port has stopped.

Its control loop turns every 10 ms, and its events and our readings take their time as well.
"""

_BATCH = 64
"""Packets that a server hands to a card at once, by which a reading may be off."""
SHORTEST_TO_LOOK = 0.05
"""Seconds of a trial, below which a request takes too much of it for looks."""
_QUARTERS = 4
"""Parts of the sending, in each of which a port must have been read for it to count as looked at."""


@dataclass(frozen=True, slots=True)
class Sending:
    """When a port was seen to send. Times are seconds of one clock."""

    started: tuple[float, float]
    """The times before the request to start, and after its answer."""
    ended: tuple[float, float]
    """The times when the port was last seen sending, and first seen idle."""


@dataclass(frozen=True, slots=True)
class FlowReading:
    """Packets of one or more flows that had been sent, and those of them that had come back, at a time in seconds."""

    asked: float
    """The time before the request, by our clock."""
    answered: float
    """The time after the answer, by our clock."""
    sent: int
    back: int = 0

    @property
    def at(self) -> float:
        """When it was taken, as well as is known."""
        return (self.asked + self.answered) / 2

    @property
    def under_way(self) -> int:
        """Packets sent and not back yet; below zero where a server counts the sent ones first."""
        return self.sent - self.back


def sending_time(
    count: int, duration: float, sending: Sending, readings: Sequence[FlowReading] = (), *, stopped: bool = False
) -> float:
    """Seconds that a port took for ``count`` packets; ``duration`` unless it has certainly taken longer.

    The rate between an early and a late reading shows how much slower than intended the port was, the end how much
    later it became idle. Both are certain only beyond the duration of a request: a smaller stretch cannot be seen, with
    readings 1 ms long and a trial of 1 s for example one below 0.25 %.

    Args:
        stopped: a port was stopped in the middle, long after its time; then it sent until it was.
    """
    if stopped:
        return max(duration, sum(sending.ended) / 2 - sum(sending.started) / 2)
    seconds = duration
    during = [reading for reading in readings if 0 < reading.sent < count]
    if len(during) >= 2:
        # The quickest of the first and of the last quarter: what was read is known best when they were.
        part = max(1, len(during) // _QUARTERS)
        first, last = (
            min(some, key=lambda reading: reading.answered - reading.asked) for some in (during[:part], during[-part:])
        )
        packets = last.sent - first.sent
        if last.asked - first.answered > (packets + _BATCH) * duration / count:
            at_most = sending.ended[1] - sending.started[0]
            seconds = max(seconds, min(at_most, count * (last.at - first.at) / max(1, packets)))
    at_least = sending.ended[0] - sending.started[1] - END_LAG
    return max(seconds, at_least)


def sending_end(seconds: float, sending: Sending, *, stopped: bool = False) -> float:
    """Time of a port's last packet, if it took so many seconds, as far as requests to start and stop show it."""
    if stopped:
        return sum(sending.ended) / 2
    return min(sum(sending.started) / 2 + seconds, sending.ended[1])


def under_way_at_looks(sent: int, readings: Sequence[FlowReading]) -> tuple[float, ...]:
    """Packets of ``sent`` that were under way at each of `LOOKS` equal steps of the sending; empty if it was not looked
    at in each of its quarters.

    Before the first reading, and after the last one with packets still to send, it goes on as in the quarter next to
    it. When the last packet was sent no fewer had come back than that reading has, and no more than the next one has.
    """
    during = [reading for reading in readings if 0 < reading.sent < sent]
    if len({reading.sent * _QUARTERS // sent for reading in during}) < _QUARTERS:
        return ()
    first, last = during[0], during[-1]
    later = next(one for one in during if one.sent - first.sent >= sent / _QUARTERS)
    earlier = next(one for one in reversed(during) if last.sent - one.sent >= sent / _QUARTERS)
    begin = first.under_way - first.sent * (later.under_way - first.under_way) / (later.sent - first.sent)
    back = last.back + (sent - last.sent) * (last.back - earlier.back) / (last.sent - earlier.sent)
    most = next((reading.back for reading in readings if reading.sent == sent), back)
    end = sent - max(last.back, min(most, back))
    at = [0, *(reading.sent for reading in during), sent]
    under_way = [max(0.0, begin), *(reading.under_way for reading in during), end]
    return tuple(float(look) for look in np.interp(np.arange(1, LOOKS + 1) * sent / LOOKS, at, under_way))


def left_over(looks: Sequence[float]) -> float:
    """Packets that a trial with these looks left in a queue, or lost.

    They are those under way when the last packet was sent, less the number that was under way from the beginning.

    These are in flight, or of the burst by which a server begins: it sends the first packets some milliseconds late and
    makes up for it at once (one on a core of a virtual machine by 9 ms), so that the trial's time passes between the
    first packet that comes back and as late after the last one as that came.
    """
    quarter = len(looks) // _QUARTERS
    begin, end = median(looks[:quarter]), median(looks[-quarter:])
    growth = (end - begin) / (len(looks) - quarter)
    from_the_beginning = begin - growth * (1 + quarter) / 2
    return max(0.0, looks[-1] - max(0.0, from_the_beginning))


def unseen(begin: float, end: float, readings: Sequence[FlowReading]) -> float:
    """The longest time without a reading between the begin and the end of sending, seconds; 0 if each quarter of it had
    one."""
    times = sorted(reading.at for reading in readings if begin < reading.at < end)
    if len({int((at - begin) / (end - begin) * _QUARTERS) for at in times}) == _QUARTERS:
        return 0.0
    return max(later - earlier for earlier, later in pairwise((begin, *times, end)))


def back_at_end(sent: int, readings: Sequence[FlowReading], end: float) -> int:
    """Number of packets that had come back at ``end``, if there are no looks at the sending of ``sent`` packets.

    Packets that arrived between the first two readings with all packets sent had drained, and at the same rate did
    those between the end and the first of these readings. If none arrived any more, the earlier drain is not known: the
    result is then the share of the last reading before the end, or 0 without such a reading.
    """
    after = [reading for reading in readings if reading.sent == sent]
    if len(after) >= 2 and after[1].back > after[0].back and after[1].at > after[0].at > end:
        first, second = after[:2]
        return first.back - round((second.back - first.back) * (first.at - end) / (second.at - first.at))
    last = next((reading for reading in reversed(readings) if 0 < reading.sent < sent), None)
    known = 0 if last is None else round(last.back * sent / last.sent)
    return min([known, *(reading.back for reading in after[:1])])

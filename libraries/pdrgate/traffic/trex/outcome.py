"""From what the worker saw of a trial to a `Trial`, or to the refusal of counters that cannot be true.

TRex sends late rather than less: a server that cannot keep up sends every packet and takes longer, and neither its
queue-full counter nor its output errors need to tell. The server says when a port has stopped only within some tens of
milliseconds. So the lateness is measured where it is seen best, in the progress of the sent packets between two
readings, each of them between two readings of our clock.

What had come back when sending ended is told by the first two readings of the flow statistics that have all packets
sent: what arrived between them drained, and at the same rate did what arrived between the end and the first of them.
Readings with packets still to send are not used, for sent and received ones would not belong together; so there are no
looks at what is under way either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pdrgate.errors import GeneratorError
from pdrgate.traffic.trex.trex_streams import Stream
from pdrgate.trial import Latency, Trial, placed

END_LAG = 0.1
"""Seconds after the last packet within which a server tells that a port has stopped: its control loop turns every
10 ms, its events and our readings take their time as well."""

_PLAUSIBLE_SURPLUS = 2.0
"""More than this times the packets sent cannot have come back; a SUT that copies each packet once may."""
_BATCH = 64
"""Packets that a server hands to a card at once: a reading may be off by so many."""
_STRAY_ALLOWANCE = 10_000
"""Packets of neighbours (ARP, router advertisements) that a port may see in a trial without our doubting counters."""


class UntrustedCountersError(GeneratorError):
    """The server's counters contradict themselves; the trial is worth nothing, another one may be."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Packets that a port had sent, and when: our clock before the request and after the answer, seconds."""

    asked: float
    answered: float
    packets: int


@dataclass(frozen=True, slots=True)
class Sending:
    """What was seen of the sending of one port. Times are seconds of one clock."""

    started: tuple[float, float]
    """Before the request to start, and after its answer."""
    ended: tuple[float, float]
    """When the port was last seen sending, and first seen idle."""
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Flow statistics of one moment: our clock before the request and after the answer, seconds."""

    asked: float
    answered: float
    groups: Mapping[int, Mapping[str, Mapping[int, int]]]
    """By id, then ``tx`` and ``rx``, then port."""

    @property
    def at(self) -> float:
        """When they were read, as well as is known."""
        return (self.asked + self.answered) / 2


@dataclass(frozen=True, slots=True)
class Observation:
    """All that the worker saw of one trial."""

    started: float
    """Seconds since the epoch."""
    before: Mapping[str, int]
    after: Mapping[str, int]
    """Counters of ports and server, by name: ``port0.opackets``, ``queue_full``."""
    groups_before: Mapping[int, Mapping[str, Mapping[int, int]]]
    groups_after: Mapping[int, Mapping[str, Mapping[int, int]]]
    """Flow statistics by id, then ``tx`` and ``rx``, then port."""
    sendings: Mapping[int, Sending]
    histograms: tuple[Mapping[int, int], ...]
    """Probes by the lower end of their latency's bucket, microseconds; one per direction."""
    arrivals: tuple[Arrivals, ...]
    """From shortly before the expected end of sending to the end of the drain."""
    stopped: bool
    """The port was still sending long after the trial's time and was stopped."""

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Observation:
        """The worker's answer; names of ports and ids are text there, for JSON has no other keys."""
        return cls(
            started=message["started"],
            before=message["before"],
            after=message["after"],
            groups_before=_groups(message["groups_before"]),
            groups_after=_groups(message["groups_after"]),
            sendings={
                int(port): Sending(
                    started=tuple(sending["started"]),
                    ended=tuple(sending["ended"]),
                    readings=tuple(Reading(*reading) for reading in sending["readings"]),
                )
                for port, sending in message["sendings"].items()
            },
            histograms=tuple(
                {int(bucket): count for bucket, count in histogram.items()} for histogram in message["histograms"]
            ),
            arrivals=tuple(
                Arrivals(asked, answered, _groups(groups)) for asked, answered, groups in message["arrivals"]
            ),
            stopped=message["stopped"],
        )


def trial(
    load: float, duration: float, sent: Sequence[Stream], ports: Sequence[int], observation: Observation
) -> Trial:
    """The trial that the streams ``sent`` made.

    Args:
        ports: all ports that are ours; a direction's packets are counted on all but the one that sent them.

    Raises:
        UntrustedCountersError: a counter went backwards, or counts what cannot have been.
    """
    requested = sum(stream.count for stream in sent)
    _check_monotonic(observation.before, observation.after, "the server")
    senders = sorted({stream.port for stream in sent})
    counts = {port: sum(stream.count for stream in sent if stream.port == port) for port in senders}
    seconds = {
        port: sending_time(counts[port], duration, observation.sendings[port], stopped=observation.stopped)
        for port in senders
    }
    tx = rx = drained = probes = 0
    for group, port in sorted({(stream.group, stream.port) for stream in sent}):
        wanted = sum(stream.count for stream in sent if (stream.group, stream.port) == (group, port))
        if group not in observation.groups_after:
            raise UntrustedCountersError(f"the server has no statistics of flow {group}, which port {port} sent")
        others = [other for other in ports if other != port]
        own_tx = _gained(observation, observation.groups_after, group, "tx", (port,))
        own_rx = _gained(observation, observation.groups_after, group, "rx", others)
        if own_tx > wanted:
            raise UntrustedCountersError(f"port {port} counts {own_tx} packets sent of {wanted} that were asked for")
        if own_rx > _PLAUSIBLE_SURPLUS * own_tx + _STRAY_ALLOWANCE:
            raise UntrustedCountersError(f"{own_rx} packets are said to have come back of {own_tx} sent by port {port}")
        tx, rx = tx + own_tx, rx + own_rx
        end = sending_end(counts[port], seconds[port], observation.sendings[port], stopped=observation.stopped)
        drained += own_rx - _arrived(observation, group, port, others, end)
        if any(stream.probe for stream in sent if stream.group == group):
            probes += own_rx
    changes = {name: value - observation.before.get(name, 0) for name, value in observation.after.items()}
    on_the_wire = sum(changes[f"port{port}.opackets"] for port in senders)
    if on_the_wire > tx + _STRAY_ALLOWANCE:
        raise UntrustedCountersError(f"the ports count {on_the_wire} packets sent, the flow statistics {tx}")
    offered = min(tx, on_the_wire)  # what a card has dropped at its output has not been in front of the SUT
    stray = max(0, sum(changes[f"port{port}.ipackets"] for port in ports) - rx)
    return Trial(
        intended_load=load,
        intended_duration=duration,
        offered=offered,
        unsent=requested - offered,
        forwarded=rx,
        drained=drained,
        stray=stray,
        sending_time=max(seconds.values()),
        latency=latency(observation.histograms, probes),
        counters_before=placed({f"trex.{name}": value for name, value in observation.before.items()}),
        counters_after=placed({f"trex.{name}": value for name, value in observation.after.items()}),
        started=observation.started,
    )


def sending_time(count: int, duration: float, sending: Sending, *, stopped: bool = False) -> float:
    """Seconds that a port took for ``count`` packets; ``duration`` unless it has certainly taken longer.

    The rate between the first and the last reading tells how much slower than asked the port was, the end how much
    later it became idle. Both are certain only beyond what a request takes: a stretch that is smaller than that cannot
    be seen, with readings 1 ms long and a trial of 1 s for example one below 0.25 %.

    Args:
        stopped: a port was stopped in the middle, long after its time; then it sent until it was.
    """
    if stopped:
        return max(duration, sum(sending.ended) / 2 - sum(sending.started) / 2)
    seconds = duration
    if len(sending.readings) >= 2:
        first, last = sending.readings[0], sending.readings[-1]
        packets = last.packets - first.packets
        at_least = last.asked - first.answered
        if last.packets < count and at_least > (packets + _BATCH) * duration / count:
            middle = (last.asked + last.answered - first.asked - first.answered) / 2
            at_most = sending.ended[1] - sending.started[0]
            seconds = max(seconds, min(at_most, count * middle / max(1, packets)))
    at_least = sending.ended[0] - sending.started[1] - END_LAG
    return max(seconds, at_least)


def sending_end(count: int, seconds: float, sending: Sending, *, stopped: bool = False) -> float:
    """When a port that took ``seconds`` for ``count`` packets had sent the last of them, as well as is known.

    The last reading of its progress knows it better than the request to start, which takes some milliseconds.
    """
    if stopped:
        return sum(sending.ended) / 2
    end = sum(sending.started) / 2 + seconds
    if sending.readings and sending.readings[-1].packets < count:
        last = sending.readings[-1]
        end = (last.asked + last.answered) / 2 + (count - last.packets) * seconds / count
    return min(end, sending.ended[1])


def latency(histograms: Sequence[Mapping[int, int]], received: int) -> Latency | None:
    """Percentiles and maximum of all probes; each is the upper end of its bucket, so never too low.

    A server may leave those below 10 us out of its histograms, so that ``received`` less the others are these. Its own
    maximum is not taken: it knows nothing of the last second.
    """
    merged: dict[int, int] = {}
    for histogram in histograms:
        for bucket, probes in histogram.items():
            merged[bucket] = merged.get(bucket, 0) + probes
    told = sum(merged.values())
    if received > told:
        merged[0] = merged.get(0, 0) + received - told
    count = max(received, told)
    if not count:
        return None

    def percentile(share: float) -> float:
        seen = 0
        for bucket in sorted(merged):
            seen += merged[bucket]
            if seen >= share * count:
                return (bucket + _width(bucket)) / 1e6
        raise AssertionError("the shares of a histogram add up to all of it")

    return Latency(percentile(0.5), percentile(0.9), percentile(0.99), percentile(1.0), count)


def _width(bucket: int) -> int:
    """Width of the server's bucket that begins at ``bucket`` us: 10 below 100 us, 100 below 1 ms, and so on."""
    return int(10 ** (len(str(bucket)) - 1)) if bucket >= 10 else 10


def _arrived(observation: Observation, group: int, port: int, others: Sequence[int], end: float) -> int:
    """Packets of a flow that had come back when ``port`` had sent its last one, at ``end``."""
    final = _gained(observation, observation.groups_after, group, "rx", others)
    sent = _gained(observation, observation.groups_after, group, "tx", (port,))
    points = [
        (arrivals.at, _gained(observation, arrivals.groups, group, "rx", others))
        for arrivals in observation.arrivals
        if _gained(observation, arrivals.groups, group, "tx", (port,)) == sent
    ]
    if not points:
        return final
    (at, arrived), (later, more) = points[0], points[min(1, len(points) - 1)]
    if later > at > end:
        arrived -= round((more - arrived) * (at - end) / (later - at))
    return min(final, max(0, arrived))


def _gained(
    observation: Observation,
    reading: Mapping[int, Mapping[str, Mapping[int, int]]],
    group: int,
    way: str,
    ports: Sequence[int],
) -> int:
    before = observation.groups_before.get(group, {}).get(way, {})
    after = reading.get(group, {}).get(way, {})
    gained = 0
    for port in ports:
        change = after.get(port, 0) - before.get(port, 0)
        if change < 0:
            raise UntrustedCountersError(f"the {way} counter of flow {group} on port {port} went back by {-change}")
        gained += change
    return gained


def _check_monotonic(before: Mapping[str, int], after: Mapping[str, int], whose: str) -> None:
    for name, value in before.items():
        if after.get(name, 0) < value and not name.endswith("_permille"):
            raise UntrustedCountersError(f"{whose} counted {name} {value} before and {after.get(name, 0)} after")


def _groups(message: Mapping[str, Any]) -> dict[int, dict[str, dict[int, int]]]:
    return {
        int(group): {way: {int(port): count for port, count in ports.items()} for way, ports in ways.items()}
        for group, ways in message.items()
    }

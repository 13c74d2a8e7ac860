"""The outcome of a trial is what the worker saw made a `Trial`, or the refusal of counters that cannot be true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pdrgate.record.cause import Cause, CauseKind
from pdrgate.record.stretch import Latency, Occasion, Seen, placed
from pdrgate.record.trial import Aside, Trial
from pdrgate.traffic.frames import Counted
from pdrgate.traffic.trex.readings import (
    SHORTEST_TO_LOOK,
    FlowReading,
    Sending,
    back_at_end,
    left_over,
    sending_end,
    sending_time,
    under_way_at_looks,
    unseen,
)
from pdrgate.traffic.trex.trex_streams import Stream
from pdrgate.values.errors import GeneratorError

_SHARES = (0.5, 0.9, 0.99, 1.0)
_PLAUSIBLE_SURPLUS = 2.0
"""More than this times the packets sent cannot have come back; a SUT that copies each packet once may."""
_HEARD, _UNHEARD = 0.01, 0.5
"""Parts of the sent packets: where flow statistics have seen less than the first come back, and ports have received
more than the second besides, the statistics do not work."""
_ENOUGH = 1000
"""Packets below which neighbours' packets may be as many."""
_STRAY_ALLOWANCE = 10_000
"""Packets of neighbours (ARP, router advertisements) that a port may see in a trial without our doubting counters."""


class DeafStatisticsError(GeneratorError):
    """The server's flow statistics do not see what its ports receive."""


class UntrustedCountersError(GeneratorError):
    """The server's counters contradict themselves; the trial is worth nothing, another one may be."""


@dataclass(frozen=True, slots=True)
class FlowStatistics:
    """Flow statistics of one moment: our clock before the request and after the answer, seconds."""

    asked: float
    answered: float
    groups: Mapping[int, Mapping[str, Mapping[int, int]]]
    """The packets by group's id, then ``tx`` and ``rx``, then port."""


@dataclass(frozen=True, slots=True)
class WorkerObservation:
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
    copies: int
    """Probes that came right after one of the same number, all directions together."""
    arrivals: tuple[FlowStatistics, ...]
    """While packets were sent, and to the end of the drain."""
    stopped: bool
    """The port was still sending long after the trial's time and was stopped; then flow statistics may stand still."""

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> WorkerObservation:
        """The worker's answer; names of ports and ids are text there, for JSON has no other keys."""
        return msgspec.convert(message, cls, str_keys=True)


def trial(
    load: float,
    duration: float,
    sent: Sequence[Stream],
    ports: Sequence[int],
    observation: WorkerObservation,
    counted: Counted = "forwarded",
) -> Trial:
    """The trial that the streams ``sent`` made.

    Args:
        ports: all ports that are ours; a direction's packets are counted on all but the one that sent them.
        counted: ``returned``: they are counted on the port that sent them; ``taken``: all that were offered count, for
            no counter of the server shows what the SUT has taken in.

    Raises:
        UntrustedCountersError: a counter went backwards, or counts what cannot have been.
        DeafStatisticsError: the ports received what the flow statistics did not.
    """
    requested = sum(stream.count for stream in sent)
    _check_monotonic(observation.before, observation.after, "the server")
    directions = [
        _direction([stream for stream in sent if stream.port == port], duration, ports, observation, counted)
        for port in sorted({stream.port for stream in sent})
    ]
    tx, rx = sum(one.sent for one in directions), sum(one.back for one in directions)
    drained = rx - sum(one.back_at_end for one in directions)
    changes = {name: value - observation.before.get(name, 0) for name, value in observation.after.items()}
    on_the_wire = sum(changes[f"port{port}.opackets"] for port in {stream.port for stream in sent})
    if on_the_wire > tx + _STRAY_ALLOWANCE:
        raise UntrustedCountersError(f"the ports count {on_the_wire} packets sent, the flow statistics {tx}")
    offered = min(tx, on_the_wire)  # what a card has dropped at its output has not been in front of the SUT
    returned = sum(one.returned for one in directions)
    stray = max(0, sum(changes[f"port{port}.ipackets"] for port in ports) - rx - returned)
    if tx >= _ENOUGH and rx < _HEARD * tx and stray > _UNHEARD * tx:
        raise DeafStatisticsError(
            f"its ports received {rx + stray} packets of {tx} sent, and its flow statistics saw {rx} of them: the card "
            "does not count flows in hardware; start the server with --software"
        )
    if observation.stopped:  # what came after the stop is counted by the ports alone
        late = min(stray, max(0, offered - rx))
        rx, drained, stray = rx + late, drained + late, stray - late
    twice = min(observation.copies, sum(one.probes for one in directions))
    rx, drained = rx - twice, max(0, drained - twice)
    left, under_way = 0, _under_way(directions, offered)
    if counted == "taken":
        left, rx, drained, under_way = rx + returned, offered, 0, ()
    return Trial(
        intended_load=load,
        intended_duration=duration,
        offered=offered,
        unsent=requested - offered,
        forwarded=rx,
        drained=drained,
        aside=Aside(stray=stray, returned=returned, left=left, twice=twice),
        sending_time=max(one.seconds for one in directions),
        under_way=under_way,
        seen=Seen(
            latency=probe_latency(observation.histograms, sum(one.probes for one in directions)),
            counters_before=placed({f"trex.{name}": value for name, value in observation.before.items()}),
            counters_after=placed({f"trex.{name}": value for name, value in observation.after.items()}),
            disturbed=_disturbed(max(one.unseen for one in directions), duration),
        ),
        occasion=Occasion(started=observation.started),
    )


@dataclass(frozen=True, slots=True)
class _Direction:
    """Packets that one port sent, and how many of them came back."""

    sent: int
    back: int
    """Drained packets included."""
    probes: int
    """Part of them that were probes."""
    returned: int
    """The packets that came back on the port that sent them: no part of the others."""
    seconds: float
    """The seconds of sending."""
    looks: tuple[float, ...]
    """See `under_way_at_looks`."""
    back_at_end: int
    """Part of what came back that had done so when sending ended; where there were looks, in the trial's time."""
    unseen: float
    """See `unseen`."""


def _direction(
    own: Sequence[Stream],
    duration: float,
    ports: Sequence[int],
    observation: WorkerObservation,
    counted: Counted,
) -> _Direction:
    """The direction of the streams of one port."""
    port, count = own[0].port, sum(stream.count for stream in own)
    others: Sequence[int] = [other for other in ports if other != port]
    elsewhere: Sequence[int] = (port,)
    if counted == "returned":
        others, elsewhere = elsewhere, others
    groups = sorted({stream.group for stream in own})
    sent = back = probes = returned = 0
    for group in groups:
        wanted = sum(stream.count for stream in own if stream.group == group)
        if group not in observation.groups_after:
            raise UntrustedCountersError(f"the server has no statistics of flow {group}, which port {port} sent")
        tx = _gained(observation, observation.groups_after, group, "tx", (port,))
        rx = _gained(observation, observation.groups_after, group, "rx", others)
        if tx > wanted:
            raise UntrustedCountersError(f"port {port} counts {tx} packets sent of {wanted} that were asked for")
        if rx > _PLAUSIBLE_SURPLUS * tx + _STRAY_ALLOWANCE:
            raise UntrustedCountersError(f"{rx} packets are said to have come back of {tx} sent by port {port}")
        sent, back = sent + tx, back + rx
        returned += _gained(observation, observation.groups_after, group, "rx", elsewhere)
        if any(stream.probe for stream in own if stream.group == group):
            probes += rx
    readings = [
        FlowReading(
            asked=arrivals.asked,
            answered=arrivals.answered,
            sent=sum(_gained(observation, arrivals.groups, group, "tx", (port,)) for group in groups),
            back=sum(_gained(observation, arrivals.groups, group, "rx", others) for group in groups),
        )
        for arrivals in observation.arrivals
    ]
    sending, stopped = observation.sendings[port], observation.stopped
    seconds = sending_time(count, duration, sending, readings, stopped=stopped)
    looked = under_way_at_looks(sent, readings)
    end = sending_end(seconds, sending, stopped=stopped)
    arrived = sent - round(left_over(looked)) if looked else back_at_end(sent, readings, end)
    blind = unseen(sum(sending.started) / 2, end, readings)
    return _Direction(sent, back, probes, returned, seconds, looked, min(back, max(0, arrived)), blind)


def _under_way(directions: Sequence[_Direction], offered: int) -> tuple[int, ...]:
    """The packets under way of all directions together, each at the steps of its own sending."""
    if not all(one.looks for one in directions):
        return ()
    summed = (sum(each) for each in zip(*(one.looks for one in directions), strict=True))
    return tuple(min(offered, max(0, round(each))) for each in summed)


def _disturbed(blind: float, duration: float) -> tuple[Cause, ...]:
    """The cause that says that nobody looked for too long, in trials in which somebody should."""
    if duration < SHORTEST_TO_LOOK or not blind:
        return ()
    words = f"TRex, or this machine, was too busy to look for {blind * 1e3:.0f} ms of {duration * 1e3:.0f} ms"
    return (Cause(CauseKind.UNSEEN, blind / duration, words),)


def probe_latency(histograms: Sequence[Mapping[int, int]], received: int) -> Latency | None:
    """Percentiles and maximum of all probes. Each is the upper end of its bucket, so never too low, and has its width.

    A server may leave probes below 10 us out of its histograms: they are ``received`` less the others. Its own maximum
    is not taken, for it lacks the last second.
    """
    merged: dict[int, int] = {}
    for histogram in histograms:
        for bucket, probes in histogram.items():
            merged[bucket] = merged.get(bucket, 0) + probes
    counted = sum(merged.values())
    if received > counted:
        merged[0] = merged.get(0, 0) + received - counted
    count = max(received, counted)
    if not count:
        return None

    def percentile(share: float) -> int:
        seen = 0
        for bucket in sorted(merged):
            seen += merged[bucket]
            if seen >= share * count:
                return bucket
        raise AssertionError("the shares of a histogram add up to all of it")

    buckets = [percentile(share) for share in _SHARES]
    p50, p90, p99, longest = ((bucket + _width(bucket)) / 1e6 for bucket in buckets)
    return Latency(p50, p90, p99, longest, count, tuple(_width(bucket) / 1e6 for bucket in buckets))


def _width(bucket: int) -> int:
    """Width of the server's bucket that begins at ``bucket`` us: 10 below 100 us, 100 below 1 ms, and so on."""
    return int(10 ** (len(str(bucket)) - 1)) if bucket >= 10 else 10


def _gained(
    observation: WorkerObservation,
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

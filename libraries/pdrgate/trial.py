"""The Trial: what one stretch of traffic at one load showed. Every number pdrgate reports rests on these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol, Self, TypeVar

import msgspec

from pdrgate.cause import Cause, of_an_earlier_version
from pdrgate.errors import without_value
from pdrgate.fate import Fate
from pdrgate.phase import Phase

STANDING, STANDING_SHARE = 128, 0.05
"""Packets that stand in a queue which does not grow: near its most a kernel keeps up by full batches alone, so that one
of 64 (NAPI's weight) waits while one is taken. And the part of the offered packets that they are at most: of a SUT so
slow that a trial has a few hundred, as many are an overload."""
IN_FLIGHT = 0.002
"""Seconds for which a packet is in flight at most, where a generator cannot look while it sends: what had not come back
when sending ended, and was sent before that, was queued."""
GENERATOR_TOLERANCE = 1e-3
"""Largest unsent part, and largest stretch of the sending time, of a trial that the generator did not limit."""
OF_THE_LOSS = 0.1
"""The same as a part of the loss ratio, where that is more: of a SUT that loses half of its packets it makes no
difference whether one in twenty more had come."""

LOOKS = 16
"""Times that a generator looks at what is under way, at equal steps of the sending time, the last at its end."""

Readings = Mapping[str, Mapping[str, int]]
"""Counters by place and name: ``{"in0": {"rx_dropped": 12}}``."""

Functions = Mapping[str, tuple[int, int]]
"""Instructions and calls by function: ``{"ip6_forward": (1_730_000, 10_000)}``."""

Stacks = Mapping[str, tuple[int, int]]
"""The same by function and the chain of its callers: ``{"net_rx_action;virtnet_poll": (1_730_000, 10_000)}``."""

CALLER = ";"
"""Stands between a function and its caller, which comes first: as tools for flame graphs have it."""

USER_SPACE = "user space"
"""What programs executed stands under this name among the functions, and is no part of a packet's path."""


@dataclass(frozen=True, slots=True)
class Latency:
    """One-way latency of the probe stream, all in seconds, over ``count`` probes that came back."""

    p50: float
    p90: float
    p99: float
    max: float
    count: int
    within: tuple[float, ...] = ()
    """How much less each of the four may be, where the generator counts latencies in buckets; empty where it tells
    them exactly."""


@dataclass(frozen=True, slots=True)
class CarriedFrame:
    """A frame that the generator kept whole, in hex without FCS: as it was sent, and as it came back."""

    direction: int
    """0 forward, 1 reverse."""
    sent: str
    got: str
    returned: bool = False
    """Whether it came back on the port that it was sent from."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial (RFC 2544 section 26, RFC 9971 section 4.2): a constant load for a duration, and what became of it.

    Loads are packets/s and counts are packets, both summed over all directions; times are seconds. A packet that was
    still queued when sending ended and came back later is *forwarded* and *drained*: no loss, and no part of a rate.

    Raises:
        ValueError: a count is negative or the counts contradict each other.
    """

    intended_load: float
    intended_duration: float
    offered: int
    """Packets the generator really put in front of the SUT, refused ones included."""
    forwarded: int
    """This trial's own packets that were handled, as its fate says: that came back, where they are to be forwarded.
    Drained ones are included."""
    drained: int = 0
    """Part of the forwarded packets that came back only after sending had ended."""
    unsent: int = 0
    """Intended minus offered: the generator's shortfall, never the SUT's loss."""
    refused: int = 0
    """Part of the offered packets that was dropped at the SUT's ingress while the generator watched."""
    stray: int = 0
    """Packets seen at the receiver that are not this trial's: kept apart, never counted as forwarded."""
    returned: int = 0
    """This trial's own packets that came back on a port that does not count: on the one that they were sent from, where
    they are to be forwarded; on the other one, where they are to be returned."""
    left: int = 0
    """Where packets are counted as the SUT takes them in: those that came back all the same, by any port."""
    fate: Fate = "forwarded"
    """What counts as handled."""
    looked_at: int = 0
    """Frames that came back and were compared with what the data path must make of them."""
    frames: tuple[CarriedFrame, ...] = ()
    """Frames: all that the generator kept whole; on disk, some that are not what a router makes of them."""
    sending_time: float = 0.0
    """Measured time from the first packet's due time to the end of sending."""
    under_way: tuple[int, ...] = ()
    """Packets sent and not back yet at each of the generator's looks (`LOOKS`), queued and lost ones alike; empty where
    the generator could not look while it sent."""
    latency: Latency | None = None
    counters_before: Readings = field(default_factory=dict)
    counters_after: Readings = field(default_factory=dict)
    functions: Functions = field(default_factory=dict)
    """What the SUT's kernel executed meanwhile; empty where that is not counted, or not kept for this phase."""
    stacks: Stacks = field(default_factory=dict)
    """The same by who called whom, of a trial in which that was followed."""
    counted: float = 0.0
    """Seconds for which functions were counted: the trial, and what the generator needs before and after it."""
    disturbed: tuple[Cause, ...] = ()
    """What of the machine kept the trial from telling anything of the SUT; empty for a sound one."""
    scenario: str = ""
    """Name of the scenario, goal included: everything that was asked."""
    test: str = ""
    """Long name of the test that asked for it; empty where no test did, and in files of earlier versions."""
    fingerprint: str = ""
    """Digest of all that made the trial: scenario, profile, testbed, generator, kernel and its settings."""
    boot: str = ""
    """What tells this start of the SUT from all others."""
    side: str = ""
    """``baseline`` or ``candidate`` where builds are compared."""
    build: str = ""
    """The build as a person named it, where builds are compared."""
    pair: int = 0
    """Number of the pair of boots, from 1; 0 where there are no pairs."""
    repeat: int = 0
    """Number of the repeat within its boot, from 1; 0 for what is no repeat."""
    goal: str = ""
    """The search goal that it served, such as ``PDR``."""
    phase: Phase = Phase.NONE
    """Why it was measured."""
    started: float = 0.0
    """Start, seconds since the epoch."""

    def __post_init__(self) -> None:
        for name in ("intended_load", "intended_duration", "sending_time", "counted", "started"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value!r}: it must be finite and not negative")
        for name in (
            "offered",
            "forwarded",
            "drained",
            "unsent",
            "refused",
            "stray",
            "returned",
            "left",
            "pair",
            "repeat",
        ):
            value = getattr(self, name)
            if value < 0:
                raise ValueError(f"{name} is {value!r}: a count cannot be negative")
        if self.refused > self.offered:
            raise ValueError(f"refused ({self.refused}) exceeds offered ({self.offered})")
        if self.drained > self.forwarded:
            raise ValueError(f"drained ({self.drained}) exceeds forwarded ({self.forwarded})")

    @property
    def intended(self) -> int:
        """Packets that were to be sent."""
        return self.offered + self.unsent

    @property
    def lost(self) -> int:
        """Offered packets that did not come back; never negative."""
        return max(0, self.offered - self.forwarded)

    @property
    def surplus(self) -> int:
        """Packets forwarded beyond the offered count: shown beside the loss, never netted against it."""
        return max(0, self.forwarded - self.offered)

    @property
    def loss_ratio(self) -> float:
        """PLR of this trial, lost / offered (PASTRAMI section IV-A); 0 when nothing was offered."""
        return self.lost / self.offered if self.offered else 0.0

    @property
    def steady_loss_ratio(self) -> float:
        """The loss ratio that this load would come to if the trial went on: what was lost, and what the queue grew by.

        A trial at an overload that a deep buffer can hold loses nothing: it ends before the buffer is full, and the
        shorter it is the more it hides. This ratio does not depend on how long a trial lasts, and is what a load is
        judged by. Where the generator could not look while it sent, all that drained is taken for a queue that grew: a
        latency beyond `IN_FLIGHT` is loss then, but no overload is ever hidden.
        """
        grown = min(self.lost + self.drained, self._rise) if self.under_way else self._left_over
        return min(1.0, max(self.lost, grown) / self.offered) if self.offered else 0.0

    @property
    def _rise(self) -> float:
        """Packets by which what is under way, queued and lost alike, rose over the sending time.

        From the middle of the first to that of the last quarter, each told by its median: one stall of the machine at
        either end makes no queue. Nor does what stands in it once it is begun: of few packets 0.5 % are less. Of an
        overload that lasts it is the excess, whether a buffer holds all of it, none, or is full half-way; of losses
        that come in bursts it is a guess, which what was lost and drained bounds.
        """
        quarter = len(self.under_way) // 4
        if not quarter:
            return 0.0
        begin, end = median(self.under_way[:quarter]), median(self.under_way[-quarter:])
        rise = (end - begin) * len(self.under_way) / (len(self.under_way) - quarter)
        return rise if rise > min(STANDING, STANDING_SHARE * self.offered) else 0.0

    @property
    def _left_over(self) -> float:
        """Packets that had not come back when sending ended; none where they may all have been in flight or standing.

        It is the rise from nothing, for a queue that is empty when a trial begins.
        """
        left = self.lost + self.drained
        allowed = max(min(STANDING, STANDING_SHARE * self.offered), IN_FLIGHT * self.offered_load)
        return left if left > allowed else 0.0

    @property
    def delivery_ratio(self) -> float:
        """Part of the offered packets that came back while sending went on: what a rate is counted by."""
        return min(self.offered, self.forwarded - self.drained) / self.offered if self.offered else 1.0

    @property
    def offered_load(self) -> float:
        """Packets/s really offered, over the longer of the intended and the measured sending time."""
        elapsed = max(self.intended_duration, self.sending_time)
        return self.offered / elapsed if elapsed else 0.0

    @property
    def throughput_ratio(self) -> float:
        """Part of the intended load that came back while sending went on: what a throughput is told by.

        It is the delivery ratio, but for what was unsent and for time that sending took longer. Of an overload that was
        not sent whole more of the rest comes back, and no more in a second.
        """
        sent = self.offered / self.intended if self.intended else 1.0
        return self.delivery_ratio * sent * (self.intended_duration / self.seconds if self.seconds else 1.0)

    @property
    def forwarding_rate(self) -> float:
        """Packets/s that came back while sending went on, over the same time as the offered load."""
        return self.offered_load * self.delivery_ratio

    @property
    def least_rate(self) -> float:
        """Packets/s that came back in the half of the sending time in which the fewest did; in all of it where the
        generator did not look."""
        half = len(self.under_way) // 2
        if not half:
            return self.forwarding_rate
        waiting = (0, *self.under_way)
        grown = max(after - before for before, after in zip(waiting, waiting[half:], strict=False))
        share = half / len(self.under_way)
        return min(self.forwarding_rate, max(0.0, self.offered_load - grown / (share * self.seconds)))

    @property
    def generator_limited(self) -> bool:
        """True when more than 0.1 % was unsent or sending took over 0.1 % longer than intended, or a tenth of the loss
        ratio where that is more: a ceiling matters only where the SUT could reach it."""
        tolerance = max(GENERATOR_TOLERANCE, OF_THE_LOSS * self.loss_ratio)
        unsent = self.intended > 0 and self.unsent / self.intended > tolerance
        return unsent or self.sending_time > self.intended_duration * (1.0 + tolerance)

    @property
    def sound(self) -> bool:
        """Whether it tells of the SUT: neither the generator nor the machine was what it shows."""
        return not self.generator_limited and not self.disturbed

    @property
    def counter_changes(self) -> dict[str, dict[str, int]]:
        """What the counters gained during the trial, by place and name, where both readings have it."""
        return changes(self.counters_before, self.counters_after)

    @property
    def seconds(self) -> float:
        """Seconds of sending: the longer of the intended and the measured time."""
        return max(self.intended_duration, self.sending_time)

    @property
    def asked(self) -> tuple[Phase, int, float, float]:
        """What tells it from trials that something else was asked of."""
        return self.phase, self.repeat, self.intended_load, self.intended_duration

    def to_json(self) -> str:
        """The record that trials.jsonl holds, a line of JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_mapping(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of ``to_json`` on the decoded record; unknown keys are ignored so that newer files still load.

        Raises:
            ValueError: a key is missing, or a value has the wrong type or range.
        """
        try:
            return msgspec.convert(upgraded_record(record), cls)
        except msgspec.ValidationError as error:
            raise ValueError(without_value(error)) from error


class Stretch(Protocol):
    """What trials and transfers have in common: a stretch of traffic, whose it is, and whether it tells of the SUT."""

    @property
    def scenario(self) -> str: ...

    @property
    def test(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def boot(self) -> str: ...

    @property
    def side(self) -> str: ...

    @property
    def build(self) -> str: ...

    @property
    def pair(self) -> int: ...

    @property
    def repeat(self) -> int: ...

    @property
    def phase(self) -> Phase: ...

    @property
    def disturbed(self) -> tuple[Cause, ...]: ...

    @property
    def counters_after(self) -> Readings: ...

    @property
    def counter_changes(self) -> dict[str, dict[str, int]]: ...

    @property
    def generator_limited(self) -> bool: ...

    @property
    def sound(self) -> bool: ...

    @property
    def seconds(self) -> float:
        """Seconds that it lasted."""

    @property
    def asked(self) -> tuple[object, ...]:
        """What tells it from others that something else was asked of; equal for one that was measured again."""


AnyStretch = TypeVar("AnyStretch", bound=Stretch)


def changes(before: Readings, after: Readings) -> dict[str, dict[str, int]]:
    """What counters gained, by place and name, where both readings have it. One that was set back gained nothing."""
    found: dict[str, dict[str, int]] = {}
    for place, old in before.items():
        new = after.get(place, {})
        gained = {name: new[name] - value for name, value in old.items() if new.get(name, value) > value}
        if gained:
            found[place] = gained
    return found


def placed(counters: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Counters named ``place.name`` by place and name; what has no place stands at an empty one."""
    found: dict[str, dict[str, int]] = {}
    for full, value in counters.items():
        place, _, name = full.rpartition(".")
        found.setdefault(place, {})[name] = value
    return found


def upgraded_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record, of a trial or a transfer, as this version has it.

    Earlier ones have counters without places of their own, and in words alone what disturbed.
    """
    found = dict(record)
    for key in ("counters_before", "counters_after"):
        counters = found.get(key)
        if isinstance(counters, dict) and any(isinstance(value, int) for value in counters.values()):
            found[key] = placed(counters)
    if isinstance(words := found.get("disturbed"), str):
        found["disturbed"] = of_an_earlier_version(words)
    return found


def by_boot(trials: Sequence[AnyStretch]) -> dict[str, list[AnyStretch]]:
    """Trials, or transfers, by the boot they belong to, in the order in which boots began."""
    found: dict[str, list[AnyStretch]] = {}
    for trial in trials:
        found.setdefault(trial.boot, []).append(trial)
    return found

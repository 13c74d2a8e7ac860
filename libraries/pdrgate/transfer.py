"""The Transfer: what some TCP streams moved in a while, and what their senders saw of the path meanwhile.

A closed loop: a sender offers what it gets acknowledged, so there is no offered load, no loss ratio and no PDR. What
was asked for is a window, and what comes is a throughput, a round trip time and segments that were sent again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Self

import msgspec

from pdrgate.cause import Cause
from pdrgate.errors import without_value
from pdrgate.phase import Phase
from pdrgate.trial import Functions, Readings, changes, upgraded_record


@dataclass(frozen=True, slots=True)
class Look:
    """A look at the senders' TCP_INFO. Times are seconds, sizes bytes; of several streams the sum or the median."""

    end: float
    """Seconds since the transfer began."""
    seconds: float
    """Seconds since the look before."""
    sent: int
    """Bytes in these seconds."""
    retransmitted: int
    """Segments in these seconds."""
    rtt: float
    """Smoothed round trip time (``tcpi_rtt``), the median of the streams."""
    rtt_deviation: float
    """``tcpi_rttvar``, the same."""
    congestion_window: int
    """The sum of the streams."""
    advertised: int = 0
    """The most of a window that a receiver advertised to any of them by now."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer in one direction, between a program at the SUT and one at the station that it faces.

    Times are seconds, sizes bytes.

    Raises:
        ValueError: a number is negative, or not finite.
    """

    window: int
    """The most that a receiver advertises to each stream."""
    streams: int
    congestion: str
    """The senders' congestion control."""
    intended_duration: float
    intended_rate: float = 0.0
    """Bits/s that a sender that holds itself back is to send; 0: as fast as it goes."""
    delivered: int = 0
    """What the receiving program read."""
    seconds: float = 0.0
    """What that took."""
    sent: int = 0
    segment: int = 0
    """The most that a segment carries."""
    retransmitted: int = 0
    """Segments."""
    looks: tuple[Look, ...] = ()
    """TCP_INFO over time."""
    sut_cpu: float = 0.0
    """CPU time of the program at the SUT, as that machine counts it."""
    station_cpu: float = 0.0
    """The same of the other one."""
    sut_busy: float | None = None
    """Share of the time in which the SUT's CPUs were not idle; None where that means nothing, as in a guest."""
    station_busy: float | None = None
    """The same of the station's CPU."""
    counters_before: Readings = field(default_factory=dict)
    counters_after: Readings = field(default_factory=dict)
    functions: Functions = field(default_factory=dict)
    """What the SUT's kernel executed meanwhile; empty where that is not counted."""
    disturbed: tuple[Cause, ...] = ()
    """What of the machine kept the transfer from telling anything of the SUT; empty for a sound one."""
    scenario: str = ""
    test: str = ""
    fingerprint: str = ""
    boot: str = ""
    side: str = ""
    build: str = ""
    pair: int = 0
    repeat: int = 0
    phase: Phase = Phase.NONE
    """Why it was made: `Phase.REST`, `Phase.CURVE` or `Phase.REPEAT`."""
    started: float = 0.0
    """Seconds since the epoch."""

    def __post_init__(self) -> None:
        for name in ("intended_duration", "intended_rate", "seconds", "sut_cpu", "station_cpu", "started"):
            if not (math.isfinite(value := getattr(self, name)) and value >= 0):
                raise ValueError(f"{name} is {value!r}: it must be finite and not negative")
        for name in ("window", "streams", "delivered", "sent", "segment", "retransmitted", "pair", "repeat"):
            if (value := getattr(self, name)) < 0:
                raise ValueError(f"{name} is {value!r}: it cannot be negative")

    @property
    def throughput(self) -> float:
        """Bits/s that the receiving program read, slow start included."""
        return 8.0 * self.delivered / self.seconds if self.seconds else 0.0

    @property
    def rtt(self) -> float | None:
        """The median of the looks' round trip times; None without a look."""
        return median(look.rtt for look in self.looks) if self.looks else None

    @property
    def advertised(self) -> int:
        """The largest window that a receiver really advertised; 0 where no look tells."""
        return max((look.advertised for look in self.looks), default=0)

    @property
    def segments(self) -> int:
        """Segments that it takes to send as much, were each full and sent once."""
        return math.ceil(self.sent / self.segment) if self.segment else 0

    @property
    def sound(self) -> bool:
        """Whether it tells of the SUT."""
        return not self.disturbed

    @property
    def generator_limited(self) -> bool:
        """Nothing was to be offered, so nothing fell short."""
        return False

    @property
    def asked(self) -> tuple[Phase, int, int, float]:
        """What tells it from transfers that something else was asked of."""
        return self.phase, self.repeat, self.window, self.intended_duration

    @property
    def counter_changes(self) -> dict[str, dict[str, int]]:
        """What the counters gained meanwhile, see `Trial.counter_changes`."""
        return changes(self.counters_before, self.counters_after)

    def to_json(self) -> str:
        """The record that transfers.jsonl holds, a line of JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_mapping(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of ``to_json`` on the decoded record; unknown keys are ignored.

        Raises:
            ValueError: a key is missing, or a value has the wrong type or range.
        """
        try:
            return msgspec.convert(upgraded_record(record), cls)
        except msgspec.ValidationError as error:
            raise ValueError(without_value(error)) from error

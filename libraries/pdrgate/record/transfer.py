"""The Transfer: what some TCP streams moved in a trial of a closed loop, and what their senders saw of the path.

In a closed loop a sender offers what it gets acknowledged, so there is no offered load, no loss ratio and no PDR. What
was asked for is a window, and what comes is a throughput, a round trip time and segments that were sent again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median

from pdrgate.record.stretch import no_negative_counts, no_negative_times


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
class Senders:
    """What a transfer's senders report: what they sent, and TCP_INFO over time.

    Raises:
        ValueError: a number is negative.
    """

    sent: int = 0
    """Bytes that the senders sent."""
    segment: int = 0
    """Bytes that a segment carries at most."""
    retransmitted: int = 0
    """Segments that were sent again."""
    looks: tuple[Look, ...] = ()
    """TCP_INFO over time."""

    def __post_init__(self) -> None:
        no_negative_counts(self, "sent", "segment", "retransmitted")

    @property
    def rtt(self) -> float | None:
        """The median of the looks' round trip times; None without a look."""
        return median(look.rtt for look in self.looks) if self.looks else None

    @property
    def advertised(self) -> int:
        """The largest window that a receiver really advertised; 0 where no look has one."""
        return max((look.advertised for look in self.looks), default=0)

    @property
    def segments(self) -> int:
        """Segments that it takes to send as much, were each full and sent once."""
        return math.ceil(self.sent / self.segment) if self.segment else 0


@dataclass(frozen=True, slots=True)
class EndsCpu:
    """What a transfer took of the CPUs of its two ends.

    Raises:
        ValueError: a time is negative, or not finite.
    """

    sut_cpu: float = 0.0
    """CPU time of the program at the SUT, as that machine counts it."""
    station_cpu: float = 0.0
    """CPU time of the program at the station, as that machine counts it."""
    sut_busy: float | None = None
    """Share of the time in which the SUT's CPUs were not idle; None where that means nothing, as in a guest."""
    station_busy: float | None = None
    """Share of the time in which the station's CPU was not idle; None where that means nothing."""

    def __post_init__(self) -> None:
        no_negative_times(self, "sut_cpu", "station_cpu")


@dataclass(frozen=True, slots=True)
class Transfer:
    """What moved in one direction, between a program at the SUT and one at the station that it faces.

    Times are seconds, sizes bytes. A trial of an open loop has one without streams.

    Raises:
        ValueError: a number is negative, or not finite.
    """

    window: int = 0
    """The most that a receiver advertises to each stream."""
    streams: int = 0
    congestion: str = ""
    """The senders' congestion control."""
    intended_rate: float = 0.0
    """Bits/s that a sender that holds itself back is to send; 0: as fast as it goes."""
    delivered: int = 0
    """What the receiving program read."""
    seconds: float = 0.0
    """What that took."""
    requests: int = 0
    """Requests that were answered; 0: none was made, and bytes were moved."""
    senders: Senders = field(default_factory=Senders)
    cpu: EndsCpu = field(default_factory=EndsCpu)

    def __post_init__(self) -> None:
        no_negative_times(self, "intended_rate", "seconds")
        no_negative_counts(self, "window", "streams", "delivered", "requests")

    @property
    def throughput(self) -> float:
        """Bits/s that the receiving program read, slow start included."""
        return 8.0 * self.delivered / self.seconds if self.seconds else 0.0

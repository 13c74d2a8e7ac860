"""The Trial: what one stretch of traffic showed. Every number pdrgate reports rests on these.

A trial is of one of two kinds. In an open loop a generator offers a load, and packets are counted. In a closed loop TCP
streams offer what they get acknowledged: their `Transfer` says what came of it, and nothing was offered or forwarded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Self

from pdrgate.record.fate import Fate
from pdrgate.record.parts import FlatPart
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import (
    Belonging,
    Occasion,
    Seen,
    line_of,
    no_negative_counts,
    no_negative_times,
    unflattened,
)
from pdrgate.record.transfer import Transfer

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
"""Largest unsent part of such a trial as a part of its loss ratio, where that exceeds `GENERATOR_TOLERANCE`.

For a SUT that loses half of its packets it makes no difference whether one in twenty more had come.
"""

LOOKS = 16
"""Times that a generator looks at what is under way, at equal steps of the sending time, the last at its end."""


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
class Aside(FlatPart):
    """What became of a trial's packets besides, and what those that came back looked like.

    Raises:
        ValueError: a count is negative.
    """

    refused: int = 0
    """Part of the offered packets that was dropped at the SUT's ingress while the generator watched."""
    stray: int = 0
    """Packets seen at the receiver that are not this trial's: kept apart, never counted as forwarded."""
    returned: int = 0
    """Packets of this trial that came back on a port that does not count.

    Packets to be forwarded count on the other port than the one they were sent from. Packets to be returned count on
    that one.
    """
    twice: int = 0
    """Packets of this trial that came back once more. Each packet has a number, and counts once."""
    left: int = 0
    """Packets that came back by any port although their fate is counted inside the SUT (`pdrgate.record.fate.INSIDE`).
    """
    numbered: int = 0
    """Packets that came back and whose place among those of their flow is known, by the number in a chosen frame."""
    overtaken: int = 0
    """Part of the numbered packets that a later one of the same frames came before (RFC 4737 section 3.3)."""
    fate: Fate = "forwarded"
    """What counts as handled."""
    looked_at: int = 0
    """Frames that came back and were compared with what the data path must make of them."""
    frames: tuple[CarriedFrame, ...] = ()
    """Frames: all that the generator kept whole; on disk, some that are not what a router makes of them."""

    def __post_init__(self) -> None:
        no_negative_counts(self, "refused", "stray", "returned", "twice", "left", "numbered", "overtaken")
        if self.overtaken > self.numbered:
            raise ValueError(f"overtaken ({self.overtaken}) exceeds numbered ({self.numbered})")


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial (RFC 2544 section 26, RFC 9971 section 4.2): traffic for a duration, and what became of it.

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
    """Packets of this trial that were handled as its fate says, each counted once.

    A packet that is to be forwarded counts once it came back. Drained packets are included.
    """
    drained: int = 0
    """Part of the forwarded packets that came back only after sending had ended."""
    unsent: int = 0
    """Intended minus offered: the generator's shortfall, never the SUT's loss."""
    aside: Aside = field(default_factory=Aside)
    sending_time: float = 0.0
    """Measured time from the first packet's due time to the end of sending."""
    under_way: tuple[int, ...] = ()
    """Packets sent and not back yet at each of the generator's looks (`LOOKS`), queued and lost ones alike; empty where
    the generator could not look while it sent."""
    transfer: Transfer = field(default_factory=Transfer)
    """What a closed loop moved; without streams where a generator offered a load."""
    seen: Seen = field(default_factory=Seen)
    belonging: Belonging = field(default_factory=Belonging)
    occasion: Occasion = field(default_factory=Occasion)

    def __post_init__(self) -> None:
        no_negative_times(self, "intended_load", "intended_duration", "sending_time")
        no_negative_counts(self, "offered", "forwarded", "drained", "unsent")
        if self.aside.refused > self.offered:
            raise ValueError(f"refused ({self.aside.refused}) exceeds offered ({self.offered})")
        if self.drained > self.forwarded:
            raise ValueError(f"drained ({self.drained}) exceeds forwarded ({self.forwarded})")

    @classmethod
    def of_transfer(cls, transfer: Transfer, duration: float, started: float = 0.0) -> Self:
        """A trial of a closed loop that was to last so many seconds."""
        return cls(
            intended_load=0.0, intended_duration=duration, offered=0, forwarded=0, transfer=transfer,
            occasion=Occasion(started=started),
        )  # fmt: skip

    @property
    def closed_loop(self) -> bool:
        """The kind of the trial: whether streams of TCP offered what they got acknowledged."""
        return self.transfer.streams > 0

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

        The rise is taken from the middle of the first quarter of the looks to the middle of the last quarter. The
        median of each quarter stands for it, so one stall of the machine at either end makes no queue. Packets that
        stand in a queue once it is begun (`STANDING`) are no rise either: of few packets 0.5 % are less. In an overload
        that lasts, the rise is the excess, whether a buffer holds all of it, none, or is full half-way. In losses that
        come in bursts it is a guess. The packets that were lost and drained bound it.
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
        """Part of the intended load that came back while sending went on: a throughput is this part of the load.

        It is the delivery ratio, but for what was unsent and for time that sending took longer. In an overload that was
        not sent whole, more of the rest comes back, and no more in a second.
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
        """Whether the trial shows the SUT: neither the generator limited it nor the machine disturbed it."""
        return not self.generator_limited and not self.seen.disturbed

    @property
    def seconds(self) -> float:
        """Seconds of sending: the longer of the intended and the measured time; of a closed loop the measured one."""
        return self.transfer.seconds if self.closed_loop else max(self.intended_duration, self.sending_time)

    @property
    def asked(self) -> tuple[Phase, int, float, float]:
        """What was asked for; equal for a trial that was measured again."""
        at = self.transfer.window if self.closed_loop else self.intended_load
        return self.occasion.phase, self.occasion.repeat, at, self.intended_duration

    def to_json(self) -> str:
        """The record that trials.jsonl holds, a line of JSON."""
        return line_of(self, without=() if self.closed_loop else ("transfer",))

    @classmethod
    def from_mapping(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of ``to_json`` on the decoded record; unknown keys are ignored so that newer files still load.

        Raises:
            ValueError: a key is missing, or a value has the wrong type or range.
        """
        return unflattened(record, cls)


def by_boot(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    """Trials by the boot they belong to, in the order in which boots began."""
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.belonging.boot, []).append(trial)
    return found

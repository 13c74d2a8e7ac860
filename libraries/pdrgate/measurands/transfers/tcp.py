"""What is measured of TCP: throughput at a fixed window, round trips under load, and what is sent twice.

A closed loop has no PDR: its sender offers what it gets acknowledged. So the window is fixed in place of the load, and
what is compared is what comes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Self

from pdrgate.data_paths.tcp_streams import Buffers
from pdrgate.measurands.counted.cost import TOLERANCE_OF_COST as COST_TOLERANCE
from pdrgate.measurands.description import Description, Tolerance
from pdrgate.measurands.measurand import Ask, Measurand
from pdrgate.measurands.unit_spelling import SECONDS, Unit
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import USER_SPACE
from pdrgate.record.trial import Trial

REST_RATE = 10e6
"""Bits/s of a transfer at rest: what any SUT takes, an emulated one too."""
_REST_TIME = 1.0
"""Seconds: ten looks, of which one meets no program that waits for its CPU."""
_MOST = 2
"""Times the count, that disturbed transfers may make of it."""


@dataclass(frozen=True, slots=True)
class TransferSetting:
    """What the replicates of a closed loop have in common, from which each measurand chooses its transfers."""

    window: int
    """Bytes for each stream."""
    duration: float
    """Whole seconds of a transfer."""
    count: int
    """Transfers in a replicate."""
    buffers: Buffers = "fixed"
    """Who says how much both ends hold; of ``fixed`` ones the window is `window` from the first."""
    request: int = 0
    """Bytes of each request; 0: none is made."""


@dataclass(frozen=True, slots=True)
class TcpThroughput(Measurand):
    """What the receiving program reads at a fixed window, Gbit/s: the median of some transfers."""

    window: int
    """Bytes for each stream."""
    duration: float
    count: int
    """Transfers in a replicate."""

    about = Description(
        "TCP throughput",
        Unit("Gbit/s", prefixed=False),
        "higher",
        "what the receiving program reads at a fixed window",
        essential=True,
    )

    @classmethod
    def of(cls, setting: TransferSetting) -> Self:
        return cls(setting.window, setting.duration, setting.count)

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        made = [one for one in trials if one.occasion.phase == Phase.REPEAT]
        # What the machine disturbed is made good, within bounds.
        done = made if len(made) >= _MOST * self.count else loaded_transfers(made)
        return Ask.of_window(self.window, self.duration, Phase.REPEAT) if len(done) < self.count else None

    def value(self, trials: Sequence[Trial]) -> float | None:
        found = loaded_transfers(trials)
        return median(one.transfer.throughput for one in found) / 1e9 if found else None


@dataclass(frozen=True, slots=True)
class LoadedRoundTrip(Measurand):
    """The senders' smoothed round trip time while they send as fast as it goes, seconds: the median of the transfers'.

    By itself, and not over what a round trip takes at rest: that is a fraction of a millisecond, of which chance moves
    a fifth, and it would be the quotient's.
    """

    about = Description(
        "round trip under load", SECONDS, "lower", "the senders' smoothed round trip time, the median",
        beside=True,
        tolerance=Tolerance(least=0.15),  # guests of constant speed: 2 to 5 % from boot to boot
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        told = [one.transfer.senders.rtt for one in loaded_transfers(trials) if one.transfer.senders.rtt is not None]
        return median(told) if told else None


@dataclass(frozen=True, slots=True)
class AtRest:
    """A transfer of hardly anything, for what a round trip takes then. It is report-only."""

    window: int

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        rested = any(one.occasion.phase == Phase.REST for one in trials)
        return None if rested else Ask.of_window(self.window, _REST_TIME, Phase.REST, REST_RATE)


@dataclass(frozen=True, slots=True)
class Transmissions(Measurand):
    """Segments that are sent for each that arrives: 1 + the part of them that is sent again.

    So a change of it is a change of the retransmission ratio in points, which has a meaning also where nothing was sent
    again. All transfers of a replicate count together.
    """

    about = Description(
        "transmissions per segment", Unit("", metric="ratio"), "lower", "segments sent for each that arrives",
        beside=True,
        # Of the segments, that may be sent again besides, whatever is accepted of the throughput.
        tolerance=Tolerance(0.005, option=""),
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        found = loaded_transfers(trials)
        segments = sum(one.transfer.senders.segments for one in found)
        return 1.0 + sum(one.transfer.senders.retransmitted for one in found) / segments if segments else None


@dataclass(frozen=True, slots=True)
class ByteCost(Measurand):
    """Instructions that the SUT's kernel executes for each byte, where they are counted; see `Cost`.

    What the kernel does by itself is in it: next to nothing beside a transfer that has the CPU.
    """

    least: bool = False
    """Whether the value is the least of the transfers, in place of their median.

    A guest that others take the CPU from moves fewer bytes at a time, and each costs up to a third more.
    """

    about = Description(
        "cost of a byte", Unit("instructions/byte"), "lower", "instructions of the SUT's kernel for each byte",
        beside=True, tolerance=COST_TOLERANCE,
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        costs = [cost for one in loaded_transfers(trials) if (cost := kernel_cost(one)) is not None]
        told = min if self.least else median
        return told(costs) if costs else None


def loaded_transfers(trials: Sequence[Trial]) -> list[Trial]:
    """The sound transfers of a replicate at the fixed window, without those of other boots that stand behind them."""
    return [
        one for one in trials
        if one.occasion.phase == Phase.REPEAT and one.sound and one.belonging.boot == trials[0].belonging.boot
    ]  # fmt: skip


def rest_rtt(trials: Sequence[Trial]) -> float | None:
    """The round trip time at rest, seconds; None where no transfer at rest has one.

    It is the least of all looks: a program that waits for its CPU makes round trips longer, and nothing makes one
    shorter.
    """
    return min(
        (look.rtt for one in trials if one.occasion.phase == Phase.REST for look in one.transfer.senders.looks),
        default=None,
    )


def kernel_cost(trial: Trial) -> float | None:
    """Instructions of the kernel for each byte; None where they were not counted."""
    instructions = kernel_instructions(trial)
    return instructions / trial.transfer.delivered if instructions is not None and trial.transfer.delivered else None


def kernel_instructions(trial: Trial) -> float | None:
    """Instructions of the kernel in a transfer; None where they were not counted."""
    if not trial.seen.functions:
        return None
    return sum(count for name, (count, _) in trial.seen.functions.items() if name != USER_SPACE)

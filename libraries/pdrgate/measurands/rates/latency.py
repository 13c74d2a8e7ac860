"""Latency at shares of the PDR: what a packet takes through a SUT that has time, and through one that hardly has any.

Probes are among the packets in trials of their own, so that no other number depends on whether latency is asked for.
All replicates of a comparison are offered the same loads, and so are both builds: a build of a lower PDR is nearer to
its limit there, and its packets wait longer. That is what its users see.

Two quantiles are judged, each where it shows most. The median at half of the PDR, where nothing queues, is the way
through a SUT that has time: interrupts that are delayed, CPUs that sleep deeply, work that a packet does not need. The
99th percentile at 90 % is what bursts and stalls add when it has not. At 99 % what is seen is how near the limit is,
which the PDR says better. All else is report-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Self

from pdrgate.measurands.description import Description, Sentence, Tolerance, unresolved
from pdrgate.measurands.measurand import LATENCY, Ask, Measurand, Setting, rounded
from pdrgate.measurands.unit_spelling import SECONDS
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Latency
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult
from pdrgate.values.units import LATENCY_TOLERANCE, Duration

_HALF, _BUSY, _FULL = LATENCY
SHARES = {_HALF: 0.5, _BUSY: 0.9, _FULL: 0.99}
"""Shares of the PDR by phase."""
_COUNTS = {_HALF: 3, _BUSY: 3, _FULL: 1}
"""Trials in a replicate: what is judged is the median, or the least, of three."""
_RESOLVED = 0.15
"""The widest bucket, relative to the latency in it, that is judged: half of what is tolerated by default."""
_MOST_PROBES = 10_000.0
"""A second: what a receiver of TRex takes beside other traffic."""
_PROBES = 0.25
"""The most of the packets that are probes: where loads are small too, the traffic is what it is without probes."""


TOLERANCE_OF_LATENCY = Tolerance(LATENCY_TOLERANCE, "latency_tolerance")
"""See docs/method-trial.md for what latencies of equal builds deviate by."""


def probe_rate(load: float) -> float:
    """Probes/s among packets of a load, packets/s."""
    return min(_MOST_PROBES, _PROBES * load)


@dataclass(frozen=True, slots=True)
class LatencyTrials:
    """Trials with probes. `MedianLatency` and `TailLatency` take their values from them."""

    loads: tuple[float, ...] = ()
    """Packets/s, one for each of `SHARES`; empty while no PDR is known."""
    duration: float = 0.0
    """Seconds of each trial."""

    @classmethod
    def of_pdr(cls, pdr: float, duration: float) -> LatencyTrials:
        """Trials at shares of a PDR, packets/s."""
        return cls(tuple(rounded(pdr * share) for share in SHARES.values()), duration)

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        for phase, load in zip(SHARES, self.loads, strict=False):  # there may be no loads yet
            if sum(one.occasion.phase == phase for one in trials) < _COUNTS[phase]:
                return Ask(load, self.duration, phase)
        return None


def _latency_sentence(title: str) -> Sentence:
    """``the 99th percentile of latency at 90 % of the PDR is +45 % (+31 to +60 %: 310 µs against 214 µs)``."""

    def clause(change: ChangeResult, _: object) -> str:
        low, high = sorted((change.lower, change.upper))
        return unresolved(change) or (
            f"{title} is {100 * change.change:+z.0f} % ({100 * low:+z.0f} to {100 * high:+z.0f} %: "
            f"{Duration(change.candidate)} against {Duration(change.baseline)})"
        )

    return Sentence(clause, whole=False)


@dataclass(frozen=True, slots=True)
class MedianLatency(Measurand):
    """The median at half of the PDR, seconds."""

    about = Description(
        "median latency at 50% PDR", SECONDS, "lower", "the median of the probes at half of the PDR",
        beside=True, tolerance=TOLERANCE_OF_LATENCY,
        sentence=_latency_sentence("the median latency at 50 % of the PDR"),
    )  # fmt: skip

    @classmethod
    def of(cls, setting: Setting) -> Self | None:
        return cls() if setting.latency else None

    def value(self, trials: Sequence[Trial]) -> float | None:
        found = _told(trials, _HALF)
        if not found:
            return None
        middle = sorted(found, key=lambda one: one.p50)[len(found) // 2]
        return median(one.p50 for one in found) if is_resolved(middle.p50, middle.within[:1]) else None


@dataclass(frozen=True, slots=True)
class TailLatency(Measurand):
    """The 99th percentile at 90 % of the PDR, seconds: the least of some trials.

    What the machine does meanwhile only adds to it, and one stall of three milliseconds is a percent of a trial; what a
    build does by itself, again and again, is in all of them.
    """

    about = Description(
        "p99 latency at 90% PDR", SECONDS, "lower", "the 99th percentile of the probes at 90 % of the PDR",
        beside=True, tolerance=TOLERANCE_OF_LATENCY,
        sentence=_latency_sentence("the 99th percentile of latency at 90 % of the PDR"),
    )  # fmt: skip

    @classmethod
    def of(cls, setting: Setting) -> Self | None:
        return cls() if setting.latency else None

    def value(self, trials: Sequence[Trial]) -> float | None:
        least = min(_told(trials, _BUSY), key=lambda one: one.p99, default=None)
        return least.p99 if least is not None and is_resolved(least.p99, least.within[2:3]) else None


def is_resolved(latency: float, within: Sequence[float]) -> bool:
    """Whether a latency is known well enough to be judged.

    Args:
        within: the width of its bucket; empty where it is exact.
    """
    return all(width <= _RESOLVED * latency for width in within)


def told_by(trial: Trial) -> Latency | None:
    """Latency of the probes of a trial; None where the trial is not sound, or no probe came back."""
    return trial.seen.latency if trial.sound and trial.seen.latency is not None and trial.seen.latency.count else None


def _told(trials: Sequence[Trial], phase: Phase) -> list[Latency]:
    return [found for one in trials if one.occasion.phase == phase and (found := told_by(one)) is not None]

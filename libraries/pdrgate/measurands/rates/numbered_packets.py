"""Packets by the numbers that they have: those that come back twice, never, or out of their flow's order.

The first two do not happen by chance. A SUT that sends a packet twice moves no more of them, and one that loses what it
had room for has less to do. So each is judged by itself where the candidate alone does it, whatever a packet costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median

from pdrgate.measurands.description import Description, Rule, Sentence, Tolerance, TolerancesAsked
from pdrgate.measurands.measurand import BuildSeen, Measurand, OnRequest
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.record.phase import SPECIAL, Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult
from pdrgate.results.verdict import Verdict

_NONE = 0.001
"""A part of all packets that is as good as none."""
_IN_ORDER = 0.0005
"""Part of all packets below which none is said to be out of order."""
_ORDERED_IN = (Phase.SATURATION, Phase.COST)


def _part_of_all(words: str) -> Sentence:
    """A change in a sentence that gives both values as parts of all packets.

    Args:
        words: what happens to the packets, ``{} of the packets come back twice``.
    """
    return Sentence(
        lambda change, _: f"{words.format(f'{change.candidate:.1%}')}, {change.baseline:.1%} of the baseline's"
    )


class _OfNumbers(Measurand):
    """A part of the packets that is 0 for a sound SUT; then a boot has no value."""

    @classmethod
    def changed(cls, baseline: BuildSeen, candidate: BuildSeen, asked: TolerancesAsked) -> ChangeResult | None:
        """The part of the candidate's packets; None where it is none, and where the baseline has some too."""
        about = cls.about
        old, new = (side.values.get(about.name, ()) or _NO_VALUE for side in (baseline, candidate))
        if max(old) > _NONE or cls.surely(new) <= about.tolerance.default:
            return None
        before, after, whole = mean(old), mean(new), max(mean(old), _NONE)
        return ChangeResult(
            measurand=about.name, change=(after - before) / whole, lower=(min(new) - max(old)) / whole,
            upper=(max(new) - min(old)) / whole, confidence=1.0, tolerance=about.tolerance.default / whole,
            baseline=before, candidate=after, unit=about.unit, better=about.better, verdict=Verdict.REGRESSION,
        )  # fmt: skip

    @staticmethod
    def surely(parts: Sequence[float]) -> float:
        """The part that a build surely has, from those of its boots."""
        raise NotImplementedError


_NO_VALUE = (0.0,)


class PacketsTwice(_OfNumbers):
    """The part of the packets that come back once more than they were sent."""

    about = Description(
        "packets twice", Unit("", metric="packets_twice_ratio"), "lower", "packets that come back twice, of all",
        rule=Rule.SURE, tolerance=Tolerance(_NONE, ""),
        sentence=_part_of_all("{} of the packets come back twice"),
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        plain = [one for one in trials if one.occasion.phase not in SPECIAL]
        twice, offered = sum(one.aside.twice for one in plain), sum(one.offered for one in plain)
        return twice / offered if twice and offered else None

    @staticmethod
    def surely(parts: Sequence[float]) -> float:
        return mean(parts)  # a packet that comes twice in one boot is no chance


class PacketsNever(_OfNumbers):
    """The part of the packets that never come back of bursts for which the SUT has room: the median over its trials.

    A burst is sent when the one before is back, so that no queue is too short for it.
    """

    about = Description(
        "packets never", Unit("", metric="packets_never_ratio"), "lower",
        "packets that never come back, of bursts that the SUT has room for", rule=Rule.SURE,
        tolerance=Tolerance(0.005, ""), sentence=_part_of_all("{} of the packets never come back"),
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        lost = [one.loss_ratio for one in trials if one.occasion.phase == Phase.SATURATION and _in_bursts(one)]
        return median(lost) or None if lost else None

    @staticmethod
    def surely(parts: Sequence[float]) -> float:
        return min(parts)  # a boot that others kept waiting may lose some


def _in_bursts(trial: Trial) -> bool:
    """Whether nothing came back while it was sent, and nobody looked for it."""
    return bool(trial.offered and trial.forwarded) and trial.drained == trial.forwarded and not trial.under_way


def _overtaken(change: ChangeResult, _: object) -> str:
    """A change in a sentence, with the packets out of order as a part of all."""
    after, before = (max(0.0, 1.0 - 1.0 / value) for value in (change.candidate, change.baseline))
    if change.verdict is Verdict.PASS and max(after, before) < _IN_ORDER:
        return "packets keep their flow's order"
    return f"{after:.1%} of packets come out of their flow's order, was {before:.1%}"


class PacketsInOrder(OnRequest):
    """Packets that come back, divided by those of them that no later one of their flow came before (RFC 4737 section
    3.3). It is 1 where all are in order. It is known of chosen frames, which have a number.
    """

    about = Description(
        "packets for each in order", Unit("", metric="ratio"), "lower",
        "packets that come back for each that no later one of its flow overtook (RFC 4737)",
        beside=True, tolerance=Tolerance(0.005, option=""),
        sentence=Sentence(_overtaken, whole=False, says_worse=False),
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        seen = [one.aside for one in trials if one.occasion.phase in _ORDERED_IN and one.aside.numbered]
        came = sum(one.numbered for one in seen)
        return came / max(1, came - sum(one.overtaken for one in seen)) if came else None

"""Whether packets of a flow leave in the order in which they came."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.measurands.description import Description, Sentence, Tolerance
from pdrgate.measurands.self_described import OnRequest
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult
from pdrgate.results.verdict import Verdict

_NONE = 0.0005
"""Part of all packets below which none is said to be out of order."""
_PHASES = (Phase.SATURATION, Phase.COST)


def _overtaken(change: ChangeResult, _: object) -> str:
    """A change in a sentence, with the packets out of order as a part of all."""
    after, before = (max(0.0, 1.0 - 1.0 / value) for value in (change.candidate, change.baseline))
    if change.verdict is Verdict.PASS and max(after, before) < _NONE:
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
        seen = [one.aside for one in trials if one.occasion.phase in _PHASES and one.aside.numbered]
        came = sum(one.numbered for one in seen)
        return came / max(1, came - sum(one.overtaken for one in seen)) if came else None

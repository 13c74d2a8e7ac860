"""How packets arrive at the receivers of an end host: in calls that bring some, with gaps between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import median

from pdrgate.measurands.counted.cost import packets_per_poll
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import ArrivalsResult

_PHASES = (Phase.REPEAT, Phase.SATURATION)
_RECEIVER = re.compile(r"receiver\d+")
_GAP = re.compile(r"gap_(\d+)us")
_LONGER = "gap_longer"


def arrivals(trials: Iterable[Trial]) -> tuple[ArrivalsResult, ...]:
    """How packets arrive by load, over all sound trials of a build's replicates; nothing where no packet ends at the
    SUT."""
    by_load: dict[float, list[Trial]] = {}
    for one in trials:
        if one.occasion.phase in _PHASES and one.sound and any(map(_RECEIVER.fullmatch, one.seen.counters_after)):
            by_load.setdefault(one.intended_load, []).append(one)
    return tuple(_arrivals(load, own) for load, own in sorted(by_load.items()))


def _arrivals(load: float, trials: list[Trial]) -> ArrivalsResult:
    counted: Counter[str] = Counter()
    for one in trials:
        for place, counters in one.seen.counters_after.items():
            if _RECEIVER.fullmatch(place):
                counted.update(counters)
    gaps = {int(found[1]) * 1e-6: count for name, count in counted.items() if (found := _GAP.fullmatch(name))}
    longer = sum(count for name, count in counted.items() if name.startswith(_LONGER))
    polls = [batch for one in trials if (batch := packets_per_poll(one)) is not None]
    return ArrivalsResult(
        load=load, trials=len(trials), gaps=sum(gaps.values()) + longer,
        p50=_below(gaps, longer, 0.5), p90=_below(gaps, longer, 0.9), p99=_below(gaps, longer, 0.99),
        packets_per_call=counted["received"] / counted["calls"] if counted["calls"] else None,
        batch=median(polls) if polls else None,
    )  # fmt: skip


def _below(gaps: Mapping[float, int], longer: int, share: float) -> float | None:
    """The least bound of a class, seconds, that so many of the gaps lie below; None where they are longer."""
    wanted, so_far = share * (sum(gaps.values()) + longer), 0
    for bound, count in sorted(gaps.items()):
        so_far += count
        if so_far >= wanted:
            return bound
    return None

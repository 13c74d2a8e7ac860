"""Counts of a trial's packets that a guest can have had, at this side of its TAPs."""

from __future__ import annotations

from pdrgate.observers.gains import Gains
from pdrgate.observers.reading import Place
from pdrgate.record.trial import Trial


def taken_from_taps(trial: Trial) -> int | None:
    """Packets that QEMU took from the generator's TAPs meanwhile; None if the SUT is no guest behind any.

    Of namespaces each wire is counted instead, and veths count frames of XDP in different ways.
    """
    gains = Gains({Place.parse(place): gained for place, gained in trial.seen.counter_changes.items()})
    taps = [
        place
        for place in map(Place.parse, trial.seen.counters_after)
        if (place.kind, place.node) == ("interface", "tg")
    ]
    if gains.wired or gains.of_hops or not taps:
        return None
    return sum(gains.at(tap, "tx_packets") for tap in taps)

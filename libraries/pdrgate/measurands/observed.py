"""What an observer has counted during a trial, as the stuff of a measurand."""

from __future__ import annotations

from pdrgate.observers.reading import Place, PlaceKind
from pdrgate.record.trial import Trial


def gained_by_places(trial: Trial, kind: PlaceKind, name: str) -> int | None:
    """What a counter gained during a trial, over all places of a kind; None where no place has such a counter."""
    places = [place for place in trial.seen.counters_before if Place.parse(place).kind == kind]
    known = [place for place in places if name in trial.seen.counters_after.get(place, {})]
    return sum(trial.seen.counter_changes.get(place, {}).get(name, 0) for place in known) if known else None

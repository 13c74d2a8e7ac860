"""What loading a program has cost is told by each trial that it carried packets in, and by no other."""

from __future__ import annotations

from flat_values import flat_trial

from pdrgate.measurands.load_cost import MapMemory, ProgramSize, VerifiedInstructions, VerifierStates
from pdrgate.measurands.registry import OF_TRIALS, told_of
from pdrgate.observers.load_observer import LoadObserver
from pdrgate.observers.reading import Place, nested
from pdrgate.observers.watching import watching
from pdrgate.trial import Trial

COST = {"verified": 1200, "states": 40, "jited": 812, "memory": 65536}
KINDS = (VerifiedInstructions, VerifierStates, ProgramSize, MapMemory)


def trial(told: dict[str, int]) -> Trial:
    with watching((LoadObserver(told),)) as watch:
        pass
    before, after = nested(watch.observation.before), nested(watch.observation.after)
    return flat_trial(1e4, 0.1, 1000, 1000, counters_before=before, counters_after=after)


def test_each_number_is_told_as_the_loader_told_it() -> None:
    trials = [trial(COST) for _ in range(3)]
    assert [kind().value(trials) for kind in KINDS] == [1200.0, 40.0, 812.0, 65536.0]
    assert [kind().value([trial({})]) for kind in KINDS] == [None] * 4
    assert [kind().value([trial(COST | {"states": 0})]) for kind in KINDS][1] is None


def test_they_are_told_and_not_judged_and_their_place_is_no_port() -> None:
    assert {kind.about for kind in KINDS} <= set(told_of(OF_TRIALS))
    (place,) = trial(COST).seen.counters_after
    assert Place.parse(place) == Place("program")
    assert not Place.parse(place).of_port

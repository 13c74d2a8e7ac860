"""What loading a program has cost is told by each trial that it carried packets in, and judged where that is asked."""

from __future__ import annotations

import math
from typing import Any

import pytest
from flat_values import flat_trial
from rule_changes import value_changes

from pdrgate.bpf.programs import LoadCost
from pdrgate.measurands.counted.load_cost import (
    LOAD_COSTS,
    MapMemory,
    ProgramSize,
    VerifiedInstructions,
    VerifierStates,
    load_values,
)
from pdrgate.measurands.registry import OF_TRIALS, compared_of, described, told_of
from pdrgate.observers.reading import Place, nested
from pdrgate.observers.set_up_costs import LoadObserver
from pdrgate.observers.watching import watching
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.verdict import Verdict

COST = {"verified": 1200, "states": 40, "jited": 812, "memory": 65536}
KINDS = (VerifiedInstructions, VerifierStates, ProgramSize, MapMemory)


def trial(told: dict[str, int], **more: Any) -> Trial:
    with watching((LoadObserver(told),)) as watch:
        pass
    before, after = nested(watch.observation.before), nested(watch.observation.after)
    return flat_trial(1e4, 0.1, 1000, 1000, counters_before=before, counters_after=after, **more)


def test_each_number_is_told_as_the_loader_told_it() -> None:
    trials = [trial(COST) for _ in range(3)]
    assert [kind().value(trials) for kind in KINDS] == [1200.0, 40.0, 812.0, 65536.0]
    assert [kind().value([trial({})]) for kind in KINDS] == [None] * 4
    assert [kind().value([trial(COST | {"states": 0})]) for kind in KINDS][1] is None
    assert VerifiedInstructions().value([trial(COST | {"verified": 1}, phase=Phase.IDLE), *trials]) == 1200.0


def test_they_are_told_and_not_judged_and_their_place_is_no_port() -> None:
    assert {kind.about for kind in KINDS} <= set(told_of(OF_TRIALS))
    (place,) = trial(COST).seen.counters_after
    assert Place.parse(place) == Place("program")
    assert not Place.parse(place).of_port


def test_a_loader_tells_what_trials_keep() -> None:
    assert LoadCost(1200, 40, 812, 65536).by_name() == COST
    assert load_values(COST | {"states": 0}) == {
        "verified instructions": 1200.0, "program size": 812.0, "map memory": 65536.0
    }  # fmt: skip
    assert [one.about for one in LOAD_COSTS] == [kind.about for kind in KINDS]


VERIFIED, STATES, SIZE, MEMORY = (kind.about.name for kind in KINDS)
LOADS = {VERIFIED: (800.0, 800.0), STATES: (40.0, 40.0), SIZE: (812.0, 812.0), MEMORY: (65536.0, 65536.0)}


def test_what_grows_beyond_the_tolerance_is_a_regression_with_both_numbers() -> None:
    changes = value_changes(LOADS, LOADS | {VERIFIED: (1200.0, 1200.0), MEMORY: (4096.0, 4096.0)}, 0.1)
    assert [(one.measurand, one.verdict) for one in changes] == [
        (VERIFIED, Verdict.REGRESSION), (STATES, Verdict.PASS), (SIZE, Verdict.PASS), (MEMORY, Verdict.PASS)
    ]  # fmt: skip
    grown = changes[0]
    assert (grown.change, grown.lower, grown.upper, grown.tolerance) == (0.5, 0.5, 0.5, 0.1)
    assert described(VERIFIED).told(grown) == "the verifier looks at 1200 instructions, baseline 800 (+50.0 %)"
    assert described(MEMORY).told(changes[3]) == "the program's maps take 4096 bytes, baseline 65536 (-93.8 %)"


@pytest.mark.parametrize(
    ("tolerance", "verdict"), [(0.0, Verdict.REGRESSION), (0.5, Verdict.PASS), (0.499, Verdict.REGRESSION)]
)
def test_a_growth_as_large_as_the_tolerance_passes(tolerance: float, verdict: Verdict) -> None:
    (found,) = value_changes({VERIFIED: (800.0,)}, {VERIFIED: (1200.0,)}, tolerance)
    assert found.verdict is verdict


def test_nothing_is_judged_that_was_not_asked_for_or_that_a_build_does_not_tell() -> None:
    assert value_changes(LOADS, LOADS, None) == ()
    assert value_changes({}, LOADS, 0.1) == value_changes(LOADS, {}, 0.1) == ()
    assert value_changes({VERIFIED: ()}, LOADS, 0.1) == ()
    forged = {VERIFIED: (math.nan, 0.0), STATES: (-1.0,), SIZE: (math.inf,)}
    assert value_changes(forged, LOADS, 0.1) == value_changes(LOADS, forged, 0.1) == ()


def test_statistics_have_nothing_to_do_with_it() -> None:
    """It costs the pairs of other measurands no confidence."""
    assert not {kind.about for kind in KINDS} & set(compared_of(OF_TRIALS))
    assert not any(kind.about.judged({"tolerance": 0.02}) for kind in KINDS)

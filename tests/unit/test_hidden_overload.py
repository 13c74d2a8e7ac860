"""What each profile finds of SUTs behind deep buffers: its trials may be shorter than a buffer takes to fill."""

from __future__ import annotations

import pytest
from deep_buffer import buffered
from flat_values import changed

from pdrgate.gate.run.profile import BOOT_GRID, BOOT_WIDTH, PROFILES
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.scenarios.load_plan import grid, round_order
from pdrgate.gate.scenarios.replicate_samples import Measurands
from pdrgate.gate.sut.load_search import goals_of
from pdrgate.measurands import Setting, Sweep
from pdrgate.record.trial import STANDING, Trial
from pdrgate.search.mlr import GoalOutcome, search


@pytest.mark.parametrize("looks", [True, False], ids=["looks", "no looks"])
@pytest.mark.parametrize("boots", [False, True], ids=["repeat", "boot"])
@pytest.mark.parametrize("name", ["smoke", "quick", "standard"])
@pytest.mark.parametrize("buffer", [512, 4096])
@pytest.mark.parametrize("capacity", [20e3, 43e3, 100e3, 1e6])
def test_neither_search_nor_pdr_nor_saturation_take_a_hidden_overload_for_held(
    capacity: float, buffer: int, name: str, boots: bool, looks: bool
) -> None:
    profile, truth = PROFILES[name], capacity / 0.995  # type: ignore[index]
    measure = buffered(capacity, buffer, looks=looks)
    goals = goals_of(profile, Scenario())
    found = search(
        measure, goals, min_load=capacity / 1000, max_load=1.5 * capacity, budget=profile.search_budget
    ).results[-1]
    assert found.outcome == GoalOutcome.FOUND
    assert found.lower is not None
    # A queue that grows by no more than what may stand in it is none: so many packets more may be in a trial.
    standing = STANDING / (capacity * goals[-1].final_trial_duration)
    assert truth * (1 - goals[-1].width - 0.001) <= found.lower <= truth * (1.001 + standing)

    duration = profile.boot_trial if boots else profile.trial_duration
    loads = grid(found.lower, BOOT_GRID if boots else profile.grid, 1e9)
    width = max(BOOT_WIDTH, profile.finest_width) if boots else goals[-1].width
    measurands = Measurands.of(
        Setting(loads=tuple(loads), duration=duration, loss_ratio=goals[-1].loss_ratio, top_trials=2, width=width)
    )
    steps = (Sweep(round_order(loads, 0), duration), measurands.saturation, measurands.pdr)
    trials: list[Trial] = []
    while (ask := next((ask for step in steps if (ask := step.next(trials)) is not None), None)) is not None:
        trials.append(changed(measure(ask.load, ask.duration), phase=ask.phase))
    assert measurands.saturation.value(trials) == pytest.approx(capacity, rel=0.001)
    assert measurands.pdr.value(trials) == pytest.approx(truth, rel=0.01)

"""Which trials of a living boot are asked for, at which overload."""

from __future__ import annotations

from flat_values import flat_trial

from pdrgate.gate.comparisons.living_boots.living_counts import CARRIED, PACED, OverloadStep
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial

STEP = OverloadStep(0.005, CARRIED)


def made(load: float, drained: int, forwarded: int = 2304) -> Trial:
    return flat_trial(
        load, CARRIED.seconds, offered=2304, forwarded=forwarded, drained=drained, sending_time=CARRIED.seconds,
        phase=Phase.SATURATION,
    )  # fmt: skip


def test_three_trials_that_lose_something_are_enough() -> None:
    first, second, _ = CARRIED.loads
    trials: list[Trial] = []
    for drained in (2000, 0, 1500, 1800):
        ask = STEP.next(trials)
        assert ask is not None
        assert (ask.load, ask.phase) == (first, Phase.SATURATION)
        trials.append(made(ask.load, drained))
    assert STEP.next(trials) is None
    held = [made(first, 0) for _ in range(3)]
    ask = STEP.next(held)
    assert ask is not None
    assert ask.load == second


def test_trials_that_lost_packets_of_a_burst_are_made_again_and_not_for_ever() -> None:
    load = CARRIED.loads[0]
    trials = [made(load, 2304), made(load, 2303, 2303), made(load, 2304)]
    ask = STEP.next(trials)
    assert ask is not None
    assert ask.load == load
    assert STEP.next([*trials, made(load, 2304)]) is None
    assert STEP.next([made(load, 2303, 2303)] * 6) is None


def test_packets_that_do_not_come_back_are_more_than_a_ring_has_room_for() -> None:
    """Else whether any is refused is chance, and one boot is asked at a load that another is not."""
    assert min(load * PACED.seconds for load in PACED.loads) >= 1.5 * 4096


def test_no_load_is_tried_for_ever() -> None:
    first = CARRIED.loads[0]
    trials = [made(first, drained) for drained in (2000, 0, 0, 0, 0, 0)]
    assert STEP.next(trials) is None
    assert STEP.next([made(load, 0) for load in CARRIED.loads for _ in range(3)]) is None
    assert OverloadStep(0.005).overload is CARRIED

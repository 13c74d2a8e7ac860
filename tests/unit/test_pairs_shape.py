"""What speaks against comparing two builds by the means of their boots."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from curves import EarlyLoss, Livelock
from flat_values import changed, flat_trial
from simulated_sut import Behaviour, IdealCurve, LoadLoss, SimulatedSut

from pdrgate.gate.comparisons.living_boots.counted_measurands import compared_by_counts
from pdrgate.gate.comparisons.pairs.compared_trials import ComparedTrials
from pdrgate.gate.comparisons.pairs.pairs_shape import BuildsCurves, PairsShape, shape_of
from pdrgate.gate.comparisons.pairs.tries import Earlier
from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands import OF_TRIALS, Cost, SaturationThroughput, compared_of
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.replication import Contradiction, PairsRule, Samples, Standing
from pdrgate.replication.earlier_tries import Try
from pdrgate.results.model import Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.stability.series_checks import one_level_each, one_level_within

LOADS = (50e3, 70e3, 125e3, 160e3, 200e3)
LABELS = {"baseline": "a.deb", "candidate": "b.deb"}
SIDES: tuple[Side, Side] = ("baseline", "candidate")
COMPARED = compared_of(OF_TRIALS)

Curves = dict[Side, Callable[[float], LoadLoss]]


def judged(
    curves: Curves, levels: dict[Side, Sequence[float]] | None = None, modes: Sequence[float] = (1.0,), pairs: int = 8
) -> tuple[PairsShape, Standing]:
    """The shape and the standing of so many pairs; PDR and saturation throughput are those of the level."""
    source = random.Random(1)
    trials: dict[Side, list[Trial]] = {side: [] for side in SIDES}
    values: dict[Side, list[float]] = {side: [] for side in SIDES}
    for number in range(pairs):
        for side in SIDES:
            level = 100e3 * (levels[side][number % len(levels[side])] if levels else source.gauss(1, 0.002))
            sut = SimulatedSut(curves[side](level), Behaviour(0.002, modes=modes), seed=source.getrandbits(32))
            own = sut.repeat((*LOADS, LOADS[-1], LOADS[-1]), 0.25, 1)
            trials[side] += [changed(trial, boot=f"{side}-{number}", side=side) for trial in own]
            values[side].append(own[-1].forwarding_rate)
    names = ("PDR", "saturation throughput")
    samples = {name: {side: tuple(values[side]) for side in SIDES} for name in names}
    shape = shape_of(COMPARED, samples, trials=trials, curves=BuildsCurves(0.005, "s"))
    standing = PairsRule().standing(
        [
            Samples(name, "packets/s", "higher", 0.02, own["baseline"], own["candidate"])
            for name, own in samples.items()
        ],
        ended=True,
    )
    return shape, standing


def said(shape: PairsShape, standing: Standing) -> str:
    found = shape.veto(standing, LABELS)
    return str(found) if found else ""


SOUND: Curves = {"baseline": IdealCurve, "candidate": IdealCurve}


def test_sound_builds_have_nothing_against_them() -> None:
    shape, standing = judged(SOUND)
    assert standing.verdict is Verdict.PASS
    assert said(shape, standing) == ""


def test_a_ratio_that_was_worse_in_earlier_tries_does_not_pass_by_being_another_one_now() -> None:
    """Else each retry was a fresh chance where a try's pairs are all off alike: green in 24 % by the fourth."""
    shape, standing = judged(SOUND)
    slower = dataclasses.replace(shape, contradictions=(Contradiction("PDR", -0.04, 0.001, slower=True),))
    assert said(slower, standing) == (
        "UNSTABLE: the ratio is another one in each try: PDR -4.0% then, +0.1% now; --afresh forgets what was then"
    )
    as_good = dataclasses.replace(shape, contradictions=(Contradiction("PDR", 0.0, 0.02, slower=False),))
    assert said(as_good, standing) == ""
    assert said(slower, dataclasses.replace(standing, verdict=Verdict.REGRESSION)) == ""


def test_builds_that_livelock_are_unstable() -> None:
    shape, standing = judged({"baseline": Livelock, "candidate": Livelock})
    assert said(shape, standing).startswith("UNSTABLE: the baseline a.deb: it livelocks: 4.9")
    assert "of its most" in said(shape, standing)


def test_a_candidate_that_livelocks_where_the_baseline_did_not_is_slower() -> None:
    shape, standing = judged({"baseline": IdealCurve, "candidate": Livelock})
    assert standing.verdict is Verdict.REGRESSION
    assert said(shape, standing) == ""


def test_loss_at_low_loads_is_told_by_its_build() -> None:
    shape, standing = judged({"baseline": IdealCurve, "candidate": lambda level: EarlyLoss(level, 0.0, 0.004)})
    assert said(shape, standing).startswith("UNSTABLE: the candidate b.deb: PLR 0.4")


@pytest.mark.parametrize("candidate", [(1.0, 0.9), (0.96, 0.864)], ids=["equal", "slower"])
def test_builds_that_flip_from_boot_to_boot(candidate: tuple[float, float]) -> None:
    levels: dict[Side, Sequence[float]] = {
        "baseline": (1.0, 0.9, 0.901, 1.002, 0.999, 0.9),
        "candidate": tuple(candidate[flip] for flip in (1, 0, 0, 1, 0, 1, 1)),
    }
    shape, standing = judged(SOUND, levels, pairs=12)
    assert "from boot to boot flips between " in said(shape, standing)
    alike = candidate[0] == 1.0
    verdict = "INCONCLUSIVE" if alike else "UNSTABLE"
    assert said(shape, standing).startswith(f"{verdict}: over 12 pairs of boots: the ")
    assert ("both builds do so" in said(shape, standing)) is alike


def test_builds_that_both_flip_within_their_boots_are_undecided_and_the_change_is_not_blamed() -> None:
    shape, standing = judged(SOUND, modes=(1.0, 0.9))
    told = [check.sentence for check in shape.alike]
    assert any("saturation throughput within its boots flips between 90" in one for one in told), told
    assert said(shape, standing).startswith("INCONCLUSIVE: ")
    assert said(shape, standing).endswith("both builds do so, and so it is not the change's doing")


def test_a_change_between_two_builds_is_no_flip() -> None:
    high, low = (1.0, 1.002, 0.998, 1.001), (0.8, 0.801, 0.799, 0.802)
    check = one_level_each("builds' PDR", [1e6 * level for level in high], [1e6 * level for level in low])
    assert check.passed is True
    shape, standing = judged(SOUND, {"baseline": high, "candidate": low})
    assert standing.verdict is Verdict.REGRESSION
    assert said(shape, standing) == ""


def test_one_boot_at_the_other_builds_level_is_a_dip() -> None:
    high = [1e6, 1.002e6, 0.998e6, 1.001e6, 0.999e6, 1e6, 1.001e6, 0.8e6]
    low = [0.8e6, 0.801e6, 0.799e6, 0.802e6, 0.8e6, 0.798e6, 0.8e6, 0.801e6]
    assert one_level_each("PDR", high, low).passed is True
    both = one_level_each("PDR", [*high[:6], 0.801e6, 0.8e6], low)
    assert both.passed is False
    assert both.sentence.endswith("; the baseline is at the lower 2 of 8 times, the candidate 8 of 8")


def test_levels_of_boots_do_not_look_like_flips_within_them() -> None:
    source = random.Random(3)
    boots = [[level * source.gauss(1, 0.002) for _ in range(3)] for level in (1e6, 0.8e6, 0.9e6, 1.1e6, 0.85e6, 0.95e6)]
    assert one_level_within("rate", boots).passed is True
    assert one_level_within("rate", []).passed is None
    assert one_level_within("rate", [[1e6], [0.0, 0.0]]).passed is None


# --- What is the testbed's, and what one build's ---


def over_boots(baseline: Sequence[float], candidate: Sequence[float]) -> Judgement | None:
    """What the shape of boots' rates says of a comparison that found nothing."""
    samples = {
        name: {"baseline": tuple(1e6 * value for value in baseline), "candidate": tuple(1e6 * v for v in candidate)}
        for name in ("PDR", "saturation throughput")
    }
    shape = shape_of(COMPARED, samples)
    return shape.veto(Standing((), Verdict.PASS), LABELS)


def scattered(slow: Sequence[int], seed: int, boots: int = 16, by: float = 0.95) -> list[float]:
    source = random.Random(seed)
    return [source.gauss(1, 0.003) * (by if number in slow else 1.0) for number in range(boots)]


def test_a_few_slow_boots_of_both_builds_are_the_testbeds() -> None:
    assert over_boots(scattered([2, 9], 1), scattered([5, 11, 14], 2)) is None


def test_slow_boots_that_only_one_build_has_are_told() -> None:
    found = over_boots(scattered([], 1), scattered([2, 5, 11, 14], 2))
    assert found is not None
    assert found.verdict is Verdict.UNSTABLE
    assert "4 of 16 boots of the candidate, and none of 16 of the baseline, came up 4.9% slower" in found.reason
    assert over_boots(scattered([1, 2, 5, 7, 9, 11, 14], 1), scattered([3], 2)) is not None


def test_many_slow_boots_of_both_builds_are_flips() -> None:
    found = over_boots(scattered(range(0, 16, 3), 1, by=0.9), scattered([1, 2, 5, 6, 9, 10, 13], 2, by=0.9))
    assert found is not None
    assert "flips between" in found.reason
    assert found.verdict is Verdict.INCONCLUSIVE


def test_what_the_order_of_the_boots_does_is_no_flip() -> None:
    """Pairs are measured A B, then B A; the one that comes second is slower by 3 %."""
    first, second = range(1, 16, 2), range(0, 16, 2)
    assert over_boots(scattered(first, 1, by=0.97), scattered(second, 2, by=0.97)) is None


def test_a_ratio_that_drifts_is_no_number_however_far_from_the_tolerance() -> None:
    samples = {
        name: {"baseline": (1e6,) * 16, "candidate": tuple(1e6 * (0.95 - 0.004 * number) for number in range(16))}
        for name in ("PDR", "saturation throughput")
    }
    shape = shape_of(COMPARED, samples)
    found = shape.veto(Standing((), Verdict.REGRESSION), LABELS)
    assert found is not None
    assert found.verdict is Verdict.UNSTABLE
    assert "relative to the baseline's changes by -6" in found.reason


# --- Without a PDR: guests that stay up are judged by cost, and by what they forward at saturation ---


def at_saturation(flips: Sequence[float] = (1.0,), candidate: Sequence[float] = (1.0,), boots: int = 8) -> PairsShape:
    """The shape of boots that were offered one overload, three times each, and counted.

    Args:
        flips: what a boot's trials are relative to its level, in turn.
        candidate: the levels of its boots, in turn.
    """
    source = random.Random(5)
    trials: dict[Side, list[Trial]] = {side: [] for side in SIDES}
    rates: dict[Side, list[float]] = {side: [] for side in SIDES}
    for number in range(boots):
        for side in SIDES:
            level = source.gauss(100e3, 200.0) * (candidate[number % len(candidate)] if side == "candidate" else 1.0)
            own = [level * flips[(3 * number + each) % len(flips)] * source.gauss(1, 0.001) for each in range(3)]
            trials[side] += [
                flat_trial(
                    200e3, 1.0, 200_000, int(rate), sending_time=1.0, phase=Phase.SATURATION,
                    boot=f"{side}-{number}", side=side, pair=number + 1,
                )
                for rate in own
            ]  # fmt: skip
            rates[side].append(max(own))
    samples = {
        SaturationThroughput.name: {side: tuple(rates[side]) for side in SIDES},
        Cost.name: dict.fromkeys(SIDES, (1000.0,) * boots),
    }
    return shape_of((SaturationThroughput.about, Cost.about), samples, trials=trials)


def test_boots_without_a_pdr_have_a_shape_and_no_curve() -> None:
    shape = at_saturation()
    assert shape.pairs == 8
    assert shape.assessments == {}
    assert {check.passed for check in shape.levels} == {True}
    assert not any("PDR" in check.sentence for check in (*shape.levels, *shape.ratios))
    assert shape.veto(Standing((), Verdict.PASS), LABELS) is None


def test_trials_of_both_builds_that_flip_within_boots_are_seen_without_a_curve() -> None:
    found = at_saturation(flips=(1.0, 0.8, 1.0, 0.8, 1.0)).veto(Standing((), Verdict.PASS), LABELS)
    assert found is not None
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "saturation throughput within its boots" in found.reason


def test_a_build_that_comes_up_at_two_levels_is_seen_without_a_curve() -> None:
    shape = at_saturation(candidate=(1.0, 0.9, 1.0, 1.0, 0.9, 0.9, 1.0, 0.9), boots=16)
    found = shape.veto(Standing((), Verdict.PASS), LABELS)
    assert found is not None
    assert found.verdict is Verdict.UNSTABLE
    assert "saturation throughput" in found.reason


def test_cost_alone_has_no_shape_that_time_could_spoil() -> None:
    samples = {Cost.name: dict.fromkeys(SIDES, (1000.0, 1001.0))}
    assert shape_of((Cost.about,), samples) == PairsShape(2, {}, (), ())


def test_loads_that_only_some_boots_were_offered_tell_nothing_within_boots() -> None:
    """A boot that is faster than its load is offered more: its trials are of two loads, and of two rates."""
    one = flat_trial(100e3, 1.0, 100_000, 90_000, sending_time=1.0, phase=Phase.SATURATION, side="baseline")
    more = dataclasses.replace(one, intended_load=150e3, offered=150_000)
    trials = [changed(trial, boot=str(boot)) for boot in range(4) for trial in (one, one, one)]
    trials += [changed(more, forwarded=count, boot="0") for count in (90_000, 60_000, 90_000, 60_000)]
    samples = {SaturationThroughput.name: dict.fromkeys(SIDES, (90000.0,) * 4)}
    shape = shape_of((SaturationThroughput.about,), samples, trials={"baseline": trials})
    assert shape.levels[-1].passed is True  # of the trials that all boots have, and not too few
    assert shape.veto(Standing((), Verdict.PASS), LABELS) is None


def test_pairs_of_earlier_tries_count_on_living_boots_too() -> None:
    kind = ComparedTrials(cast(Any, None), compared_by_counts(Scenario()))  # what is asked tells nothing of the shape
    pairs = {Cost.name: ((1_000.0, 1_001.0),) * 4}
    before = Earlier((Try(run="before", when=1.0, verdict="PASS", pairs=pairs, afresh=False, resumed=False),))
    samples = {Cost.name: dict.fromkeys(SIDES, (1000.0, 1001.0))}
    assert kind.shape(samples, (), before) == PairsShape(6, {}, (), ())

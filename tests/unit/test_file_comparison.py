"""Sets of trial files compared without a testbed: repeats, pairs of boots, and what cannot be compared."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from curves import EarlyLoss

from pdrgate.errors import DataError, UsageError
from pdrgate.gate.file_comparison import compare_files
from pdrgate.gate.replicate import Measurands
from pdrgate.measurands import Sweep
from pdrgate.results.verdict import Verdict
from pdrgate.search.goals import PDR
from pdrgate.traffic.simulated import Behaviour, Ceiling, IdealCurve, LoadLoss, SimulatedSut
from pdrgate.trial import Trial

LOADS = (0.5e6, 0.7e6, 1.15e6, 1.5e6, 1.95e6)


def replicate(curve: LoadLoss, seed: int = 1, **belonging: object) -> Iterator[Trial]:
    """One repeat's or boot's trials, as the gate measures them."""
    found = Measurands.at(LOADS, PDR, 0.25, top_trials=2, width=0.02)
    sut = SimulatedSut(curve, Behaviour(0.003), seed=seed, ceiling=Ceiling(4e6))
    trials: list[Trial] = []
    steps = found.steps(Sweep(LOADS, 0.25))
    while (ask := next((ask for step in steps if (ask := step.next(trials)) is not None), None)) is not None:
        trial = sut.measure(ask.load, ask.duration)
        trials.append(dataclasses.replace(trial, phase=ask.phase, **belonging))  # type: ignore[arg-type]
        yield trials[-1]


def written(path: Path, trials: Iterator[Trial] | Sequence[Trial]) -> Path:
    path.write_text("".join(f"{trial.to_json()}\n" for trial in trials))
    return path


def repeats(curve: LoadLoss, seed: int) -> Iterator[Trial]:
    for number in range(1, 7):
        yield from replicate(curve, seed + number, boot=f"b{seed}", repeat=number)


def pairs(speeds: Sequence[float], ratio: float) -> Iterator[Trial]:
    """Both boots of each pair, whose speed differs from pair to pair far more than between the builds."""
    for number, speed in enumerate(speeds, 1):
        for side, factor in (("baseline", 1.0), ("candidate", ratio)):
            boot = f"{side}-{number}"
            yield from replicate(
                IdealCurve(speed * factor), 2 * number, side=side, build=f"linux-{side}", pair=number, boot=boot
            )


def test_repeats_of_two_runs(tmp_path: Path) -> None:
    base = written(tmp_path / "a.jsonl", repeats(IdealCurve(1e6), 1))
    for capacity, verdict in ((1e6, Verdict.PASS), (0.9e6, Verdict.REGRESSION), (1.1e6, Verdict.IMPROVEMENT)):
        found, judgement = compare_files(
            base, written(tmp_path / "b.jsonl", repeats(IdealCurve(capacity), 20)), 0.02, PDR.loss_ratio,
            boots_deviate=0.001,
        )  # fmt: skip
        assert judgement.verdict is verdict
        assert found is not None
        assert found.pairs == 0
        assert found.change == pytest.approx(capacity / 1e6 - 1, abs=0.01)


def test_loss_before_saturation_is_told_by_the_pdrs_own_trials_also_where_the_curve_is_refused(tmp_path: Path) -> None:
    base = written(tmp_path / "a.jsonl", repeats(IdealCurve(1e6), 1))
    found, judgement = compare_files(
        base, written(tmp_path / "b.jsonl", repeats(EarlyLoss(1e6, 0.8), 20)), 0.02, PDR.loss_ratio, boots_deviate=0.001
    )
    assert judgement.verdict in (Verdict.REGRESSION, Verdict.UNSTABLE)
    assert found is not None
    assert found.change == pytest.approx(-0.2, abs=0.03)
    assert f"change {found.change:+.1%}" in judgement.reason
    assert found.changes[1].change == pytest.approx(0, abs=0.01)


def test_a_comparison_of_builds_is_judged_again_by_its_pairs(tmp_path: Path) -> None:
    """A true change of 3 % once drowned among boots that differ by 10 %, all in one pot with the other build's."""
    run = written(tmp_path / "run.jsonl", pairs([1e6, 0.9e6, 1.05e6, 0.95e6, 0.9e6, 1.1e6], 0.97))
    found, judgement = compare_files(run, run, 0.01, PDR.loss_ratio)
    assert found is not None
    assert found.pairs == 6
    assert found.change == pytest.approx(-0.03, abs=0.005)
    assert judgement.verdict is Verdict.REGRESSION
    # The rule of a comparison in pairs, and no other.
    assert found.confidence == 0.975


def test_a_run_of_pairs_against_itself_is_not_equal_by_being_itself(tmp_path: Path) -> None:
    run = written(tmp_path / "run.jsonl", pairs([1e6, 1.01e6, 0.99e6], 0.5))
    found, _ = compare_files(run, run, 0.02, PDR.loss_ratio)
    assert found is not None
    assert found.change == pytest.approx(-0.5, abs=0.01)


def test_a_side_that_a_file_does_not_have(tmp_path: Path) -> None:
    trials = [trial for trial in pairs([1e6, 1e6], 0.9) if trial.side == "candidate"]
    run = written(tmp_path / "run.jsonl", trials)
    with pytest.raises(DataError, match="holds trials of a build comparison, and none of its baseline; name the whole"):
        compare_files(run, run, 0.02, PDR.loss_ratio)


def test_other_scenarios_and_tolerances_without_meaning(tmp_path: Path) -> None:
    one = list(replicate(IdealCurve(1e6), scenario="a", repeat=1))
    both = written(tmp_path / "x.jsonl", one + [dataclasses.replace(trial, scenario="b") for trial in one])
    with pytest.raises(DataError, match=r"holds trials of 2 scenarios \(a, b\); name one file each$"):
        compare_files(both, both, 0.02, PDR.loss_ratio)
    with pytest.raises(UsageError, match="has no meaning"):
        compare_files(both, both, 1.0, PDR.loss_ratio)
    short = written(tmp_path / "y.jsonl", one)
    judgement = compare_files(short, short, 0.02, PDR.loss_ratio)[1]
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "1 repeat at " in judgement.reason


def changed(trials: Sequence[Trial], **fields: object) -> list[Trial]:
    return [dataclasses.replace(trial, **fields) for trial in trials]  # type: ignore[arg-type]


def odd_trials() -> dict[str, list[Trial]]:
    """Trials as no sound testbed makes them."""
    repeated, paired = list(repeats(IdealCurve(1e6), 20)), list(pairs([1e6] * 4, 1.0))
    return {
        "one trial": repeated[:1],
        "equal ones": repeated[:1] * 40,
        "one pair": [trial for trial in paired if trial.pair == 1],
        "pairs that are equal": [
            dataclasses.replace(trial, pair=pair) for trial in paired[:40] for pair in range(1, 5)
        ],
        "nothing came back": changed(repeated, forwarded=0, drained=0),
        "nothing came back in pairs": changed(paired, forwarded=0, drained=0),
        "all came back": [dataclasses.replace(trial, forwarded=trial.offered) for trial in repeated],
        "as much as is counted": changed(repeated, offered=2**64, forwarded=2**64),
        "for no time": changed(repeated, intended_duration=5e-324),
        "at hardly any load": changed(paired, intended_load=5e-324),
        "at the highest load": changed(paired, intended_load=2.0**64),
    }


@pytest.mark.parametrize("what", odd_trials())
def test_odd_trials_end_in_a_verdict_or_in_a_sentence(tmp_path: Path, what: str) -> None:
    """Never in an error of the program's own, nor in a number that is none."""
    odd = odd_trials()[what]
    sound = pairs([1e6] * 4, 1.0) if any(trial.pair for trial in odd) else repeats(IdealCurve(1e6), 1)
    files = written(tmp_path / "odd.jsonl", odd), written(tmp_path / "sound.jsonl", sound)
    for baseline, candidate in ((0, 0), (0, 1), (1, 0)):
        try:
            found, judgement = compare_files(files[baseline], files[candidate], 0.02, PDR.loss_ratio)
        except DataError as error:
            assert "\n" not in str(error)
            continue
        assert judgement.reason
        if found is not None:
            numbers = [(one.change, one.lower, one.upper) for one in found.changes]
            assert all(math.isfinite(number) for each in numbers for number in each)

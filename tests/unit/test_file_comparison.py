"""Sets of trial files compared without a testbed: repeats, pairs of boots, and what cannot be compared."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from curves import EarlyLoss
from flat_values import changed
from simulated_sut import Behaviour, Ceiling, IdealCurve, LoadLoss, SimulatedSut

from pdrgate.gate.judged_again.file_comparison import compare_files
from pdrgate.gate.judged_again.sets_of_trials import WantedSet
from pdrgate.gate.run.run_record import FINGERPRINTS_FILE
from pdrgate.gate.scenarios.replicate_samples import Measurands
from pdrgate.measurands import Setting, Sweep
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.verdict import Verdict
from pdrgate.search.goals import PDR_GOAL
from pdrgate.values.errors import DataError, UsageError

LOADS = (0.5e6, 0.7e6, 1.15e6, 1.5e6, 1.95e6)


def replicate(curve: LoadLoss, seed: int = 1, **belonging: object) -> Iterator[Trial]:
    """One repeat's or boot's trials, as the gate measures them."""
    found = Measurands.of(
        Setting(loads=tuple(LOADS), duration=0.25, loss_ratio=PDR_GOAL.loss_ratio, top_trials=2, width=0.02)
    )
    sut = SimulatedSut(curve, Behaviour(0.003), seed=seed, ceiling=Ceiling(4e6))
    trials: list[Trial] = []
    steps = found.steps(Sweep(LOADS, 0.25))
    while (ask := next((ask for step in steps if (ask := step.next(trials)) is not None), None)) is not None:
        trial = sut.measure(ask.load, ask.duration)
        trials.append(changed(trial, phase=ask.phase, **belonging))
        yield trials[-1]


def written(path: Path, trials: Iterator[Trial] | Sequence[Trial]) -> Path:
    path.write_text("".join(f"{trial.to_json()}\n" for trial in trials))
    return path


def repeats(curve: LoadLoss, seed: int, **more: object) -> Iterator[Trial]:
    for number in range(1, 7):
        yield from replicate(curve, seed + number, boot=f"b{seed}", repeat=number, **more)


def pairs(
    speeds: Sequence[float], ratio: float, candidate: str = "linux-candidate", seed: int = 0, **more: object
) -> Iterator[Trial]:
    """Both boots of each pair, whose speed differs from pair to pair far more than between the builds."""
    builds = {"baseline": "linux-baseline", "candidate": candidate}
    for number, speed in enumerate(speeds, 1):
        for side, factor in (("baseline", 1.0), ("candidate", ratio)):
            yield from replicate(
                IdealCurve(speed * factor), seed + 2 * number, side=side, build=builds[side], pair=number,
                boot=f"{side}-{number}", **more,
            )  # fmt: skip


def test_repeats_of_two_runs(tmp_path: Path) -> None:
    base = written(tmp_path / "a.jsonl", repeats(IdealCurve(1e6), 1))
    for capacity, verdict in ((1e6, Verdict.PASS), (0.9e6, Verdict.REGRESSION), (1.1e6, Verdict.IMPROVEMENT)):
        found, judgement = compare_files(
            base, written(tmp_path / "b.jsonl", repeats(IdealCurve(capacity), 20)), 0.02, PDR_GOAL.loss_ratio,
            boots_deviate=0.001,
        )  # fmt: skip
        assert judgement.verdict is verdict
        assert found is not None
        assert found.pairs == 0
        assert found.change == pytest.approx(capacity / 1e6 - 1, abs=0.01)


def test_loss_before_saturation_is_told_by_the_pdrs_own_trials_also_where_the_curve_is_refused(tmp_path: Path) -> None:
    base = written(tmp_path / "a.jsonl", repeats(IdealCurve(1e6), 1))
    found, judgement = compare_files(
        base,
        written(tmp_path / "b.jsonl", repeats(EarlyLoss(1e6, 0.8), 20)),
        0.02,
        PDR_GOAL.loss_ratio,
        boots_deviate=0.001,
    )
    assert judgement.verdict in (Verdict.REGRESSION, Verdict.UNSTABLE)
    assert found is not None
    assert found.change == pytest.approx(-0.2, abs=0.03)
    assert f"change {found.change:+.1%}" in judgement.reason
    assert found.changes[1].change == pytest.approx(0, abs=0.01)


def test_a_comparison_of_builds_is_judged_again_by_its_pairs(tmp_path: Path) -> None:
    """A true change of 3 % once drowned among boots that differ by 10 %, all in one pot with the other build's."""
    run = written(tmp_path / "run.jsonl", pairs([1e6, 0.9e6, 1.05e6, 0.95e6, 0.9e6, 1.1e6], 0.97))
    found, judgement = compare_files(run, run, 0.01, PDR_GOAL.loss_ratio)
    assert found is not None
    assert found.pairs == 6
    assert found.change == pytest.approx(-0.03, abs=0.005)
    assert judgement.verdict is Verdict.REGRESSION
    # The rule of a comparison in pairs, and no other.
    assert found.confidence == 0.975


def test_a_run_of_pairs_against_itself_is_not_equal_by_being_itself(tmp_path: Path) -> None:
    run = written(tmp_path / "run.jsonl", pairs([1e6, 1.01e6, 0.99e6], 0.5))
    found, _ = compare_files(run, run, 0.02, PDR_GOAL.loss_ratio)
    assert found is not None
    assert found.change == pytest.approx(-0.5, abs=0.01)


def test_a_run_whose_fingerprints_cannot_be_read_is_told(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        written(tmp_path / name / "trials.jsonl", replicate(IdealCurve(1e6), repeat=1, fingerprint="known"))
    (tmp_path / "first" / "fingerprints.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"first/fingerprints\.json cannot be read \(maximum recursion depth exceeded"):
        compare_files(tmp_path / "first", tmp_path / "second", 0.02, PDR_GOAL.loss_ratio)


def test_a_side_that_a_file_does_not_have(tmp_path: Path) -> None:
    trials = [trial for trial in pairs([1e6, 1e6], 0.9) if trial.belonging.side == "candidate"]
    run = written(tmp_path / "run.jsonl", trials)
    with pytest.raises(DataError, match="holds trials of a build comparison, and none of its baseline; name the whole"):
        compare_files(run, run, 0.02, PDR_GOAL.loss_ratio)


def test_other_scenarios_and_tolerances_without_meaning(tmp_path: Path) -> None:
    one = list(replicate(IdealCurve(1e6), scenario="a", repeat=1))
    both = written(tmp_path / "x.jsonl", one + [changed(trial, scenario="b") for trial in one])
    with pytest.raises(DataError, match=r"holds trials of 2 scenarios \(a, b\); choose one with --scenario$"):
        compare_files(both, both, 0.02, PDR_GOAL.loss_ratio)
    with pytest.raises(
        DataError, match=r"holds nothing of the scenario c, but of a, b; name one of these with --scenario$"
    ):
        compare_files(both, both, 0.02, PDR_GOAL.loss_ratio, asked=WantedSet(scenario="c"))
    with pytest.raises(UsageError, match="has no meaning"):
        compare_files(both, both, 1.0, PDR_GOAL.loss_ratio)
    short = written(tmp_path / "y.jsonl", one)
    judgement = compare_files(short, short, 0.02, PDR_GOAL.loss_ratio)[1]
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "1 repeat at " in judgement.reason


def all_changed(trials: Sequence[Trial], **fields: object) -> list[Trial]:
    return [changed(trial, **fields) for trial in trials]


def odd_trials() -> dict[str, list[Trial]]:
    """Trials as no sound testbed makes them."""
    repeated, paired = list(repeats(IdealCurve(1e6), 20)), list(pairs([1e6] * 4, 1.0))
    return {
        "one trial": repeated[:1],
        "equal ones": repeated[:1] * 40,
        "one pair": [trial for trial in paired if trial.belonging.pair == 1],
        "pairs that are equal": [changed(trial, pair=pair) for trial in paired[:40] for pair in range(1, 5)],
        "nothing came back": all_changed(repeated, forwarded=0, drained=0),
        "nothing came back in pairs": all_changed(paired, forwarded=0, drained=0),
        "all came back": [dataclasses.replace(trial, forwarded=trial.offered) for trial in repeated],
        "as much as is counted": all_changed(repeated, offered=2**64, forwarded=2**64),
        "at rest": all_changed(repeated, intended_load=0.0, offered=0, forwarded=0, phase=Phase.IDLE),
        "for no time": all_changed(repeated, intended_duration=5e-324),
        "at hardly any load": all_changed(paired, intended_load=5e-324),
        "at the highest load": all_changed(paired, intended_load=2.0**64),
    }


@pytest.mark.parametrize("what", odd_trials())
def test_odd_trials_end_in_a_verdict_or_in_a_sentence(tmp_path: Path, what: str) -> None:
    """Never in an error of the program's own, nor in a number that is none."""
    odd = odd_trials()[what]
    sound = pairs([1e6] * 4, 1.0) if any(trial.belonging.pair for trial in odd) else repeats(IdealCurve(1e6), 1)
    files = written(tmp_path / "odd.jsonl", odd), written(tmp_path / "sound.jsonl", sound)
    for baseline, candidate in ((0, 0), (0, 1), (1, 0)):
        try:
            found, judgement = compare_files(files[baseline], files[candidate], 0.02, PDR_GOAL.loss_ratio)
        except DataError as error:
            assert "\n" not in str(error)
            continue
        assert judgement.reason
        if found is not None:
            numbers = [(one.change, one.lower, one.upper) for one in found.changes]
            assert all(math.isfinite(number) for each in numbers for number in each)


def both_comparisons(order: int = 1) -> list[Trial]:
    """One candidate that is slower by 10 %, another that is not, in one file."""
    slower, equal = list(pairs([1e6] * 4, 0.9, "linux-b")), list(pairs([1e6] * 4, 1.0, "linux-c", seed=50))
    return [*slower, *equal] if order > 0 else [*equal, *slower]


@pytest.mark.parametrize("order", [1, -1])
def test_two_comparisons_of_builds_in_one_file_are_told_apart(tmp_path: Path, order: int) -> None:
    """The last one overwrote the other's pairs, and a file that held a REGRESSION passed."""
    run = written(tmp_path / "run.jsonl", both_comparisons(order))
    with pytest.raises(DataError) as caught:
        compare_files(run, run, 0.02)
    told = ["linux-b against linux-baseline", "linux-c against linux-baseline"][::order]
    assert str(caught.value) == (
        f"{run} holds 2 measurements of one scenario ({', '.join(told)}); choose one with --build"
    )
    for build, verdict in (("linux-b", Verdict.REGRESSION), ("linux-c", Verdict.PASS)):
        found, judgement = compare_files(run, run, 0.02, asked=WantedSet(build=build))
        assert found is not None
        assert (found.pairs, judgement.verdict) == (4, verdict)
    with pytest.raises(DataError, match=r"holds no comparison of the build linux-d, but linux-. against linux-base"):
        compare_files(run, run, 0.02, asked=WantedSet(build="linux-d"))


def test_one_comparison_that_two_tests_asked_for_is_chosen_by_the_test(tmp_path: Path) -> None:
    """The same builds in one scenario: with and without a setting that the second test made, say."""
    trials = [
        *pairs([1e6] * 4, 0.9, test="Gate.Deep.PDR Is Kept"), *pairs([1e6] * 4, 1.0, seed=50, test="Gate.PDR Is Kept"),
        *pairs([1e6] * 4, 1.0, seed=90, test="Gate.As It Is"),
    ]  # fmt: skip
    run = written(tmp_path / "run.jsonl", trials)
    with pytest.raises(DataError) as caught:
        compare_files(run, run, 0.02)
    assert str(caught.value) == (
        f"{run} holds 3 measurements of one scenario (linux-candidate against linux-baseline by the tests "
        "Gate.Deep.PDR Is Kept, Gate.PDR Is Kept, Gate.As It Is); choose one with --test"
    )
    with pytest.raises(DataError, match=r"holds 2 .* by the tests Gate.Deep.PDR Is Kept, Gate.PDR Is Kept\); choose"):
        compare_files(run, run, 0.02, asked=WantedSet(test="PDR Is Kept"))
    for test, verdict in (("Deep.PDR Is Kept", Verdict.REGRESSION), ("As It Is", Verdict.PASS)):
        assert compare_files(run, run, 0.02, asked=WantedSet(test=test))[1].verdict is verdict
    with pytest.raises(DataError, match=r"nothing of the test It Is, but of Gate.Deep.PDR Is Kept, Gate.PDR Is Kept, "):
        compare_files(run, run, 0.02, asked=WantedSet(test="It Is"))
    untold = written(tmp_path / "untold.jsonl", pairs([1e6] * 4, 0.9))
    with pytest.raises(DataError, match=r"do not tell their tests; leave --test out"):
        compare_files(untold, untold, 0.02, asked=WantedSet(test="As It Is"))


def test_what_two_tests_measured_of_one_sut_is_told_apart_where_it_is_asked_for(tmp_path: Path) -> None:
    slow = [*repeats(IdealCurve(0.9e6), 1, test="Gate.Slow"), *repeats(IdealCurve(1e6), 20, test="Gate.Fast")]
    one, other = written(tmp_path / "1.jsonl", slow), written(tmp_path / "2.jsonl", repeats(IdealCurve(1e6), 40))
    for test, verdict in (("Slow", Verdict.IMPROVEMENT), ("Gate.Fast", Verdict.PASS)):
        judgement = compare_files(one, other, 0.02, boots_deviate=0.001, asked=WantedSet(test=test))[1]
        assert judgement.verdict is verdict


def test_two_runs_in_one_folder_are_told_apart(tmp_path: Path) -> None:
    for name, trials in (("1", pairs([1e6] * 4, 0.9, "linux-b")), ("2", pairs([1e6] * 4, 1.0, "linux-c"))):
        (tmp_path / name).mkdir()
        written(tmp_path / name / "trials.jsonl", trials)
    with pytest.raises(
        DataError, match=r"holds 2 runs \(.*1/trials.jsonl: linux-b against linux-baseline, .*; name one"
    ):
        compare_files(tmp_path, tmp_path, 0.02)
    judgement = compare_files(tmp_path, tmp_path, 0.02, asked=WantedSet(build="linux-b"))[1]
    assert judgement.verdict is Verdict.REGRESSION


def test_one_comparison_that_was_made_twice_is_no_larger_one(tmp_path: Path) -> None:
    trials = [*pairs([1e6] * 4, 0.9), *pairs([1e6] * 4, 1.0, seed=50)]
    run = written(tmp_path / "run.jsonl", trials)
    with pytest.raises(DataError, match=r"\(linux-candidate against linux-baseline, 2 times\); put the lines of one "):
        compare_files(run, run, 0.02)


def test_trials_of_another_kernel_are_no_repeats(tmp_path: Path) -> None:
    """Two runs in one file, as 'cat' makes it: nothing but their fingerprints tells them apart."""
    one = list(repeats(IdealCurve(1e6), 1, fingerprint="f1"))
    both = written(tmp_path / "both.jsonl", [*one, *repeats(IdealCurve(0.9e6), 20, fingerprint="f2")])
    (tmp_path / FINGERPRINTS_FILE).write_text('{"f1": {"kernel": "6.1"}}')
    with pytest.raises(DataError, match=r"under 2 fingerprints \(f1 of kernel 6.1, f2 of kernel unknown\); put the "):
        compare_files(both, both, 0.02)


def test_pairs_of_two_runs_are_no_pairs(tmp_path: Path) -> None:
    """A machine that is slower by 5 % on the second day made a REGRESSION of equal builds: of one number, no pair."""
    monday = written(tmp_path / "monday.jsonl", pairs([1e6] * 6, 1.0))
    tuesday = written(tmp_path / "tuesday.jsonl", pairs([0.95e6] * 6, 1.0, seed=100))
    found, judgement = compare_files(monday, tuesday, 0.02)
    assert found is not None
    assert (found.pairs, judgement.verdict) == (0, Verdict.INCONCLUSIVE)
    assert judgement.reason.startswith("unpaired boots do not decide: ")
    assert "pdrgate calibrate" in judgement.reason
    # Six boots of each, if somebody knows what boots deviate by.
    for deviation, verdict in ((0.05, Verdict.INCONCLUSIVE), (0.002, Verdict.REGRESSION)):
        assert compare_files(monday, tuesday, 0.02, boots_deviate=deviation)[1].verdict is verdict
    for run in (monday, tuesday):
        found, judgement = compare_files(run, run, 0.02)
        assert found is not None
        assert (found.pairs, judgement.verdict) == (6, Verdict.PASS)


def test_a_copy_of_a_run_has_its_pairs(tmp_path: Path) -> None:
    run = written(tmp_path / "run.jsonl", pairs([1e6] * 4, 0.9))
    (tmp_path / "kept").mkdir()
    copy = written(tmp_path / "kept/trials.jsonl", pairs([1e6] * 4, 0.9))
    found, judgement = compare_files(run, tmp_path / "kept", 0.02)
    assert found is not None
    assert (found.pairs, judgement.verdict) == (4, Verdict.REGRESSION)
    assert compare_files(copy, run, 0.02) == (dataclasses.replace(found, baseline=str(copy)), judgement)


def test_two_scenarios_are_no_comparison(tmp_path: Path) -> None:
    names = "ipv6-routing-1cpu-4096-64B", "ipv4-routing-1cpu-4096-1518B"
    first, second = (
        written(tmp_path / f"{name}.jsonl", repeats(IdealCurve(capacity), seed, scenario=name))
        for name, capacity, seed in zip(names, (1e6, 0.7e6), (1, 20), strict=True)
    )
    with pytest.raises(DataError) as caught:
        compare_files(first, second, 0.02, PDR_GOAL.loss_ratio, boots_deviate=0.001)
    assert str(caught.value) == (
        f"{first} is of the scenario {names[0]} and {second} of {names[1]}; name two runs of one"
    )
    untold = written(tmp_path / "untold.jsonl", repeats(IdealCurve(0.7e6), 20, scenario=""))
    assert compare_files(first, untold, 0.02, boots_deviate=0.001)[1].verdict is Verdict.REGRESSION


def test_of_several_scenarios_one_is_chosen(tmp_path: Path) -> None:
    run = written(tmp_path / "run.jsonl", [*pairs([1e6] * 4, 0.9, scenario="s"), *pairs([1e6] * 4, 1.0, scenario="t")])
    for scenario, verdict in (("s", Verdict.REGRESSION), ("t", Verdict.PASS)):
        found, judgement = compare_files(run, run, 0.02, asked=WantedSet(scenario=scenario))
        assert found is not None
        assert (found.pairs, judgement.verdict) == (4, verdict)


def published(path: Path, capacity: float) -> Path:
    """As PASTRAMI's authors publish them."""
    sut, loads = SimulatedSut(IdealCurve(capacity), Behaviour(0.003), seed=1), [*LOADS, 1.05e6, 1.25e6]
    lines = [
        [[load, 0], *([one.offered, one.forwarded] for one in sut.repeat([load], 10.0, 10))] for load in sorted(loads)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_published_files_are_compared_whatever_their_names_tell(tmp_path: Path) -> None:
    plain = published(tmp_path / "clab_tb1_raw_50_k6.8_intel_bare-metal_as-is.txt", 1e6)
    pinned = published(tmp_path / "clab_tb1_raw_50_k6.8_intel_bare-metal_nic_buf_4096_irq_pf0-4_pf1-4.txt", 0.9e6)
    ours = written(tmp_path / "ours.jsonl", repeats(IdealCurve(0.9e6), 20, scenario="ipv6-routing-1cpu-4096-64B"))
    for candidate in (pinned, ours):
        told: list[str] = []
        found, judgement = compare_files(plain, candidate, 0.02, report=told.append, boots_deviate=0.001)
        assert found is not None
        assert judgement.verdict is Verdict.REGRESSION, judgement
        assert len(told) == 1
        assert told[0].startswith(f"by the names of the files {plain} is of ipv6 bare-metal unpinned ring 512, and ")


def test_a_load_is_not_judged_by_looks_on_one_side_alone(tmp_path: Path) -> None:
    now = list(repeats(IdealCurve(1e6), 1))
    looked, blind = (
        written(tmp_path / "looked.jsonl", now), written(tmp_path / "blind.jsonl", all_changed(now, under_way=()))
    )  # fmt: skip
    with pytest.raises(
        DataError, match=r"looked.jsonl tell what was under way while they were sent, and those of .*bli"
    ):
        compare_files(blind, looked, 0.02)


def test_runs_of_two_methods_are_not_compared(tmp_path: Path) -> None:
    for method in "1", "2":
        (tmp_path / method).mkdir()
        written(tmp_path / method / "trials.jsonl", repeats(IdealCurve(1e6), 1, fingerprint="f"))
        (tmp_path / method / FINGERPRINTS_FILE).write_text(json.dumps({"f": {"method": method}}))
    with pytest.raises(DataError, match="measured by two versions of pdrgate"):
        compare_files(tmp_path / "1", tmp_path / "2", 0.02)


def test_the_goal_that_trials_were_measured_for_is_what_they_are_judged_by(tmp_path: Path) -> None:
    """At the usual goal a run that was asked for 10 % loss was told to have another PDR than its own report says."""
    runs = {
        name: written(tmp_path / f"{name}.jsonl", repeats(IdealCurve(1e6), seed, scenario=f"s-1cpu{name}"))
        for seed, name in enumerate(("", "-loss10"), 1)
    }
    for name, loss_ratio, pdr in (("", None, 1.005e6), ("-loss10", None, 1.11e6), ("-loss10", 0.005, 1.005e6)):
        found = compare_files(runs[name], runs[name], 0.02, loss_ratio)[0]
        assert found is not None
        assert found.changes[0].candidate == pytest.approx(pdr, rel=0.01)
    with pytest.raises(DataError) as caught:
        compare_files(runs[""], runs["-loss10"], 0.02, boots_deviate=0.001)
    assert str(caught.value) == (
        f"{runs['']} was measured for a PDR at 0.5 % loss (s-1cpu) and {runs['-loss10']} at 10 % (s-1cpu-loss10); "
        "say with --loss at which both are judged"
    )
    found, judgement = compare_files(runs[""], runs["-loss10"], 0.02, 0.005, boots_deviate=0.001)
    assert judgement.verdict is Verdict.PASS


def test_what_is_asked_for_and_no_file_tells_is_not_passed_over(tmp_path: Path) -> None:
    run = written(tmp_path / "run.jsonl", repeats(IdealCurve(1e6), 1, scenario=""))
    with pytest.raises(DataError, match="hold no comparison of builds; leave --build out"):
        compare_files(run, run, 0.02, asked=WantedSet(build="linux-b"))
    with pytest.raises(DataError, match="do not tell their scenario; leave --scenario out"):
        compare_files(run, run, 0.02, asked=WantedSet(scenario="s"))

"""The cost of a packet in a comparison: by function, in the verdict's sentence, and in every report."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from console_lines import verdict_lines
from counting_testbed import CountingTestbed
from fake_testbed import CONFIG, FakeTestbed, Watcher, gate, new_session
from flat_values import changed, flat_trial
from html_fragments import fragments
from known_noise import KnownNoise
from made_results import result, scenario
from simulated_sut import Behaviour, Ceiling, IdealCurve, LoadLoss, SimulatedSut

import pdrgate.gate.sut.open_loop_traffic as open_loop_traffic
from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.pairs.comparison_task import Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.judged_again.file_comparison import compare_files
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.verdicts.change_verdict import judged
from pdrgate.gate.verdicts.packet_cost import at_odds, cost_result
from pdrgate.history.results import read_result
from pdrgate.measurands.counted.cost import cost_change_in_words
from pdrgate.measurands.functions.function_changes import function_changes
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.reports import plots
from pdrgate.reports.pages.scenario_pictures import pictures
from pdrgate.results.model import (
    ChangeResult,
    ComparisonResult,
    CostResult,
    FunctionChange,
    FunctionResult,
    RunResult,
    Side,
)
from pdrgate.results.verdict import Verdict
from pdrgate.safety.journal import Journal
from pdrgate.stability import read_experiments, read_trials
from pdrgate.values.errors import DataError

PLAIN = {"ip6_forward": 173.0, "migrate_enable": 0.0, "ip6_rcv_core": 138.0, "__dev_queue_xmit": 4900.0}
RT = PLAIN | {"migrate_enable": 130.0, "rt_spin_lock": 53.0, "__local_bh_enable_ip": 26.0}


@pytest.fixture(autouse=True)
def _rests_take_no_time(monkeypatch):
    monkeypatch.setattr(
        open_loop_traffic, "_rest", lambda duration: flat_trial(0.0, duration, 0, 0, started=time.time())
    )


def trial(path: dict[str, float], forwarded: int = 1000) -> Trial:
    functions = {name: (round(each * forwarded), forwarded) for name, each in path.items()}
    return flat_trial(4e4, 0.25, 2 * forwarded, forwarded, phase=Phase.SATURATION, functions=functions)


def cost(*paths: dict[str, float]) -> CostResult:
    found = cost_result([[trial(path)] for path in paths], 0.005)
    assert found is not None
    return found


def change(measurand: str, by: float, verdict: Verdict, *, width: float = 0.005) -> ChangeResult:
    counts = measurand == "cost"
    base = 5300.0 if counts else 31_300.0
    return ChangeResult(
        measurand=measurand, change=by, lower=by - width, upper=by + width, confidence=0.99,
        tolerance=0.01 if counts else 0.02, baseline=base, candidate=base * (1 + by),
        unit="instructions/packet" if counts else "packets/s", better="lower" if counts else "higher", verdict=verdict,
    )  # fmt: skip


CHANGES = (
    FunctionChange(function="migrate_enable", before=0.0, after=130.0, change=130.0, sure=True),
    FunctionChange(function="kmem_cache_free", before=30.0, after=90.0, change=60.0, sure=False),
    FunctionChange(function="rt_spin_lock", before=0.0, after=53.2, change=53.2, sure=True),
    FunctionChange(function="_raw_spin_lock", before=24.5, after=3.5, change=-21.0, sure=True),
)


# --- Builds against each other ---


def test_what_was_not_counted_has_no_cost():
    assert cost_result([[]], 0.005) is None
    assert function_changes(None, cost(PLAIN)) == function_changes(cost(PLAIN), None) == ()


def test_functions_are_sorted_by_what_changed():
    changes = function_changes(cost(PLAIN, PLAIN), cost(RT, RT))
    assert [(one.function, one.change, one.sure) for one in changes] == [
        ("migrate_enable", 130.0, True), ("rt_spin_lock", 53.0, True), ("__local_bh_enable_ip", 26.0, True),
    ]  # fmt: skip
    assert (changes[1].before, changes[1].after) == (0.0, 53.0)


def test_a_change_is_sure_when_it_is_more_than_trials_differ_by():
    before = cost(*(PLAIN | {"kmem_cache_free": each} for each in (30.0, 58.0, 40.0)))
    after = cost(*(PLAIN | {"kmem_cache_free": each, "fib_rules_lookup": 15.0} for each in (58.0, 61.0, 44.0)))
    found = {one.function: one.sure for one in function_changes(before, after)}
    assert found == {"kmem_cache_free": False, "fib_rules_lookup": True}


def test_of_one_trial_nobody_knows_how_sure_it_is():
    assert [one.sure for one in function_changes(cost(PLAIN), cost(RT))] == [False] * 3


def test_functions_of_hardly_any_instructions_are_left_out_of_results():
    found = cost(PLAIN | {"tiny": 0.04}, PLAIN | {"tiny": 0.05})
    assert "tiny" not in {one.name for one in found.functions}
    assert found.instructions == pytest.approx(5211.045)
    assert found.functions[0] == FunctionResult(
        name="__dev_queue_xmit", instructions=4900.0, calls=1.0, deviation=0.0, fewest_calls=1.0, most_calls=1.0
    )


# --- Who called whom ---


def test_a_path_has_each_caller_before_what_it_calls_and_the_largest_first():
    stacks = {
        "rx": (2000, 2), "rx;poll;rcv": (50_000, 100), "rx;poll;gro": (10_000, 200), "rx;fill": (38_000, 50),
        "tick;f": (4, 1),
    }  # fmt: skip
    followed = changed(trial(PLAIN, 100), phase=Phase.PATH, functions={}, stacks=stacks)
    found = cost_result([[trial(PLAIN)], [followed]], 0.005)
    assert found is not None
    assert [(one.function, one.caller, one.instructions, one.own, one.calls) for one in found.path] == [
        ("rx", None, 1000.0, 20.0, 0.02), ("poll", 0, 600.0, 0.0, 0.0), ("rcv", 1, 500.0, 500.0, 1.0),
        ("gro", 1, 100.0, 100.0, 2.0), ("fill", 0, 380.0, 380.0, 0.5), ("all others", None, 0.04, 0.04, 0.0),
    ]  # fmt: skip
    assert found.trials == 1


# --- The sentence ---


def test_a_regression_by_cost_says_where_it_is():
    found = judged([change("PDR", -0.068, Verdict.REGRESSION), change("cost", 0.064, Verdict.REGRESSION)], CHANGES)
    assert str(found) == (
        "REGRESSION: a packet costs 6.4 % more instructions (+5.9 to +6.9 %), most of it in migrate_enable (+130), "
        "rt_spin_lock (+53); PDR -6.8 %"
    )


def test_what_else_decides_tells_the_cost_beside_it():
    found = judged([change("PDR", -0.2, Verdict.REGRESSION), change("cost", 0.064, Verdict.REGRESSION)], CHANGES)
    assert found.reason.startswith("slower: PDR ")
    assert "; a packet costs 6.4 % more instructions (+5.9 to +6.9 %), most of it in migrate_enable" in found.reason


def test_a_pass_by_cost_says_its_tolerance():
    found = judged([change("PDR", 0.03, Verdict.PASS), change("cost", 0.002, Verdict.PASS)], CHANGES[:1])
    assert (
        "a packet costs 0.2 % more instructions (-0.3 to +0.7 %), most of it in migrate_enable (+130)" in found.reason
    )
    assert "tolerance 1.0%" in judged([change("cost", 0.002, Verdict.PASS)]).reason
    nearer = judged([change("PDR", 0.0, Verdict.PASS), change("cost", 0.008, Verdict.PASS)])
    assert nearer.reason.startswith("not slower: PDR ")


def test_functions_that_go_the_other_way_or_may_be_chance_are_not_named():
    words = cost_change_in_words(change("cost", -0.01, Verdict.PASS), CHANGES)
    assert words == (
        "a packet costs 1.0 % fewer instructions (-1.5 to -0.5 %), the largest parts of it in _raw_spin_lock (-21)"
    )
    assert cost_change_in_words(change("cost", -0.01, Verdict.PASS), CHANGES[:3]).endswith("%)")
    small = FunctionChange(function="f", before=1.0, after=3.25, change=2.25, sure=True)
    assert "f (+2.2)" in cost_change_in_words(change("cost", 0.064, Verdict.PASS), [small])


def test_a_third_function_is_named_where_two_are_not_most_of_it():
    more = [replace(CHANGES[0], function=name, change=by) for name, by in (("a", 50.0), ("b", 40.0), ("c", 30.0))]
    assert cost_change_in_words(change("cost", 0.04, Verdict.REGRESSION), more).endswith(
        "most of it in a (+50), b (+40), c (+30)"
    )
    far = [replace(CHANGES[0], function=name, change=by) for name, by in (("a", 50.0), ("b", 4.0))]
    assert cost_change_in_words(change("cost", 0.04, Verdict.REGRESSION), far).endswith(
        "the largest parts of it in a (+50)"
    )


@pytest.mark.parametrize(
    ("pdr", "instructions", "told"),
    [
        (Verdict.REGRESSION, Verdict.IMPROVEMENT, "a contradiction: a packet costs less, and yet fewer are held"),
        (Verdict.IMPROVEMENT, Verdict.REGRESSION, "a contradiction: a packet costs more, and yet more are held"),
        (Verdict.REGRESSION, Verdict.PASS, "a packet costs as much as before: what changed is not in the instructions"),
        (Verdict.REGRESSION, Verdict.REGRESSION, ""),
        (Verdict.PASS, Verdict.REGRESSION, ""),
        (Verdict.PASS, Verdict.PASS, ""),
    ],
)
def test_cost_and_pdr_that_go_different_ways_are_told_of(pdr, instructions, told):
    changes = [change("PDR", -0.068, pdr), change("cost", -0.064, instructions)]
    assert at_odds(changes).startswith(told)
    assert bool(at_odds(changes)) == bool(told)
    assert at_odds(changes) in judged(changes).reason
    assert at_odds(changes[:1]) == at_odds(changes[1:]) == ""


# --- The gate ---


def boots(
    path: dict[str, float], speeds: Sequence[float | LoadLoss], counts: bool = True
) -> Callable[[Journal], FakeTestbed]:
    left, numbers = itertools.cycle(speeds), itertools.count(1)

    def boot(journal: Journal) -> FakeTestbed:
        speed, number = next(left), next(numbers)
        curve = IdealCurve(speed) if isinstance(speed, float) else speed
        sut = SimulatedSut(curve, Behaviour(0.003), seed=number, ceiling=Ceiling(4e6))
        return CountingTestbed(sut, lambda: path) if counts else FakeTestbed(sut)

    return boot


STEADY = (1e6, 1.003e6, 0.998e6, 1.001e6)


def compared(
    folder: Path,
    baseline: Callable[[Journal], FakeTestbed],
    candidate: Callable[[Journal], FakeTestbed],
    **options: float,
) -> tuple[PairsComparison, RunResult, Watcher]:
    watcher = Watcher()
    asked = Options(profile="quick", **options)  # type: ignore[arg-type]
    session = Session(CONFIG, asked, RunRecord(folder / "run", "quick"), watcher, state=folder / "state")
    builds: dict[Side, Build] = {
        "baseline": Build("baseline", "linux-a", baseline), "candidate": Build("candidate", "linux-b", candidate),
    }  # fmt: skip
    session.take()
    subject = comparison_of(ComparisonTask(session, Scenario(), builds, Plan(12, 1e9, 0.02)))
    subject.measure()
    subject.judge(0.02)
    subject.finish()
    session.close()
    return subject, read_result(folder / "run"), watcher


def test_a_build_whose_packets_cost_more_is_a_regression_though_it_is_as_fast(tmp_path):
    _, found, watcher = compared(tmp_path, boots(PLAIN, STEADY), boots(RT, STEADY))
    assert found.verdict is Verdict.REGRESSION
    assert found.reason.startswith(
        "a packet costs 4.0 % more instructions (+4.0 to +4.0 %), most of it in migrate_enable"
    )
    (entry,) = found.scenarios
    assert entry.comparison is not None
    assert [one.measurand for one in entry.comparison.changes] == ["PDR", "saturation throughput", "cost"]
    assert [one.tolerance for one in entry.comparison.changes] == [0.02, 0.02, 0.01]
    assert entry.comparison.functions[0].function == "migrate_enable"
    assert entry.findings.cost is not None
    assert entry.findings.cost.instructions == pytest.approx(sum(RT.values()), abs=2)
    assert entry.findings.cost.batch == pytest.approx(50, rel=0.01)
    assert entry.findings.cost.lossless_instructions == pytest.approx(sum(RT.values()), abs=2)
    assert entry.details.uncounted == ""
    assert not any("not counted" in sentence for sentence in watcher.sentences)
    for side in ("baseline", "candidate"):
        told = entry.builds.side(side)
        assert told is not None
        assert told.findings.cost is not None
        assert {one.name for one in told.findings.measurands} >= {"PDR", "saturation throughput", "cost"}
    phases = [one.occasion.phase for one in read_trials(tmp_path / "run" / "trials.jsonl")]
    pairs = len(entry.builds.boots) // 2
    assert phases.count("idle") == 2 * pairs
    assert phases.count("cost") == 2 * 2  # in the first two boots of each


def test_a_larger_tolerance_accepts_it(tmp_path):
    _, found, _ = compared(tmp_path, boots(PLAIN, STEADY), boots(RT, STEADY), cost_tolerance=0.05)
    assert found.verdict is Verdict.PASS


def test_equal_builds_pass(tmp_path):
    _, found, _ = compared(tmp_path, boots(PLAIN, STEADY), boots(PLAIN, STEADY))
    assert found.verdict is Verdict.PASS
    assert found.scenarios[0].comparison is not None
    assert found.scenarios[0].comparison.functions == ()


def test_a_comparison_with_costs_is_judged_again_from_its_trials(tmp_path):
    compared(tmp_path, boots(PLAIN, STEADY), boots(RT, STEADY))
    again, judgement = compare_files(tmp_path / "run", tmp_path / "run", 0.02, 0.005)
    assert again is not None
    assert [one.measurand for one in again.changes] == ["PDR", "saturation throughput", "cost"]
    assert judgement.verdict is Verdict.REGRESSION


def test_where_only_one_build_is_counted_the_cost_is_not_compared(tmp_path):
    _, found, _ = compared(tmp_path, boots(PLAIN, STEADY), boots(RT, STEADY, counts=False))
    assert found.scenarios[0].comparison is not None
    assert [one.measurand for one in found.scenarios[0].comparison.changes] == ["PDR", "saturation throughput"]


def test_where_nothing_is_counted_the_run_says_so_once(tmp_path):
    _, found, watcher = compared(tmp_path, boots(PLAIN, STEADY, False), boots(PLAIN, STEADY, False))
    said = [sentence for sentence in watcher.sentences if "not counted" in sentence]
    assert said == ["the cost of a packet is not counted here: the testbed has no way to"]
    assert found.scenarios[0].details.uncounted == said[0]
    assert not any(one.occasion.phase in ("idle", "cost") for one in read_trials(tmp_path / "run" / "trials.jsonl"))


def single(folder: Path, path: dict[str, float], baseline: Path | None = None) -> RunResult:
    sut = SimulatedSut(IdealCurve(1e6), Behaviour(0.003), seed=7, ceiling=Ceiling(4e6))
    testbed = CountingTestbed(sut, lambda: path)
    asked = Options(profile="quick", baseline=baseline)
    with new_session(testbed, folder, Watcher(), folder.parent / "state", asked, experience=KnownNoise()) as session:
        gate(session)
    assert testbed.rested_busy
    assert all(testbed.rested_busy)
    return read_result(folder)


def test_a_single_run_is_compared_with_a_stored_one(tmp_path):
    first = single(tmp_path / "a", PLAIN)
    assert first.verdict is Verdict.NO_BASELINE
    assert "cost 5212 instructions/packet" in first.reason
    found = single(tmp_path / "b", RT, tmp_path / "a")
    assert found.verdict is Verdict.REGRESSION
    assert found.reason.startswith("a packet costs 4.0 % more instructions")
    assert "migrate_enable (+130)" in found.reason
    assert single(tmp_path / "c", PLAIN, tmp_path / "a").verdict is Verdict.PASS


# --- Reports ---


def shown_result() -> RunResult:
    comparison = ComparisonResult(
        baseline="linux-a", tolerance=0.02, change=-0.068, lower=-0.07, upper=-0.06, confidence=0.95,
        changes=(change("PDR", -0.068, Verdict.REGRESSION), change("cost", 0.064, Verdict.REGRESSION)),
        functions=(*CHANGES, *(replace(CHANGES[0], function=f"f{n}", change=20.0 - n) for n in range(60))),
    )  # fmt: skip
    told = replace(cost(PLAIN, RT), lossless_load=8000.0, lossless_instructions=9370.4, lossless_batch=1.1, batch=64.2)
    return result(changed(scenario("REGRESSION"), comparison=comparison, cost=told))


def test_the_console_ends_with_the_five_largest_sure_changes():
    lines = verdict_lines(shown_result())
    at = next(at for at, line in enumerate(lines) if line.endswith(", the largest 5 of 63 changes:"))
    assert [line.split() for line in lines[at + 1 :]] == [
        ["FUNCTION", "BEFORE", "AFTER", "CHANGE"],
        ["migrate_enable", "0.0", "130.0", "+130.0"],
        ["rt_spin_lock", "0.0", "53.2", "+53.2"],
        ["_raw_spin_lock", "24.5", "3.5", "-21.0"],
        ["f0", "0.0", "130.0", "+20.0"],
        ["f1", "0.0", "130.0", "+19.0"],
        ["59", "other", "functions", "-549.0"],
        ["what", "differs", "from", "trial", "to", "trial", "+687.0"],
        ["a", "packet", "5300.0", "5639.2", "+339.2"],
    ]
    assert len({len(line) for line in lines[at + 1 :]}) == 1
    assert re.search(r"cost +5346 instructions/packet|cost +- ", "\n".join(lines)) or "cost" in "\n".join(lines)
    assert (
        "  5316 instructions per packet at saturation, 64.2 packets a poll; 9370 at 8 kpps, 1.1 packets a poll" in lines
    )


def test_pages_show_functions_before_and_after():
    (entry,) = shown_result().scenarios
    text = "".join(fragments(entry))
    assert "migrate_enable" in text
    assert "+130.0" in text
    assert "inlined functions count for their callers" in text
    unsure = [one.function for one in entry.comparison.functions if not (one.sure or one.calls_changed)]
    assert unsure
    assert not any(f">{name}<" in text for name in unsure)  # trials of one build differ by as much
    assert "f50" not in text  # the largest 40 only
    assert any(picture.name.endswith("-functions") for picture in pictures(entry))


def test_a_run_without_a_comparison_shows_its_largest_functions():
    (entry,) = shown_result().scenarios
    alone = replace(entry, comparison=None)
    assert "__dev_queue_xmit" in "".join(fragments(alone))
    assert plots.functions(alone) is not None
    assert plots.functions(changed(alone, cost=None)) is None
    many = changed(alone, cost=cost({f"f{n}": 50.0 - n for n in range(45)}, {}))
    assert "5 smaller ones" in "".join(fragments(many))


def test_a_trial_in_which_nothing_was_sent_is_read_again_and_is_no_trial_of_a_curve(tmp_path):
    file = tmp_path / "trials.jsonl"
    rest = flat_trial(0.0, 0.5, 0, 0, phase=Phase.IDLE, functions={"f": (1, 1)}, counted=0.6)
    file.write_text(f"{trial(PLAIN).to_json()}\n{rest.to_json()}\n")
    assert read_trials(file)[1] == rest
    (experiment,) = read_experiments(file)
    assert [one.occasion.phase for one in experiment.trials] == [Phase.SATURATION]
    file.write_text(f"{changed(rest, phase=Phase.REPEAT).to_json()}\n")
    with pytest.raises(DataError, match="a load above 0 packets/s belongs there"):
        read_trials(file)

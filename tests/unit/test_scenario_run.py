"""Whole scenarios over a simulated SUT: every verdict, what is told with it, and runs that are killed and resumed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from console_lines import verdict_lines
from curves import EarlyLoss, Livelock
from fake_testbed import CONFIG, QUICK, FakeTestbed, Killed, Watcher, gate, new_session
from flat_values import changed
from known_noise import KnownNoise
from simulated_sut import Behaviour, Ceiling, IdealCurve, LoadLoss, RealisticCurve, SimulatedSut

from pdrgate.data_paths.steps import SteppedPath
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.profile import PROFILES
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.gate.verdicts.baseline import Baselines
from pdrgate.history.results import read_result, write_result
from pdrgate.record.trial import Trial
from pdrgate.replication import NoiseObservation
from pdrgate.results.model import RunResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.search.calibration import FLAT_OUT
from pdrgate.stability import read_trials
from pdrgate.values.errors import DataError, StorageError, TestbedError, UsageError
from pdrgate.values.units import Rate, Ratio

CEILING = Ceiling(3e6)
PDRS = re.compile(r"PDR ([\d.]+ \w*pps)")
"""Every number that a text calls the PDR."""


def sut(capacity: float = 1e6, seed: int = 1, noise: float = 0.003, **more: Any) -> SimulatedSut:
    ceiling = more.pop("ceiling", CEILING)
    curve = more.pop("curve", None) or RealisticCurve(capacity)
    return SimulatedSut(curve, Behaviour(noise, **more), seed=seed, ceiling=ceiling)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


class Gate:
    """Runs the gate in folders of one test."""

    def __init__(self, root: Path, state: Path) -> None:
        self.root = root
        self.state = state
        self.watcher = Watcher()
        self.noise = KnownNoise()

    def __call__(
        self,
        name: str,
        subject: SimulatedSut,
        baseline: str | None = None,
        kernel: str = "6.18",
        scenario: Scenario | None = None,
        **options: Any,
    ) -> tuple[Judgement, RunResult]:
        folder = self.root / name
        chosen = Options(
            profile=options.pop("profile", "quick"),
            baseline=self.root / baseline if baseline is not None else None,
            **options,
        )
        testbed = FakeTestbed(subject, kernel=kernel)
        self.watcher = Watcher()
        with new_session(testbed, folder, self.watcher, self.state, chosen, experience=self.noise) as session:
            subject, judgement = gate(session, scenario)
            session.record.write(finished=True)
        assert not testbed.open
        assert testbed.generators_open == 0
        assert not list(self.state.glob("run-*"))
        result = read_result(folder)
        assert (result.verdict, result.reason) == (judgement.verdict, judgement.reason)
        # Pictures of what was stored need not be drawn again: it is the very same.
        stored, made = result.scenarios[0], subject.result()
        assert repr((stored.findings.assessment, stored.findings.search)) == repr(
            (made.findings.assessment, made.findings.search)
        )
        assert result.scenarios[0].trials == len(testbed.calls) == len(read_trials(folder / "trials.jsonl"))
        return judgement, result


@pytest.fixture
def run_gate(tmp_path: Path, state: Path) -> Gate:
    return Gate(tmp_path, state)


# --- Verdicts ---


def test_the_first_run_has_no_baseline_and_becomes_one(run_gate: Gate) -> None:
    judgement, result = run_gate("first", sut())
    assert judgement.verdict is Verdict.NO_BASELINE
    told = (
        rf"nothing was compared: PDR [\d.]+ kpps; compare the next build with it by --baseline {run_gate.root}/first;"
    )
    assert re.match(told, judgement.reason)
    (entry,) = result.scenarios
    assert entry.name == "ipv6-routing-1cpu-4096-64B"
    assert entry.pdr is not None
    assert entry.pdr.lower is not None
    assert entry.pdr.upper is not None
    assert entry.pdr.lower <= entry.pdr.load <= entry.pdr.upper
    # The realistic curve forwards 0.99 of its saturation load, and loses 0.5 % a little before that.
    assert entry.pdr.load == pytest.approx(0.99e6, rel=0.01)
    saturation = entry.measurand("saturation throughput")
    assert saturation is not None
    assert saturation.value == pytest.approx(0.99e6, rel=0.005)
    assert len(saturation.samples) == PROFILES["quick"].repeats
    assert entry.findings.search is not None
    assert entry.findings.search.goals[0].outcome == "found"
    assert entry.findings.calibration is not None
    assert entry.findings.calibration.ceiling == pytest.approx(3e6, rel=1e-3)
    assert entry.findings.fingerprint["kernel"] == "6.18"
    assert entry.findings.environment["kernel_release"] == "6.18"
    assert result.finished is not None
    assert result.testbed.sentence == entry.origin.testbed == "a simulated SUT"


def test_trials_say_what_they_are_and_whose(run_gate: Gate) -> None:
    _, result = run_gate("first", sut())
    trials = read_trials(run_gate.root / "first" / "trials.jsonl")
    assert {trial.occasion.phase for trial in trials} == {"calibration", "search", "repeat", "saturation", "pdr"}
    assert {trial.occasion.repeat for trial in trials if trial.occasion.phase in ("calibration", "search")} == {0}
    assert {
        trial.occasion.repeat for trial in trials if trial.occasion.phase in ("repeat", "saturation", "pdr")
    } == set(range(1, 7))
    assert {trial.occasion.goal for trial in trials if trial.occasion.phase == "search"} == {"PDR"}
    assert len({trial.belonging.fingerprint for trial in trials}) == 1
    assert {
        (trial.belonging.scenario, trial.belonging.boot, trial.belonging.side, trial.belonging.pair) for trial in trials
    } == {(result.scenarios[0].name, "boot-1", "", 0)}


def test_a_profile_for_seconds_tells_no_pdr_finely(run_gate: Gate) -> None:
    _, result = run_gate("smoke", sut(), profile="smoke", scenario=Scenario(width=0.01))
    (entry,) = result.scenarios
    assert entry.findings.search is not None
    assert [goal.width for goal in entry.findings.search.goals] == [0.1]
    with pytest.raises(UsageError, match=r"a width of 0\.000% would never be reached"):
        run_gate("mistaken", sut(), profile="smoke", scenario=Scenario(width=0.0))


PLAN = PROFILES["quick"]


def test_the_time_that_is_left_follows_what_repeats_take(run_gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("scenario_run", "one_sut_run"):
        monkeypatch.setattr(f"pdrgate.gate.scenarios.{module}.time", SimpleNamespace(monotonic=lambda: 0.0))
    run_gate("first", sut(curve=EarlyLoss(1e6, begins=0.8)))
    left: dict[int, float] = {}
    for progress in run_gate.watcher.progress:
        assert progress.left is not None
        left[progress.trial.occasion.repeat] = progress.left.most
        assert 0 <= progress.left.least <= progress.left.most
    assert left[0] == PLAN.search_time[1] + 1.25 * PLAN.repeats_time
    assert left[1] == 1.25 * PLAN.repeats_time
    # Loss that begins early takes a PDR more trials to tell than is planned for.
    trials = [progress.trial for progress in run_gate.watcher.progress if progress.trial.occasion.repeat == 1]
    assert left[2] == pytest.approx(PLAN.trials_time(len(trials) * (PLAN.repeats - 1)))
    assert left[2] > PLAN.repeats_time * (PLAN.repeats - 1) / PLAN.repeats
    falling = [left[number] for number in range(2, PLAN.repeats + 1)]
    assert falling == sorted(falling, reverse=True)


@pytest.mark.parametrize(
    ("capacity", "verdict"),
    [(1e6, Verdict.PASS), (0.9e6, Verdict.REGRESSION), (1.1e6, Verdict.IMPROVEMENT)],
)
def test_against_a_baseline(run_gate: Gate, capacity: float, verdict: Verdict) -> None:
    run_gate("old", sut(seed=1), kernel="6.17")
    judgement, result = run_gate("new", sut(capacity, seed=2), "old")
    assert judgement.verdict is verdict
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    assert comparison.baseline == str(run_gate.root / "old" / "result.json")
    assert comparison.change == pytest.approx(capacity / 1e6 - 1, abs=0.012)
    assert comparison.differs["kernel"] == ("6.17", "6.18")
    assert [change.measurand for change in comparison.changes] == ["PDR", "saturation throughput"]
    assert comparison.accepted


def test_equal_builds_are_not_judged_until_it_is_known_what_boots_deviate_by(run_gate: Gate) -> None:
    """From the boots of single runs alone: a fifth run of one build is compared by what the four before deviated by."""
    run_gate.noise = KnownNoise(None, daily=True)
    verdicts = []
    for number in range(6):
        judgement, result = run_gate(f"runs/{number}", sut(seed=number, noise=0.001), "runs")
        verdicts.append(judgement.verdict)
        comparison = result.scenarios[0].comparison
        if number:
            # What was compared, judged or not, is no baseline of a folder.
            assert comparison is not None
            assert comparison.baseline.endswith("runs/0/result.json")
            known = comparison.changes[0].boots_deviate
            assert (known is not None) == (number > 3)
            assert known is None or known < 0.003
            unknown = "not judged: ", "on 3 days: pdrgate calibrate no-file.yaml"
            assert all((words in judgement.reason) == (number < 4) for words in unknown)
    assert verdicts == [Verdict.NO_BASELINE] * 4 + [Verdict.PASS] * 2
    assert [len(observation.boots) for _, _, observation in run_gate.noise.kept] == [1] * 6
    required, _ = run_gate("required", sut(seed=7), "runs/0", require_baseline=True, profile="quick")
    assert required.verdict is Verdict.PASS
    run_gate.noise = KnownNoise(None)
    required, _ = run_gate("unknown", sut(seed=7), "runs/0", require_baseline=True)
    assert required.verdict is Verdict.INCONCLUSIVE


def test_what_boots_deviate_by_costs_no_verdict_where_it_cannot_be_had(run_gate: Gate) -> None:
    class Gone(KnownNoise):
        def observations(self, testbed: str) -> list[NoiseObservation]:
            raise DataError("cannot read history.db: Input/output error")

        def add_observation(self, testbed: str, conditions: Mapping[str, str], observation: NoiseObservation) -> None:
            raise StorageError("cannot write history.db: No space left on device")

    run_gate("old", sut())
    run_gate.noise = Gone()
    judgement, _ = run_gate("new", sut(0.9e6, seed=2), "old")
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "this testbed's noise cannot be read: cannot read history.db" in "; ".join(run_gate.watcher.sentences)
    assert "what boots deviate by is not kept: cannot write history.db" in "; ".join(run_gate.watcher.sentences)


def test_an_unstable_run_tells_nothing_of_boots(run_gate: Gate) -> None:
    judgement, _ = run_gate("run", sut(seed=1, modes=(1.0, 0.8)))
    assert judgement.verdict is Verdict.UNSTABLE
    assert run_gate.noise.kept == []


def test_loss_that_begins_earlier_is_a_lower_pdr_at_an_unchanged_saturation_throughput(run_gate: Gate) -> None:
    """By its throughput at saturation alone, a SUT that loses 2 % from 80 % of its capacity on was not slower."""
    run_gate("old", sut(curve=IdealCurve(1e6)))
    judgement, result = run_gate("new", sut(curve=EarlyLoss(1e6, 0.8), seed=2), "old")
    assert judgement.verdict in (Verdict.REGRESSION, Verdict.UNSTABLE)
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    pdr, saturation = comparison.changes
    assert pdr.verdict is Verdict.REGRESSION
    assert pdr.change == pytest.approx(-0.2, abs=0.02)
    assert saturation.change == pytest.approx(0, abs=0.01)
    assert f"PDR {Rate(pdr.candidate)} against" in judgement.reason
    assert all(number == str(Rate(pdr.candidate)) for number in PDRS.findall(judgement.reason))


def test_a_red_build_does_not_turn_green_by_starting_it_again(run_gate: Gate) -> None:
    run_gate("runs/good", sut(seed=1))
    for name in ("runs/bad", "runs/bad-again"):
        judgement, _ = run_gate(name, sut(0.9e6, seed=2), "runs")
        assert judgement.verdict is Verdict.REGRESSION


@pytest.mark.parametrize("seed", range(3))
def test_a_sut_with_two_modes_is_unstable_and_its_change_is_told_all_the_same(run_gate: Gate, seed: int) -> None:
    run_gate("old", sut())
    judgement, result = run_gate("run", sut(seed=seed, modes=(1.0, 0.8)), "old")
    assert judgement.verdict is Verdict.UNSTABLE
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    assert not comparison.accepted
    assert comparison.why_not
    assert judgement.reason.startswith(comparison.why_not)
    assert f"not accepted therefore: PDR {Rate(comparison.changes[0].candidate)} against " in judgement.reason


def test_one_unstable_run_tells_one_pdr(run_gate: Gate) -> None:
    """There once were three: a bound of the search, a crossing of the curve, and a mean over repeats."""
    run_gate("old", sut())
    judgement, result = run_gate("run", sut(seed=2, modes=(1.0, 0.8)), "old")
    (entry,) = result.scenarios
    measurand = entry.measurand("PDR")
    assert measurand is not None
    assert entry.pdr is not None
    assert entry.comparison is not None
    assert entry.pdr.load == measurand.value == entry.comparison.changes[0].candidate
    told = str(Rate(entry.pdr.load))
    assert f"PDR {told} against" in judgement.reason
    assert set(PDRS.findall(judgement.reason)) == {told}
    assert any(told in line for line in verdict_lines(result))


def test_no_capacity_at_all_is_unstable(run_gate: Gate) -> None:
    judgement, result = run_gate("run", sut(curve=EarlyLoss(1e6, 0.0)))
    assert judgement.verdict is Verdict.UNSTABLE
    assert "there is no PDR to find" in judgement.reason
    assert result.scenarios[0].pdr is None


# --- Generators ---


@pytest.mark.parametrize("stretches", [False, True])
def test_a_slow_generator_is_the_testbeds_fault(run_gate: Gate, stretches: bool) -> None:
    judgement, result = run_gate("run", sut(ceiling=Ceiling(5e5, stretches)))
    assert judgement.verdict is Verdict.GENERATOR_LIMITED
    assert judgement.verdict.exit_code == 2
    assert judgement.reason.startswith("even 450 kpps loses no more than 0.5%, and the generator ends at 500 kpps")
    search = result.scenarios[0].findings.search
    assert search is not None
    assert search.goals[0].outcome == "no upper bound"


def test_a_slow_generator_is_no_change_of_nothing(run_gate: Gate) -> None:
    """Two SUTs behind one slow generator once were equal, `+0.0 %`, and UNSTABLE."""
    run_gate("old", sut())
    judgement, result = run_gate("run", sut(0.9e6, ceiling=Ceiling(5e5)), "old")
    assert judgement.verdict is Verdict.GENERATOR_LIMITED
    assert result.scenarios[0].comparison is None
    assert "%" not in judgement.reason.replace("0.5%", "")


def test_a_generator_that_falls_short_everywhere_is_the_testbeds_fault(
    run_gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = sut()
    measure = subject.measure

    def short(load: float, duration: float) -> Trial:
        trial = measure(load, duration)
        return dataclasses.replace(trial, unsent=trial.offered // 100)

    monkeypatch.setattr(subject, "measure", short)
    judgement, _ = run_gate("run", subject)
    assert judgement.verdict is Verdict.GENERATOR_LIMITED
    assert judgement.reason.startswith("the generator fell short at ")


def test_a_generator_just_above_the_pdr_cannot_show_saturation(run_gate: Gate) -> None:
    judgement, _ = run_gate("run", SimulatedSut(IdealCurve(1e6), Behaviour(0.001), seed=1, ceiling=Ceiling(1.13e6)))
    assert judgement.verdict is Verdict.GENERATOR_LIMITED
    assert judgement.reason.startswith("the generator ends at 1.13 Mpps, too near the PDR to show saturation (no load ")


class Wavering(SimulatedSut):
    """Behind a generator whose ceiling is another at every moment."""

    def measure(self, load: float, duration: float) -> Trial:
        self._ceiling = Ceiling(float(self._random.uniform(420e3, 740e3)))
        return super().measure(load, duration)


@pytest.mark.parametrize("seed", range(8))
def test_a_wavering_generator_far_beyond_the_sut_does_not_matter(run_gate: Gate, seed: int) -> None:
    """Half of the searches of a slow SUT once ended GENERATOR_LIMITED: they began at the generator's ceiling."""
    judgement, result = run_gate("run", Wavering(IdealCurve(43e3), Behaviour(0.003), seed=seed))
    assert judgement.verdict is Verdict.NO_BASELINE
    pdr = result.scenarios[0].pdr
    assert pdr is not None
    assert pdr.load == pytest.approx(43e3 / 0.995, rel=0.01)


@pytest.mark.parametrize(
    "curve", [Livelock(1e6, 2.2), Livelock(1e6, 1.3), Livelock(1e6, 1.05)], ids=["late", "soon", "at once"]
)
def test_a_sut_that_collapses_under_overload_still_gets_its_pdr(run_gate: Gate, curve: LoadLoss) -> None:
    """Flat out it forwards 5 %: the search that begins there finds its end, and goes on from it."""
    judgement, result = run_gate("run", sut(curve=curve, noise=0.002))
    assert judgement.verdict is not Verdict.GENERATOR_LIMITED
    pdr = result.scenarios[0].pdr
    assert pdr is not None
    assert pdr.load == pytest.approx(1e6 / 0.995, rel=0.015)


def test_a_sut_that_collapses_far_below_the_generators_ceiling_is_not_searched_there(run_gate: Gate) -> None:
    """At its ceiling a generator wavers: an end host that delivers 1 % when it is flooded was GENERATOR_LIMITED."""
    asked: list[float] = []

    class Asked(SimulatedSut):
        def measure(self, load: float, duration: float) -> Trial:
            asked.append(load)
            return super().measure(load, duration)

    _, result = run_gate("run", Asked(Livelock(20e3, 2.5, left=0.1), Behaviour(0.002), ceiling=CEILING))
    pdr = result.scenarios[0].pdr
    assert pdr is not None
    assert pdr.load == pytest.approx(20e3 / 0.995, rel=0.015)
    assert max(load for load in asked if load < FLAT_OUT) < 100e3


# --- What is asked ---


def test_several_scenarios_share_a_run_and_all_stay(tmp_path: Path, state: Path) -> None:
    testbed = FakeTestbed(sut())
    watcher = Watcher()
    with new_session(testbed, tmp_path / "run", watcher, state) as session:
        gate(session, Scenario(buffer=512))
        gate(session, Scenario("ipv4-routing"))
        gate(session, Scenario("ipv4-routing"))
    assert testbed.settings == [512, "1 cpu", 4096, "1 cpu", 4096, "1 cpu"]
    names = [entry.name for entry in read_result(tmp_path / "run").scenarios]
    assert names == ["ipv6-routing-1cpu-512-64B", *["ipv4-routing-1cpu-4096-64B"] * 2]
    assert watcher.sentences[0] == "testbed simulated: a simulated SUT"
    assert watcher.progress[0].trial.intended_load == 20e6
    assert [step.number for step in watcher.progress[:3]] == [1, 2, 3]
    last = next(step for step in reversed(watcher.progress) if step.scenario.buffer == 512)
    assert last.lower is not None
    assert last.upper is not None
    assert last.lower < last.upper
    # The second of two equal scenarios was measured as the first was.
    trials = [entry.trials for entry in read_result(tmp_path / "run").scenarios]
    assert sum(trials) == len(testbed.calls)
    assert not any(step.replayed for step in watcher.progress)


def test_the_goal_that_a_keyword_names_is_part_of_the_question(tmp_path: Path, state: Path) -> None:
    """A search for 10 % loss once had the name and the fingerprint of one for 0.5 %."""
    with new_session(FakeTestbed(sut()), tmp_path / "run", Watcher(), state) as session:
        subject = ScenarioRun(session, Scenario())
        subject.prepare()
        plain = dict(subject.sut.fingerprint)
        found = subject.search(loss_ratio=0.1, width=0.05)
        assert (found.results[-1].loss_ratio, found.results[-1].width) == (0.1, 0.05)
        subject.finish()
    entry = read_result(tmp_path / "run").scenarios[0]
    assert entry.name == "ipv6-routing-1cpu-4096-64B-loss10-width5"
    assert entry.findings.fingerprint != plain
    trials = read_trials(tmp_path / "run" / "trials.jsonl")
    assert {trial.belonging.scenario for trial in trials} == {entry.name}
    assert len(trials) == entry.trials


def test_a_run_of_another_goal_is_refused_before_anything_is_measured(run_gate: Gate) -> None:
    run_gate("ten", sut(), scenario=Scenario(loss_ratio=0.1))
    testbed = FakeTestbed(sut())
    options = dataclasses.replace(QUICK, baseline=run_gate.root / "ten")
    with new_session(testbed, run_gate.root / "half", Watcher(), run_gate.state, options) as session:
        with pytest.raises(
            DataError, match=r"^the baseline cannot serve: .*has no result of this scenario \(it has: IPv6"
        ):
            gate(session)
        assert testbed.calls == []


def test_a_required_baseline_that_there_is_not_is_told_before_anything_is_measured(run_gate: Gate) -> None:
    (run_gate.root / "runs").mkdir()
    for baseline in (None, run_gate.root / "runs"):
        testbed = FakeTestbed(sut())
        options = dataclasses.replace(QUICK, baseline=baseline, require_baseline=True)
        with new_session(testbed, run_gate.root / "run", Watcher(), run_gate.state, options) as session:
            with pytest.raises(DataError, match=r"^a baseline is required, and there is none: "):
                gate(session)
            assert testbed.calls == []


def test_a_required_baseline_that_holds_nothing_of_what_was_measured_is_no_pass(run_gate: Gate) -> None:
    _, result = run_gate("first", sut())
    (entry,) = result.scenarios
    others = tuple(dataclasses.replace(one, name=f"another {one.name}") for one in entry.findings.measurands)
    scenarios = (changed(entry, measurands=others),)
    write_result(run_gate.root / "first" / "result.json", dataclasses.replace(result, scenarios=scenarios))
    for required, verdict in ((False, Verdict.NO_BASELINE), (True, Verdict.INCONCLUSIVE)):
        judgement, _ = run_gate(f"required-{required}", sut(), baseline="first", require_baseline=required)
        assert judgement.verdict is verdict
        assert "result.json has none of these measurands by two samples or more" in judgement.reason


def test_each_tolerance_is_asked_anew_and_the_gravest_answer_is_the_tests(run_gate: Gate) -> None:
    """The second question of a test once got the first one's answer."""
    run_gate("old", sut())
    folder = run_gate.root / "new"
    testbed = FakeTestbed(sut(0.9e6, seed=2))
    with new_session(testbed, folder, Watcher(), run_gate.state, experience=KnownNoise()) as session:
        subject = ScenarioRun(session, Scenario(), baselines=Baselines(run_gate.root / "old", folder))
        subject.prepare()
        subject.search()
        subject.repeat()
        assert subject.judge(0.5).verdict is Verdict.PASS
        assert subject.judge(0.01).verdict is Verdict.REGRESSION
        assert subject.judge(0.5).verdict is Verdict.PASS
        assert subject.finish().verdict is Verdict.REGRESSION
        comparison = subject.result().comparison
        assert comparison is not None
        assert comparison.tolerance == 0.01
        with pytest.raises(UsageError, match="has no meaning"):
            subject.judge(2.0)


def test_what_is_not_put_back_is_told_whatever_it_says(run_gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """What began with ``put back`` once was taken for done."""
    failed = "put back the neighbour of eth0 by hand: ip could not"
    monkeypatch.setattr("pdrgate.data_paths.paths.kernel_routing.Routing.restore", lambda path: [failed])
    watcher = Watcher()
    with new_session(FakeTestbed(sut()), run_gate.root / "run", watcher, run_gate.state) as session:
        subject = ScenarioRun(session, Scenario())
        subject.prepare()
        subject.release()
    assert failed in watcher.sentences


def test_no_build_after_the_first_can_be_a_little_slower_than_the_one_before(run_gate: Gate) -> None:
    """Eleven builds, each 1.3 % slower: in a folder of runs the first stays what all are compared with."""
    verdicts = []
    for number in range(11):
        capacity = 1e6 * 0.987**number
        judgement, result = run_gate(
            f"runs/{number:02}", sut(curve=IdealCurve(capacity), seed=number, noise=0.001), "runs",
            kernel=f"6.{number}", profile="smoke",
        )  # fmt: skip
        verdicts.append(judgement.verdict)
        comparison = result.scenarios[0].comparison
        assert comparison is None or comparison.baseline.endswith("runs/00/result.json")
    assert verdicts[:2] == [Verdict.NO_BASELINE, Verdict.PASS]
    assert set(verdicts[3:]) == {Verdict.REGRESSION}


# --- Runs that are killed and resumed ---


def whole(tmp_path: Path, state: Path) -> tuple[FakeTestbed, RunResult]:
    testbed = FakeTestbed(sut())
    with new_session(testbed, tmp_path / "whole", Watcher(), state) as session:
        gate(session)
    return testbed, read_result(tmp_path / "whole")


@pytest.mark.parametrize("killed_after", [[1], [3], [5], [9], [20], [40], [2, 4, 8, 30]])
def test_a_killed_run_goes_on_without_repeating_a_trial(tmp_path: Path, state: Path, killed_after: list[int]) -> None:
    uninterrupted, expected = whole(tmp_path, state)
    folder = tmp_path / "killed"
    testbed = FakeTestbed(sut())  # one SUT all along: its noise goes on where it stood
    resume = False
    for number in killed_after:
        # Killed: no close of the run, no end of the scenario, perhaps half a line of a trial.
        session = new_session(testbed, folder, Watcher(number), state, resume=resume)
        session.open()
        with pytest.raises(Killed):
            gate(session)
        with (folder / "trials.jsonl").open("a") as file:
            file.write('{"intended_load":20000')
        session.close()
        resume = True
    watcher = Watcher()
    with new_session(testbed, folder, watcher, state, resume=True) as session:
        assert len(session.record.earlier.all) == killed_after[-1]
        gate(session)
    assert testbed.calls == uninterrupted.calls
    assert sum(step.replayed for step in watcher.progress) == killed_after[-1]
    found, wanted = read_result(folder).scenarios[0], expected.scenarios[0]
    assert (found.verdict, found.pdr, found.findings.measurands) == (
        wanted.verdict,
        wanted.pdr,
        wanted.findings.measurands,
    )
    assert found.trials == wanted.trials
    assert len(read_trials(folder / "trials.jsonl")) == len(uninterrupted.calls)


def test_a_finished_run_is_only_read_again_when_it_is_resumed(tmp_path: Path, state: Path) -> None:
    testbed, expected = whole(tmp_path, state)
    before = (tmp_path / "whole" / "trials.jsonl").read_bytes()
    calls = len(testbed.calls)
    with new_session(testbed, tmp_path / "whole", Watcher(), state, resume=True) as session:
        gate(session)
    assert len(testbed.calls) == calls
    assert (tmp_path / "whole" / "trials.jsonl").read_bytes() == before
    assert read_result(tmp_path / "whole").scenarios[0].pdr == expected.scenarios[0].pdr


def test_a_second_run_in_the_same_folder_measures_anew(tmp_path: Path, state: Path) -> None:
    _, first = whole(tmp_path, state)
    testbed, watcher = FakeTestbed(sut(0.5e6)), Watcher()
    with new_session(testbed, tmp_path / "whole", watcher, state) as session:
        gate(session)
    assert not any(step.replayed for step in watcher.progress)
    second = read_result(tmp_path / "whole")
    pdrs = [result.scenarios[0].pdr for result in (first, second)]
    assert pdrs[0] is not None
    assert pdrs[1] is not None
    assert pdrs[1].load == pytest.approx(0.5 * pdrs[0].load, rel=0.02)
    assert (tmp_path / "whole" / "trials-1.jsonl").exists()


class Generatorless(FakeTestbed):
    """Its generator calls itself otherwise."""

    def generator(self, family: int) -> Any:
        made = super().generator(family)
        made.describe = lambda: {"name": "simulated", "engine": "another", "chosen": "for a test"}  # type: ignore[method-assign]
        return made


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ("kernel", "kernel 6.18 there, 6.19 here"),
        ("profile", "profile quick there, smoke here"),
        ("testbed", "testbed simulated there, another here"),
        ("generator", "generator simulated/none there, simulated/another here"),
    ],
)
def test_a_run_of_other_conditions_cannot_be_resumed(tmp_path: Path, state: Path, changed: str, told: str) -> None:
    whole(tmp_path, state)
    make = Generatorless if changed == "generator" else FakeTestbed
    testbed = make(sut(), boot_id="boot-1", kernel="6.19" if changed == "kernel" else "6.18")
    options = Options(profile="smoke" if changed == "profile" else "quick")
    config = dataclasses.replace(CONFIG, name="another") if changed == "testbed" else CONFIG
    record = RunRecord(tmp_path / "whole", options.profile, resume=True)
    with Session(config, options, record, Watcher(), opener=testbed.open_with, state=state) as session:
        with pytest.raises(DataError) as error:
            gate(session)
        assert str(error.value) == (
            f"cannot resume {tmp_path / 'whole'}: its trials of ipv6-routing-1cpu-4096-64B were made otherwise "
            f"({told}); start a new run"
        )
        assert testbed.calls == []


def test_what_another_boot_has_told_is_measured_anew(tmp_path: Path, state: Path) -> None:
    """A guest that the run boots itself is another boot each time, and Ctrl-C once led to a run that was refused."""
    _, before = whole(tmp_path, state)
    watcher = Watcher()
    testbed = FakeTestbed(sut(), boot_id="boot-2")
    with new_session(testbed, tmp_path / "whole", watcher, state, resume=True) as session:
        gate(session)
    now = read_result(tmp_path / "whole")
    assert now.verdict is before.verdict
    assert now.scenarios[0].origin.boot == "boot-2"
    assert testbed.calls
    assert not any(step.replayed for step in watcher.progress)
    assert [one for one in watcher.sentences if "is of another boot of this kernel: it is measured anew" in one]


def test_a_scenario_that_the_run_had_not_begun_is_measured_when_it_is_resumed(tmp_path: Path, state: Path) -> None:
    whole(tmp_path, state)
    watcher = Watcher()
    with new_session(FakeTestbed(sut()), tmp_path / "whole", watcher, state, resume=True) as session:
        gate(session, Scenario(buffer=512))
    assert not any(step.replayed for step in watcher.progress)


def load_asked(session: Session, test: str = "") -> Trial:
    """A test that asks for a load, as `Measure Load` does."""
    subject = ScenarioRun(session, Scenario(), test=test.rpartition(".")[2], longname=test)
    subject.prepare()
    trial = subject.measure_load(1.02e6, 1.0)
    subject.finish()
    return trial


TESTS = [("One.Same Name", "Another.Same Name"), ("", "")]


@pytest.mark.parametrize(("first", "second"), TESTS)
def test_a_test_that_the_run_had_not_begun_is_measured_whatever_the_scenarios_before_it(
    tmp_path: Path, state: Path, first: str, second: str
) -> None:
    """It once told the trials of the first test of its scenario as its own, and nothing was sent."""
    testbed = FakeTestbed(sut())
    with new_session(testbed, tmp_path / "run", Watcher(), state) as session:
        before = load_asked(session, first)
    watcher = Watcher()
    with new_session(testbed, tmp_path / "run", watcher, state, resume=True) as session:
        assert load_asked(session, first) == before
        load_asked(session, second)
    assert [step.replayed for step in watcher.progress] == [True, False]
    assert len(testbed.calls) == 2
    assert [trial.belonging.test for trial in read_trials(tmp_path / "run" / "trials.jsonl")] == [first, second]


@pytest.mark.parametrize(("first", "second"), TESTS)
def test_each_test_of_a_scenario_goes_on_with_its_own_trials(
    tmp_path: Path, state: Path, first: str, second: str
) -> None:
    testbed = FakeTestbed(sut())
    with new_session(testbed, tmp_path / "run", Watcher(), state) as session:
        before = [load_asked(session, first), load_asked(session, second)]
    with new_session(testbed, tmp_path / "run", Watcher(), state, resume=True) as session:
        assert [load_asked(session, first), load_asked(session, second)] == before
    assert before[0] != before[1]
    assert len(testbed.calls) == 2


@pytest.mark.parametrize(("first", "second"), TESTS)
def test_a_run_of_two_testbeds_that_was_killed_at_the_first_goes_on_at_both(
    tmp_path: Path, state: Path, first: str, second: str
) -> None:
    """It once was refused: the scenario's trials of the first testbed were of no use at the second."""
    testbeds = [FakeTestbed(sut(), boot_id=f"boot-{number}") for number in (1, 2)]
    watchers = [Watcher(), Watcher()]
    for resume in (False, True):
        record = RunRecord(tmp_path / "run", "quick", resume=resume)
        for testbed, watcher, test in list(zip(testbeds, watchers, (first, second), strict=True))[: 1 + resume]:
            config = dataclasses.replace(CONFIG, name=f"testbed of {testbed.boot_id}")
            with Session(config, QUICK, record, watcher, opener=testbed.open_with, state=state) as session:
                load_asked(session, test)
    assert [[step.replayed for step in watcher.progress] for watcher in watchers] == [[False, True], [False]]


# --- Faults ---


def test_a_full_disk_ends_the_run_with_one_line(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testbed = FakeTestbed(sut())
    with new_session(testbed, tmp_path / "run", Watcher(), state) as session:
        append, left = session.record.trials.append, iter(range(5))

        def full(trial: Trial) -> None:
            if next(left, None) is None:
                raise StorageError("full")
            append(trial)

        monkeypatch.setattr(session.record.trials, "append", full)
        subject = ScenarioRun(session, Scenario())
        subject.prepare()
        with pytest.raises(StorageError) as error:
            subject.search()
        subject.finish(Judgement(Verdict.ERROR, str(error.value)))
    result = read_result(tmp_path / "run")
    assert (result.verdict, result.reason) == (Verdict.ERROR, "full")
    assert result.scenarios[0].trials == len(read_trials(tmp_path / "run" / "trials.jsonl")) == 5
    assert testbed.generators_open == 0


def test_steps_out_of_order_say_what_comes_first(tmp_path: Path, state: Path) -> None:
    with new_session(FakeTestbed(sut()), tmp_path / "run", Watcher(), state) as session:
        subject = ScenarioRun(session, Scenario())
        with pytest.raises(TestbedError, match=r"^the SUT is not set up for a scenario"):
            subject.measure_load(1.0, 1.0)
        with pytest.raises(TestbedError, match=r"^there is no PDR to repeat trials around; search it first$"):
            subject.repeat()
        with pytest.raises(TestbedError, match=r"^there is nothing to judge; search the PDR"):
            subject.judge(0.02)
        assert subject.finish() == Judgement(Verdict.ERROR, "the scenario ended before its verdict")


# --- Latency ---


def test_latency_is_taken_at_the_loads_of_the_baseline(run_gate: Gate) -> None:
    """At shares of its own PDR a build that is slower by a tenth would seem to take as long as before."""
    late = Scenario(latency=True)
    _, first = run_gate("first", sut(), scenario=late)
    _, second = run_gate("second", sut(0.9e6, seed=2), "first", scenario=late)
    (old,), (new,) = first.scenarios, second.scenarios
    assert [one.share for one in old.findings.latency] == [0.5, 0.9, 0.99]
    repeat = next(one for one in old.findings.measurands if one.name == "PDR").samples[0]
    assert [one.load for one in old.findings.latency] == [
        pytest.approx(repeat * one.share, rel=1e-3) for one in old.findings.latency
    ]
    assert [one.load for one in new.findings.latency] == [one.load for one in old.findings.latency]
    assert new.comparison is not None
    assert {"median latency at 50% PDR", "p99 latency at 90% PDR"} <= {one.measurand for one in new.comparison.changes}
    assert "; the 99th percentile of latency at 90 % of the PDR is " in second.reason


def test_a_killed_run_takes_latency_at_the_loads_that_it_had(run_gate: Gate, tmp_path: Path, state: Path) -> None:
    late = Scenario(latency=True)
    _, whole = run_gate("whole", sut(), scenario=late)
    stopped = whole.scenarios[0].trials - 9
    testbed = FakeTestbed(sut())
    with pytest.raises(Killed), new_session(testbed, tmp_path / "run", Watcher(stopped), state) as session:
        gate(session, late)
    testbed = FakeTestbed(sut(seed=5))
    with new_session(testbed, tmp_path / "run", Watcher(), state, resume=True) as session:
        subject, _ = gate(session, late)
    assert [one.load for one in subject.latency] == [one.load for one in whole.scenarios[0].findings.latency]
    assert 0 < len(testbed.calls) <= 15


def test_a_program_that_grew_at_load_is_a_regression_against_a_stored_baseline(
    run_gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"verified": 800, "states": 40, "jited": 812, "memory": 4096}
    monkeypatch.setattr(SteppedPath, "load_cost", lambda path: told)
    run_gate("first", sut())
    alike, _ = run_gate("alike", sut(), "first", load_tolerance=Ratio(0.1))
    assert alike.verdict is not Verdict.REGRESSION
    told["verified"] = 1200
    unasked, _ = run_gate("unasked", sut(), "first")
    assert unasked.verdict is alike.verdict
    grown, result = run_gate("grown", sut(), "first", load_tolerance=Ratio(0.1))
    assert grown.verdict is Verdict.REGRESSION
    assert grown.reason.startswith("the verifier looks at 1200 instructions, baseline 800 (+50.0 %), tolerance 10.0%")
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    assert comparison.changes[0].measurand == "PDR"

"""Whole runs of the gate over a simulated SUT: every verdict, and a run that is killed and resumed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from fake_testbed import CONFIG, FakeTestbed, Killed, Watcher, gate, new_run

from pdrgate.errors import StorageError, TestbedError
from pdrgate.gate.profile import PROFILES, Profile
from pdrgate.gate.run import Options, Run
from pdrgate.gate.scenario import Scenario
from pdrgate.gate.scenario_run import ScenarioRun
from pdrgate.history.results import read_result
from pdrgate.hosts.host import local_host
from pdrgate.knobs import FileKnob, KnobSet
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.safety.journal import Journal, MachineLock
from pdrgate.stability import read_trials
from pdrgate.traffic.simulated import Behaviour, Ceiling, IdealCurve, RealisticCurve, SimulatedSut

QUICK = PROFILES["quick"]
CEILING = Ceiling(3e6)


def sut(capacity: float = 1e6, seed: int = 1, noise: float = 0.003, **more: Any) -> SimulatedSut:
    ceiling = more.pop("ceiling", CEILING)
    return SimulatedSut(RealisticCurve(capacity), Behaviour(noise, **more), seed=seed, ceiling=ceiling)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


class Gate:
    """Runs the gate in folders of one test."""

    def __init__(self, root: Path, state: Path) -> None:
        self.root = root
        self.state = state

    def __call__(
        self,
        name: str,
        subject: SimulatedSut,
        baseline: str | None = None,
        kernel: str = "6.18",
        profile: Profile = QUICK,
    ) -> tuple[Judgement, dict[str, Any]]:
        folder = self.root / name
        options = Options(profile, folder, baseline=self.root / baseline if baseline is not None else None)
        testbed = FakeTestbed(subject, kernel=kernel)
        with new_run(testbed, options, Watcher(), self.state) as run:
            _, judgement = gate(run)
            run.write(finished=True)
        assert not testbed.open
        assert testbed.generators_open == 0
        assert not list(self.state.glob("run-*"))
        result = read_result(folder)
        assert (result["verdict"], result["reason"]) == (judgement.verdict, judgement.reason)
        assert result["scenarios"][0]["trials"] == len(testbed.calls) == len(read_trials(folder / "trials.jsonl"))
        return judgement, result


@pytest.fixture
def run_gate(tmp_path: Path, state: Path) -> Gate:
    return Gate(tmp_path, state)


def test_the_first_run_has_no_baseline_and_becomes_one(run_gate: Gate) -> None:
    judgement, result = run_gate("first", sut())
    assert judgement.verdict is Verdict.NO_BASELINE
    assert judgement.reason.endswith(f"this result can be the next run's: --baseline {run_gate.root}/first")
    (entry,) = result["scenarios"]
    assert entry["name"] == "ipv6-routing-1cpu-4096-64B"
    assert entry["pdr"]["lower"] <= entry["pdr"]["load"] <= entry["pdr"]["upper"]
    # The realistic curve forwards 0.99 of its saturation load: T_sat / (1 - 0.5 %).
    assert entry["pdr"]["load"] == pytest.approx(0.99e6 / 0.995, rel=0.005)
    assert entry["search"]["goals"][0]["outcome"] == "found"
    assert entry["calibration"]["ceiling"] == pytest.approx(3e6, rel=1e-3)
    assert entry["fingerprint"]["kernel"] == "6.18"
    assert result["finished"] is not None
    assert result["testbed"]["sentence"] == "a simulated SUT"
    phases = [trial.phase for trial in read_trials(run_gate.root / "first" / "trials.jsonl")]
    assert phases == sorted(phases, key=["calibration", "search", "repeat"].index)
    assert set(phases) == {"calibration", "search", "repeat"}


@pytest.mark.parametrize(
    ("capacity", "verdict"),
    [(1e6, Verdict.PASS), (0.9e6, Verdict.REGRESSION), (1.1e6, Verdict.IMPROVEMENT)],
)
def test_against_a_baseline(run_gate: Gate, capacity: float, verdict: Verdict) -> None:
    run_gate("old", sut(seed=1), kernel="6.17")
    judgement, result = run_gate("new", sut(capacity, seed=2), "old")
    assert judgement.verdict is verdict
    comparison = result["scenarios"][0]["comparison"]
    assert comparison["baseline"] == str(run_gate.root / "old" / "result.json")
    assert comparison["change"] == pytest.approx(capacity / 1e6 - 1, abs=0.005)
    assert comparison["differs"]["kernel"] == ["6.17", "6.18"]


def test_against_a_folder_of_runs_only_the_same_kernel_counts(run_gate: Gate) -> None:
    run_gate("runs/older-kernel", sut(2e6, seed=1), kernel="6.17")
    first, _ = run_gate("runs/same-kernel", sut(seed=2), "runs")
    assert first.verdict is Verdict.NO_BASELINE
    assert "that passed has the same fingerprint" in first.reason
    second, result = run_gate("runs/again", sut(seed=3), "runs")
    assert second.verdict is Verdict.PASS
    assert result["scenarios"][0]["comparison"]["baseline"].endswith("runs/same-kernel/result.json")


def test_a_red_build_does_not_turn_green_by_starting_it_again(run_gate: Gate) -> None:
    run_gate("runs/good", sut(seed=1))
    for name in ("runs/bad", "runs/bad-again"):
        judgement, _ = run_gate(name, sut(0.9e6, seed=2), "runs")
        assert judgement.verdict is Verdict.REGRESSION


@pytest.mark.parametrize("seed", range(3))
def test_a_sut_with_two_modes_is_unstable(run_gate: Gate, seed: int) -> None:
    judgement, result = run_gate("run", sut(seed=seed, modes=(1.0, 0.8)))
    assert judgement.verdict is Verdict.UNSTABLE
    assert result["scenarios"][0]["comparison"] is None
    assert any(character.isdigit() for character in judgement.reason)


def test_no_capacity_at_all_is_unstable(run_gate: Gate) -> None:
    judgement, result = run_gate("run", sut(10.0))
    assert judgement.verdict is Verdict.UNSTABLE
    assert "there is no PDR to find" in judgement.reason
    assert result["scenarios"][0]["pdr"] is None


@pytest.mark.parametrize("stretches", [False, True])
def test_a_slow_generator_is_the_testbeds_fault(run_gate: Gate, stretches: bool) -> None:
    judgement, result = run_gate("run", sut(ceiling=Ceiling(5e5, stretches)))
    assert judgement.verdict is Verdict.GENERATOR_LIMITED
    assert judgement.verdict.exit_code == 2
    assert judgement.reason.startswith("even 450 kpps loses no more than 0.5%, and the generator ends at 500 kpps")
    assert result["scenarios"][0]["search"]["goals"][0]["outcome"] == "no upper bound"


def test_a_generator_that_falls_short_everywhere_is_the_testbeds_fault(
    run_gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = sut()
    measure = subject.measure

    def short(load: float, duration: float) -> Any:
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


def test_several_scenarios_share_a_run(tmp_path: Path, state: Path) -> None:
    testbed = FakeTestbed(sut())
    watcher = Watcher()
    options = Options(QUICK, tmp_path / "run")
    with new_run(testbed, options, watcher, state) as run:
        gate(run, Scenario(buffer=512))
        gate(run, Scenario("ipv4-routing"))
        gate(run, Scenario("ipv4-routing"))  # measured again: takes the place of the first
    assert testbed.settings == [512, "1 cpu", 4096, "1 cpu", 4096, "1 cpu"]
    names = [entry["name"] for entry in read_result(tmp_path / "run")["scenarios"]]
    assert names == ["ipv6-routing-1cpu-512-64B", "ipv4-routing-1cpu-4096-64B"]
    assert watcher.sentences[0] == "testbed simulated: a simulated SUT"
    assert watcher.progress[0].trial.intended_load == 20e6
    assert [step.number for step in watcher.progress[:3]] == [1, 2, 3]
    last = next(step for step in reversed(watcher.progress) if step.scenario.buffer == 512)
    assert last.lower is not None
    assert last.upper is not None
    assert last.lower < last.upper


STABLE_MEASURES = 3 + 6 * 6  # calibration and the grid's repeats; the search comes on top


def whole(tmp_path: Path, state: Path) -> tuple[FakeTestbed, dict[str, Any]]:
    testbed = FakeTestbed(sut())
    with new_run(testbed, Options(QUICK, tmp_path / "whole"), Watcher(), state) as run:
        gate(run)
    assert len(testbed.calls) > STABLE_MEASURES
    return testbed, read_result(tmp_path / "whole")


@pytest.mark.parametrize("killed_after", [[1], [3], [5], [9], [20], [40], [2, 4, 8, 30]])
def test_a_killed_run_goes_on_without_repeating_a_trial(tmp_path: Path, state: Path, killed_after: list[int]) -> None:
    uninterrupted, expected = whole(tmp_path, state)
    folder = tmp_path / "killed"
    testbed = FakeTestbed(sut())  # one SUT all along: its noise goes on where it stood
    for number in killed_after:
        # Killed: no close of the run, no end of the scenario, perhaps half a line of a trial.
        run = new_run(testbed, Options(QUICK, folder), Watcher(number), state)
        run.open()
        with pytest.raises(Killed):
            gate(run)
        with (folder / "trials.jsonl").open("a") as file:
            file.write('{"intended_load":20000')
        run.close()
    watcher = Watcher()
    with new_run(testbed, Options(QUICK, folder), watcher, state) as run:
        assert len(run.earlier) == killed_after[-1]
        gate(run)
    assert testbed.calls == uninterrupted.calls
    assert sum(step.replayed for step in watcher.progress) == killed_after[-1]
    found, wanted = read_result(folder)["scenarios"][0], expected["scenarios"][0]
    assert (found["verdict"], found["pdr"]) == (wanted["verdict"], wanted["pdr"])
    assert found["trials"] == wanted["trials"]
    assert len(read_trials(folder / "trials.jsonl")) == len(uninterrupted.calls)


def test_a_finished_run_is_only_read_again(tmp_path: Path, state: Path) -> None:
    testbed, expected = whole(tmp_path, state)
    before = (tmp_path / "whole" / "trials.jsonl").read_bytes()
    calls = len(testbed.calls)
    with new_run(testbed, Options(QUICK, tmp_path / "whole"), Watcher(), state) as run:
        gate(run)
    assert len(testbed.calls) == calls
    assert (tmp_path / "whole" / "trials.jsonl").read_bytes() == before
    again = read_result(tmp_path / "whole")
    assert again["scenarios"][0]["pdr"] == expected["scenarios"][0]["pdr"]


@pytest.mark.parametrize("change", ["boot", "scenario"])
def test_trials_of_another_boot_or_scenario_are_no_answers(tmp_path: Path, state: Path, change: str) -> None:
    whole(tmp_path, state)
    testbed = FakeTestbed(sut(), boot="boot-2" if change == "boot" else "boot-1")
    scenario = Scenario(buffer=512) if change == "scenario" else Scenario()
    watcher = Watcher()
    with new_run(testbed, Options(QUICK, tmp_path / "whole"), watcher, state) as run:
        gate(run, scenario)
    assert not any(step.replayed for step in watcher.progress)


def test_a_full_disk_ends_the_run_with_one_line(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testbed = FakeTestbed(sut())
    with new_run(testbed, Options(QUICK, tmp_path / "run"), Watcher(), state) as run:
        append, left = run.file.append, iter(range(5))

        def full(trial: Any) -> None:
            if next(left, None) is None:
                raise StorageError("full")
            append(trial)

        monkeypatch.setattr(run.file, "append", full)
        subject = ScenarioRun(run, Scenario())
        subject.prepare()
        with pytest.raises(StorageError) as error:
            subject.search(QUICK.goals)
        subject.finish(Judgement(Verdict.ERROR, str(error.value)))
    result = read_result(tmp_path / "run")
    assert (result["verdict"], result["reason"]) == ("ERROR", "full")
    assert result["scenarios"][0]["trials"] == len(read_trials(tmp_path / "run" / "trials.jsonl")) == 5
    assert testbed.generators_open == 0


def test_steps_out_of_order_say_what_comes_first(tmp_path: Path, state: Path) -> None:
    run = new_run(FakeTestbed(sut()), Options(QUICK, tmp_path / "run"), Watcher(), state)
    with pytest.raises(TestbedError, match=r"^no testbed is open; begin with the keyword Open Testbed$"):
        ScenarioRun(run, Scenario()).prepare()
    with run:
        subject = ScenarioRun(run, Scenario())
        with pytest.raises(TestbedError, match=r"^the SUT is not set up for a scenario"):
            subject.measure(1.0, 1.0, "search")
        with pytest.raises(TestbedError, match=r"^there is no PDR to repeat trials around; search it first$"):
            subject.repeat()
        with pytest.raises(TestbedError, match=r"^there is nothing to judge; search the PDR"):
            subject.judge(0.02)
        assert subject.finish() == Judgement(Verdict.ERROR, "the scenario ended before its verdict")


def test_a_testbed_that_cannot_be_opened_leaves_the_machine_free(tmp_path: Path, state: Path) -> None:
    def fails(config: object, journal: object) -> FakeTestbed:
        raise TestbedError("no namespaces")

    run = Run(CONFIG, Options(QUICK, tmp_path / "run"), Watcher(), opener=fails, state=state)
    with pytest.raises(TestbedError, match="no namespaces"):
        run.open()
    MachineLock.acquire(state).release()
    assert not list(state.glob("run-*"))
    run.fail("no namespaces")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["verdict"], result["reason"], result["scenarios"]) == ("ERROR", "no namespaces", [])


def test_an_interruption_when_the_testbed_is_just_made_leaves_nothing(tmp_path: Path, state: Path) -> None:
    target = tmp_path / "setting"
    target.write_text("1")

    def interrupted(config: object, journal: Journal) -> FakeTestbed:
        with local_host() as host:
            KnobSet(journal).apply(host, FileKnob(str(target), "2"))
        assert target.read_text().strip() == "2"
        raise KeyboardInterrupt

    run = Run(CONFIG, Options(QUICK, tmp_path / "run"), Watcher(), opener=interrupted, state=state)
    with pytest.raises(KeyboardInterrupt):
        run.open()
    assert target.read_text().strip() == "1"
    assert not list(state.glob("run-*"))
    MachineLock.acquire(state).release()


def test_two_runs_at_once(tmp_path: Path, state: Path) -> None:
    with new_run(FakeTestbed(sut()), Options(QUICK, tmp_path / "one"), Watcher(), state):
        other = new_run(FakeTestbed(sut()), Options(QUICK, tmp_path / "two"), Watcher(), state)
        with pytest.raises(TestbedError, match=r"^another pdrgate run \(pid \d+, since .*wait for it to end$"):
            other.open()
    with other:
        assert other.testbed.sentence() == "a simulated SUT"


def test_a_folder_that_cannot_be_made(tmp_path: Path, state: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError) as error:
        new_run(FakeTestbed(sut()), Options(QUICK, tmp_path / "file" / "run"), Watcher(), state)
    assert "\n" not in str(error.value)

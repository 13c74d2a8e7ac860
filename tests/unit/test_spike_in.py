"""A comparison that passed, and a slowdown that was planted to see whether it could have failed; on simulated SUTs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from console_lines import verdict_lines
from fake_testbed import CONFIG, QUICK, FakeTestbed, Killed, Watcher
from simulated_sut import Behaviour, Ceiling, IdealCurve, SimulatedSut

from pdrgate.data_paths.catalogue import DATA_PATHS, PathDescription
from pdrgate.data_paths.contract import DataPath, Hop, Port
from pdrgate.data_paths.slowdowns import Planted, Slowdown
from pdrgate.data_paths.tcp_streams import TcpStreams
from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.pairs.comparison_task import Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.comparisons.spike_in import SPIKE_IN_FILE, sized, spike_in, twice
from pdrgate.gate.judged_again.file_comparison import compare_files
from pdrgate.gate.run.run_record import SPIKE_IN_TRIALS, RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut import prepared_sut
from pdrgate.gate.verdicts.change_verdict import proven
from pdrgate.history.results import read_result
from pdrgate.hosts.host import CommandError, Completed
from pdrgate.knobs import knob_from_record
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.pages.blocks import whole_html
from pdrgate.reports.words.scenario_tree import scenario_parts
from pdrgate.results.model import RunResult, Side, SpikeInResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.safety.journal import Journal
from pdrgate.stability import read_trials
from pdrgate.values.errors import DataError, TestbedError

STEADY = [1e6, 1.003e6, 0.998e6, 1.001e6, 0.999e6, 1.002e6]
SCATTERED = [1e6, 1.03e6, 0.97e6, 1.02e6, 0.99e6]


@dataclass
class Host:
    """A SUT that takes work into the way of its packets; nothing else is asked of it."""

    name: str = "local"
    steps: int = 0
    planted: list[int] = field(default_factory=list)
    refuses: str = ""

    def run(self, *argv: str, **_: object) -> Completed:
        raise TestbedError("nothing runs here")

    script = run


@dataclass(frozen=True)
class Steps:
    """A knob of such a host."""

    value: str

    def describe(self) -> str:
        return f"steps: {self.value}"

    def lacking(self, host: Any) -> str | None:
        return None

    def gone(self, host: Any) -> bool:
        return False

    def read(self, host: Any) -> str:
        return str(host.steps)

    def apply(self, host: Any) -> None:
        if host.refuses:
            raise CommandError(host.name, "`tc`", Completed(("tc",), 2, "", host.refuses))
        host.steps = int(self.value)
        host.planted.append(host.steps)

    def restore(self, host: Any, old: str) -> None:
        host.steps = int(old)

    def holds(self, actual: str, wanted: str) -> bool:
        return actual == wanted

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        return False

    def to_record(self) -> dict[str, str]:
        return {"kind": "side-routes", "network": "2001:2:0:1::/64"}  # one that the journal knows


STEPPED = Slowdown("steps", "one step", "{} steps", 1000, lambda hop, steps: (Steps(str(steps)),))


class Path6(DataPath):
    """A data path that needs no host."""

    def __init__(self) -> None:
        super().__init__("ipv6-routing", 6)

    def apply(self, hops: Sequence[Hop]) -> None: ...

    def restore(self) -> list[str]:
        return []

    def sentence(self) -> str:
        return "nothing routes"


@pytest.fixture(autouse=True)
def only_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_sut, "data_path", lambda *_, **__: Path6())
    have(monkeypatch, STEPPED)


def have(monkeypatch: pytest.MonkeyPatch, *slowdowns: Slowdown) -> None:
    """Let the path that is measured have these."""
    usual = Scenario().data_path
    monkeypatch.setitem(DATA_PATHS, usual, replace(DATA_PATHS[usual], slowdowns=slowdowns))


class Machine:
    """Boots of one build, each with a speed of its own in turn; a packet takes so much more work for each step."""

    def __init__(self, speeds: Sequence[float] = STEADY, each: Sequence[float] = (0.0005,), refuses: str = "") -> None:
        self.hosts: list[Host] = []
        self._speeds = itertools.cycle(speeds)
        self._each = each
        """Of the boots in turn, the last for all further ones."""
        self._refuses = refuses

    def __call__(self, journal: Journal) -> FakeTestbed:
        number, speed = len(self.hosts), next(self._speeds)
        host = Host(refuses=self._refuses)
        self.hosts.append(host)
        each = self._each[min(number, len(self._each) - 1)]

        class Slowed:
            def loss_ratio(self, load: float) -> float:
                return IdealCurve(speed / (1.0 + each * host.steps)).loss_ratio(load)

        sut = SimulatedSut(Slowed(), Behaviour(0.002), seed=number, ceiling=Ceiling(4e6))
        testbed = FakeTestbed(sut, boot_id=f"boot-{number}")
        port = Port("eth0", "02:00:00:00:00:01", "02:00:00:00:00:02")
        testbed.hops = (Hop(host, port, port),)  # type: ignore[arg-type]
        return testbed


def compared(
    tmp_path: Path,
    machine: Machine,
    other: Machine | None = None,
    *,
    resume: bool = False,
    kill_after: int | None = None,
    test: str = "",
) -> tuple[PairsComparison, RunResult, Watcher]:
    """A build against another one, or against itself, as the keywords do it."""
    watcher = Watcher()
    record = RunRecord(tmp_path / "run", "quick", resume=resume)
    session = Session(CONFIG, QUICK, record, watcher, state=tmp_path / "state")
    builds: dict[Side, Build] = {
        "baseline": Build("baseline", "linux-a", machine), "candidate": Build("candidate", "linux-b", other or machine)
    }  # fmt: skip
    session.take()
    try:
        comparison = comparison_of(ComparisonTask(session, Scenario(), builds, Plan(24, 1e9, 0.02), longname=test))
        comparison.measure()
        if kill_after is not None:
            pairs = itertools.count()
            watcher.said = lambda sentence: _kill(sentence.startswith("pair") and next(pairs) >= kill_after)
        comparison.prove(spike_in(comparison))
        comparison.finish()
    finally:
        session.close()
        record.close()
    return comparison, read_result(tmp_path / "run"), watcher


def _kill(now: bool) -> None:
    if now:
        raise Killed


# --- Sizes ---


def line(first: float, each: float) -> Callable[[int], float]:
    return lambda steps: 5000.0 + (first + each * steps if steps else 0.0)


@pytest.mark.parametrize(
    ("work", "most", "expected"),
    [
        (line(0.0, 25.0), 48, (8, 0.04)),
        (line(150.0, 1.0), 1500, (56, 0.0412)),
        (line(400.0, 1.0), 1500, (1, 0.0802)),  # the first step alone is too much
        (line(0.0, 3.0), 48, (48, 0.0288)),  # all of them are too few
        (lambda steps: 5000.0 + 100.0 * steps * (steps > 1), 48, (2, 0.04)),  # the first step is for nothing
        (line(0.0, 0.0), 48, (48, 0.0)),
        (line(9.0, -1.0), 48, (48, -0.0078)),  # noise
    ],
)
def test_as_many_steps_as_come_nearest(work: Callable[[int], float], most: int, expected: tuple[int, float]) -> None:
    steps, slowdown = sized(work, most, twice(0.02))
    assert (steps, slowdown) == (expected[0], pytest.approx(expected[1]))


def test_twice_the_tolerance_is_the_tolerance_twice_over() -> None:
    assert twice(0.02) == pytest.approx(0.0412, abs=1e-4)
    assert 1 / (1 + twice(0.1)) == pytest.approx(0.9**2)
    assert twice(0.0) == 0.0


@pytest.mark.parametrize("path", DATA_PATHS.values(), ids=lambda path: path.name)
def test_every_data_path_has_a_place_for_work_that_can_be_undone(path: PathDescription) -> None:
    port = Port("eth0", "02:00:00:00:00:01", "02:00:00:00:00:02")
    hop = Hop(Host(), port, replace(port, interface="eth1"))  # type: ignore[arg-type]
    assert path.slowdowns
    for one in path.slowdowns:
        assert one.most > 40
        for knob in Planted(one, 7).knobs(hop):
            assert knob_from_record(knob.to_record(), knob.value) == knob
        assert "7" in str(Planted(one, 7))
    if path.program == "xdp":
        assert {one.name for one in path.slowdowns} == {"side-routes"}  # which no filter would see


# --- Found, and not found ---


def test_a_pass_that_could_have_failed_says_so(tmp_path: Path) -> None:
    machine = Machine()
    comparison, result, _ = compared(tmp_path, machine)
    assert result.verdict is Verdict.PASS
    (entry,) = result.scenarios
    found = entry.builds.spike_in
    assert found is not None
    assert found.found
    assert found.wanted == pytest.approx(0.0412, abs=1e-4)
    assert found.slowdown == pytest.approx(0.0412, abs=0.004)
    assert found.comparison is not None
    assert found.comparison.change == pytest.approx(-0.04, abs=0.006)
    told = (
        f"a planted slowdown of {found.slowdown:.1%} was found (REGRESSION after 4 pairs, by PDR, saturation throughp"
    )
    assert told in result.reason
    # In boots of its own, as many as a REGRESSION takes, and one in which the size is found.
    own, rest = machine.hosts[:8], machine.hosts[8:]
    assert not any(host.planted for host in own)
    assert [len(host.planted) for host in rest] == [3, 0, 1, 1, 0, 0, 1, 1, 0]
    assert not any(host.steps for host in rest)
    steps = rest[0].planted[-1]
    assert found.planted == f"{steps} steps"
    assert {host.planted[0] for host in rest[1:] if host.planted} == {steps}
    # Nothing that reads the run's own trials takes those for the build's.
    run = tmp_path / "run"
    assert len(read_trials(run / "trials.jsonl")) == entry.trials
    assert {trial.belonging.build for trial in read_trials(run / SPIKE_IN_TRIALS)} == {
        "linux-a",
        f"linux-a with {steps} steps",
    }
    again, judgement = compare_files(run / "trials.jsonl", run / "trials.jsonl", 0.02, 0.005)
    assert again is not None
    assert (again.pairs, judgement.verdict) == (4, Verdict.PASS)
    assert len(comparison.boots) == len(entry.builds.boots) == 8


def test_it_is_told_in_every_report(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, Machine())
    (entry,) = result.scenarios
    found = entry.builds.spike_in
    assert found is not None
    planted = f"the baseline with {found.planted} ({found.slowdown:.1%} more work for a packet)"
    told = f"spike-in: {planted} against the baseline: REGRESSION: slower: "
    assert any(line.strip().startswith(told) for line in verdict_lines(result))
    assert told.replace("spike", "Spike", 1) in run_markdown(result)
    table = next(whole_html(scenario_parts(entry)))
    assert f"Spike-in: {planted} against the baseline: REGRESSION, 4 pairs of boots" in table
    assert "slowed down" in table


def test_a_pass_that_could_not_have_failed_is_none(tmp_path: Path) -> None:
    """What is planted does something in the boot where it is sized, and nothing in those that are compared."""
    machine = Machine(each=[0.0005] * 9 + [0.0])
    _, result, _ = compared(tmp_path, machine)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.reason.startswith("this comparison could not have failed: a planted slowdown of 4.")
    assert " was not found (PASS after 4 pairs); not slower: PDR " in result.reason
    found = result.scenarios[0].builds.spike_in
    assert found is not None
    assert (found.found, found.verdict) == (False, Verdict.PASS)


def test_what_did_not_pass_is_not_asked_whether_it_could_have_failed(tmp_path: Path) -> None:
    machine = Machine()
    _, result, _ = compared(tmp_path, machine, Machine([0.8e6]))
    assert result.verdict is Verdict.REGRESSION
    assert result.scenarios[0].builds.spike_in is None
    assert len(machine.hosts) == 4


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (Machine(each=(0.0,)), r"1000 steps, as many as there can be, make -?0\.\d% more work for a packet"),
        (
            Machine(refuses="Error: TC classifier not found."),
            r"the kernel does not take one step \(`tc` on local failed with exit code 2: Error: TC classifier not",
        ),
    ],
)
def test_where_nothing_can_be_planted_the_pass_says_so(tmp_path: Path, machine: Machine, why: str) -> None:
    _, result, _ = compared(tmp_path, machine)
    assert result.verdict is Verdict.PASS
    found = result.scenarios[0].builds.spike_in
    assert found is not None
    assert (found.planted, found.slowdown, found.verdict, found.comparison) == ("", None, None, None)
    assert re.search(f"; no slowdown was planted: {why}", result.reason)
    assert any("spike-in: " in line for line in verdict_lines(result))
    assert "nothing planted" in next(whole_html(scenario_parts(result.scenarios[0])))


@pytest.mark.parametrize(
    ("streams", "why"),
    [
        (None, "one needs boots of its own, and the boots of a portfolio stay up for all its paths"),
        (TcpStreams(), "a closed loop has no packets whose way could be made longer by so much"),
    ],
)
def test_why_a_path_of_the_portfolio_or_of_tcp_takes_none_is_said(streams: TcpStreams | None, why: str) -> None:
    """Of WireGuard, which has packets, nobody is to read of a closed loop."""
    passed = Judgement(Verdict.PASS, "not slower")
    comparison = SimpleNamespace(
        judgement=passed, session=None, stay_up=streams is None, scenario=SimpleNamespace(streams=streams),
        task=SimpleNamespace(builds={"baseline": None}, plan=Plan(2, 60, 0.02)),
    )  # fmt: skip
    found = spike_in(cast(PairsComparison, comparison))
    assert found is not None
    assert found.reason == why
    assert proven(passed, found).reason == f"not slower; no slowdown was planted: {why}"


def test_the_least_slowdown_above_is_taken_where_none_is_of_the_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twofold = replace(STEPPED, name="twofold", one="one double step", knobs=lambda hop, n: (Steps(str(200 * n)),))
    small = replace(STEPPED, name="small", several="{} small steps", most=3)
    have(monkeypatch, twofold, small)
    _, result, _ = compared(tmp_path, Machine())
    found = result.scenarios[0].builds.spike_in
    assert found is not None
    assert found.planted == "one double step"
    assert found.slowdown == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(
    ("found", "verdict", "begins"),
    [
        (
            Verdict.UNSTABLE,
            Verdict.INCONCLUSIVE,
            "this comparison could not have failed: a planted slowdown of 4.1% was",
        ),
        (
            Verdict.DISTURBED,
            Verdict.DISTURBED,
            "whether this comparison could have failed is not known: with a planted",
        ),
        (
            Verdict.ERROR,
            Verdict.ERROR,
            "whether this comparison could have failed is not known: with a planted slowdow",
        ),
    ],
)
def test_what_kept_it_from_being_seen_decides_whose_fault_it_is(found: Verdict, verdict: Verdict, begins: str) -> None:
    planted = SpikeInResult(wanted=0.041, planted="9 steps", slowdown=0.041, verdict=found, reason="of the machine")
    judgement = proven(Judgement(Verdict.PASS, "not slower"), planted)
    assert judgement.verdict is verdict
    assert judgement.reason.startswith(begins)
    assert judgement.reason.endswith("not slower")
    assert proven(Judgement(Verdict.REGRESSION, "slower"), planted) == Judgement(Verdict.REGRESSION, "slower")


# --- Continued ---


def test_a_run_that_was_killed_goes_on_with_the_same_slowdown(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        compared(tmp_path, Machine(SCATTERED), kill_after=2)
    size = (tmp_path / "run" / SPIKE_IN_FILE).read_bytes()
    machine = Machine(SCATTERED)
    _, result, _ = compared(tmp_path, machine, resume=True)
    assert (tmp_path / "run" / SPIKE_IN_FILE).read_bytes() == size
    found = result.scenarios[0].builds.spike_in
    assert found is not None
    assert found.found
    assert found.comparison is not None
    assert found.comparison.pairs >= 4
    assert len(machine.hosts) == 2 * (found.comparison.pairs - 3)  # none to find the size in, none for what is there


def test_another_tests_size_is_no_answer(tmp_path: Path) -> None:
    """It may have another baseline: a run that was resumed once planted what the test before had found."""
    compared(tmp_path, Machine(), test="Suite.One")
    machine = Machine()
    _, result, _ = compared(tmp_path, machine, resume=True, test="Suite.Another")
    assert result.scenarios[0].builds.spike_in is not None
    assert result.scenarios[0].builds.spike_in.found
    assert [len(host.planted) for host in machine.hosts[8:10]] == [3, 0]
    assert {trial.belonging.test for trial in read_trials(tmp_path / "run" / SPIKE_IN_TRIALS)} == {
        "Suite.One",
        "Suite.Another",
    }


def test_a_damaged_size_is_told_with_its_file(tmp_path: Path) -> None:
    compared(tmp_path, Machine())
    (tmp_path / "run" / SPIKE_IN_FILE).write_text("{")
    with pytest.raises(DataError, match=r"spike-in\.json is damaged"):
        compared(tmp_path, Machine(), resume=True)

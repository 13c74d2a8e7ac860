"""Two builds over several boots each, on simulated SUTs."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from causes import because
from console_lines import verdict_lines
from curves import EarlyLoss, Livelock, Starving
from fake_testbed import CONFIG, QUICK, FakeTestbed, Killed, Watcher
from known_noise import KnownNoise
from simulated_sut import Behaviour, Ceiling, IdealCurve, LoadLoss, SimulatedSut

from pdrgate.crashes.faults import Crash
from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.equal_builds import compare_with_itself
from pdrgate.gate.comparisons.pairs.comparison_task import Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.judged_again.file_comparison import compare_files
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.pairs_file import PAIRS_FILE
from pdrgate.gate.run.progress import Estimate
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.verdicts.noise_floor import noise_floor
from pdrgate.guests.guest import GuestError
from pdrgate.history.address import Address
from pdrgate.history.database.experience import Experience
from pdrgate.history.results import read_result
from pdrgate.keywords import comparing as keywords
from pdrgate.keywords.state import OpenTestbed, State
from pdrgate.measurands import Ask
from pdrgate.observers.watching import Observation
from pdrgate.record.phase import Phase
from pdrgate.replication import NoiseFloor
from pdrgate.replication.replicates import Replicates
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.words.arrival_words import arrivals_part
from pdrgate.reports.words.noise_words import noise_lines
from pdrgate.results.model import RunResult, Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.safety.journal import Journal
from pdrgate.stability import read_trials
from pdrgate.testbeds import Pinning, load_testbed
from pdrgate.values.errors import DataError, StorageError, TestbedError, UsageError
from pdrgate.values.units import Rate, Ratio

STEADY = [1e6, 1.003e6, 0.998e6, 1.001e6, 0.999e6, 1.002e6]
PANIC = Crash("panic", "Kernel panic - not syncing: VFS", "mount_root+0x1/0x2", ("do_mount+0x3/0x4", "init+0x5/0x6"))
PDR, SATURATION = "PDR", "saturation throughput"


def early(speeds: Sequence[float], begins: float) -> list[LoadLoss]:
    """SUTs of these capacities that lose 2 % from some load on."""
    return [EarlyLoss(speed, begins) for speed in speeds]


class Machine:
    """Boots builds of which each boot has a speed of its own, in turn from a list that begins anew at its end."""

    def __init__(
        self,
        crashes: tuple[int, ...] = (),
        dies: tuple[int, ...] = (),
        ceiling: float = 4e6,
        emulated: tuple[int, ...] | None = None,
        panics: tuple[int, ...] = (),
        refuses: tuple[int, ...] = (),
        garbles: tuple[int, ...] = (),
    ) -> None:
        self.booted: list[str] = []
        self.emulated = emulated
        """Boots that run by emulation, all others by KVM; None: the testbed has no accelerators."""
        self.steady = False
        """Whether its guests' speed is constant."""
        self.up = 0
        self.most_up = 0
        self.refuses = refuses
        """Boots that cannot be set up."""
        self.garbles = garbles
        """Boots that answer nonsense while they are set up."""
        self.panics = panics
        """Boots whose kernel panics while they are set up."""
        self.delays: dict[str, float] = {}
        """By build, what its packets take, in seconds; else as a testbed has it."""
        self.probed: dict[str, list[float]] = {}
        """By build, the loads of its trials with probes."""
        self.set_up_by: list[str] = []
        """The threads that set boots up."""
        self.order: list[str] = []
        """What became of which boot, in order."""
        self.buffer = 0
        """Packets that wait for each SUT at most."""
        self.looks = True
        """Whether its generator looks while it sends."""
        self.comes_up = False
        """Whether its boots come up after they were made, and can stand back until they are measured."""
        self.fatal = ""
        """A build whose kernel dies of its first packet."""
        self.told: list[tuple[str, str]] = []
        """Boots that were told how to come up, and what."""
        self._crashes = crashes
        self._dies = dies
        """Boots whose kernel dies in the middle of their trials."""
        self._ceiling = ceiling

    def boots(self, name: str, speeds: Sequence[float | LoadLoss]) -> Callable[[Journal], FakeTestbed]:
        left = itertools.cycle(speeds)

        def boot(journal: Journal) -> FakeTestbed:
            self.booted.append(name)
            number = len(self.booted)
            self.order.append(f"boot-{number} is made")
            if number in self._crashes:
                raise GuestError(f"{name} does not boot: {PANIC.sentence()}", Path("console.log"), PANIC)
            speed = next(left)
            curve = IdealCurve(speed) if isinstance(speed, float) else speed
            sut = SimulatedSut(
                curve,
                Behaviour(0.003),
                seed=number,
                ceiling=Ceiling(self._ceiling),
                buffer=self.buffer,
                looks=self.looks,
            )
            booted = (_Guest if self.comes_up else _Booted)(
                self, sut, f"boot-{number}", name, dies=number in self._dies
            )
            booted.refuses, booted.panics = number in self.refuses, number in self.panics
            booted.garbles = number in self.garbles
            if self.emulated is not None:
                booted.accelerator = "tcg" if number in self.emulated else "kvm"
            return booted

        return boot


class _Booted(FakeTestbed):
    accelerator = ""
    refuses = False
    panics = False
    garbles = False

    def pin(self, pinning: Pinning) -> None:
        if self.garbles:
            int("\x1b[2J not the number of an interrupt")
        if self.panics:
            raise GuestError(f"{self.kernel} does not boot: {PANIC.sentence()}", Path("console.log"), PANIC)
        if self.refuses:
            raise TestbedError(f"{self.kernel} has no interrupts")
        self._machine.set_up_by.append(threading.current_thread().name)
        self._machine.order.append(f"{self.boot_id} is pinned")
        super().pin(pinning)

    def describe(self) -> dict[str, str]:
        return super().describe() | ({"accelerator": self.accelerator} if self.accelerator else {})

    def __init__(self, machine: Machine, sut: SimulatedSut, boot: str, kernel: str, dies: bool) -> None:
        super().__init__(sut, boot_id=boot, kernel=kernel)
        self._machine = machine
        self._dies = dies
        self.steady = machine.steady
        self.delay = machine.delays.get(kernel, self.delay)
        self.probed = machine.probed.setdefault(kernel, [])
        machine.up += 1
        machine.most_up = max(machine.most_up, machine.up)

    def generator(self, family: int) -> Any:
        if self.kernel == self._machine.fatal:
            raise TestbedError("the traffic generator: sending failed: Network is down")
        return super().generator(family)

    def check(self) -> tuple[str, ...]:
        if self.kernel == self._machine.fatal:
            raise GuestError(f"{self.kernel} crashed: {PANIC.sentence()}", Path("console.log"), PANIC)
        if self._dies and len(self.calls) > 8:
            raise GuestError(f"{self.kernel} crashed: BUG: soft lockup", Path("console.log"))
        return ("WARNING: at net/core/dev.c:1",) if self.kernel == "warns" else ()

    def close(self) -> None:
        if self.open:
            self._machine.up -= 1
        super().close()


class _Guest(_Booted):
    boots = True

    def stand_back(self) -> None:
        self._machine.told.append((self.boot_id, "stand back"))

    def hurry(self) -> None:
        self._machine.told.append((self.boot_id, "hurry"))

    def take_place(self) -> None:
        self._machine.told.append((self.boot_id, "take its place"))


Speeds = Sequence[float | LoadLoss]


def comparison(
    tmp_path: Path,
    baseline: Speeds,
    candidate: Speeds,
    machine: Machine,
    *,
    pairs: int = 24,
    budget: float | None = 1e9,
    together: bool = True,
    resume: bool = False,
    watcher: Watcher | None = None,
    name: str = "b",
    content: str = "",
    test: str = "",
    experience: Experience | None = None,
    asked: Options = QUICK,
    scenario: Scenario | None = None,
    record: RunRecord | None = None,
) -> tuple[Session, PairsComparison]:
    record = record or RunRecord(tmp_path / "run", "quick", resume=resume)
    session = Session(
        CONFIG,
        asked,
        record,
        watcher or Watcher(),
        experience=experience,
        state=tmp_path / "state",
    )
    builds: dict[Side, Build] = {
        "baseline": Build("baseline", "linux-a", machine.boots("a", baseline), identity="of a"),
        "candidate": Build(
            "candidate", f"linux-{name}", machine.boots(name, candidate), identity=content or f"of {name}"
        ),
    }
    session.take()
    plan = Plan(pairs, budget, 0.02, together)
    return session, comparison_of(ComparisonTask(session, scenario or Scenario(), builds, plan, longname=test))


def compared(
    tmp_path: Path, baseline: Speeds, candidate: Speeds, machine: Machine | None = None, **options: Any
) -> tuple[PairsComparison, RunResult, Machine]:
    machine = machine or Machine()
    session, subject = comparison(tmp_path, baseline, candidate, machine, **options)
    subject.measure()
    subject.judge(0.02)
    subject.finish()
    session.close()
    assert machine.up == 0
    return subject, read_result(tmp_path / "run"), machine


# --- Verdicts ---


@pytest.mark.parametrize("looks", [True, False], ids=["looks", "no looks"])
@pytest.mark.parametrize("together", [True, False], ids=["together", "in turn"])
@pytest.mark.parametrize(("speed", "verdict"), [(43e3, Verdict.PASS), (0.9 * 43e3, Verdict.REGRESSION)])
def test_builds_behind_deep_buffers_are_compared_by_their_true_pdrs(
    tmp_path: Path, speed: float, verdict: Verdict, together: bool, looks: bool
) -> None:
    """Of 43 kpps a buffer of 4096 packets holds an overload of 1.38 for the 0.25 s of a trial."""
    machine = Machine(ceiling=600e3)
    machine.buffer, machine.looks = 4096, looks
    subject, result, _ = compared(tmp_path, [43e3], [speed], machine, together=together)
    assert result.verdict is verdict, result.reason
    (entry,) = result.scenarios
    assert entry.comparison is not None
    assert entry.comparison.change == pytest.approx(speed / 43e3 - 1, abs=0.01)
    sides: dict[Side, float] = {"baseline": 43e3, "candidate": speed}
    for side, capacity in sides.items():
        assert subject.samples(PDR, side) == pytest.approx(
            [capacity / 0.995] * len(subject.samples(PDR, side)), rel=0.03
        )


def test_a_slower_build_is_a_regression_told_by_the_fewest_pairs(tmp_path: Path) -> None:
    subject, result, machine = compared(tmp_path, STEADY, [0.85e6, 0.84e6, 0.86e6])
    assert result.verdict is Verdict.REGRESSION
    assert "".join(machine.booted) == "abbaabba"
    assert len(subject.samples(PDR, "baseline")) == len(subject.samples(PDR, "candidate")) == 4
    assert subject.samples(PDR, "candidate")[0] == pytest.approx(0.85e6 / 0.995, rel=0.01)
    (entry,) = result.scenarios
    assert [side.build for side in entry.builds.sides] == ["linux-a", "linux-b"]
    assert [boot.pair for boot in entry.builds.boots] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert entry.comparison is not None
    assert entry.comparison.differs["kernel"] == ("a", "b")
    assert entry.comparison.change == pytest.approx(-0.15, abs=0.01)
    assert entry.comparison.pairs == 4
    assert entry.findings.search is not None
    assert entry.findings.search.trials > 3


def test_a_kernel_that_dies_of_its_first_packet_is_a_crash_whatever_the_generator_fails_with(tmp_path: Path) -> None:
    machine = Machine()
    machine.fatal = "b"
    _, result, _ = compared(tmp_path, STEADY, STEADY, machine)
    assert result.verdict is Verdict.CRASH
    assert result.reason.startswith(f"b crashed: {PANIC.sentence()}; 2 boots of the candidate linux-b failed")
    machine = Machine()
    machine.fatal = "a"
    _, result, _ = compared(tmp_path / "baseline", STEADY, STEADY, machine)
    assert result.verdict is Verdict.ERROR


@pytest.mark.parametrize(("speed", "fewest"), [(43e3, 0.25), (4.2e3, 1.0)])
def test_a_trial_of_a_slow_guest_lasts_so_long_that_one_poll_more_is_no_level_of_its_own(
    tmp_path: Path, speed: float, fewest: float
) -> None:
    """Of 4.2 kpps 0.25 s have 1050 packets: polls of 64 made two levels 6 % apart of equal programs."""
    machine = Machine(ceiling=600e3)
    machine.steady = True
    compared(tmp_path, [speed], [speed], machine, pairs=2)
    trials = [one for one in read_trials(tmp_path / "run" / "trials.jsonl") if one.occasion.phase == Phase.REPEAT]
    durations = {one.intended_duration for one in trials}
    assert min(durations) == max(durations) == pytest.approx(fewest, rel=0.1)


def test_boots_of_constant_speed_overlap(tmp_path: Path) -> None:
    machine = Machine()
    machine.steady = True
    subject, result, _ = compared(tmp_path, STEADY, [0.85e6, 0.848e6, 0.853e6], machine)
    assert result.verdict is Verdict.REGRESSION
    assert len(subject.samples(PDR, "baseline")) == 4
    # The next two pairs come up while one is measured, and none that is not measured.
    assert machine.most_up == 6
    assert len(machine.booted) == 8
    assert ["ahead" in name for name in machine.set_up_by] == [False] * 2 + [True] * 6


class _Threads(Watcher):
    """Keeps which phases of trials were measured by which threads."""

    def __init__(self) -> None:
        super().__init__()
        self.at_once: set[Phase] = set()
        self.in_turn: set[Phase] = set()

    def measuring(self, ask: Ask, side: Side | None, pair: int) -> None:
        main = threading.current_thread() is threading.main_thread()
        (self.in_turn if main else self.at_once).add(ask.phase)


@pytest.mark.parametrize(
    ("steady", "ceiling", "at_once"),
    [(True, 4e7, {Phase.REPEAT, Phase.SATURATION, Phase.PDR}), (False, 4e7, set()), (True, 4e6, set())],
    ids=["constant speed", "any speed", "generators with nothing to spare"],
)
def test_both_boots_of_constant_speed_are_measured_at_once(
    tmp_path: Path, steady: bool, ceiling: float, at_once: set[Phase]
) -> None:
    machine = Machine(ceiling=ceiling)
    machine.steady = steady
    watcher = _Threads()
    _, result, _ = compared(tmp_path, STEADY, STEADY, machine, watcher=watcher)
    assert result.verdict is Verdict.PASS
    assert watcher.at_once == at_once
    assert not at_once & watcher.in_turn
    assert Phase.SEARCH in watcher.in_turn  # one build after the other: flat out a generator has a CPU to itself


def test_guests_of_a_pair_are_set_up_side_by_side_and_stand_back_while_others_are_measured(tmp_path: Path) -> None:
    machine = Machine()
    machine.steady = machine.comes_up = True
    _, result, _ = compared(tmp_path, STEADY, STEADY, machine)
    assert result.verdict is Verdict.PASS
    assert ["ahead" in name for name in machine.set_up_by] == [True] * 8
    for number in range(1, 9):
        told = [what for boot, what in machine.told if boot == f"boot-{number}"]
        assert told == ["stand back", "hurry", "take its place"]
    # The second pair comes up while the first one is searched already.
    assert machine.told.index(("boot-3", "stand back")) > machine.told.index(("boot-2", "take its place"))


def test_boots_of_constant_speed_that_do_not_come_up_ahead_are_told_in_their_turn(tmp_path: Path) -> None:
    machine = Machine(crashes={3})
    machine.steady = True
    subject, result, _ = compared(tmp_path, STEADY, STEADY, machine)
    assert result.verdict is Verdict.PASS
    assert subject.samples(PDR, "baseline")
    assert not [boot for boot in subject.boots if boot.failure]


def test_boots_that_cannot_be_set_up_ahead_are_told_in_their_turn(tmp_path: Path) -> None:
    machine = Machine()
    machine.steady, machine.refuses = True, (4,)
    subject, result, _ = compared(tmp_path, STEADY, STEADY, machine)
    assert result.verdict is Verdict.PASS
    assert [(boot.side, boot.pair, boot.failure) for boot in subject.boots if boot.failure] == [
        ("candidate", 2, "b has no interrupts")
    ]
    assert len(machine.booted) == 10  # the other one of that pair was left too: it is no boot of the next
    assert len(subject.samples(PDR, "candidate")) == 4


def test_pairs_come_up_one_after_the_other(tmp_path: Path) -> None:
    """A pair that all wait for is not kept waiting by the one after it."""
    machine = Machine()
    machine.steady = machine.comes_up = True
    compared(tmp_path, STEADY, STEADY, machine)
    for number in (5, 7):
        before = machine.order[: machine.order.index(f"boot-{number} is made")]
        assert {f"boot-{number - 2} is pinned", f"boot-{number - 1} is pinned"} <= set(before)


def test_a_run_that_is_interrupted_while_boots_are_set_up_ahead_leaves_none(tmp_path: Path) -> None:
    machine = Machine()
    machine.steady = True
    session, subject = comparison(tmp_path, STEADY, STEADY, machine, watcher=Watcher(kill_after=30))
    with pytest.raises(Killed):
        subject.measure()
    assert not [thread for thread in threading.enumerate() if "ahead" in thread.name]
    session.close()
    assert machine.up == 0


def test_less_capacity_lowers_both_measurands(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, STEADY, [0.9e6, 0.9e6])
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    assert [change.verdict for change in comparison.changes] == [Verdict.REGRESSION] * 2
    assert [change.change for change in comparison.changes] == [pytest.approx(-0.1, abs=0.01)] * 2


@pytest.mark.parametrize("begins", [0.8, 0.3])
@pytest.mark.parametrize("together", [True, False])
def test_loss_that_begins_early_is_a_regression_of_the_pdr_alone(tmp_path: Path, begins: float, together: bool) -> None:
    """By throughput at saturation alone, a build that loses 2 % from 30 % of its capacity on once passed."""
    _, result, _ = compared(tmp_path, STEADY, early(STEADY, begins), together=together)
    assert result.verdict is Verdict.REGRESSION
    assert result.reason.startswith("slower: PDR ")
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    assert comparison.accepted
    pdr, saturation = comparison.changes
    assert (pdr.measurand, saturation.measurand) == (PDR, SATURATION)
    assert pdr.change == pytest.approx(begins - 1, abs=0.03)
    assert saturation.change == pytest.approx(0, abs=0.01)
    assert f"saturation throughput {Rate(saturation.candidate)} against" in result.reason


@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_a_build_that_forwards_nothing_in_overload_is_unstable(tmp_path: Path, side: str) -> None:
    """Nothing has no logarithm: it once ended as an error of the program's own."""
    dead = [Livelock(speed, left=0.0) for speed in STEADY]
    speeds = {"baseline": STEADY, "candidate": STEADY} | {side: dead}
    _, result, _ = compared(tmp_path, **speeds)  # type: ignore[arg-type]
    assert result.verdict is Verdict.UNSTABLE
    assert re.search(rf"boot 1 of the {side} linux-. forwards nothing when it is offered .*: a livelock", result.reason)


def test_a_baseline_that_loses_early_is_no_reason_to_call_the_candidate_slower(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, early(STEADY, 0.8), STEADY)
    assert result.verdict is not Verdict.REGRESSION
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    assert comparison.change == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("candidate", [3.0, 6.0])
def test_a_build_that_livelocks_earlier_is_a_regression(tmp_path: Path, candidate: float) -> None:
    """Both livelock beyond the curve, and hold as much as ever: only an overload tells."""
    machine = Machine(ceiling=20e6)
    overloaded = Scenario(overload=16)
    baseline = [Livelock(speed, 12) for speed in STEADY]
    earlier = [Livelock(speed, candidate) for speed in STEADY]
    _, result, _ = compared(tmp_path, baseline, earlier, machine, scenario=overloaded)
    assert result.verdict is Verdict.REGRESSION
    assert result.reason.startswith("slower: livelock threshold ")
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    changes = {change.measurand: change for change in comparison.changes}
    assert list(changes) == [PDR, SATURATION, "overload throughput", "livelock threshold"]
    assert changes[PDR].verdict is Verdict.PASS
    assert changes["overload throughput"].change == pytest.approx(0, abs=0.02)  # at 16 times both are down
    assert changes["livelock threshold"].change < -0.3
    assert changes["livelock threshold"].tolerance == 0.1


def test_builds_that_livelock_alike_pass(tmp_path: Path) -> None:
    _, result, _ = compared(
        tmp_path, [Livelock(speed, 6) for speed in STEADY], [Livelock(speed, 6) for speed in STEADY],
        Machine(ceiling=20e6), scenario=Scenario(overload=8),
    )  # fmt: skip
    assert result.verdict is Verdict.PASS, result.reason


def test_a_build_that_begins_to_livelock_is_a_regression_of_both(tmp_path: Path) -> None:
    livelocks = [Livelock(speed, 6) for speed in STEADY]
    _, result, _ = compared(tmp_path, STEADY, livelocks, Machine(ceiling=20e6), scenario=Scenario(overload=8))
    assert result.verdict is Verdict.REGRESSION
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    gone = {change.measurand for change in comparison.changes if change.verdict is Verdict.REGRESSION}
    assert gone == {"overload throughput", "livelock threshold"}


# --- An end host, whose receivers starve past the PDR. That it is one is pretended: its curve is a simulation's ---


@pytest.fixture
def starves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scenario, "starves", property(lambda self: True))


@pytest.mark.usefixtures("starves")
def test_end_hosts_that_starve_alike_pass(tmp_path: Path) -> None:
    """They were UNSTABLE: what is delivered past the PDR is no plateau."""
    curves = [Starving(speed) for speed in STEADY]
    _, result, _ = compared(tmp_path, curves, curves)
    assert result.verdict is Verdict.PASS, result.reason
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    assert [one.measurand for one in comparison.changes] == [PDR, SATURATION, "least delivered past the PDR"]
    assessment = result.scenarios[0].findings.assessment
    assert assessment is not None
    least = {point.load: point.least for point in assessment.loads if point.least is not None}
    assert len(least) == 4
    assert min(least, key=lambda load: least[load]) == sorted(least)[1]  # 1.25 times the PDR
    told = arrivals_part(result.scenarios[0]).lines
    assert [line.partition(": ")[0] for line in told] == ["baseline", "candidate"]
    assert all(f"{Rate(rate)} of {Rate(load)}" in told[1] for load, rate in least.items())


@pytest.mark.usefixtures("starves")
def test_end_hosts_are_measured_in_turn(tmp_path: Path) -> None:
    """Who receives shares the CPU with who sends to another."""
    machine = Machine(ceiling=4e7)
    machine.steady = True
    watcher = _Threads()
    curves = early(STEADY, 0.94)
    compared(tmp_path, curves, curves, machine, watcher=watcher)
    assert not watcher.at_once


@pytest.mark.usefixtures("starves")
def test_later_boots_of_end_hosts_confirm_the_pdr_of_the_first_ones(tmp_path: Path) -> None:
    """Beside what the first came to, alike for both boots of a pair; elsewhere in each pair. Trials are long enough."""
    machine = Machine()
    machine.steady = True
    curves = early(STEADY, 0.94)
    subject, result, _ = compared(tmp_path, curves, curves, machine=machine)
    assert result.verdict is Verdict.PASS, result.reason
    told = [one for one in subject.trials if one.occasion.phase == Phase.PDR and one.belonging.pair > 1]
    firsts = {(one.belonging.pair, one.belonging.side): one.intended_load for one in reversed(told)}
    pairs = sorted({pair for pair, _ in firsts})
    assert all(firsts[pair, "baseline"] == firsts[pair, "candidate"] for pair in pairs)
    assert len({firsts[pair, "baseline"] for pair in pairs}) == len(pairs)
    assert max(firsts.values()) < 1.02 * min(firsts.values())
    assert len(told) <= 8 * 2 * len(pairs)
    assert {one.intended_duration for one in told} == {0.5}


@pytest.mark.usefixtures("starves")
def test_an_end_host_that_starves_more_is_a_regression_of_that(tmp_path: Path) -> None:
    """Its PDR, saturation throughput and cost are as ever."""
    worse = [Starving(speed, falls=2.0, until=1.65) for speed in STEADY]
    _, result, _ = compared(tmp_path, [Starving(speed) for speed in STEADY], worse)
    assert result.verdict is Verdict.REGRESSION, result.reason
    assert result.reason.startswith("slower: least delivered past the PDR ")
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    assert {one.measurand: one.verdict for one in comparison.changes} == {
        PDR: Verdict.PASS, SATURATION: Verdict.PASS, "least delivered past the PDR": Verdict.REGRESSION,
    }  # fmt: skip
    assert comparison.changes[2].tolerance == 0.25


def test_a_router_of_that_curve_is_unstable(tmp_path: Path) -> None:
    curves = [Starving(speed) for speed in STEADY]
    _, result, _ = compared(tmp_path, curves, curves)
    assert result.verdict is Verdict.UNSTABLE, result.reason
    assert "TIR" in result.reason


# --- Latency ---

LATE = Scenario(latency=True)
MEDIAN, TAIL = "median latency at 50% PDR", "p99 latency at 90% PDR"


@pytest.mark.parametrize("together", [True, False])
def test_a_build_that_holds_as_much_and_takes_longer_is_a_regression(tmp_path: Path, together: bool) -> None:
    machine = Machine()
    machine.delays["b"] = 170e-6
    subject, result, _ = compared(tmp_path, STEADY, STEADY, machine, scenario=LATE, together=together)
    assert result.verdict is Verdict.REGRESSION
    assert re.match(r"the (median|99th percentile of) latency at \d0 % of the PDR is \+70 % \(", result.reason)
    assert "the 99th percentile of latency at 90 % of the PDR is +70 % (" in result.reason
    (entry,) = result.scenarios
    assert entry.comparison is not None
    changes = {change.measurand: change for change in entry.comparison.changes}
    assert list(changes) == [PDR, SATURATION, MEDIAN, TAIL]
    assert changes[PDR].verdict is changes[SATURATION].verdict is Verdict.PASS
    assert changes[TAIL].change == pytest.approx(0.7, abs=0.02)
    assert changes[TAIL].tolerance == 0.3
    # Both are offered the same loads, in all boots: shares of the PDR of the baseline's first.
    pdr = subject.samples(PDR, "baseline")[0]
    loads = sorted(set(machine.probed["a"]))
    assert loads == sorted(set(machine.probed["b"])) == [one.load for one in entry.findings.latency]
    assert loads == [pytest.approx(pdr * share, rel=1e-3) for share in (0.5, 0.9, 0.99)]
    assert [side.findings.latency[0].p50 for side in entry.builds.sides] == pytest.approx([1.5e-4, 2.55e-4], rel=0.01)


def test_builds_whose_latency_is_equal_pass(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, STEADY, STEADY, scenario=LATE)
    assert result.verdict is Verdict.PASS
    assert result.reason.startswith("not slower: PDR ")  # what a run is about comes first


def test_latency_has_a_tolerance_of_its_own(tmp_path: Path) -> None:
    machine = Machine()
    machine.delays["b"] = 170e-6
    asked = dataclasses.replace(QUICK, latency_tolerance=Ratio(0.9))
    _, result, _ = compared(tmp_path, STEADY, STEADY, machine, scenario=LATE, asked=asked)
    assert result.verdict is Verdict.PASS, result.reason


def test_a_slower_build_is_loaded_as_its_baseline_is(tmp_path: Path) -> None:
    _, result, machine = compared(tmp_path, STEADY, [0.85e6, 0.852e6], scenario=LATE)
    assert result.verdict is Verdict.REGRESSION
    assert result.reason.startswith("slower: PDR ")
    assert set(machine.probed["a"]) == set(machine.probed["b"])


def test_without_being_asked_for_no_packet_is_a_probe(tmp_path: Path) -> None:
    _, result, machine = compared(tmp_path, STEADY, STEADY)
    assert machine.probed == {"a": [], "b": []}
    assert not result.scenarios[0].findings.latency


def test_a_comparison_that_goes_on_takes_latency_at_the_same_loads(tmp_path: Path) -> None:
    machine = Machine()
    session, subject = comparison(tmp_path, STEADY, STEADY, machine, pairs=4, scenario=LATE)
    killed_after(2, subject)
    session.close()
    again, _, later = compared(tmp_path, STEADY[::-1], STEADY, pairs=4, resume=True, scenario=LATE)
    assert set(later.probed["a"]) == set(machine.probed["a"])
    assert len(again.samples(TAIL, "candidate")) == 4


@pytest.mark.parametrize("together", [True, False])
def test_builds_that_are_equal_pass(tmp_path: Path, together: bool) -> None:
    _, result, _ = compared(tmp_path, STEADY, STEADY, together=together)
    assert result.verdict is Verdict.PASS
    assert result.reason.startswith("not slower: ")


def test_both_builds_are_in_the_result_with_all_that_was_told_of_them(tmp_path: Path) -> None:
    """There once was one environment, of whichever was booted last, and the baseline's fingerprint nowhere."""
    _, result, _ = compared(tmp_path, STEADY, STEADY)
    (entry,) = result.scenarios
    for side, kernel in (("baseline", "a"), ("candidate", "b")):
        told = entry.builds.side(side)  # type: ignore[arg-type]
        assert told is not None
        assert told.findings.environment["kernel_release"] == told.findings.fingerprint["kernel"] == kernel
        assert told.findings.search is not None
        assert told.findings.calibration is not None
        assert told.findings.assessment is not None
        assert [one.name for one in told.findings.measurands] == [PDR, SATURATION]
        assert [len(one.samples) for one in told.findings.measurands] == [4, 4]
    assert (entry.findings.environment["kernel_release"], entry.findings.fingerprint["kernel"]) == ("b", "b")
    assert "kernel_release" not in result.environment
    assert result.environment.items() <= entry.builds.sides[0].findings.environment.items()


def test_trials_say_which_side_build_and_pair_they_are_of(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, STEADY, STEADY)
    trials = read_trials(tmp_path / "run" / "trials.jsonl")
    assert len(trials) == result.scenarios[0].trials
    assert {(trial.belonging.side, trial.belonging.build) for trial in trials} == {
        ("baseline", "linux-a"),
        ("candidate", "linux-b"),
    }
    assert {trial.belonging.pair for trial in trials} == set(range(1, 5))
    assert len({trial.belonging.boot for trial in trials}) == 8
    assert len({trial.belonging.fingerprint for trial in trials}) == 2


def test_the_trials_of_a_comparison_are_compared_again_pair_by_pair(tmp_path: Path) -> None:
    """Pooled, the drift of the machine drowned a true change of 3 %, and both builds were one."""
    drifting = [1e6, 1.2e6, 0.9e6, 1.1e6, 0.8e6, 1.05e6]
    _, result, _ = compared(tmp_path, drifting, [0.97 * speed for speed in drifting])
    told = result.scenarios[0].comparison
    assert told is not None
    run = tmp_path / "run" / "trials.jsonl"
    again, judgement = compare_files(run, run, 0.01, 0.005)
    assert again is not None
    assert again.pairs == told.pairs
    assert again.change == pytest.approx(-0.03, abs=0.003)
    assert again.change == pytest.approx(told.change, abs=1e-4)  # the tolerance says where it may have ended
    assert judgement.verdict is Verdict.REGRESSION


def test_both_pdrs_their_intervals_and_the_boots_are_told_at_the_end(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, STEADY, [0.85e6, 0.84e6, 0.86e6])
    table = "\n".join(verdict_lines(result))
    assert table.startswith("REGRESSION: ")
    assert re.search(r"PDR \(at the knee\) .* -1[45]\.\d% \(-", table)  # both are one number
    assert "linux-a" in table
    assert "95 % for both comparisons together" in table
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    assert comparison.confidence == 0.975  # 95 % for two measurands together


# --- The noise of the testbed ---


def noisy(tmp_path: Path, noise: KnownNoise, **options: Any) -> tuple[PairsComparison, RunResult, Watcher]:
    watcher = Watcher()
    subject, result, _ = compared(tmp_path, STEADY, STEADY, watcher=watcher, experience=noise, **options)
    return subject, result, watcher


def test_a_comparison_says_first_what_can_be_resolved_and_adds_what_it_saw(tmp_path: Path) -> None:
    noise = KnownNoise(None)
    _, result, watcher = noisy(tmp_path / "first", noise)
    assert "what this testbed resolves is not known yet: too few pairs of boots" in watcher.sentences
    ((key, conditions, seen),) = noise.kept
    assert len({boot.build for boot in seen.boots}) == 2
    assert [boot.pair for boot in seen.boots] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert seen.boots[0].values == result.scenarios[0].builds.boots[0].values
    assert seen.boots[0].within["saturation throughput"].count >= 8
    assert "kernel" not in conditions
    _, _, watcher = noisy(tmp_path / "second", noise)
    (said,) = (one for one in watcher.sentences if one.startswith("this testbed resolves a tolerance of "))
    assert said.endswith("; 4 pairs so far)")
    assert watcher.sentences.index(said) < next(
        number for number, one in enumerate(watcher.sentences) if one.startswith("pair 1 ")
    )
    assert {one for one, _, _ in noise.kept} == {key}


def test_a_tolerance_that_no_pairs_resolve_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    machine = Machine()
    session, subject = comparison(tmp_path, STEADY, STEADY, machine, experience=KnownNoise(0.1))
    with pytest.raises(
        UsageError,
        match=r"48 pairs resolve at best a tolerance of 3\.90% of PDR, by the quietest .* 2\.00% was asked for",
    ):
        subject.measure()
    subject.finish()
    session.close()
    assert machine.up == 0
    assert read_result(tmp_path / "run").scenarios[0].trials == 0
    asked = dataclasses.replace(QUICK, below_noise=True)
    _, result, _ = noisy(tmp_path / "all the same", KnownNoise(0.1), asked=asked)
    assert result.verdict is Verdict.PASS


def test_a_build_that_flips_tells_nothing_of_the_testbed(tmp_path: Path) -> None:
    noise = KnownNoise(None)
    watcher = Watcher()
    flips = [1e6, 0.8e6, 0.8e6, 1e6, 1e6, 0.8e6, 1e6, 0.8e6]
    _, result, _ = compared(tmp_path, STEADY, flips, watcher=watcher, experience=noise, pairs=16)
    assert result.verdict is Verdict.UNSTABLE
    assert noise.kept == []


def test_a_build_against_itself_is_measured_in_all_pairs(tmp_path: Path) -> None:
    noise, machine = KnownNoise(None), Machine()
    record = RunRecord(tmp_path / "run", "quick")
    booted = machine.boots("a", STEADY)
    session = Session(
        CONFIG,
        QUICK,
        record,
        Watcher(),
        experience=noise,
        state=tmp_path / "state",
        opener=lambda config, own: booted(own),
    )
    session.take()
    subject = compare_with_itself(session, Scenario(), "", 6)
    session.close()
    assert subject.observed
    assert len(machine.booted) == 12
    ((_, _, seen),) = noise.kept
    assert len({boot.build for boot in seen.boots}) == 1
    floor = NoiseFloor.seen([seen], seen.when)
    assert (floor.pairs, floor.boots) == (6, 12)
    assert floor.of(PDR).boots is not None
    assert any(
        line.startswith("  a tolerance of 2% of PDR needs 4 pairs; one boot ")
        for line in noise_lines(floor, {PDR: 0.02})
    )


def test_what_boots_builds_needs_one(tmp_path: Path) -> None:
    config = load_testbed(Path("resources/testbeds/local-vm.yaml"))
    session = Session(config, QUICK, RunRecord(tmp_path / "run", "quick"), Watcher())
    with pytest.raises(UsageError, match=r"^testbed local-vm \(.*\) boots builds; name one with --kernel$"):
        compare_with_itself(session, Scenario(), "", 6)


# --- Boots ---


def test_the_boots_of_a_pair_are_up_together_and_measured_in_turn(tmp_path: Path) -> None:
    watcher = Watcher()
    _, _, machine = compared(tmp_path, STEADY, STEADY, watcher=watcher)
    assert machine.most_up == 2
    boots = [told.trial.belonging.boot for told in watcher.progress if told.trial.occasion.phase == "repeat"]
    assert {boot.rpartition("-")[0] for boot in boots[:10]} == {"boot-1-baseline-1", "boot-2-candidate-1"}
    assert "".join(boot.split("-")[2][0] for boot in boots[:8]) == "bccbbccb"


def test_a_testbed_with_one_sut_boots_one_after_the_other_and_searches_both_builds(tmp_path: Path) -> None:
    """The loads once lay around the baseline's PDR alone."""
    subject, result, machine = compared(tmp_path, STEADY, [0.6e6, 0.601e6], together=False)
    assert machine.most_up == 1
    assert result.verdict is Verdict.REGRESSION
    assert len({boot.boot for boot in subject.boots}) == len(subject.boots)
    searched = {
        trial.belonging.side
        for trial in read_trials(tmp_path / "run" / "trials.jsonl")
        if trial.occasion.phase == "search"
    }
    assert searched == {"baseline", "candidate"}
    assert result.scenarios[0].comparison is not None
    assert result.scenarios[0].comparison.change == pytest.approx(-0.4, abs=0.01)


def test_what_changes_over_time_meets_both_builds_and_drops_out(tmp_path: Path) -> None:
    """The machine loses a fifth of its speed half-way; pair by pair the builds agree."""
    speeds = [1e6, 0.99e6, 1e6, 0.8e6, 0.81e6, 0.79e6]
    _, result, _ = compared(tmp_path, speeds, speeds)
    assert result.verdict is Verdict.PASS


def test_boots_that_differ_leave_a_small_change_open(tmp_path: Path) -> None:
    """Within a boot repeats agree to 0.3 %; the boots do not, and only they count."""
    subject, result, _ = compared(tmp_path, STEADY, [0.99e6, 0.95e6, 1e6, 0.97e6], pairs=8)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert len(subject.samples(PDR, "candidate")) == 8


def test_a_much_faster_build_is_an_improvement(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, [0.4e6, 0.401e6], [1e6, 1.001e6])
    assert result.verdict is Verdict.IMPROVEMENT


def test_a_boot_that_fails_once_is_tried_again_and_its_crash_is_kept(tmp_path: Path) -> None:
    subject, result, machine = compared(tmp_path, STEADY, STEADY, Machine(crashes=(2,)))
    assert result.verdict is Verdict.PASS
    assert "".join(machine.booted)[:6] == "ababba"
    assert "VFS" in subject.boots[0].failure
    crash = result.scenarios[0].builds.boots[0].crash
    assert crash is not None
    assert (crash.kind, crash.rip, crash.trace) == ("panic", PANIC.rip, PANIC.trace)
    assert crash.fingerprint == PANIC.fingerprint


@pytest.mark.parametrize(
    ("machine", "told"),
    [
        (Machine(crashes=(3, 4)), f"b does not boot: {PANIC.sentence()}; 2 boots of the candidate linux-b failed"),
        (Machine(panics=(2, 4)), f"b does not boot: {PANIC.sentence()}; 2 boots of the candidate linux-b failed"),
        (Machine(dies=(2, 4)), "b crashed: BUG: soft lockup; 2 boots of the candidate linux-b failed"),
        (
            Machine(panics=(2,), dies=(4,)),
            f"b does not boot: {PANIC.sentence()}; 2 boots of the candidate linux-b fail",
        ),
        (Machine(garbles=(2, 4)), "the SUT answered what makes no sense (ValueError: "),
    ],
    ids=["before it is up", "while it is set up", "under load", "the decoded one is told", "garbage"],
)
def test_a_candidate_that_fails_twice_beside_a_sound_baseline_is_a_crash(
    tmp_path: Path, machine: Machine, told: str
) -> None:
    """It once was a fault of the testbed, exit code 2, which the pages said is not the change's."""
    _, result, _ = compared(tmp_path, STEADY, [0.5e6], machine)
    assert (result.verdict, result.verdict.exit_code) == (Verdict.CRASH, 1)
    assert result.reason.startswith(told)
    assert "and none of the baseline's" in result.reason
    assert result.scenarios[0].verdict is Verdict.CRASH


@pytest.mark.parametrize(
    ("machine", "content", "told"),
    [
        (Machine(crashes=(3, 5, 6)), "", "2 boots of the candidate linux-b failed, and 1 of the baseline, so that bo"),
        (Machine(panics=(1, 3)), "", "2 boots of the baseline linux-a failed, the last: a does not boot"),
        (Machine(panics=(2, 4)), "of a", "2 boots of the candidate linux-b failed, the last: b does not boot"),
        (Machine(refuses=(2, 4)), "", "2 boots of the candidate linux-b failed, the last: b has no interrupts"),
        (Machine(crashes=(2, 4)), "", "2 boots of the candidate linux-b failed, the last: b does not boot"),
    ],
    ids=["both builds", "the baseline", "one build on both sides", "a tool", "no baseline was seen to come up"],
)
def test_what_is_not_the_candidates_alone_is_an_error(
    tmp_path: Path, machine: Machine, content: str, told: str
) -> None:
    _, result, _ = compared(tmp_path, STEADY, [0.5e6], machine, content=content)
    assert (result.verdict, result.verdict.exit_code) == (Verdict.ERROR, 2)
    assert result.reason.startswith(told)


def test_a_resumed_comparison_knows_whose_failures_they_were(tmp_path: Path) -> None:
    session, subject = comparison(tmp_path, STEADY, STEADY, Machine(panics=(2,)))
    killed_after(1, subject)
    session.close()
    _, result, later = compared(tmp_path, STEADY, STEADY, Machine(panics=(2,)), resume=True)
    assert (result.verdict, later.booted) == (Verdict.CRASH, ["a", "b"])


def test_a_kernel_that_dies_in_the_middle_of_its_trials_costs_the_pair_only(tmp_path: Path) -> None:
    subject, result, machine = compared(tmp_path, STEADY, STEADY, Machine(dies=(1,)))
    assert result.verdict is Verdict.PASS
    assert (subject.boots[0].side, dict(subject.boots[0].values)) == ("baseline", {})
    assert "soft lockup" in subject.boots[0].failure
    assert "".join(machine.booted)[:4] == "abab"


def test_guests_by_different_accelerators_are_never_compared(tmp_path: Path) -> None:
    """One guest fell silent under KVM and was booted by emulation; from then on all are."""
    watcher = Watcher()
    machine = Machine(emulated=tuple(n for n in range(1, 99) if n != 2))
    subject, result, machine = compared(tmp_path, STEADY, STEADY, machine, watcher=watcher)
    assert "".join(machine.booted)[:6] == "ababba"
    assert sum("by the same accelerator" in sentence for sentence in watcher.sentences) == 1
    assert {side.findings.fingerprint["testbed_accelerator"] for side in result.scenarios[0].builds.sides} == {"tcg"}
    assert [trial.belonging.boot for trial in subject.trials if trial.belonging.boot in ("boot-1", "boot-2")] == []
    assert result.verdict is Verdict.PASS


def test_boots_that_were_made_otherwise_are_not_taken_together(tmp_path: Path) -> None:
    session, subject = comparison(tmp_path, STEADY, STEADY, Machine(emulated=(1, 2, 3, 4)))
    with pytest.raises(DataError, match=r"cannot be taken together: testbed_accelerator tcg there, kvm here; start a"):
        subject.measure()
    session.close()


def test_new_warnings_of_the_candidates_kernel_are_told(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, STEADY, STEADY, name="warns")
    assert result.scenarios[0].findings.complaints == ("WARNING: at net/core/dev.c:1",)


# --- Tried again ---


def test_a_retry_goes_on_with_the_pairs_of_the_tries_before_it(tmp_path: Path) -> None:
    """A retry that began anew was another chance to err, and CI takes the first that is green."""
    kept = Experience(Address.beside(tmp_path))
    doubtful = [0.99e6, 0.95e6, 1e6, 0.97e6]
    _, first, _ = compared(tmp_path / "1", STEADY, doubtful, pairs=8, experience=kept)
    assert first.verdict is Verdict.INCONCLUSIVE
    assert "try" not in first.reason
    watcher = Watcher()
    _, second, machine = compared(
        tmp_path / "2", STEADY, [0.955e6, 0.956e6], pairs=4, experience=kept, watcher=watcher
    )  # fmt: skip
    told = "this is try 2 of these two builds: 8 pairs of earlier ones (INCONCLUSIVE) count too, and with --afresh they"
    assert sum(sentence.startswith(told) for sentence in watcher.sentences) == 1
    assert told in second.reason
    comparison = second.scenarios[0].comparison
    assert comparison is not None
    assert (comparison.pairs, comparison.earlier, comparison.tries) == (len(machine.booted) // 2, 8, 2)
    assert comparison.changes[0].evidence is not None
    assert comparison.changes[0].evidence.pairs == 8 + comparison.pairs
    assert -0.04 < comparison.change < -0.025  # of the eight it was -2.2 %, of these alone -4.5 %
    assert " pairs of boots and 8 of earlier tries, " in run_markdown(second)


def test_a_retry_of_what_is_plain_takes_two_pairs_and_afresh_it_takes_four(tmp_path: Path) -> None:
    kept = Experience(Address.beside(tmp_path))
    asked = dataclasses.replace(QUICK, afresh=True)
    for number, (asked_, pairs) in enumerate(((QUICK, 4), (QUICK, 2), (asked, 4), (QUICK, 2))):
        subject, result, _ = compared(tmp_path / str(number), STEADY, [0.85e6, 0.853e6], experience=kept, asked=asked_)
        assert result.verdict is Verdict.REGRESSION
        assert len(subject.samples(PDR, "candidate")) == pairs
    assert "4 pairs of earlier ones (REGRESSION) count" in result.reason


def test_kept_pairs_that_contradict_the_fresh_ones_do_not_outvote_them(tmp_path: Path) -> None:
    """Fourteen forged pairs of one speed made two true ones of -30 % a PASS, -0.1 %."""
    kept = Experience(Address.beside(tmp_path))
    _, first, _ = compared(tmp_path / "1", STEADY, STEADY, pairs=4, experience=kept)
    assert first.verdict is Verdict.PASS
    with contextlib.closing(sqlite3.connect(tmp_path / "history.db", isolation_level=None)) as history:
        ((text,),) = history.execute("SELECT content FROM experience WHERE kind = 'try'")
        attempt = json.loads(text)
        attempt["pairs"] = {name: [[1e6, 1e6 + number] for number in range(14)] for name in attempt["pairs"]}
        history.execute("UPDATE experience SET content = ? WHERE kind = 'try'", (json.dumps(attempt),))
    _, second, _ = compared(tmp_path / "2", STEADY, [0.7e6, 0.702e6, 0.699e6, 0.701e6], pairs=8, experience=kept)
    assert second.verdict is Verdict.REGRESSION
    assert "the pairs of earlier tries of these two builds contradict these and do not count (" in second.reason
    comparison = second.scenarios[0].comparison
    assert comparison is not None
    assert (comparison.pairs, comparison.earlier, comparison.tries) == (4, 0, 1)
    assert [side.digest for side in second.scenarios[0].builds.sides] == ["of a", "of b"]  # what it is a comparison of
    assert -0.31 < comparison.change < -0.29
    _, third, _ = compared(tmp_path / "3", STEADY, STEADY, pairs=8, experience=kept)
    assert third.verdict is Verdict.UNSTABLE  # a retry is no fresh chance


def test_a_build_that_flips_is_found_over_tries(tmp_path: Path) -> None:
    """Few boots may all come up at one of its levels; those of the tries before it tell."""
    kept = Experience(Address.beside(tmp_path))
    flips = [1e6, 0.8e6, 0.797e6, 1.003e6, 0.998e6]
    _, first, _ = compared(tmp_path / "1", STEADY, flips, pairs=10, experience=kept)
    assert first.verdict is Verdict.UNSTABLE
    _, second, _ = compared(tmp_path / "2", STEADY, STEADY, pairs=10, experience=kept)
    assert second.verdict is Verdict.UNSTABLE
    assert "earlier ones (UNSTABLE) count too" in second.reason


def test_a_try_without_a_shape_leaves_nothing(tmp_path: Path) -> None:
    kept = Experience(Address.beside(tmp_path))
    _, first, _ = compared(tmp_path / "1", STEADY, [0.5e6], Machine(crashes=(3, 4)), experience=kept)
    assert first.verdict is Verdict.CRASH
    assert not (tmp_path / "history.db").exists()


# --- What stands against a change, and what does not ---


def test_a_ratio_that_drifts_from_pair_to_pair_is_unstable_and_told(tmp_path: Path) -> None:
    drifting = [0.955e6 + 0.0067e6 * pair for pair in range(10)]
    _, result, _ = compared(tmp_path, STEADY, drifting, pairs=10)
    assert result.verdict is Verdict.UNSTABLE
    assert "pairs of boots: candidate's PDR relative to the baseline's changes by" in result.reason
    comparison = result.scenarios[0].comparison
    assert comparison is not None
    assert not comparison.accepted
    assert result.reason.startswith(comparison.why_not)
    assert "not accepted therefore: PDR " in result.reason


def test_a_build_that_flips_from_boot_to_boot_is_unstable(tmp_path: Path) -> None:
    """The mean of two levels was once compared with a baseline that has one, and called a regression."""
    _, result, _ = compared(tmp_path, STEADY, [1e6, 0.8e6, 0.797e6, 1.003e6, 0.998e6], pairs=10)
    assert result.verdict is Verdict.UNSTABLE
    assert "4 of 10 boots of the candidate, and none of 10 of the baseline, came up 20" in result.reason
    assert "not accepted therefore: PDR " in result.reason


def test_of_many_pairs_one_that_dips_changes_nothing(tmp_path: Path) -> None:
    noisy = [1e6, 1.03e6, 0.98e6, 1.02e6, 0.97e6, 1.01e6, 0.99e6, 1.025e6]
    subject, result, _ = compared(tmp_path, STEADY, [noisy[0], 0.7e6, *noisy[2:], *noisy[::-1], *noisy])
    assert result.verdict is Verdict.PASS
    assert len(subject.samples(PDR, "candidate")) <= 16


def test_a_ratio_that_scatters_is_not_known_well_enough(tmp_path: Path) -> None:
    scattered = [1e6, 0.8e6, 0.87e6, 1.01e6, 0.94e6, 0.91e6, 0.84e6, 1.05e6, 0.97e6, 0.78e6]
    _, result, _ = compared(tmp_path, STEADY, scattered, pairs=10)
    assert result.verdict is Verdict.INCONCLUSIVE
    told = re.search(r"; 10 pairs that deviate by (\d+\.\d)% resolve a tolerance of some (\d+\.\d)%; ", result.reason)
    assert told is not None, result.reason
    assert float(told[1]) > 5
    assert float(told[2]) > 2


def test_a_ratio_that_jumps_beyond_the_tolerance_is_a_regression_all_the_same(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, STEADY, [0.2e6, 0.22e6, 0.18e6, 0.21e6])
    assert result.verdict is Verdict.REGRESSION


def test_a_throughput_that_scatters_from_boot_to_boot_does_not_veto_a_regression(tmp_path: Path) -> None:
    """A TIR that its own scatter leaves undecided is INCONCLUSIVE for the curve; pair by pair the change is plain."""
    speeds = [1e6, 0.8e6, 1.2e6, 0.9e6, 1.1e6, 0.85e6]
    subject, result, _ = compared(tmp_path, speeds, [0.9 * speed for speed in speeds])
    assert result.verdict is Verdict.REGRESSION
    assert {found.verdict.value for found in subject.shape.assessments.values()} != {"UNSTABLE"}


def test_a_generator_too_slow_for_the_grid_is_the_testbeds_fault_and_no_change(tmp_path: Path) -> None:
    """Behind a ceiling just above their PDR, builds 10 % apart once differed by +0.0 %."""
    for ceiling in (0.8e6, 1.1e6):
        folder = tmp_path / f"{ceiling:g}"
        _, result, _ = compared(folder, STEADY, [0.99e6], Machine(ceiling=ceiling))
        assert result.verdict is Verdict.GENERATOR_LIMITED
        assert "the generator ends at " in result.reason
        assert result.scenarios[0].comparison is None


def test_the_rule_that_ends_a_comparison_is_the_one_that_judges_it(tmp_path: Path) -> None:
    session, subject = comparison(tmp_path, STEADY, [0.9e6], Machine())
    subject.measure()
    standing = subject.loop.samples().standing()
    assert standing.verdict is subject.judge(0.02).verdict is Verdict.REGRESSION
    assert subject.comparison is not None
    assert subject.comparison.changes == standing.changes
    subject.finish()
    session.close()


# --- What is left of a comparison that came to another end than its own ---


@dataclasses.dataclass
class Late:
    """An observer by which each trial from some boot on was disturbed."""

    disturbed: bool

    def begin(self) -> None:
        pass

    def end(self) -> Observation:
        return Observation(disturbed=because("the guest's CPU was late by 300 of 1000 ms" if self.disturbed else ""))


def disturbed_from(boot: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def observers(testbed: _Booted, shared: bool = False) -> tuple[Late]:
        return (Late(int(testbed.boot_id.split("-")[1]) >= boot),)

    monkeypatch.setattr(_Booted, "observers", observers)


def ended_by_keyword(
    session: Session, subject: PairsComparison, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, RunResult]:
    """What Robot's keyword fails with, and what is stored after the test."""
    state = State(record=session.record)
    state.testbeds.append(OpenTestbed(session, None, "", ""))
    named = SimpleNamespace(label="a build", image=Path(__file__), modules=None)
    for name, stands_for in {"named_build": lambda source: named, "build_identity": lambda build: "", "comparison_of":
                             lambda *asked, **test: subject}.items():  # fmt: skip
        monkeypatch.setattr(keywords, name, stands_for)
    with contextlib.closing(session), pytest.raises(AssertionError) as failed:
        keywords.BuildKeywords(state).compare_kernel_builds("b", "a")
    subject.finish()
    return str(failed.value), read_result(session.record.folder)


def test_boots_that_fail_after_some_pairs_leave_the_change_of_those(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pairs had shown -10 %, and the keyword told and stored that two boots had failed, and nothing else."""
    session, subject = comparison(tmp_path, [1e6], [0.9e6], Machine(crashes=(6, 8)))
    told, result = ended_by_keyword(session, subject, monkeypatch)
    assert told.startswith("CRASH: b does not boot: Kernel panic")
    assert "PDR 90" in told  # below the headline
    (entry,) = result.scenarios
    assert entry.verdict is Verdict.CRASH
    assert "; not accepted therefore: PDR 90" in entry.reason
    assert entry.comparison is not None
    assert entry.comparison.change == pytest.approx(-0.1, abs=0.01)
    assert entry.comparison.why_not.startswith("b does not boot: ")


def test_a_comparison_that_the_machine_disturbs_after_some_pairs_is_disturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It once was INCONCLUSIVE, for the builds' throughput that had been scattered by it."""
    disturbed_from(7, monkeypatch)
    session, subject = comparison(tmp_path, [1e6], [0.9e6], Machine())
    told, result = ended_by_keyword(session, subject, monkeypatch)
    assert told.startswith("DISTURBED: ")
    assert "the guest's CPU was late by 300 of 1000 ms" in told
    assert "PDR 90" in told  # below the headline
    (entry,) = result.scenarios
    assert entry.verdict is Verdict.DISTURBED
    assert "; not accepted therefore: PDR 90" in entry.reason
    assert entry.comparison is not None
    assert not entry.comparison.accepted


@pytest.mark.parametrize("pairs", [0, 1, 3])
@pytest.mark.parametrize("ends", [KeyboardInterrupt(), StorageError("no space is left")], ids=lambda one: repr(one))
def test_what_is_interrupted_leaves_what_it_has_measured(tmp_path: Path, pairs: int, ends: BaseException) -> None:
    watcher = Watcher()
    session, subject = comparison(tmp_path, [1e6], [0.9e6], Machine(), watcher=watcher)
    original = subject.loop.replication.next

    def measure(number: int, *, wanted: Callable[[int], bool]) -> Replicates:
        if number > pairs:
            raise ends
        return original(number, wanted=wanted)

    subject.loop.replication.next = measure  # type: ignore[method-assign]
    with contextlib.closing(session), pytest.raises(type(ends)):
        subject.run()
    (entry,) = read_result(tmp_path / "run").scenarios
    assert entry.verdict is Verdict.ERROR
    assert entry.reason.startswith(str(ends) or "interrupted")
    assert watcher.sentences[-1] == f"ERROR: {entry.reason}"
    assert len(entry.builds.boots) == 2 * pairs
    if pairs < 2:
        assert entry.comparison is None
    else:
        assert entry.comparison is not None
        assert not entry.comparison.accepted
        assert "; not accepted therefore: PDR 90" in entry.reason


def test_a_test_that_fails_otherwise_after_its_comparison_still_tells_the_change(tmp_path: Path) -> None:
    session, subject = comparison(tmp_path, STEADY, STEADY, Machine())
    subject.measure()
    assert subject.judge(0.03).verdict is Verdict.PASS
    judgement = subject.finish(Judgement(Verdict.ERROR, "No keyword with name 'Cheer' found."))
    session.close()
    assert judgement.verdict is Verdict.ERROR
    assert judgement.reason.startswith("No keyword with name 'Cheer' found.; not accepted therefore: PDR ")
    (entry,) = read_result(tmp_path / "run").scenarios
    assert entry.comparison is not None
    assert (entry.comparison.accepted, entry.comparison.tolerance) == (False, 0.03)


def test_a_test_that_passes_over_its_comparisons_failure_does_not_pass(tmp_path: Path) -> None:
    session, subject = comparison(tmp_path, STEADY, STEADY, Machine())
    killed_after(1, subject)
    judgement = subject.finish(Judgement(Verdict.NO_BASELINE, "the test asked for no comparison"))
    session.close()
    assert judgement == Judgement(Verdict.ERROR, "the comparison ended before its verdict")


def test_of_several_tolerances_the_gravest_answer_is_the_tests_and_its_comparison_is_stored(tmp_path: Path) -> None:
    """The last one once was: a REGRESSION by 1 % that a second question by 50 % made a PASS."""
    session, subject = comparison(tmp_path, STEADY, [0.9e6], Machine())
    subject.measure()
    assert [subject.judge(each).verdict for each in (0.01, 0.5)] == [Verdict.REGRESSION, Verdict.PASS]
    assert subject.finish().verdict is Verdict.REGRESSION
    session.close()
    result = read_result(tmp_path / "run")
    assert result.verdict is Verdict.REGRESSION
    (entry,) = result.scenarios
    assert entry.comparison is not None
    assert entry.comparison.tolerance == 0.01
    assert {change.verdict for change in entry.comparison.changes} == {Verdict.REGRESSION}


def test_the_plans_tolerance_decides_where_a_suite_asks_by_none_of_its_own(tmp_path: Path) -> None:
    for name, asked, verdict in (("none", (), Verdict.REGRESSION), ("own", (0.5,), Verdict.PASS)):
        session, subject = comparison(tmp_path / name, STEADY, [0.9e6], Machine())
        subject.measure()
        assert subject.judgement is not None
        assert subject.judgement.verdict is Verdict.REGRESSION
        for tolerance in asked:
            subject.judge(tolerance)
        assert subject.finish().verdict is verdict
        session.close()
        (entry,) = read_result(tmp_path / name / "run").scenarios
        assert entry.comparison is not None
        assert entry.comparison.tolerance == (asked or (0.02,))[0]


# --- Continued ---


def killed_after(pairs: int, subject: PairsComparison) -> None:
    """Measure until the process ends in the middle of the next pair."""
    original, left = subject.loop.replication.next, [pairs]

    def measure(number: int, *, wanted: Callable[[int], bool]) -> Replicates:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return original(number, wanted=wanted)

    subject.loop.replication.next = measure  # type: ignore[method-assign]
    with pytest.raises(Killed):
        subject.measure()


def test_a_killed_comparison_goes_on_after_its_last_whole_pair(tmp_path: Path) -> None:
    machine = Machine()
    baseline, candidate = [1e6, 1.03e6, 0.98e6, 1.01e6], [0.985e6, 1.01e6, 0.97e6, 0.99e6]
    session, subject = comparison(tmp_path, baseline, candidate, machine, pairs=6)
    killed_after(3, subject)
    session.close()
    assert len(machine.booted) == 6
    again, result, later = compared(tmp_path, baseline, candidate, pairs=6, resume=True)
    assert len(later.booted) == 6
    assert [boot.pair for boot in again.boots] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert again.samples(PDR, "baseline")[:3] == subject.samples(PDR, "baseline")
    (entry,) = result.scenarios
    for side in entry.builds.sides:
        assert side.findings.search is not None
        assert side.findings.environment["kernel_release"] == side.findings.fingerprint["kernel"]
    assert all(point.runs >= 6 for point in again.shape.assessments["baseline"].curve.points)


def test_without_being_asked_to_a_comparison_takes_over_nothing(tmp_path: Path) -> None:
    session, subject = comparison(tmp_path, STEADY, STEADY, Machine(), pairs=6)
    killed_after(3, subject)
    session.close()
    again, _, later = compared(tmp_path, STEADY, STEADY, pairs=6)
    assert len(later.booted) == 8
    assert len(again.samples(PDR, "baseline")) == 4


def test_a_continued_comparison_has_spent_what_it_had_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start once had the whole budget anew."""
    clock = Clock(monkeypatch)
    session, subject = comparison(tmp_path, STEADY, [0.98e6], clock.slow(Machine(), 100.0), budget=500.0)
    killed_after(2, subject)  # 4 boots of 100 s
    session.close()
    again, _, later = compared(tmp_path, STEADY, [0.98e6], clock.slow(Machine(), 100.0), budget=500.0, resume=True)
    assert len(later.booted) == 2
    assert len(again.samples(PDR, "baseline")) == 3


def test_failures_of_earlier_starts_count(tmp_path: Path) -> None:
    """A build that failed once per start was booted for ever."""
    for attempt in range(3):
        machine = Machine(crashes=(2,))
        session, subject = comparison(tmp_path, STEADY, STEADY, machine, resume=attempt > 0)
        if attempt == 0:
            killed_after(1, subject)
        else:
            subject.measure()
            judgement = subject.judge(0.02)
            assert judgement.verdict is Verdict.ERROR
            assert judgement.reason.startswith("2 boots of the candidate linux-b failed")
        session.close()
    assert machine.booted == []


def test_pairs_of_another_run_in_the_folder_are_none_of_the_run_that_is_resumed(tmp_path: Path) -> None:
    """They once stayed where they were, without their trials: a slow build's pairs stood in for those of its mend."""
    _, result, _ = compared(tmp_path, STEADY, [0.7e6])
    assert result.verdict is Verdict.REGRESSION
    session, subject = comparison(tmp_path, STEADY, STEADY, Machine())
    killed_after(1, subject)
    session.close()
    again, result, later = compared(tmp_path, STEADY, STEADY, resume=True)
    assert result.verdict is Verdict.PASS
    assert [boot.pair for boot in again.boots] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert len(later.booted) == 6
    assert (tmp_path / "run" / "pairs-1.jsonl").exists()


def test_a_comparison_that_had_ended_is_remembered_once(tmp_path: Path) -> None:
    """A run that was killed behind it, and resumed, once told its boots to the testbed's noise a second time."""
    store = Experience(Address.beside(tmp_path))
    subject, _, _ = compared(tmp_path, STEADY, STEADY, experience=store)
    fingerprint = subject.result().findings.fingerprint
    before = noise_floor(store, fingerprint)
    assert before.pairs == 4
    compared(tmp_path, STEADY, STEADY, experience=store, resume=True)
    after = noise_floor(store, fingerprint)
    assert (after.pairs, after.measured) == (before.pairs, before.measured)
    deviations = [floor.of(PDR).boots for floor in (before, after)]
    assert None not in deviations
    assert deviations[1].freedom == pytest.approx(deviations[0].freedom, rel=1e-3)


def test_a_try_of_another_run_in_the_folder_counts_also_when_the_run_is_resumed(tmp_path: Path) -> None:
    """It once was taken for one of the same run, so that a second chance to pass was a fresh one."""
    kept = Experience(Address.beside(tmp_path))
    compared(tmp_path, STEADY, [0.98e6], experience=kept)
    session, subject = comparison(tmp_path, STEADY, [0.98e6], Machine(), experience=kept)
    killed_after(1, subject)
    session.close()
    earlier = subject.loop.tries.earlier.pairs
    assert earlier >= 4
    again, _, _ = compared(tmp_path, STEADY, [0.98e6], experience=kept, resume=True)
    assert again.comparison is not None
    assert (again.comparison.earlier, again.comparison.tries) == (earlier, 2)


def test_pairs_without_their_trials_are_told_in_one_line(tmp_path: Path) -> None:
    """It once was a traceback: there are no trials to assess."""
    compared(tmp_path, STEADY, STEADY)
    (tmp_path / "run" / "trials.jsonl").write_text("")
    session, subject = comparison(tmp_path, STEADY, STEADY, Machine(), resume=True)
    with pytest.raises(DataError) as error:
        subject.measure()
    session.close()
    assert subject.boots == []
    told = r"cannot resume \S+: what was measured in boot 1 of the \w+ \(\S+\) is not there any more; start a new run"
    assert re.fullmatch(told, str(error.value))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"content": "rebuilt"}, "candidate linux-b with content of b there, linux-b with content rebuilt here"),
        ({"name": "c"}, "candidate linux-b with content of b there, linux-c with content of c here"),
    ],
)
def test_pairs_of_other_builds_are_refused_by_name(tmp_path: Path, changed: dict[str, Any], told: str) -> None:
    """A build that was made anew in its place keeps its label: its pairs once were pooled with the old one's."""
    session, subject = comparison(tmp_path, STEADY, [0.7e6], Machine())
    killed_after(3, subject)
    session.close()
    machine = Machine()
    session, subject = comparison(tmp_path, STEADY, STEADY, machine, resume=True, **changed)
    with pytest.raises(DataError) as error:
        subject.measure()
    assert str(error.value) == (
        f"cannot resume {tmp_path / 'run'}: its pairs of ipv6-routing-1cpu-4096-64B were measured otherwise ({told}); "
        "start a new run"
    )
    assert (machine.booted, subject.boots) == ([], [])
    session.close()


@pytest.mark.parametrize("tests", [("One.Same Name", "Another.Same Name"), ("", "")])
def test_two_tests_that_compare_the_same_builds_take_each_its_own_pairs(tmp_path: Path, tests: tuple[str, str]) -> None:
    """Each once took those of both."""

    def both(resume: bool, machine: Machine) -> list[list[int]]:
        record, found = RunRecord(tmp_path / "run", "quick", resume=resume), []
        for test in tests:
            session, subject = comparison(tmp_path, STEADY, STEADY, machine, test=test, record=record)
            if found and not resume:
                killed_after(2, subject)
            else:
                subject.measure()
            session.close()
            found.append([boot.pair for boot in subject.boots])
        return found

    assert both(False, Machine()) == [[1, 1, 2, 2, 3, 3, 4, 4], [1, 1, 2, 2]]
    machine = Machine()
    assert both(True, machine) == [[1, 1, 2, 2, 3, 3, 4, 4]] * 2
    assert len(machine.booted) == 4


def test_a_comparison_rests_on_the_trials_of_its_whole_pairs_however_often_it_was_killed(tmp_path: Path) -> None:
    """Where a machine sets itself up anew, boots once had one name: half a pair's trials were the next one's."""

    class Namespaces(Machine):
        def boots(self, name: str, speeds: Sequence[float | LoadLoss]) -> Callable[[Journal], FakeTestbed]:
            boot = super().boots(name, speeds)

            def on_this_machine(journal: Journal) -> FakeTestbed:
                testbed = boot(journal)
                testbed.boot_id = "this-machine"
                return testbed

            return on_this_machine

    session, subject = comparison(tmp_path, STEADY, STEADY, Namespaces(), watcher=Watcher(kill_after=70))
    with pytest.raises(Killed):
        subject.measure()
    session.close()
    assert len(subject.boots) == 2
    watcher = Watcher()
    whole, _, _ = compared(tmp_path, STEADY, STEADY, Namespaces(), resume=True, watcher=watcher)
    assert not any(step.replayed for step in watcher.progress)
    again, _, machine = compared(tmp_path, STEADY, STEADY, Namespaces(), resume=True)
    assert machine.booted == []
    assert again.trials == whole.trials
    assert again.trials[: len(subject.trials)] == subject.trials
    assert again.result().builds.sides == whole.result().builds.sides


def test_a_damaged_file_of_pairs_is_told_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / PAIRS_FILE).write_text('{"scenario": 3}\n')
    session, subject = comparison(tmp_path, STEADY, STEADY, Machine(), resume=True)
    with pytest.raises(DataError, match=r"pairs\.jsonl: it is damaged"):
        subject.measure()
    session.close()


# --- Time ---


class Clock:
    """Stands for the clock of the comparison; boots let it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def slow(self, machine: Machine, seconds: float) -> Machine:
        """The machine, each boot of which takes so long."""
        made = machine.boots

        def boots(name: str, speeds: Sequence[float | LoadLoss]) -> Callable[[Journal], FakeTestbed]:
            boot = made(name, speeds)

            def slowly(journal: Journal) -> FakeTestbed:
                self.now += seconds
                return boot(journal)

            return slowly

        machine.boots = boots  # type: ignore[method-assign]
        return machine


def test_after_the_budget_no_pair_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    session, subject = comparison(tmp_path, STEADY, STEADY, clock.slow(Machine(), 100.0), budget=1.0)
    subject.measure()
    assert len(subject.samples(PDR, "baseline")) == 2  # fewer have no deviation
    subject.finish()
    session.close()


def test_after_the_budget_no_pair_comes_up_that_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two guests more were once booted beside the last pair, for nobody."""
    machine = Clock(monkeypatch).slow(Machine(), 100.0)
    machine.steady = True
    session, subject = comparison(tmp_path, STEADY, STEADY, machine, budget=1.0)
    subject.measure()
    assert len(subject.samples(PDR, "baseline")) == 2
    assert len(machine.booted) == 4
    subject.finish()
    session.close()


@pytest.mark.parametrize(("seconds", "pairs"), [(20.0, 13), (600.0, 6)])
def test_a_budget_that_nobody_named_is_enough_for_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, pairs: int
) -> None:
    """Boots of a rack take ten minutes: nine minutes once were two pairs, and INCONCLUSIVE whatever the builds were."""
    clock = Clock(monkeypatch)
    doubtful = [0.99e6, 0.95e6, 1e6, 0.97e6]
    subject, _, _ = compared(tmp_path, STEADY, doubtful, clock.slow(Machine(), seconds), budget=None, together=False)
    assert abs(len(subject.samples(PDR, "baseline")) - pairs) <= 1


def test_the_time_that_is_left_is_that_of_the_pairs_that_the_rule_may_want(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It once was the time until no further pair is begun: 8:45, and 44 seconds later all had ended."""
    clock = Clock(monkeypatch)
    session, subject = comparison(tmp_path, STEADY, [0.85e6], clock.slow(Machine(), 10.0), budget=540.0)
    watcher = session.observer = Watcher()
    subject.measure()
    subject.finish()
    session.close()
    left: dict[int, Estimate | None] = {}
    for progress in watcher.progress:
        left.setdefault(progress.trial.belonging.pair, progress.left)
    assert list(left) == [1, 2, 3, 4]
    assert left[1] is None
    # Both boots of a pair have come up when its first trial ends: no clock goes on after that.
    assert left[2] is not None and left[2].least == 3 * 20.0 - 20.0 and left[2].most > 400
    assert left[4] is not None and left[4].least == 0 and left[4].most < left[2].most / 4

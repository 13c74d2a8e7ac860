"""What becomes of a verdict when the machine disturbed trials, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from causes import because
from fake_testbed import CONFIG, QUICK, FakeTestbed, Watcher, gate, new_session
from flat_values import changed, flat_trial
from simulated_sut import Behaviour, Ceiling, RealisticCurve, SimulatedSut

from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.verdicts import disturbance
from pdrgate.gate.verdicts.disturbance import Disturbance, DisturbanceEvidence, beyond_the_machine, remedy
from pdrgate.history.results import read_result
from pdrgate.observers.watching import CounterObserver, Observation, Observer
from pdrgate.record.cause import Cause, CauseKind
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.reports.ci.junit import junit
from pdrgate.results.model import ScenarioResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.search.patience import Patience
from pdrgate.stability import assess
from pdrgate.stability.curve import LoadLossCurve

STALLED = "stalls of CPU 1, the longest of 38.2 ms, 9 % of the trial"
STALL = because(STALLED, part=0.09)


def trials(*disturbed: Sequence[tuple[Cause, ...]], boot: str = "b", phase: Phase = Phase.REPEAT) -> list[Trial]:
    """A wanted trial each, with what disturbed its attempts."""
    return [
        flat_trial(1e5 + number, 1.0, 1000, 1000, boot=boot, phase=phase, repeat=1, disturbed=causes)
        for number, attempts in enumerate(disturbed)
        for causes in attempts
    ]


SOUND, REPEATED, LOST = ((),), (STALL, ()), (STALL, STALL, STALL)
REMEDY = "free CPU 1 of all else, or use a guest of constant speed"
UNSTABLE = Judgement(Verdict.UNSTABLE, "TIR 0.46")


@pytest.mark.parametrize(
    ("steady", "may", "told"),
    [
        (False, False, "or use a guest of constant speed"),
        (True, True, "or lower sut.cpu_speed"),
        (True, False, "or let the guest go before it: pdrgate has no right to (capability SYS_NICE, see docs/ci.md)"),
    ],
    ids=["namespaces", "a guest", "a guest in a container with few rights"],
)
def test_what_can_be_done_is_told(monkeypatch: pytest.MonkeyPatch, steady: bool, may: bool, told: str) -> None:
    monkeypatch.setattr(disturbance, "may_go_first", lambda: may)
    testbed = SimpleNamespace(sut_cpus=(1,), steady=steady)
    assert remedy(testbed) == f"free CPU 1 of all else, {told}"  # type: ignore[arg-type]


def test_against_the_limit_of_a_cloud_no_free_cpu_is_advised() -> None:
    beyond = because("the cloud dropped or held back 790 packets beyond its allowance at eth1 (x)", CauseKind.ALLOWANCE)
    found = Disturbance.of(trials((beyond, beyond, beyond), SOUND)).weighed(UNSTABLE, REMEDY)
    assert found is not None and found.verdict is Verdict.DISTURBED
    assert "beyond its allowance at eth1 (x)); take a larger instance, or machines of your own; without" in found.reason


def test_a_trial_with_its_repeats_is_one_that_is_wanted() -> None:
    found = Disturbance.of(trials(SOUND, REPEATED, LOST, SOUND))
    assert (found.wanted, found.repeated, found.lost, found.lost_share) == (4, 2, 1, 0.25)
    assert found.time_share == pytest.approx(4 / 7)


def test_equal_questions_in_a_row_are_not_taken_for_repeats() -> None:
    same = [flat_trial(1e5, 1.0, 9, 9, phase=Phase.SATURATION, disturbed=why) for why in (*LOST, *LOST, (), ())]
    found = Disturbance.of(same)
    assert (found.wanted, found.repeated, found.lost) == (4, 2, 2)


def test_boots_that_are_measured_in_turn_are_told_apart() -> None:
    one, other = trials(LOST, SOUND, boot="b"), trials(REPEATED, REPEATED, boot="c")
    mixed = [trial for pair in zip(one, other, strict=True) for trial in pair]
    found = Disturbance.of(mixed)
    assert (found.wanted, found.repeated, found.lost) == (4, 3, 1)


def test_nothing_disturbed_nothing_told() -> None:
    found = Disturbance.of(trials(*[SOUND] * 9))
    assert found.remark() == ""
    assert found.weighed(UNSTABLE, REMEDY) is UNSTABLE
    assert found.weighed(None, REMEDY) is None
    assert Disturbance.of([]).weighed(UNSTABLE, REMEDY) is UNSTABLE


def test_where_the_disturbed_is_not_measured_again_each_trial_is_a_wanted_one() -> None:
    """As the smoke profile does, whose numbers are not worth the time."""
    same = [flat_trial(1e5, 1.0, 9, 9, phase=Phase.SATURATION, disturbed=why) for why in ((), STALL, STALL, (), ())]
    found = Disturbance.of(same, Patience(disturbed=0))
    assert (found.wanted, found.repeated, found.lost) == (5, 0, 2)
    assert found.remark().startswith("2 of 5 trials left out, the machine had disturbed them (2 times, at worst stalls")
    judgement = found.weighed(UNSTABLE, REMEDY)
    assert str(judgement).startswith("DISTURBED: 2 of 5 trials were disturbed, in 40% of the time (2 times, ")


@pytest.mark.parametrize(
    ("patience", "trial", "made"),
    [
        (Patience(), flat_trial(1e5, 1.0, 9, 9, disturbed=STALL), 3),
        (Patience(), Trial(1e5, 1.0, 5, 5, unsent=4), 3),
        (Patience(), Trial(1e5, 1.0, 9, 9), 1),
        (Patience(disturbed=0), flat_trial(1e5, 1.0, 9, 9, disturbed=STALL), 1),
        (Patience(disturbed=0), flat_trial(1e5, 1.0, 5, 5, unsent=4, disturbed=STALL), 3),
    ],
    ids=["disturbed", "limited", "sound", "disturbed, no patience", "limited, no patience"],
)
def test_how_often_a_trial_is_measured_again(patience: Patience, trial: Trial, made: int) -> None:
    assert list(patience.attempts(lambda load, duration: trial, 1e5, 1.0)) == [trial] * made


def test_a_generator_that_fell_short_is_no_disturbance() -> None:
    short = [Trial(1e5, 1.0, 500, 500, unsent=500) for _ in range(3)]
    assert Disturbance.of(short).remark() == ""


@pytest.mark.parametrize(
    ("verdict", "lost", "expected"),
    [
        (Verdict.UNSTABLE, 2, Verdict.UNSTABLE),
        (Verdict.UNSTABLE, 3, Verdict.DISTURBED),
        (Verdict.INCONCLUSIVE, 3, Verdict.DISTURBED),
        (Verdict.GENERATOR_LIMITED, 5, Verdict.GENERATOR_LIMITED),
        (Verdict.REGRESSION, 5, Verdict.REGRESSION),
        (Verdict.REGRESSION, 6, Verdict.DISTURBED),
        (Verdict.ERROR, 10, Verdict.ERROR),
        (None, 5, None),
        (None, 6, Verdict.DISTURBED),
    ],
)
def test_when_the_machine_is_the_reason(verdict: Verdict | None, lost: int, expected: Verdict | None) -> None:
    found = Disturbance.of(trials(*[LOST] * lost, *[SOUND] * (10 - lost)))
    judgement = found.weighed(Judgement(verdict, "why") if verdict else None, REMEDY)
    assert (judgement.verdict if judgement else None) is expected


def test_trials_that_came_right_when_repeated_excuse_nothing() -> None:
    """A SUT that flips is not excused by a machine that disturbed what was then measured again."""
    found = Disturbance.of(trials(*[REPEATED] * 10))
    assert found.weighed(UNSTABLE, REMEDY) is UNSTABLE
    assert found.remark().startswith("10 of 10 trials repeated, the machine had disturbed them (10 times, at worst ")


def test_the_sentence_has_the_evidence_its_share_and_what_to_do() -> None:
    other, worse = "other processes had 33 % of CPU 1", STALLED.replace("9 %", "12 %")
    held, longer = because(other, CauseKind.WITHHELD), because(worse, part=0.12)
    found = Disturbance.of(trials(LOST, (longer, STALL, STALL), (held, held, ()), *[SOUND] * 3))
    judgement = found.weighed(UNSTABLE, REMEDY)
    assert str(judgement) == (
        "DISTURBED: 2 of 6 trials were disturbed, after up to 2 repeats each, in 67% of the time "
        f"(6 times, at worst {worse}; 2 times, at worst {other}); "
        "free CPU 1 of all else, or use a guest of constant speed; without them: TIR 0.46"
    )


def test_the_worst_of_a_kind_is_what_took_the_most_of_a_trial_and_a_trial_counts_once() -> None:
    """Whichever CPU it was: numbers in the words say nothing of that."""
    short, long = because("CPU 1 stood still, 1 %", part=0.01), because("CPU 0 stood still, 30 %", part=0.3)
    found = Disturbance.of(trials((short, (*short, *long), ())))
    assert found.evidence == (DisturbanceEvidence(long[0], 2),)
    assert found.remark().endswith("(2 times, at worst CPU 0 stood still, 30 %)")


def watched(
    load: float, forwarded: int, others: int = 0, *, heartbeat: bool = True, disturbed: tuple[Cause, ...] = ()
) -> Trial:
    """A trial of 1 s, with so many ticks of other processes on CPU 1."""
    before = {"cpu1": {"process_ticks": 100}} | ({"cpu1/heartbeat": {"beats": 0}} if heartbeat else {})
    after = {"cpu1": {"process_ticks": 100 + others}} | ({"cpu1/heartbeat": {"beats": 500}} if heartbeat else {})
    return flat_trial(
        load, 1.0, round(load), forwarded, counters_before=before, counters_after=after, disturbed=disturbed
    )


def receiving(trial: Trial) -> Trial:
    """The same of an end host, whose programs have the CPU too."""
    return changed(trial, counters_after={**trial.seen.counters_after, "receiver0": {"received": 1}})


def test_what_sound_trials_differ_by_beyond_all_that_a_machine_can_hide_is_the_suts() -> None:
    flips = [watched(9e5, rate) for rate in (600_000, 430_000, 598_000, 432_000)]
    beyond = beyond_the_machine([*flips, watched(3e5, 300_000)], {1})
    assert beyond == (
        "of the trials that nothing disturbed at 900 kpps one forwarded 432 kpps, another 598 kpps, and no more "
        "than 27% passes unseen"
    )
    found = Disturbance.of(trials(*[LOST] * 5, *[SOUND] * 5))
    judged = found.explained(UNSTABLE, "others had 5 %", REMEDY, beyond)
    assert str(judged).startswith(f"UNSTABLE: TIR 0.46; {beyond}; 5 of 10 trials repeated, ")
    # It makes nothing of anything else unstable.
    for verdict in (None, Judgement(Verdict.INCONCLUSIVE, "too few")):
        assert found.explained(verdict, "", REMEDY, beyond) == found.explained(verdict, "", REMEDY)


@pytest.mark.parametrize(
    ("made", "cpus"),
    [
        ([watched(9e5, rate) for rate in (600_000, 500_000, 598_000, 495_000)], {1}),
        ([watched(9e5, rate) for rate in (600_000, 430_000, 598_000, 597_000)], {1}),
        ([watched(9e5, rate) for rate in (600_000, 430_000, 598_000)], {1}),
        ([watched(9e5, rate, round(100 * (1 - rate / 6e5))) for rate in (600_000, 430_000, 598_000, 432_000)], {1}),
        ([watched(9e5, rate, heartbeat=False) for rate in (600_000, 430_000, 598_000, 432_000)], {1}),
        ([watched(9e5, rate, disturbed=STALL) for rate in (600_000, 430_000, 598_000, 432_000)], {1}),
        ([watched(9e5, rate) for rate in (600_000, 430_000, 598_000, 432_000)], {1, 2}),
        ([watched(9e5, rate) for rate in (600_000, 430_000, 598_000, 432_000)], set()),
        ([receiving(watched(9e5, rate)) for rate in (600_000, 430_000, 598_000, 432_000)], {1}),
    ],
    ids=[
        "hidden",
        "one only",
        "too few",
        "others had it",
        "unwatched",
        "disturbed",
        "one CPU unwatched",
        "no CPUs",
        "it receives",
    ],
)
def test_what_may_be_the_machines_is_not_called_the_suts(made: list[Trial], cpus: set[int]) -> None:
    assert beyond_the_machine(made, cpus) == ""


# --- Whole runs on simulated SUTs ---


class Disturber:
    """Says of trials what a test wants it to say."""

    def __init__(self, says: Callable[[int], tuple[Cause, ...]]) -> None:
        self._says = says
        self._number = 0

    def begin(self) -> None:
        self._number += 1

    def end(self) -> Observation:
        return Observation(disturbed=self._says(self._number))


class DisturbedTestbed(FakeTestbed):
    def __init__(self, sut: SimulatedSut, says: Callable[[int], tuple[Cause, ...]]) -> None:
        super().__init__(sut)
        self.sut_cpus = (1,)
        self._disturber = Disturber(says)

    def observers(self, shared: bool = False) -> tuple[Observer, ...]:
        return (CounterObserver(self.counters), self._disturber)


def run(tmp_path: Path, sut: SimulatedSut, says: Callable[[int], tuple[Cause, ...]]) -> ScenarioResult:
    testbed = DisturbedTestbed(sut, says)
    with new_session(testbed, tmp_path / "run", Watcher(), tmp_path / "state") as session:
        gate(session)
        session.record.write(finished=True)
    result = read_result(tmp_path / "run")
    (entry,) = result.scenarios
    assert (result.verdict, result.reason) == (entry.verdict, entry.reason)
    return entry


def sut(modes: Sequence[float] = (1.0,), seed: int = 1) -> SimulatedSut:
    return SimulatedSut(RealisticCurve(1e6), Behaviour(0.003, modes=modes), seed=seed, ceiling=Ceiling(3e6))


@pytest.mark.parametrize("seed", range(4))
def test_a_sut_that_flips_does_not_hide_behind_a_disturbed_trial_now_and_then(tmp_path: Path, seed: int) -> None:
    entry = run(tmp_path, sut((1.0, 0.8), seed), lambda number: STALL if number % 5 == 0 else ())
    assert entry.verdict is Verdict.UNSTABLE
    assert "trials repeated, the machine had disturbed them" in entry.reason


def test_a_steady_sut_on_a_machine_that_disturbs_now_and_then_gets_its_answer(tmp_path: Path) -> None:
    entry = run(tmp_path, sut(), lambda number: STALL if number % 3 == 0 else ())
    assert entry.verdict is Verdict.NO_BASELINE
    assert f"at worst {STALLED}" in entry.reason
    assert entry.pdr is not None
    assert entry.pdr.load == pytest.approx(0.99e6, rel=0.01)


@pytest.mark.parametrize("modes", [(1.0,), (1.0, 0.7)], ids=["steady", "flips"])
def test_where_most_trials_are_lost_the_machine_is_why(tmp_path: Path, modes: Sequence[float]) -> None:
    entry = run(tmp_path, sut(modes), lambda number: STALL if number % 8 else ())
    assert entry.verdict is Verdict.DISTURBED
    assert entry.verdict.exit_code == 2
    assert "free CPU 1 of all else" in entry.reason
    assert b"<error" in junit(read_result(tmp_path / "run"))


def test_where_every_trial_is_lost_too(tmp_path: Path) -> None:
    entry = run(tmp_path, sut(), lambda number: STALL)
    assert entry.verdict is Verdict.DISTURBED


def test_builds_whose_trials_are_all_lost_are_disturbed_before_a_suite_asks(tmp_path: Path) -> None:
    """A comparison that came to nothing once had the search's own word for it."""
    builds = {
        side: Build(side, f"linux-{side}", lambda _: DisturbedTestbed(sut(), lambda number: STALL)) for side in SIDES
    }
    session = Session(CONFIG, QUICK, RunRecord(tmp_path / "run", "quick"), Watcher(), state=tmp_path / "state")
    session.take()
    try:
        comparison = comparison_of(ComparisonTask(session, Scenario(), builds, Plan(12, None, 0.02)))
        comparison.measure()
        judgement = comparison.finish()
    finally:
        session.close()
    assert judgement.verdict is Verdict.DISTURBED
    assert "free CPU 1 of all else" in judgement.reason


# --- The curve ---


def test_disturbed_repeats_are_no_generator_limited_ones() -> None:
    curve = [Trial(load, 1.0, 1000, 1000) for load in (1e5, 2e5, 3e5) for _ in range(3)]
    curve[0] = changed(curve[0], disturbed=STALL)
    curve[6:] = [changed(trial, disturbed=STALL) for trial in curve[6:]]
    found = LoadLossCurve.from_trials(curve)
    assert [(point.left_out, point.disturbed) for point in found.points] == [(0, 1), (0, 0)]
    assert (found.limited_loads, found.disturbed_loads) == ((), (3e5,))
    assert assess(curve).notes == (
        "1 disturbed repeat left out", "1 load left out, where the machine disturbed the repeats"
    )  # fmt: skip

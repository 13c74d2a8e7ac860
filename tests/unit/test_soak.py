"""A long load in slices: what it comes to, what it is judged by, and that it goes on where it was killed."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from causes import because
from curves import EarlyLoss
from fake_testbed import QUICK, FakeTestbed, Killed, Watcher, gate, new_session
from flat_values import flat_trial
from simulated_sut import Behaviour, Ceiling, IdealCurve, LoadLoss, SimulatedSut

from pdrgate.gate.run.options import Options
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.scenarios.scenario_run import LOWER_BOUND, ScenarioRun
from pdrgate.gate.scenarios.soaking import judged_soak, slices, soaked
from pdrgate.gate.verdicts.baseline import Baselines
from pdrgate.observers.watching import Observation, Observer
from pdrgate.record.stretch import Latency
from pdrgate.record.trial import Trial
from pdrgate.results.soak import SoakResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.values.errors import DataError, TestbedError, UsageError

STALL = "CPU 1 stood still for up to 60 ms"


def trial(lost: int = 0, disturbed: str = "", p50: float = 1e-4, **more: Any) -> Trial:
    known = {"sending_time": 10.0, "latency": Latency(p50, p50, 2 * p50, 3 * p50, 100), "phase": "soak"}
    return flat_trial(1e5, 10.0, 1_000_000, 1_000_000 - lost, disturbed=because(disturbed), **known | more)


def soak(*trials: Trial, asked: float | None = None) -> SoakResult:
    return soaked(trials, 0.9, "the PDR", asked or 10.0 * len(trials))


@pytest.mark.parametrize(
    ("duration", "number", "each"), [(3600, 360, 10), (60, 60, 1), (2.5, 2, 1.25), (0.5, 1, 0.5), (0, 0, 0)]
)
def test_slices_are_a_360th_and_a_second_at_least(duration: float, number: int, each: float) -> None:
    found = slices(duration)
    assert len(found) == number
    assert sum(found) == pytest.approx(duration)
    assert not found or found[0] == each


def test_a_soak_that_loses_nothing_confirms_an_ndr() -> None:
    found = soak(*[trial()] * 360)
    judgement = judged_soak(found, 0.0)
    assert judgement.verdict is Verdict.PASS
    assert judgement.reason == (
        "soak: 1:00:00 at 100 kpps (90 % of the PDR), 360 000 000 packets, none lost: an NDR of 100 kpps is confirmed; "
        "latency 100 µs in the median, 99 % 200 µs"
    )


def test_what_is_lost_is_told_with_its_time_and_its_bursts() -> None:
    found = soak(*[trial()] * 72, trial(40), trial(200), *[trial()] * 5, trial(100))
    judgement = judged_soak(found, 0.0)
    assert judgement.verdict is Verdict.UNSTABLE
    assert judgement.reason.startswith(
        "soak: 13:20 at 100 kpps (90 % of the PDR), 80 000 000 packets, first loss after 12:00, 340 lost in 2 bursts "
        "(0.000425 %); an NDR of 100 kpps is not confirmed"
    )
    assert judged_soak(found, 1e-5).verdict is Verdict.PASS


def test_what_is_lost_while_the_machine_is_disturbed_is_no_evidence_against_the_sut() -> None:
    found = soak(trial(), trial(7, "CPU 1 stood still for 9 ms"), trial())
    judgement = judged_soak(found, 0.0)
    assert judgement.verdict is Verdict.DISTURBED
    assert "all of it while the machine was disturbed (CPU 1 stood still for 9 ms)" in judgement.reason
    both = judged_soak(soak(trial(), trial(7, "CPU 1 stood still for 9 ms"), trial(1)), 0.0)
    assert both.verdict is Verdict.UNSTABLE
    assert "; 7 of them while the machine was disturbed (" in both.reason


def test_a_machine_that_disturbs_and_loses_nothing_changes_nothing() -> None:
    judgement = judged_soak(soak(trial(), trial(0, "a stall"), trial()), 0.0)
    assert judgement.verdict is Verdict.PASS
    assert "the machine disturbed 1 of 3 slices (a stall), without loss" in judgement.reason


def test_a_load_that_was_not_offered_confirms_nothing() -> None:
    judgement = judged_soak(soak(*[trial(unsent=50_000)] * 2, trial()), 0.0)
    assert judgement.verdict is Verdict.GENERATOR_LIMITED


def test_latency_that_rises_over_the_time_is_told() -> None:
    assert soak(*[trial(p50=1e-4 * (1 + at / 50)) for at in range(30)]).drift == pytest.approx(0.45, abs=0.02)
    assert soak(*[trial(p50=1e-4 * (1 + at % 3 / 50)) for at in range(30)]).drift is None
    chance = random.Random(1)
    falling = [(1e-3 if at < 60 else 2e-4) * chance.uniform(0.2, 1.8) for at in range(180)]
    fallen = soak(*[trial(p50=one) for one in falling])
    assert fallen.drift == pytest.approx(-0.8, abs=0.1)  # a line through them falls by more than all of it


# --- On a simulated SUT ---


def run(
    folder: Path, curve: LoadLoss, watcher: Watcher | None = None, *, resume: bool = False, seconds: float = 20.0
) -> tuple[ScenarioRun, FakeTestbed]:
    testbed = FakeTestbed(SimulatedSut(curve, Behaviour(0.001), seed=1, ceiling=Ceiling(4e6)))
    with new_session(testbed, folder / "run", watcher or Watcher(), folder / "state", resume=resume) as session:
        return measured(session, seconds), testbed


def measured(session: Session, seconds: float = 20.0) -> ScenarioRun:
    subject = ScenarioRun(session, Scenario())
    subject.prepare()
    try:
        subject.search()
        subject.measure_soak(seconds)
        subject.judge_soak(0.0)
    finally:
        subject.release()
    subject.finish()
    return subject


def test_the_load_is_a_share_of_the_lower_bound_where_no_repeats_have_told_the_pdr(tmp_path: Path) -> None:
    subject, testbed = run(tmp_path, IdealCurve(1e6))
    assert subject.judgement is not None
    assert subject.judgement.verdict is Verdict.PASS
    assert subject.soak is not None
    assert subject.soak.load == pytest.approx(0.9e6, rel=0.02)
    assert f" (90 % of {LOWER_BOUND}), " in subject.soak.sentence()
    assert (subject.soak.slices, subject.soak.seconds) == (20, 20.0)
    assert testbed.probed == [subject.soak.load] * 20


def test_loss_that_begins_early_refutes_an_ndr_that_the_pdr_allows(tmp_path: Path) -> None:
    subject, _ = run(tmp_path, EarlyLoss(1e6, 0.5, 0.001))
    assert subject.judgement is not None
    assert subject.judgement.verdict is Verdict.UNSTABLE
    assert "first loss after 0 s" in subject.judgement.reason


def test_a_killed_soak_goes_on_after_its_last_slice(tmp_path: Path) -> None:
    whole, _ = run(tmp_path / "whole", IdealCurve(1e6))
    searched = len(whole.trials) - 20
    with pytest.raises(Killed):
        run(tmp_path, IdealCurve(1e6), Watcher(kill_after=searched + 7))
    again, testbed = run(tmp_path, IdealCurve(1e6), resume=True)
    assert len(testbed.calls) == 13
    assert again.soak is not None
    assert whole.soak is not None
    assert (again.soak.slices, again.soak.offered) == (20, whole.soak.offered)


def test_a_killed_soak_goes_on_also_behind_another_test_of_its_scenario(tmp_path: Path) -> None:
    """Behind the trials of that test its own once answered nothing, and hours were soaked anew."""
    whole, _ = run(tmp_path / "whole", IdealCurve(1e6))
    searched = len(whole.trials) - 20
    testbed = FakeTestbed(SimulatedSut(IdealCurve(1e6), Behaviour(0.001), seed=1, ceiling=Ceiling(4e6)))
    with new_session(testbed, tmp_path / "run", Watcher(), tmp_path / "state") as session:
        gate(session)
        session.observer = Watcher(kill_after=searched + 7)
        with pytest.raises(Killed):
            measured(session)
    before = len(testbed.calls)
    with new_session(testbed, tmp_path / "run", Watcher(), tmp_path / "state", resume=True) as session:
        gate(session)
        again = measured(session)
    assert len(testbed.calls) - before == 13
    assert again.soak is not None
    assert again.soak.slices == 20


def test_without_a_pdr_there_is_nothing_to_soak_below(tmp_path: Path) -> None:
    testbed = FakeTestbed(SimulatedSut(IdealCurve(1e6), ceiling=Ceiling(4e6)))
    with new_session(testbed, tmp_path / "run", Watcher(), tmp_path / "state") as session:
        subject = ScenarioRun(session, Scenario())
        subject.prepare()
        with pytest.raises(TestbedError, match="there is no PDR to soak below; search it first"):
            subject.measure_soak(10.0)
        subject.search()
        for seconds, share in ((0.0, 0.9), (10.0, 0.0), (10.0, 1.5)):
            with pytest.raises(UsageError, match=r"makes no sense; use 1 h at 0\.9"):
                subject.measure_soak(seconds, share)
        subject.release()


def test_packets_of_a_capture_are_no_probes(tmp_path: Path) -> None:
    testbed = FakeTestbed(SimulatedSut(IdealCurve(1e6), Behaviour(0.001), seed=1, ceiling=Ceiling(4e6)))
    testbed.captures = "web.pcap"
    with new_session(testbed, tmp_path / "run", Watcher(), tmp_path / "state") as session:
        with pytest.raises(UsageError, match="packets of a capture cannot be latency probes"):
            ScenarioRun(session, Scenario(latency=True)).prepare()
        subject = ScenarioRun(session, Scenario())
        subject.prepare()
        subject.search()
        assert subject.measure_soak(5.0).latency is None
        subject.release()
    assert testbed.probed == []


# --- The MRR ---


def test_the_mrr_is_what_is_forwarded_of_all_there_is(tmp_path: Path) -> None:
    testbed = FakeTestbed(SimulatedSut(IdealCurve(1e6), Behaviour(0.001), seed=1, ceiling=Ceiling(4e6)))
    with new_session(testbed, tmp_path / "run", Watcher(), tmp_path / "state") as session:
        subject = ScenarioRun(session, Scenario())
        subject.prepare()
        found = subject.measure_receive_rate(10, 1.0)
        assert found is not None
        assert testbed.calls[-10:] == [(4e6, 1.0)] * 10
        assert found.value == pytest.approx(1e6, rel=0.01)
        assert (found.name, found.unit, len(found.samples)) == ("MRR", "packets/s", 10)
        with pytest.raises(UsageError, match="use 2 or more, such as 10"):
            subject.measure_receive_rate(1, 1.0)
        subject.search()
        subject.repeat()
        assert [one.name for one in subject.measurands] == ["PDR", "saturation throughput", "MRR"]
        subject.release()


def test_an_mrr_needs_the_baseline_that_was_named_and_says_that_no_verdict_goes_by_it(tmp_path: Path) -> None:
    """A baseline that had nothing to do with what was measured was passed over: NO_BASELINE, and a green build."""

    def receive_rate(name: str, baseline: Path | None, options: Options = QUICK) -> tuple[Judgement, list[Trial]]:
        folder, testbed = tmp_path / name, FakeTestbed(SimulatedSut(IdealCurve(1e6), Behaviour(0.001), seed=1))
        with new_session(testbed, folder, Watcher(), tmp_path / "state", options) as session:
            own = None if baseline is None else Baselines(baseline, folder)
            run = ScenarioRun(session, Scenario(), baselines=own)
            run.prepare()
            try:
                run.measure_receive_rate(2, 1.0)
            except DataError as error:
                return run.finish(Judgement(Verdict.ERROR, str(error))), list(run.trials)
            return run.finish(Judgement(Verdict.NO_BASELINE, "the test asked for no comparison")), list(run.trials)

    required = dataclasses.replace(QUICK, require_baseline=True)
    judgement, _ = receive_rate("alone", None)
    assert judgement.verdict is Verdict.NO_BASELINE
    assert re.fullmatch(r"MRR \S+ Mpps; the test asked for no comparison", judgement.reason)
    for options in (QUICK, required):
        judgement, trials = receive_rate(f"in-vain-{options is QUICK}", tmp_path / "alone", options)
        assert judgement.verdict is Verdict.ERROR
        assert "the baseline cannot serve: " in judgement.reason
        assert judgement.reason.endswith("holds no PDR of this scenario (it was NO_BASELINE)")
        assert trials == []
    testbed = FakeTestbed(SimulatedSut(IdealCurve(1e6), Behaviour(0.003), seed=1))
    with new_session(testbed, tmp_path / "searched", Watcher(), tmp_path / "state") as session:
        assert gate(session)[1].verdict is Verdict.NO_BASELINE
    judgement, _ = receive_rate("beside", tmp_path / "searched")
    in_vain = f"nothing was compared with {tmp_path}/searched/result.json: no verdict goes by an MRR"
    assert judgement.verdict is Verdict.NO_BASELINE
    assert judgement.reason.endswith(f"; {in_vain}")
    judgement, _ = receive_rate("required", tmp_path / "searched", required)
    assert judgement == Judgement(Verdict.ERROR, f"a baseline is required, and {in_vain}")


@dataclass
class Stalls:
    """An observer that calls trials disturbed, in their turn; not one while there are no turns."""

    turns: Sequence[bool] = ()

    def begin(self) -> None: ...

    def end(self) -> Observation:
        now, *self.turns = self.turns or (False,)
        return Observation(disturbed=because(STALL if now else ""))


class StallingTestbed(FakeTestbed):
    """A simulated SUT on a machine that stands still now and then."""

    def __init__(self, sut: SimulatedSut) -> None:
        super().__init__(sut)
        self.stalls = Stalls()

    def observers(self, shared: bool = False) -> tuple[Observer, ...]:
        return (*super().observers(shared), self.stalls)


@pytest.mark.parametrize(
    ("turns", "told", "reason"),
    [
        ([True, True, False] * 4, 4, None),  # each is asked for again until it is sound
        ([True] * 3 + [False] * 3, 3, None),  # one of four is lost
        ([True] * 9 + [False], 1, "3 of 4 trials were disturbed, after up to 2 repeats each, in 90% of the time"),
        ([True] * 12, 0, "4 of 4 trials were disturbed, after up to 2 repeats each, in 100% of the time"),
    ],
)
def test_an_mrr_that_the_machine_kept_from_being_told_is_disturbed(
    tmp_path: Path, turns: Sequence[bool], told: int, reason: str | None
) -> None:
    testbed = StallingTestbed(SimulatedSut(IdealCurve(1e6), Behaviour(0.001), seed=1, ceiling=Ceiling(4e6)))
    with new_session(testbed, tmp_path / "run", Watcher(), tmp_path / "state") as session:
        run = ScenarioRun(session, Scenario())
        run.prepare()
        run.loads.calibrate()
        testbed.stalls.turns = turns
        found = run.measure_receive_rate(4, 1.0)
        assert len(found.samples if found else ()) == told
        assert not testbed.stalls.turns
        if reason is None:
            assert run.judgement is None
        else:
            assert run.judgement is not None
            assert run.judgement.verdict is Verdict.DISTURBED
            assert run.judgement.reason.startswith(f"{reason} ({len(turns) - bool(told)} times, at worst {STALL})")
        run.release()


def test_an_mrr_needs_no_generator_that_reaches_its_ceiling_again(tmp_path: Path) -> None:
    """It offers what it has, which wavers."""
    testbed = StallingTestbed(SimulatedSut(IdealCurve(1e6), Behaviour(0.001), seed=1, ceiling=Ceiling(4e6)))
    with new_session(testbed, tmp_path / "run", Watcher(), tmp_path / "state") as session:
        run = ScenarioRun(session, Scenario())
        run.prepare()
        run.loads.calibrate()
        testbed.sut = SimulatedSut(IdealCurve(1e6), Behaviour(0.001), seed=2, ceiling=Ceiling(3e6))
        before = len(run.trials)
        found = run.measure_receive_rate(4, 1.0)
        assert all(one.generator_limited for one in run.trials[before:])
        assert len(run.trials) == before + 4
        assert found is not None
        assert found.value == pytest.approx(1e6, rel=0.01)
        assert run.judgement is None
        run.release()

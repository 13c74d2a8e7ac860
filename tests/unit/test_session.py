"""A session takes the machine, opens a testbed, and leaves nothing behind, however it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_testbed import CONFIG, QUICK, FakeTestbed, Watcher, new_session

from pdrgate.errors import TestbedError
from pdrgate.gate.record import RunRecord
from pdrgate.gate.scenario import Scenario
from pdrgate.gate.scenario_run import ScenarioRun
from pdrgate.gate.session import Session
from pdrgate.hosts.host import local_host
from pdrgate.knobs import FileKnob, KnobSet
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease
from pdrgate.testbeds import resources
from pdrgate.traffic.simulated import IdealCurve, SimulatedSut


def fake(boot: str = "boot-1") -> FakeTestbed:
    return FakeTestbed(SimulatedSut(IdealCurve(1e6)), boot=boot)


def test_two_sessions_of_one_machine_take_turns(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with new_session(fake(), tmp_path / "one", Watcher(), state):
        other = new_session(fake(), tmp_path / "two", Watcher(), state)
        with pytest.raises(TestbedError, match=r"^the SUT simulated is in use by this run's other testbed; "):
            other.open()
    with other:
        assert other.testbed.sentence() == "a simulated SUT"


def test_nothing_is_open_before_it_is_opened(tmp_path: Path) -> None:
    session = new_session(fake(), tmp_path / "run", Watcher(), tmp_path / "state")
    with pytest.raises(TestbedError, match=r"^no testbed is open; begin with the keyword Open Testbed$"):
        ScenarioRun(session, Scenario())
    with pytest.raises(TestbedError, match=r"^nothing is taken yet; begin with the keyword Open Testbed$"):
        session.begin(lambda journal: fake())
    session.take()
    with pytest.raises(TestbedError, match=r"^no testbed is open"):
        _ = session.testbed
    session.close()
    session.close()


def test_a_testbed_that_was_opened_is_not_waited_for_again(tmp_path: Path) -> None:
    """A guest that is up says hello only once: it was taken for silent, and booted again after a minute."""

    class Boots(FakeTestbed):
        def ready(self) -> None:
            pytest.fail("waited for twice")

    testbed = Boots(SimulatedSut(IdealCurve(1e6)), boot="boot-1")
    with new_session(testbed, tmp_path / "run", Watcher(), tmp_path / "state") as session:
        assert session.testbed is testbed


def test_several_testbeds_of_one_session_are_left_in_reverse(tmp_path: Path) -> None:
    session = new_session(fake(), tmp_path / "run", Watcher(), tmp_path / "state")
    session.take()
    closed: list[str] = []

    class Told(FakeTestbed):
        def close(self) -> None:
            closed.append(self.boot)
            super().close()

    for boot in ("a", "b"):
        session.ready(session.begin(lambda journal, boot=boot: Told(SimulatedSut(IdealCurve(1e6)), boot=boot)))  # type: ignore[misc]
    session.leave()
    session.leave()
    assert closed == ["b", "a"]
    session.close()


def test_a_testbed_that_cannot_be_opened_leaves_the_machine_free(tmp_path: Path) -> None:
    state = tmp_path / "state"

    def fails(config: object, journal: Journal) -> FakeTestbed:
        raise TestbedError("no namespaces")

    record = RunRecord(tmp_path / "run", "quick")
    session = Session(CONFIG, QUICK, record, Watcher(), opener=fails, state=state)
    with pytest.raises(TestbedError, match="no namespaces"):
        session.open()
    Lease.acquire(resources(CONFIG), state).release()
    assert not list(state.glob("run-*"))
    assert record.result().testbed.name == "simulated"


def test_an_interruption_when_the_testbed_is_just_made_leaves_nothing(tmp_path: Path) -> None:
    state, target = tmp_path / "state", tmp_path / "setting"
    target.write_text("1")

    def interrupted(config: object, journal: Journal) -> FakeTestbed:
        with local_host() as host:
            KnobSet(journal).apply(host, FileKnob(str(target), "2"))
        assert target.read_text().strip() == "2"
        raise KeyboardInterrupt

    record = RunRecord(tmp_path / "run", "quick")
    session = Session(CONFIG, QUICK, record, Watcher(), opener=interrupted, state=state)
    with pytest.raises(KeyboardInterrupt):
        session.open()
    assert target.read_text().strip() == "1"
    assert not list(state.glob("run-*"))
    Lease.acquire(resources(CONFIG), state).release()


def test_two_testbeds_of_one_run_share_its_folder_and_none_of_its_trials(tmp_path: Path) -> None:
    """Two suites of one `robot` once replayed each other's trials, of another testbed and all."""
    record = RunRecord(tmp_path / "run", "quick")
    found = []
    for number, capacity in enumerate((1e6, 5e5)):
        one = FakeTestbed(SimulatedSut(IdealCurve(capacity)))
        with Session(
            CONFIG, QUICK, record, Watcher(), opener=one.open_with, state=tmp_path / f"state{number}"
        ) as open_:
            subject = ScenarioRun(open_, Scenario())
            subject.prepare()
            found.append(subject.measure_load(2e6, 1.0))
            subject.finish()
        assert len(one.calls) == 1
    assert [round(trial.forwarding_rate, -4) for trial in found] == [1e6, 5e5]
    assert len(record.scenarios) == 2

"""A session takes the machine, opens a testbed, and leaves nothing behind, however it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fake_testbed import CONFIG, QUICK, FakeTestbed, Watcher, new_session
from simulated_sut import IdealCurve, SimulatedSut

from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.hosts.host import Host, local_host
from pdrgate.knobs import KnobSet
from pdrgate.knobs.file_knob import FileKnob
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease
from pdrgate.safety.recovery import recover_stale
from pdrgate.values.errors import TestbedError, closed_on_error


def fake(boot: str = "boot-1") -> FakeTestbed:
    return FakeTestbed(SimulatedSut(IdealCurve(1e6)), boot_id=boot)


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
    with pytest.raises(TestbedError, match=r"boots the builds that are compared, and this test measures one"):
        _ = session.testbed
    session.close()
    session.close()


def test_a_testbed_that_was_opened_is_not_waited_for_again(tmp_path: Path) -> None:
    """A guest that is up says hello only once: it was taken for silent, and booted again after a minute."""

    class Boots(FakeTestbed):
        def ready(self) -> None:
            pytest.fail("waited for twice")

    testbed = Boots(SimulatedSut(IdealCurve(1e6)), boot_id="boot-1")
    with new_session(testbed, tmp_path / "run", Watcher(), tmp_path / "state") as session:
        assert session.testbed is testbed


def test_several_testbeds_of_one_session_are_left_in_reverse(tmp_path: Path) -> None:
    session = new_session(fake(), tmp_path / "run", Watcher(), tmp_path / "state")
    session.take()
    closed: list[str] = []

    class Told(FakeTestbed):
        def close(self) -> None:
            closed.append(self.boot_id)
            super().close()

    for boot in ("a", "b"):
        session.ready(session.begin(lambda journal, boot=boot: Told(SimulatedSut(IdealCurve(1e6)), boot_id=boot)))  # type: ignore[misc]
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
    Lease.acquire(CONFIG.resources(), state).release()
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
    Lease.acquire(CONFIG.resources(), state).release()


class Stuck:
    """A setting that a testbed changes, and that does not go back for a number of times."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
        self.file = folder / "setting"
        self.file.write_text("1\n")
        self.failures = failures
        really = FileKnob.restore

        def restore(knob: FileKnob, host: Host, old: str) -> None:
            self.failures -= 1
            if self.failures >= 0:
                raise TestbedError("the way to the host broke")
            really(knob, host, old)

        monkeypatch.setattr(FileKnob, "restore", restore)

    @property
    def value(self) -> str:
        return self.file.read_text().strip()

    def turned(self, journal: Journal) -> KnobSet:
        knobs = KnobSet(journal)
        with local_host() as host:
            knobs.apply(host, FileKnob(str(self.file), "2"))
        return knobs

    def opener(self, config: object, journal: Journal) -> FakeTestbed:
        """Of a testbed that cannot be set up, and not be put back either."""
        with closed_on_error(self.turned(journal).restore):
            raise TestbedError("no link")


STAYS = (
    r"^not all that was changed is back as it was: /.+ on local; the next start tries again, and so does: "
    r"sudo pdrgate restore$"
)


def test_what_a_testbed_that_did_not_open_could_not_put_back_is_put_back_by_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, state, watcher = Stuck(tmp_path, monkeypatch, 1), tmp_path / "state", Watcher()
    session = Session(CONFIG, QUICK, RunRecord(tmp_path / "run", "quick"), watcher, opener=stuck.opener, state=state)
    with pytest.raises(
        TestbedError, match=r"^no link\n1 of the settings could not be put back: the way to the host broke$"
    ):
        session.open()
    assert stuck.value == "1"
    assert watcher.sentences == [f"put back {stuck.file} = 1 on local (left by this run)"]
    assert not list(state.glob("run-*"))


def test_what_cannot_be_put_back_at_all_is_told_and_put_back_by_the_next_session_of_the_same_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suites of one Robot process follow each other: that its process lives on keeps no journal from being undone."""
    stuck, state, watcher = Stuck(tmp_path, monkeypatch, 2), tmp_path / "state", Watcher()
    session = Session(CONFIG, QUICK, RunRecord(tmp_path / "run", "quick"), watcher, opener=stuck.opener, state=state)
    with pytest.raises(
        TestbedError, match=r"^no link\n1 of the settings could not be put back: the way to the host broke$"
    ):
        session.open()
    (told,) = watcher.sentences
    assert told.startswith("could not undo {") and told.endswith(
        "of this run: the way to the host broke; the next start tries again, and so does: sudo pdrgate restore"
    )
    assert stuck.value == "2"
    Lease.acquire(CONFIG.resources(), state).release()
    later = Watcher()
    with new_session(fake(), tmp_path / "next", later, state):
        assert later.sentences[0] == f"put back {stuck.file} = 1 on local (left by this run)"
        assert stuck.value == "1"
    assert not list(state.glob("run-*"))


def test_a_setting_of_a_scenario_that_did_not_go_back_does_so_when_the_session_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, state, watcher = Stuck(tmp_path, monkeypatch, 1), tmp_path / "state", Watcher()
    with new_session(fake(), tmp_path / "run", watcher, state) as session:
        subject = ScenarioRun(session, Scenario())
        subject.prepare()
        with local_host() as host:
            subject.sut._batching.apply(host, FileKnob(str(stuck.file), "2"))
        subject.finish()
        assert stuck.value == "2"
    assert stuck.value == "1"
    assert watcher.sentences[-1] == f"put back {stuck.file} = 1 on local (left by this run)"
    assert not list(state.glob("run-*"))


def test_a_generator_that_does_not_end_keeps_no_setting_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, watcher = Stuck(tmp_path, monkeypatch, 0), Watcher()
    testbed = fake()
    with new_session(testbed, tmp_path / "run", watcher, tmp_path / "state") as session:
        subject = ScenarioRun(session, Scenario())
        subject.prepare()
        with local_host() as host:
            subject.sut._batching.apply(host, FileKnob(str(stuck.file), "2"))
        traffic = subject.sut._traffic
        assert traffic is not None

        def close() -> None:
            raise TestbedError("the generator does not end")

        monkeypatch.setattr(traffic, "close", close)
        subject.finish()
        assert stuck.value == "1"
    assert watcher.sentences[-1] == "the generator does not end"


def test_a_journal_that_is_closed_while_something_stands_stays_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, state = Stuck(tmp_path, monkeypatch, 0), tmp_path / "state"
    for failure in (None, ValueError("what went wrong first")):
        with pytest.raises(failure.__class__ if failure else TestbedError) as error, Journal.begin(state) as journal:
            stuck.turned(journal)
            if failure:
                raise failure
        told = error.value.__notes__[0] if failure else str(error.value)
        assert re.match(STAYS, told)
        assert journal.path.exists()
        journal.close()
        assert recover_stale(state) == [f"put back {stuck.file} = 1 on local (left by this run)"]
        assert stuck.value == "1"
        assert not list(state.glob("run-*"))


def test_a_restart_undoes_what_was_changed_on_another_machine(tmp_path: Path) -> None:
    knob = FileKnob("/proc/x", "2").to_record()
    with Journal.begin(tmp_path) as journal:
        for boot in ("one", "two", "two"):
            journal.machine("ssh:sut", {}, boot)
            journal.change("ssh:sut", knob, "1", "2")
        journal.undone(2)
        journal.undone(3)
    assert not list(tmp_path.iterdir())
    with pytest.raises(TestbedError, match="/proc/x = 2 on ssh:sut/inside"), Journal.begin(tmp_path) as journal:
        journal.machine("ssh:sut", {}, "one")
        journal.change("ssh:sut/inside", knob, "1", "2")
    (path,) = tmp_path.glob("*.jsonl")
    head, *noted = map(json.loads, path.read_text().splitlines())
    assert (head["ended"], [set(entry) & {"machine", "change"} for entry in noted]) == (True, [{"machine"}, {"change"}])


class Busy(FakeTestbed):
    """One that does not close."""

    def close(self) -> None:
        raise TestbedError(f"{self.boot_id} is busy")


def test_a_testbed_that_does_not_close_keeps_no_other_open(tmp_path: Path) -> None:
    state, watcher = tmp_path / "state", Watcher()
    session = new_session(fake(), tmp_path / "run", watcher, state)
    session.take()
    sut = SimulatedSut(IdealCurve(1e6))
    testbeds = [fake(), Busy(sut, boot_id="b"), fake(), Busy(sut, boot_id="d")]
    for testbed in testbeds:
        session.begin(lambda journal, testbed=testbed: testbed)  # type: ignore[misc]
    with pytest.raises(TestbedError, match=r"^b is busy$"):
        session.leave(testbeds[:3])
    assert [testbed.open for testbed in testbeds] == [False, True, False, True]
    with pytest.raises(TestbedError, match=r"^d is busy$"):
        session.close()  # which tries the other one once more
    assert watcher.sentences == ["b is busy"]
    Lease.acquire(CONFIG.resources(), state).release()
    session.close()


def test_an_interrupted_close_goes_on_the_next_time_and_lets_nobody_in_before(tmp_path: Path) -> None:
    state = tmp_path / "state"

    class Interrupted(FakeTestbed):
        times = 1

        def close(self) -> None:
            self.times -= 1
            if self.times >= 0:
                raise KeyboardInterrupt
            super().close()

    testbed = Interrupted(SimulatedSut(IdealCurve(1e6)))
    session = new_session(testbed, tmp_path / "run", Watcher(), state)
    session.open()
    with pytest.raises(KeyboardInterrupt):
        session.close()
    with pytest.raises(TestbedError, match="in use by this run's other testbed"):
        Lease.acquire(CONFIG.resources(), state)
    session.close()
    assert not testbed.open
    Lease.acquire(CONFIG.resources(), state).release()


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

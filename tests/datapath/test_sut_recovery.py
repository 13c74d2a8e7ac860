"""Runs that are killed, and what the next start makes of their journals."""

import json
import os
import subprocess
import uuid
from functools import partial
from pathlib import Path

import pytest
from scripted_child import scripted_children

from pdrgate.hosts.host import local_host, netns_host
from pdrgate.knobs import KnobSet, sysctl
from pdrgate.knobs.file_knob import FileKnob
from pdrgate.safety import processes
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, Resource
from pdrgate.safety.processes import ProcessId
from pdrgate.safety.recovery import Living, NotUndone, living, recover_stale
from pdrgate.values.errors import StorageError, TestbedError

pytestmark = pytest.mark.datapath

PRELUDE = """
from pdrgate.hosts.host import local_host, netns_host
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.knobs import KnobSet, sysctl
from pdrgate.knobs.file_knob import FileKnob
"""


@pytest.fixture
def child(tmp_path):
    """Starts a Python process that has told `ready(...)`, and ends it after the test."""
    with scripted_children(PRELUDE, tmp_path / "state") as start:

        def told(script, *arguments):
            process = start(script, *arguments)
            process.words = process.stdout.readline().split()
            return process

        yield told


@pytest.fixture
def namespace():
    name = f"pdrgate-t-{uuid.uuid4().hex[:8]}"
    made = subprocess.run(("ip", "netns", "add", name), capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no namespace can be made here: {made.stderr.strip()}")
    yield name
    subprocess.run(("ip", "netns", "delete", name), check=False, capture_output=True)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def kill(process):
    """SIGKILL, and not reaped yet: a zombie is as dead as the rest."""
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


RUN = """
lock, journal = Lease.acquire(whole_machine(), state), Journal.begin(state)
mine, theirs, target = sys.argv[2:]
journal.namespace(mine)
subprocess.run(("ip", "netns", "add", mine), check=True)
knobs = KnobSet(journal)
knobs.apply(netns_host(mine), sysctl("net.ipv4.ip_forward", 1))
knobs.apply(netns_host(theirs), sysctl("net.ipv4.ip_forward", 1))
for value in ("2", "3"):
    knobs.apply(local_host(), FileKnob(target, value))
ready(journal.start(("sleep", "600")).pid)
"""


def test_what_a_killed_run_left_is_undone(child, namespace, state, tmp_path):
    target = tmp_path / "setting"
    target.write_text("1\n")
    made = f"{namespace}-m"
    run = child(RUN, made, namespace, str(target))
    sleeper = ProcessId.of(int(run.words[0]))
    try:
        assert recover_stale(state) == []
        assert target.read_text() == "3\n"
        assert sleeper.alive

        kill(run)
        told = recover_stale(state)
        left = f"(left by the killed run of pid {run.pid})"
        assert told == [
            f"ended process {sleeper.pid} (sleep 600) {left}",
            f"put back {target} = 2 on local {left}",
            f"put back {target} = 1 on local {left}",
            f"put back net.ipv4.ip_forward = 0 on netns:{namespace} {left}",
            f"put back net.ipv4.ip_forward = 0 on netns:{made} {left}",
            f"deleted namespace {made} {left}",
        ]
        assert target.read_text() == "1\n"
        assert not sleeper.alive
        assert not Path("/run/netns", made).exists()
        with netns_host(namespace) as host:
            assert host.read("/proc/sys/net/ipv4/ip_forward") == "0\n"
        assert recover_stale(state) == []
        assert list(state.glob("run-*")) == []
    finally:
        subprocess.run(("ip", "netns", "delete", made), check=False, capture_output=True)


def test_a_change_that_was_noted_and_never_made_is_no_change(child, state, tmp_path):
    target = tmp_path / "setting"
    target.write_text("1\n")
    run = child(
        "journal = Journal.begin(state)\n"
        "journal.change('local', FileKnob(sys.argv[2], '2').to_record(), '1', '2')\n"
        "journal.namespace('pdrgate-t-never-made')\n"
        "ready('x')",
        str(target),
    )
    kill(run)
    assert recover_stale(state) == []
    assert target.read_text() == "1\n"


def test_what_somebody_else_set_after_the_run_died_is_left_and_told(child, state, tmp_path):
    target = tmp_path / "setting"
    target.write_text("1\n")
    run = child(
        "KnobSet(Journal.begin(state)).apply(local_host(), FileKnob(sys.argv[2], '2')); ready('x')", str(target)
    )
    kill(run)
    target.write_text("7\n")
    (sentence,) = recover_stale(state)
    assert sentence.startswith(f"left alone {target} = 7 on local: pdrgate had set 2 in place of 1, and somebody else")
    assert target.read_text() == "7\n"
    assert recover_stale(state) == []


def test_a_change_that_was_undone_is_not_undone_again(child, state, tmp_path):
    target = tmp_path / "setting"
    target.write_text("1\n")
    run = child(
        "knobs = KnobSet(Journal.begin(state)); knobs.apply(local_host(), FileKnob(sys.argv[2], '2'))\n"
        "knobs.restore(); ready('x')",
        str(target),
    )
    kill(run)
    target.write_text("2\n")
    assert recover_stale(state) == []
    assert target.read_text() == "2\n"


def test_what_cannot_be_undone_is_told_and_tried_again(state, tmp_path):
    target = tmp_path / "setting"
    target.write_text("2\n")
    knob = FileKnob(str(target), "").to_record()
    stale(
        state,
        {"change": 1, "host": "ssh:rack", "knob": knob, "old": "1", "new": "2"},
        {"change": 2, "host": "local", "knob": knob, "old": "1", "new": "2"},
    )
    failed, done = sorted(recover_stale(state))
    assert failed.startswith("could not undo {") and "unknown host 'ssh:rack'" in failed
    assert done.startswith(f"put back {target} = 1 on local")
    target.write_text("2\n")
    (again,) = recover_stale(state, open_host=lambda name: local_host() if name == "local" else netns_host("x"))
    assert again.startswith("could not undo {")
    assert target.read_text() == "2\n"
    (finally_done,) = recover_stale(state, open_host=lambda name: local_host())
    assert finally_done.startswith(f"put back {target} = 1 on local")
    assert list(state.glob("run-*")) == []


def test_a_setting_that_is_stuck_goes_back_all_the_way_later(state, tmp_path):
    target = tmp_path / "setting"
    target.write_text("3\n")
    knob = FileKnob(str(target), "").to_record()
    stale(
        state,
        {"change": 1, "host": "ssh:rack", "knob": knob, "old": "1", "new": "2"},
        {"change": 2, "host": "ssh:rack", "knob": knob, "old": "2", "new": "3"},
    )
    assert len(recover_stale(state)) == 1
    assert len(recover_stale(state, open_host=lambda name: local_host())) == 2
    assert target.read_text() == "1\n"


def stale(state, *entries, **head):
    """A journal as a run with our process id and another start time would have left it: the number was reused."""
    with Journal.begin(state) as journal:
        first = {**json.loads(journal.path.read_text().splitlines()[0]), "start": 1, **head}
    path = state / "run-1-1.jsonl"
    path.write_text(
        "".join(entry if isinstance(entry, str) else json.dumps(entry) + "\n" for entry in (first, *entries))
    )
    return path


def test_a_process_whose_number_was_reused_is_not_ended(state):
    sleeper = subprocess.Popen(("sleep", "600"))
    try:
        real = ProcessId.of(sleeper.pid)
        stale(state, {"process": sleeper.pid, "start": real.start - 1, "command": "sleep 600"})
        assert recover_stale(state) == []
        assert sleeper.poll() is None

        stale(state, {"process": sleeper.pid, "start": real.start, "command": "sleep 600"})
        (sentence,) = recover_stale(state)
        assert sentence.startswith(f"ended process {sleeper.pid} (sleep 600)")
        assert sleeper.wait(60) == -15
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_process_that_ignores_sigterm_is_killed(state, monkeypatch):
    monkeypatch.setattr(processes, "_GRACE", 0.2)
    stubborn = subprocess.Popen(
        ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"),
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        stubborn.stdout.readline()
        stale(state, {"process": stubborn.pid, "start": ProcessId.of(stubborn.pid).start, "command": "x"})
        assert len(recover_stale(state)) == 1
        assert stubborn.wait(60) == -9
    finally:
        stubborn.kill()
        stubborn.wait()
        stubborn.stdout.close()


def test_a_journal_from_before_a_restart_is_dropped(state, tmp_path):
    target = tmp_path / "setting"
    target.write_text("2\n")
    stale(
        state,
        {"change": 1, "host": "local", "knob": FileKnob(str(target), "").to_record(), "old": "1", "new": "2"},
        boot="another",
        pid=4711,
    )
    assert recover_stale(state) == [
        "dropped the journal of the killed run of pid 4711: the machine has been restarted since, which undid its "
        "changes"
    ]
    assert target.read_text() == "2\n"
    assert recover_stale(state) == []


def test_a_torn_last_line_and_a_spoilt_one(state, tmp_path):
    target = tmp_path / "setting"
    target.write_text("2\n")
    change = {"change": 1, "host": "local", "knob": FileKnob(str(target), "").to_record(), "old": "1", "new": "2"}
    path = stale(state, change, '{"namespa')
    assert len(recover_stale(state)) == 1
    assert target.read_text() == "1\n"

    target.write_text("2\n")
    stale(state, "\0\0\0\n", change)
    told = recover_stale(state)
    assert told[0] == f"unreadable lines in {path}: 1; what they noted was not undone"
    assert told[1].startswith(f"put back {target} = 1")


def test_an_empty_journal_is_removed(state):
    state.mkdir()
    (state / "run-1-1-1.jsonl").touch()
    assert recover_stale(state) == []
    assert [path.name for path in state.iterdir()] == ["locks"]


def test_only_our_namespaces_are_ever_deleted(state):
    with Journal.begin(state) as journal, pytest.raises(ValueError, match="does not begin with pdrgate"):
        journal.namespace("docker-1")
    stale(state, {"namespace": "docker-1"})
    (sentence,) = recover_stale(state)
    assert "could not undo" in sentence


def test_a_run_that_ends_well_leaves_no_journal(state, namespace):
    with netns_host(namespace) as host, Journal.begin(state) as journal, KnobSet(journal) as knobs:
        knobs.apply(host, sysctl("net.ipv4.ip_forward", 1))
        lines = [json.loads(line) for line in journal.path.read_text().splitlines()]
        assert lines[0]["pid"] == os.getpid()
        assert lines[1]["new"] == "1"
    assert list(state.iterdir()) == []


def test_no_directory_to_write_to(tmp_path):
    (tmp_path / "file").touch()
    for begin in (Journal.begin, partial(Lease.acquire, ())):
        with pytest.raises(
            TestbedError, match=r"^cannot make .*/file/state(/locks)?: Not a directory; run as root or with sudo"
        ):
            begin(tmp_path / "file" / "state")


def test_a_program_does_not_run_before_it_is_noted(state, tmp_path, monkeypatch):
    journal = Journal.begin(state)

    def full(record):
        raise StorageError("full")

    monkeypatch.setattr(journal, "_append", full)
    with pytest.raises(StorageError):
        journal.start(("touch", str(tmp_path / "ran")))
    monkeypatch.undo()
    process = journal.start(("sh", "-c", "touch ran; cat; exit 5"), cwd=tmp_path)
    assert process.wait(60) == 5
    journal.start(("touch", str(tmp_path / "second"))).wait(60)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ran", "second", "state"]
    noted = [json.loads(line) for line in journal.path.read_text().splitlines()]
    assert noted[1]["process"] == process.pid
    assert journal.start(("pdrgate-nope",), stderr=subprocess.DEVNULL).wait(60) == 127
    journal.close()


@pytest.mark.parametrize("mine", [True, False], ids=["held-by-us", "held-by-a-living-run"])
def test_what_a_living_run_holds_now_is_left_for_later(child, state, tmp_path, mine):
    target = tmp_path / "setting"
    target.write_text("2\n")
    change = {"change": 1, "host": "local", "knob": FileKnob(str(target), "").to_record(), "old": "1", "new": "2"}
    path = stale(state, change, held=[["cpu", "1"], ["setting", "x"]])
    lease = None
    if mine:
        lease = Lease.acquire([Resource("cpu", "1"), Resource("cpu", "2")], state)
    else:
        run = child("from pdrgate.safety.locks import Resource\n"
                    "lease = Lease.acquire([Resource('cpu', '1')], state); ready('x')")  # fmt: skip
        (left,) = recover_stale(state)
        assert isinstance(left, NotUndone)
        assert left.startswith(
            "left what the killed run of pid " + json.loads(path.read_text().splitlines()[0])["pid"].__str__()
        )
        assert f"CPU 1 is in use by another pdrgate run (pid {run.pid}, since " in left
        assert target.read_text() == "2\n"
        kill(run)
    (done,) = recover_stale(state, lease=lease)
    assert done.startswith(f"put back {target} = 1 on local")
    if lease is not None:
        lease.release()


def test_journals_of_living_runs_tell_what_is_no_leftover(child, state):
    run = child("journal = Journal.begin(state); journal.namespace('pdrgate-t-alive'); ready('x')")
    assert living(state) == Living(frozenset((run.pid,)), frozenset(("pdrgate-t-alive",)))
    kill(run)
    assert living(state) == Living(frozenset(), frozenset())


STARTED = """
import signal
journal = Journal.begin(state)
process = journal.start(("sh", "-c", "%s sleep 6071 & echo $!; wait"), stdout=subprocess.PIPE)
child = int(process.stdout.readline())
ready(process.pid, child)
"""


@pytest.mark.parametrize("first", ["leader", "run"])
@pytest.mark.parametrize("stubborn", [False, True])
def test_children_of_a_program_are_ended_also_when_it_is_dead(child, state, first, stubborn):
    run = child(STARTED % ("trap '' TERM;" if stubborn else ""))
    leader, left = (ProcessId.of(int(word)) for word in run.words)
    if first == "leader":
        os.kill(leader.pid, 9)
        while leader.alive:
            pass
        kill(run)
    else:
        kill(run)
    try:
        assert left.alive
        (told,) = recover_stale(state)
        what = "what was left of " if first == "leader" else ""
        assert told.startswith(f"ended {what}process {leader.pid} (sh -c ")
        assert not left.alive
        assert not leader.alive
        assert recover_stale(state) == []
    finally:
        if left.alive:
            os.kill(left.pid, 9)


@pytest.mark.parametrize("difference", ["mark", "start", "session"])
def test_a_session_whose_number_was_reused_is_left_alone(state, difference):
    name = stale(state).stem
    mark = "run-of-somebody-else" if difference == "mark" else name
    leader = subprocess.Popen(
        ("sh", "-c", "sleep 6072 & echo $!"), stdout=subprocess.PIPE, start_new_session=True,
        env={**os.environ, "PDRGATE_JOURNAL": mark},
    )  # fmt: skip
    left = ProcessId.of(int(leader.stdout.readline()))
    leader.wait()
    leader.stdout.close()
    try:
        number = left.pid if difference == "session" else leader.pid
        start = left.start + 1 if difference == "start" else 1
        stale(state, {"process": number, "start": start, "command": "sh"})
        assert recover_stale(state) == []
        assert left.alive
        if difference == "start":  # the right one
            stale(state, {"process": leader.pid, "start": left.start, "command": "sh"})
            assert len(recover_stale(state)) == 1
            assert not left.alive
    finally:
        if left.alive:
            os.kill(left.pid, 9)


@pytest.mark.parametrize("leader", ["runs", "has-ended"])
def test_a_program_that_still_runs_keeps_its_journal(state, leader):
    journal = Journal.begin(state)
    program = journal.start(
        ("sh", "-c", f"sleep 6073 & echo $!; {'wait' if leader == 'runs' else ''}"), stdout=subprocess.PIPE
    )
    child = ProcessId.of(int(program.stdout.readline()))
    if leader != "runs":
        program.wait()
    try:
        with pytest.raises(TestbedError, match=rf"back as it was: process {program.pid} \(sh -c .*; the next start tr"):
            journal.close()
        what = "" if leader == "runs" else "what was left of "
        (told,) = recover_stale(state)
        assert told.startswith(f"ended {what}process {program.pid} (sh -c ") and told.endswith(" (left by this run)")
        assert not child.alive
        assert list(state.glob("run-*")) == []
    finally:
        if child.alive:
            os.kill(child.pid, 9)
        program.wait()
        program.stdout.close()


def test_process_ids():
    assert ProcessId.of(os.getpid()).alive
    assert not ProcessId(os.getpid(), 0).alive
    gone = subprocess.Popen(("true",))
    os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
    assert ProcessId.of(gone.pid) is None
    gone.wait()
    assert ProcessId.of(gone.pid) is None

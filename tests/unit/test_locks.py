"""What runs share: locks between real processes, and what of them a testbed's file takes."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_child import scripted_children

from pdrgate.hosts.ssh_target import SshTarget
from pdrgate.safety.locks import MACHINE, Lease, Resource, whole_machine
from pdrgate.safety.processes import ProcessId
from pdrgate.safety.state_folder import sut_lock
from pdrgate.testbeds import LocalVm, sharing
from pdrgate.testbeds.config import GeneratorConfig
from pdrgate.testbeds.netns.netns_config import LocalNetns
from pdrgate.testbeds.rack.rack_config import Rack
from pdrgate.testbeds.rack.rack_host import HostConfig
from pdrgate.testbeds.rack.rack_keys import PortConfig
from pdrgate.traffic.trex.trex_config import TRexConfig
from pdrgate.values.errors import TestbedError

PRELUDE = """
from pdrgate.safety.locks import MACHINE, Lease, Resource
def lease(*cpus, **more):
    return Lease.acquire([Resource("cpu", str(cpu)) for cpu in cpus], state, **more)
def on_machine(cpu, **more):
    return Lease.acquire([Resource("cpu", str(cpu)), MACHINE], state, **more)
"""
Child = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    """Starts a Python process that tells `ready(...)`, and ends it after the test."""
    with scripted_children(PRELUDE, tmp_path) as start:
        yield start


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def cpus(*numbers: int) -> list[Resource]:
    return [Resource("cpu", str(number)) for number in numbers]


def test_runs_that_share_nothing_go_on_at_once(child: Child, tmp_path: Path) -> None:
    run = child("held = lease(2, 3); ready('x')")
    assert said(run) == "x"
    with Lease.acquire(cpus(0, 1), tmp_path) as mine:
        assert mine.resources == frozenset(cpus(0, 1))


def test_who_has_what_is_told(child: Child, tmp_path: Path) -> None:
    run = child("held = lease(1); ready('x')")
    said(run)
    with pytest.raises(TestbedError) as error:
        Lease.acquire([*cpus(0, 1), Resource("setting", "net.core.x")], tmp_path)
    assert re.fullmatch(
        rf"CPU 1 is in use by another pdrgate run \(pid {run.pid}, since \d\d:\d\d:\d\d\); wait for it to end "
        r"\(--wait 1h\), or give this testbed other CPUs \(generator.cpu, sut.cpus\)",
        str(error.value),
    )
    # All or nothing: what was free is free.
    other = child("held = lease(0); ready('got it')")
    assert said(other) == "got it"
    run.kill()
    run.wait()
    Lease.acquire(cpus(1), tmp_path).release()


def test_what_this_process_holds_is_called_its_own_and_not_waited_for(tmp_path: Path) -> None:
    with Lease.acquire(cpus(1), tmp_path):
        with pytest.raises(TestbedError) as error:
            Lease.acquire(cpus(1, 2), tmp_path, wait=600)
        assert str(error.value) == (
            "CPU 1 is in use by this run's other testbed; close that one first, or give this testbed other CPUs "
            "(generator.cpu, sut.cpus)"
        )
        with Lease.acquire(cpus(1), tmp_path / "elsewhere"):
            pass
    Lease.acquire(cpus(1, 2), tmp_path).release()


def test_a_run_waits_for_all_that_it_needs(child: Child, tmp_path: Path) -> None:
    first, second = child("held = lease(1); ready('x'); held.release(); ready('y')"), child("held = lease(2); ready()")
    said(first)
    said(second)
    waiting = child("held = lease(1, 2, 3, wait=600, report=ready); ready('got all')")
    assert said(waiting).startswith("CPU 1 is in use by another pdrgate run ")
    go_on(waiting)
    go_on(first)
    assert said(first) == "y"
    # It holds nothing of the rest meanwhile: who has something already, and need not stand behind it, gets that.
    with Lease.acquire(cpus(9), tmp_path):
        for _ in range(20):
            Lease.acquire(cpus(3), tmp_path).release()
    second.kill()
    second.wait()
    assert said(waiting) == "got all"


def test_who_waits_says_for_whom(child: Child, tmp_path: Path) -> None:
    first = child("held = lease(1); ready('x')")
    said(first)
    told: list[str] = []
    with pytest.raises(TestbedError):
        Lease.acquire(cpus(1), tmp_path, 0.5, told.append)
    (sentence,) = told
    assert re.fullmatch(
        rf"CPU 1 is in use by another pdrgate run \(pid {first.pid}, .*\): waiting for it to end", sentence
    )


def test_who_came_first_goes_first(child: Child, tmp_path: Path) -> None:
    """However often others try meanwhile; who wants something else passes by, and a dead one keeps nobody."""
    with Lease.acquire(cpus(0, 1), tmp_path):
        waiting = child("held = lease(1, wait=60, report=ready); ready('x')")
        assert said(waiting).startswith("CPU 1 is in use by another pdrgate run ")
        dead = child("held = lease(0, wait=60, report=ready)")
        said(dead)
        dead.kill()
        dead.wait()
        Lease.acquire(cpus(2), tmp_path).release()
    Lease.acquire(cpus(0), tmp_path).release()
    with pytest.raises(TestbedError, match=rf"CPU 1 is next for another pdrgate run \(pid {waiting.pid}, waiting"):
        Lease.acquire(cpus(0, 1), tmp_path)
    with Lease.acquire(cpus(0), tmp_path):  # who holds something lets nobody go first
        Lease.acquire(cpus(1), tmp_path).release()
    go_on(waiting)
    assert said(waiting) == "x"
    assert list((tmp_path / "locks").glob("waiting-*")) == []


def test_two_that_want_the_same_in_another_order_do_not_lock_each_other(child: Child) -> None:
    script = "\nfor _ in range(50): lease(%s, wait=600).release()\nready('done')"
    both = [child(script % order) for order in ("1, 2", "2, 1")]
    assert [said(process) for process in both] == ["done", "done"]


@pytest.mark.parametrize(
    "spawn",
    [
        "subprocess.Popen(('sleep', '600')).pid",
        "subprocess.Popen(('sleep', '600'), close_fds=False).pid",
        "forked()",
    ],
    ids=["exec", "exec-open-fds", "fork"],
)
def test_a_lease_does_not_outlive_its_owner_in_a_child(child: Child, tmp_path: Path, spawn: str) -> None:
    run = child(f"held = lease(1); ready({spawn})")
    left = ProcessId.of(int(said(run)))
    assert left is not None
    run.kill()
    os.waitid(os.P_PID, run.pid, os.WEXITED | os.WNOWAIT)
    try:
        Lease.acquire(cpus(1), tmp_path).release()
        assert left.alive
    finally:
        os.kill(left.pid, 9)


def test_threads_of_one_process_are_told_too(tmp_path: Path) -> None:
    failures: list[str] = []

    def take() -> None:
        try:
            Lease.acquire(cpus(1), tmp_path)
        except TestbedError as error:
            failures.append(str(error))

    with Lease.acquire(cpus(1), tmp_path):
        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
    assert len(failures) == 1


def test_names_may_be_anything(tmp_path: Path) -> None:
    odd = [Resource("host", "[fe80::1%eth0]:22 behind ../../x"), Resource("interface", "..")]
    with Lease.acquire(odd, tmp_path):
        assert sorted(path.parent.name for path in tmp_path.rglob("*") if path.is_file()) == ["locks"] * 3


# --- The machine itself ---


def test_runs_hold_their_machine_together_and_keep_out_whoever_wants_it_alone(child: Child, tmp_path: Path) -> None:
    run = child("held = on_machine(1); ready('x')")
    assert said(run) == "x"
    with Lease.acquire([*cpus(2), MACHINE], tmp_path), sut_lock(tmp_path).open("a") as theirs:
        with pytest.raises(BlockingIOError):
            fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
        run.kill()
        run.wait()
        with pytest.raises(BlockingIOError):
            fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with sut_lock(tmp_path).open("a") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_who_has_the_machine_for_a_sut_is_told(tmp_path: Path) -> None:
    Lease.acquire((MACHINE,), tmp_path).release()
    with sut_lock(tmp_path).open("w") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        json.dump({"controller": "ctl", "pid": 7, "since": 1.0, "token": "x", "there": 77}, theirs)
        theirs.flush()
        with pytest.raises(TestbedError) as error:
            Lease.acquire([*cpus(1), MACHINE], tmp_path)
    assert re.fullmatch(
        r"this machine, as a SUT, is in use by another pdrgate run \(pid 7 on ctl, since \d\d:\d\d:\d\d, by process 77 "
        r"here\); wait for it to end \(--wait 1h\), or have that one take another SUT; where it is gone, kill what it "
        "left here",
        str(error.value),
    )
    Lease.acquire([*cpus(1), MACHINE], tmp_path).release()


def test_who_waits_for_something_else_keeps_nobody_from_the_machine(child: Child, tmp_path: Path) -> None:
    run = child("held = on_machine(1); ready('x')")
    said(run)
    waiting = child("held = on_machine(1, wait=60, report=ready)")
    assert said(waiting).startswith("CPU 1 is in use by another pdrgate run ")
    Lease.acquire([*cpus(2), MACHINE], tmp_path).release()


# --- What a testbed takes ---

EMBEDDED = GeneratorConfig("embedded", cpu=0)
NETNS = LocalNetns(name="n", source=Path("n.yaml"), generator=EMBEDDED, cpus=(1,), hops=3)
VM = LocalVm(name="v", source=Path("v.yaml"), generator=EMBEDDED, cpus=(1,))
BACKLOG = Resource("setting", "net.core.netdev_max_backlog")
PORTS = (PortConfig("in0"), PortConfig("out0"))


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of eight CPUs; 0 and 4, 1 and 5, … are threads of one core."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(sharing, "thread_siblings", lambda asked: {cpu: {cpu % 4, cpu % 4 + 4} for cpu in asked})


def rack(host: HostConfig, generator: GeneratorConfig, **more: object) -> Rack:
    return Rack(name="r", source=Path("r.yaml"), generator=generator, host=host, ports=PORTS, **more)  # type: ignore[arg-type]


def test_namespaces_take_cores_and_the_backlog() -> None:
    assert NETNS.resources() == {*cpus(0, 4, 1, 5), BACKLOG, MACHINE}
    knobs = {"cpu": {"governor": "performance"}, "net.ipv4.ip_forward": 1, "ports": {"mtu": 1400}}
    assert replace(NETNS, knobs=knobs).resources() - NETNS.resources() == {Resource("setting", "governor")}


def test_guests_on_other_cores_share_the_machine_alone() -> None:
    other = replace(VM, generator=GeneratorConfig("embedded", cpu=2), cpus=(3,))
    assert VM.resources() == {*cpus(0, 4, 1, 5), MACHINE}
    assert VM.resources() & other.resources() == NETNS.resources() & other.resources() == {MACHINE}


def test_a_rack_over_ssh_takes_its_host_and_what_sends() -> None:
    target = SshTarget("sut", "10.0.0.2", jump=SshTarget("sut-jump", "10.0.0.1", 2222))
    host = HostConfig("ssh", target)
    embedded = GeneratorConfig("embedded", cpu=3, ports=("ens1f0", "ens1f1"))
    of_host = Resource("host", "10.0.0.2:22 behind 10.0.0.1:2222")
    assert rack(host, embedded, knobs={"cpu": {"turbo": False}}).resources() == {
        of_host, *cpus(3, 7), Resource("interface", "ens1f0"), Resource("interface", "ens1f1"),
    }  # fmt: skip
    trex = GeneratorConfig("trex", ports=("0", "1"), trex=TRexConfig("tg", ports=(0, 1)))
    assert rack(host, trex).resources() == {
        of_host, Resource("trex", "0 at tg:4501"), Resource("trex", "1 at tg:4501"),
    }  # fmt: skip


def test_a_rack_of_this_machine_takes_its_settings_too() -> None:
    embedded = GeneratorConfig("embedded", cpu=0, ports=("t0", "t1"), namespace="tg")
    knobs = {"kernel.timer_migration": 0, "irqbalance": False, "neighbours": {"in0": {}}}
    assert rack(HostConfig("netns", namespace="sut"), embedded, cpus=(1,), knobs=knobs).resources() == {
        Resource("host", "namespace sut"), MACHINE, *cpus(0, 4, 1, 5), BACKLOG,
        Resource("interface", "t0 of namespace tg"), Resource("interface", "t1 of namespace tg"),
        Resource("setting", "kernel.timer_migration"), Resource("setting", "irqbalance"),
    }  # fmt: skip


def test_whoever_holds_the_machine_excludes_every_local_run() -> None:
    assert whole_machine() & NETNS.resources()
    assert whole_machine() & VM.resources()

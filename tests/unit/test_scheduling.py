"""When threads run: what is asked of the kernel, and that what it does not give stops nobody."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

from pdrgate.hosts import scheduling
from pdrgate.hosts.scheduling import go_first, may_go_first, stay_awake, take_turns


@pytest.fixture
def bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What stands for the kernel's bound on how long CPUs take to wake up."""
    path = tmp_path / "cpu_dma_latency"
    monkeypatch.setattr(scheduling, "_BOUND", path)
    return path


def test_cpus_are_asked_to_stay_awake_until_it_is_closed(bound: Path) -> None:
    bound.write_bytes(b"")
    asked = stay_awake()
    assert asked is not None
    assert struct.unpack("i", bound.read_bytes()) == (0,)
    assert bound in [held.resolve() for held in Path("/proc/self/fd").iterdir()]
    asked.close()


def test_a_kernel_without_such_a_bound_is_left_alone(bound: Path) -> None:
    bound.mkdir()  # not even root opens it
    assert stay_awake() is None


def test_a_thread_goes_first_and_takes_turns_again() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeps:
        os.setpriority(os.PRIO_PROCESS, sleeps.pid, 5)
        go_first(sleeps.pid)
        first = os.sched_getscheduler(sleeps.pid)
        take_turns(sleeps.pid)
        assert (first, os.sched_getscheduler(sleeps.pid)) in (
            (os.SCHED_FIFO, os.SCHED_OTHER),
            (os.SCHED_OTHER, os.SCHED_OTHER),  # where it may not be
        )
        assert os.getpriority(os.PRIO_PROCESS, sleeps.pid) == 5
        sleeps.kill()


def test_a_thread_that_has_ended_is_passed_over() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    go_first(ended.pid)
    take_turns(ended.pid)


@pytest.mark.parametrize(
    ("line", "may"),
    [("CapEff:\t000001ffffffffff", True), ("CapEff:\t00000000a80435fb", False), ("Name:\tpdrgate", True)],
    ids=["all", "those of a container", "not told"],
)
def test_whether_threads_may_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, may: bool) -> None:
    status = tmp_path / "status"
    status.write_text(f"State:\tR (running)\n{line}\nCapBnd:\t0000000000000000\n")
    monkeypatch.setattr(scheduling, "_STATUS", status)
    assert may_go_first() is may

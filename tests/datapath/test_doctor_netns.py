"""The doctor on namespaces: a sound testbed, and what it says when a link is down or somebody has the SUT's CPU."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdrgate.doctor import Examination, Finding, Status
from pdrgate.hosts.cpus import CpuPlan, plan_cpus
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed

pytestmark = pytest.mark.datapath

CONFIG = load_testbed(Path(__file__).parents[2] / "resources" / "testbeds" / "local-netns.yaml")
WINDOW = 1.0
"""Seconds that the CPUs are watched for: half of the doctor's own."""


def examination(tmp_path: Path) -> Examination:
    """Lock and journals are our own, for the machine's lock is held already."""
    return Examination(CONFIG, tmp_path, state=tmp_path, window=WINDOW)


def examined(tmp_path: Path) -> dict[str, Finding]:
    """All findings by check."""
    found = list(examination(tmp_path).findings())
    assert len({(one.part, one.check) for one in found}) == len(found)
    return {f"{one.part}: {one.check}": one for one in found}


def test_a_sound_testbed(machine: None, tmp_path: Path) -> None:
    found = examined(tmp_path)
    plan = plan_cpus(None, None)
    for check in ("rights", "tools", "other runs", "disk"):
        assert found[f"this machine: {check}"].status is Status.OK, found
    assert found["this machine: CPUs"].message == f"generator on CPU {plan.generator}, SUT on CPU {plan.sut[0]}"
    assert found["testbed: set-up"].status is Status.OK
    assert found["SUT: reached"].message.startswith("netns:pdrgate-")
    for hop in (1, 2, 3):
        assert found[f"SUT: links of hop {hop}"].message == "in0, out0: up, without errors"
    assert found["traffic: generator"].message.startswith("embedded, engine ")
    # A busy machine may lose some or not send all, and then says so; nothing at all would be another matter.
    for direction in ("forward", "both directions"):
        told = found[f"traffic: {direction}"].message
        assert re.match(r"no packet lost, but |(none|\d+) of \d+ packets (were )?lost ", told), told
    assert " offered, " in found["traffic: headroom"].message
    assert not list(tmp_path.glob("run-*"))


@pytest.fixture
def testbed(machine: None, tmp_path: Path) -> Iterator[NetnsTestbed]:
    with Journal.begin(tmp_path) as journal:
        opened = CONFIG.open(journal)
        assert isinstance(opened, NetnsTestbed)
        try:
            yield opened
        finally:
            opened.close()


def first_of(findings: Iterator[Finding], check: str) -> Finding:
    """A check's, and what comes after it is not looked at."""
    return next(one for one in findings if one.check == check)


def test_a_port_that_is_down_and_the_one_at_its_other_end(testbed: NetnsTestbed, tmp_path: Path) -> None:
    testbed.hops[1].host.run("ip", "link", "set", "out0", "down")
    found = {one.check: one for one in examination(tmp_path).examine(testbed)}
    assert found["links of hop 1"].status is Status.OK
    assert (found["links of hop 2"].status, found["links of hop 2"].message, found["links of hop 2"].remedy) == (
        Status.FAIL, "out0 is down", "ip link set out0 up",
    )  # fmt: skip
    assert (found["links of hop 3"].status, found["links of hop 3"].message, found["links of hop 3"].remedy) == (
        Status.FAIL, "in0 has no link", "check the cable of in0 and the port at its other end",
    )  # fmt: skip
    assert found["set-up"].status is Status.FAIL  # no route leads out of a port that is down
    assert "forward" not in found


def test_packets_that_do_not_come_back(testbed: NetnsTestbed, tmp_path: Path) -> None:
    # The last router hands them to a station that is not there.
    middle = testbed.hops[1].host
    middle.run("sh", "-c", "ip link set in0 address 02:00:00:00:00:99")
    found = first_of(examination(tmp_path).examine(testbed), "forward")
    assert found.status is Status.FAIL
    # How many were sent in time is up to the machine.
    assert re.match(r"none of \d+ packets came back", found.message), found.message
    assert found.remedy.startswith("check the cabling and the order of ports")


@pytest.fixture
def hog(machine: None) -> Iterator[tuple[int, CpuPlan]]:
    """A process of nobody's that never stops, on the SUT's CPU."""
    plan = plan_cpus(None, None)
    # The shell that starts it ends at once, so that it is no descendant of ours.
    started = subprocess.run(
        ("sh", "-c", f"taskset -c {plan.sut[0]} sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!"),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    process = int(started.stdout)
    yield process, plan
    os.kill(process, signal.SIGKILL)


def test_a_busy_cpu_is_told_with_the_process_that_has_it(hog: tuple[int, CpuPlan], tmp_path: Path) -> None:
    process, plan = hog
    found = first_of(examination(tmp_path).findings(), "quiet CPUs")
    assert found.status is Status.FAIL
    ours = found.message.split(f"of CPU {plan.sut[0]}, the SUT's: ")[1].split("; ")[0]
    assert f"sh ({process}) " in ours, found.message
    assert "taskset -a -p -c OTHER_CPUS " in found.remedy

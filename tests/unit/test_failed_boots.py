"""What boots that failed say of their builds, by which failed and why."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pdrgate.builds.bpf_build import BpfBuildError, BpfRefusedError
from pdrgate.gate.comparisons.cold_boots.one_boot import BootError
from pdrgate.gate.comparisons.living_boots.living_boots import unable_alone
from pdrgate.gate.comparisons.pairs.failed_boots import too_many_failed
from pdrgate.guests.emulator.qemu_threads import QemuThreads
from pdrgate.guests.guest import GuestError
from pdrgate.hosts.host import HostError
from pdrgate.results.model import BootResult, Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.values.errors import SutError, TestbedError

LABELS: dict[Side, str] = {"baseline": "old.o", "candidate": "new.o"}
LINE = "new.o: guest refuses its program filter (xdp): the verifier says: R1 invalid mem access"
REFUSED = BpfRefusedError(LINE)


def failed(side: Side, error: TestbedError) -> BootResult:
    return BootError(side, error).result(1)


def judged(*boots: BootResult, baseline_came_up: bool = True) -> Judgement | None:
    return too_many_failed(boots, LABELS, baseline_came_up=baseline_came_up)


def test_what_the_kernel_refuses_of_the_candidate_alone_is_a_regression_in_its_words() -> None:
    found = judged(failed("candidate", REFUSED))
    assert found == Judgement(
        Verdict.REGRESSION, f"the candidate's program does not load, and the baseline's does: {LINE}"
    )
    assert judged(failed("baseline", SutError("no sign of life")), failed("candidate", REFUSED)) == found


def test_what_it_refuses_of_the_baseline_is_an_error() -> None:
    found = judged(*[failed("baseline", REFUSED)] * 2, baseline_came_up=False)
    assert found is not None
    assert found.verdict is Verdict.ERROR
    assert LINE in found.reason
    both = judged(failed("baseline", REFUSED), *[failed("candidate", REFUSED)] * 2)
    assert both is not None
    assert both.verdict is Verdict.ERROR


def test_nothing_is_said_before_a_baseline_has_come_up() -> None:
    assert judged(failed("candidate", REFUSED), baseline_came_up=False) is None


@pytest.mark.parametrize("error", [SutError("died"), BpfBuildError("new.o: is another one than when it was looked at")])
def test_another_failure_takes_two_and_is_a_crash(error: SutError) -> None:
    assert judged(failed("candidate", error)) is None
    found = judged(*[failed("candidate", error)] * 2)
    assert found is not None
    assert found.verdict is Verdict.CRASH


NONE_FORWARDED = SutError("ip-routing forwards none of 1000 packets")
SIDES: list[Side] = ["baseline", "candidate", "baseline", "candidate"]


def test_what_the_candidate_alone_does_not_do_is_a_regression() -> None:
    found = unable_alone([BootError("candidate", NONE_FORWARDED)] * 2, SIDES)
    assert found == Judgement(
        Verdict.REGRESSION, "the candidate cannot, and the baseline can: ip-routing forwards none of 1000 packets"
    )


@pytest.mark.parametrize(
    "told",
    [
        [BootError("candidate", NONE_FORWARDED)],
        [BootError("baseline", NONE_FORWARDED)] * 2,
        [BootError("candidate", NONE_FORWARDED)] * 2 + [BootError("baseline", NONE_FORWARDED)],
        [BootError("candidate", TestbedError("a tool is missing"))] * 2,
        [BootError("candidate", GuestError("died", Path("console")))] * 2,
        [BootError("candidate", HostError("`iperf3` did not end within 21 s and was killed"))] * 2,
    ],
    ids=["one of two boots", "the baseline", "both builds", "a tool", "a guest that died", "a command without end"],
)
def test_what_may_be_no_fault_of_the_candidates_is_raised(told: list[BootError]) -> None:
    with pytest.raises(BootError):
        unable_alone(told, SIDES)


def test_two_boots_that_this_machine_starved_are_no_crash() -> None:
    starved = GuestError("new did not end within 120 s and does not answer", Path("console.log"), starved=True)
    found = judged(*[failed("candidate", starved)] * 2)
    assert found is not None
    assert found.verdict is Verdict.ERROR


def test_seconds_that_a_process_waits_for_a_cpu_are_counted_by_thread() -> None:
    cpu = min(os.sched_getaffinity(0))
    busy = f"import os, sys; os.sched_setaffinity(0, [{cpu}]); os.nice(int(sys.argv[1]))\nwhile True: pass"
    processes = [subprocess.Popen((sys.executable, "-c", busy, nice)) for nice in ("19", "0")]
    try:
        threads = QemuThreads(processes[0].pid, (cpu,), isolate=False, metered=False)
        deadline = time.monotonic() + 60.0
        while max(threads.waits().values(), default=0.0) < 0.5 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert list(threads.waits()) == [str(processes[0].pid)]
        assert threads.waits()[str(processes[0].pid)] >= 0.5
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert threads.waits() == {}

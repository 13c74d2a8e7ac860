"""Boots that die and a disk that fills up in the middle of a comparison of real kernels.

What is measured is no matter here: they run beside whatever else the machine does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.progress import Progress, RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.history.results import read_result
from pdrgate.observers.reading import Reading
from pdrgate.results.model import Side
from pdrgate.results.verdict import Verdict
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import LocalVm, TestbedConfig, load_testbed
from pdrgate.testbeds.vm.vm_testbed import VmTestbed

SOON_EMPTY = Scenario(buffer=512)
"""A queue that a guest forwards in a twentieth of a second."""
VM_FILE = Path(__file__).parents[2] / "resources/testbeds/local-vm.yaml"

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting", "nothing_left")]


def test_a_full_disk_keeps_what_was_measured(cloud: KernelBuild, tmp_path: Path) -> None:
    output = tmp_path / "small"
    output.mkdir()
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=400k", "none", str(output)), check=True)
    try:
        filler = output / "filler"
        config = load_testbed(VM_FILE)
        (output / "run").mkdir()

        class FillsTheDisk(_Silent):
            def measured(self, progress: Progress) -> None:
                if progress.number == 5:
                    with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
                        while True:
                            file.write(b"x" * 512)

        run = _session(config, output / "run", FillsTheDisk(), tmp_path)
        run.take()
        try:
            # Of one pair: none comes up beside it that nobody would measure.
            subject = _comparison(run, cloud, tmp_path, pairs=1)
            with pytest.raises(Exception, match=r"cannot write .*trials\.jsonl: .*space.* --resume"):
                subject.measure()
        finally:
            run.close()
            run.record.close()
        trials = (output / "run" / "trials.jsonl").read_text()
        assert len(trials.splitlines()) >= 5
        assert all(json.loads(line) for line in trials.splitlines())
    finally:
        subprocess.run(("umount", str(output)), check=True)


class _Silent(RunObserver):
    """It tells nobody."""


def _session(config: TestbedConfig, folder: Path, observer: _Silent, tmp_path: Path) -> Session:
    record = RunRecord(folder, "smoke")
    session = Session(config, Options(profile="smoke"), record, observer, state=tmp_path / "state")
    session.profile = replace(session.profile, boot_top_trials=2)
    return session


def _comparison(
    run: Session,
    build: KernelBuild,
    tmp_path: Path,
    spoil: Mapping[Side, Callable[[VmTestbed], None]] | None = None,
    pairs: int = 2,
    *,
    each: bool = False,
) -> PairsComparison:
    """A comparison of a build with itself; ``spoil`` is done to a side's first guest that comes to its third trial,
    or to each of them."""
    config = load_testbed(VM_FILE)
    assert isinstance(config, LocalVm)
    left = dict(spoil or {})

    def boot(side: Side, journal: Journal) -> VmTestbed:
        testbed = config.boot(build, journal, tmp_path / "consoles", print)
        original, count = testbed.counters, [0]

        def counters() -> Reading:
            count[0] += 1
            if count[0] == 7 and side in left:
                (left[side] if each else left.pop(side))(testbed)
            return original()

        testbed.counters = counters  # type: ignore[method-assign]
        return testbed

    builds = {side: Build(side, name, partial(boot, side)) for side, name in zip(SIDES, "ab", strict=True)}
    return comparison_of(ComparisonTask(run, SOON_EMPTY, builds, Plan(pairs, 600, 0.5)))  # type: ignore[arg-type]


def _crash(testbed: VmTestbed) -> None:
    testbed.guest.run("sh", "-c", "(sleep 0.2; echo c > /proc/sysrq-trigger) > /dev/null 2>&1 &")
    time.sleep(0.5)


def _stop(testbed: VmTestbed) -> None:
    guest = testbed.guest
    script = guest._script
    # Nobody answers any more: to wait for that longer would show nothing else.
    guest._script = lambda argv, text, timeout: script(argv, text, min(timeout, 0.2))  # type: ignore[method-assign]
    guest._prepare = lambda one: one.execute("true", 0.2)  # type: ignore[method-assign]
    os.kill(guest.pid, signal.SIGSTOP)


def test_boots_that_die_in_the_middle_are_told_and_the_run_goes_on(cloud: KernelBuild, tmp_path: Path) -> None:
    """A guest of either build: one crashes, the other hangs."""
    run = _session(load_testbed(VM_FILE), tmp_path / "run", _Silent(), tmp_path)
    run.take()
    try:
        subject = _comparison(run, cloud, tmp_path, {"candidate": _crash, "baseline": _stop})
        subject.measure()
        subject.judge(0.5)
        subject.finish()
    finally:
        run.close()
    died = {boot.side: boot for boot in subject.boots[:2]}
    assert set(died) == set(SIDES), [(boot.side, boot.pair, boot.failure) for boot in subject.boots]
    assert all(not boot.values for boot in died.values())
    assert "crashed: " in died["candidate"].failure
    assert "did not end within" in died["baseline"].failure
    assert len(subject.boots) == 6, subject.judgement
    assert len(subject.samples("PDR", "candidate")) == 2
    assert subject.judgement is not None
    assert subject.judgement.verdict is not Verdict.ERROR
    crashes = {boot.side: boot.crash for boot in read_result(tmp_path / "run").scenarios[0].builds.boots[:2]}
    assert crashes["baseline"] is None
    crash = crashes["candidate"]
    assert crash is not None
    assert crash.kind in ("oops", "panic")
    assert "sysrq" in f"{crash.line} {crash.rip} {crash.trace}"


def test_a_candidate_that_panics_under_load_in_each_boot_is_a_crash(cloud: KernelBuild, tmp_path: Path) -> None:
    run = _session(load_testbed(VM_FILE), tmp_path / "run", _Silent(), tmp_path)
    run.take()
    try:
        subject = _comparison(run, cloud, tmp_path, {"candidate": _crash}, each=True)
        subject.measure()
        subject.finish()
    finally:
        run.close()
    result = read_result(tmp_path / "run")
    assert (result.verdict, result.verdict.exit_code) == (Verdict.CRASH, 1)
    assert "sysrq" in result.reason
    assert [(boot.side, boot.sut_failed) for boot in result.scenarios[0].builds.boots] == [("candidate", True)] * 2

"""Two builds over several boots each, on simulated SUTs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_testbed import CONFIG, FakeTestbed, Watcher

from pdrgate.errors import TestbedError
from pdrgate.gate.builds import BuildComparison, Side, order
from pdrgate.gate.profile import profile
from pdrgate.gate.run import Options, Run
from pdrgate.gate.scenario import Scenario
from pdrgate.gate.verdict import Verdict
from pdrgate.history.results import read_result
from pdrgate.sut.journal import Journal
from pdrgate.traffic.simulated import Behaviour, Ceiling, IdealCurve, SimulatedSut


class Machine:
    """Boots builds of which each boot has a speed of its own."""

    def __init__(self, crashes: tuple[int, ...] = ()) -> None:
        self.booted: list[str] = []
        self.open = 0
        self._crashes = crashes

    def boots(self, name: str, speeds: list[float]) -> Callable[[Journal], FakeTestbed]:
        left = iter(speeds)

        def boot(journal: Journal) -> FakeTestbed:
            self.booted.append(name)
            if len(self.booted) in self._crashes:
                raise TestbedError(f"{name} panicked: not syncing: VFS: unable to mount root fs")
            sut = SimulatedSut(
                IdealCurve(next(left)), Behaviour(0.003), seed=len(self.booted), ceiling=Ceiling(4e6), phase="repeat"
            )
            return FakeTestbed(sut, boot=f"boot-{len(self.booted)}", kernel=name)

        return boot


def compared(
    tmp_path: Path, baseline: list[float], candidate: list[float], machine: Machine | None = None, boots: int = 4
) -> tuple[BuildComparison, dict[str, Any], Machine]:
    machine = machine or Machine()
    run = Run(CONFIG, Options(profile("quick"), tmp_path / "run"), Watcher(), state=tmp_path / "state")
    sides = {
        "baseline": Side("baseline", "linux-a", machine.boots("a", baseline)),
        "candidate": Side("candidate", "linux-b", machine.boots("b", candidate)),
    }
    run.take()
    subject = BuildComparison(run, Scenario(), sides, boots=boots, rounds=3, budget=1e9)  # type: ignore[arg-type]
    subject.measure()
    subject.judge(0.02)
    subject.finish()
    run.close()
    return subject, read_result(tmp_path / "run"), machine


def test_the_order_alternates_in_pairs() -> None:
    assert "".join(name[0] for name in order(4)) == "bccbbccb"


def test_a_slower_build_is_a_regression_with_boots_as_replicates(tmp_path: Path) -> None:
    subject, result, machine = compared(tmp_path, [1e6, 1.02e6, 0.99e6, 1.01e6], [0.85e6, 0.84e6, 0.86e6, 0.85e6])
    assert result["verdict"] == Verdict.REGRESSION
    assert "".join(machine.booted) == "abbaabba"
    assert len(subject.pdrs("baseline")) == len(subject.pdrs("candidate")) == 4
    assert subject.pdrs("candidate")[0] == pytest.approx(0.85e6 / 0.995, rel=0.01)
    (entry,) = result["scenarios"]
    assert entry["builds"] == {"baseline": "linux-a", "candidate": "linux-b"}
    assert [boot["side"] for boot in entry["boots"]] == list(order(4))
    assert entry["comparison"]["differs"]["kernel"] == ["a", "b"]


def test_the_same_build_twice_passes(tmp_path: Path) -> None:
    speeds = [1e6, 1.003e6, 0.998e6, 1.001e6]
    _, result, _ = compared(tmp_path, speeds, speeds[::-1])
    assert result["verdict"] == Verdict.PASS


def test_boots_that_differ_leave_a_small_change_open(tmp_path: Path) -> None:
    """Within a boot repeats agree to 0.3 %; the boots do not, and only they count."""
    _, result, _ = compared(tmp_path, [1e6, 1.03e6, 0.98e6, 1.01e6], [0.97e6, 1.01e6, 0.99e6, 0.98e6])
    assert result["verdict"] == Verdict.INCONCLUSIVE


def test_a_boot_that_fails_once_is_tried_again(tmp_path: Path) -> None:
    subject, result, machine = compared(tmp_path, [1e6] * 4, [1e6] * 4, Machine(crashes=(2,)))
    assert result["verdict"] == Verdict.PASS
    assert "".join(machine.booted) == "abbbaabba"
    assert "panicked" in subject.boots[1].failure


def test_a_build_that_fails_twice_is_an_error_and_never_a_regression(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, [1e6] * 4, [1e6] * 4, Machine(crashes=(2, 3)))
    assert result["verdict"] == Verdict.ERROR
    assert result["reason"].startswith("2 boots of the candidate linux-b failed, the last: b panicked: not syncing")


def test_a_side_that_is_not_stable_decides(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, [1e6, 0.7e6, 1e6, 0.75e6], [1e6] * 4)
    assert result["verdict"] == Verdict.UNSTABLE
    assert result["reason"].startswith("the baseline linux-a: ")

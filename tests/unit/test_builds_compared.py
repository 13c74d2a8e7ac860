"""Two builds over several boots each, on simulated SUTs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_testbed import CONFIG, FakeTestbed, Killed, Watcher

from pdrgate.crashes.faults import Crash
from pdrgate.errors import DataError, TestbedError
from pdrgate.gate.build_comparison import PAIRS_FILE, BuildComparison, Plan, Side
from pdrgate.gate.profile import profile
from pdrgate.gate.run import Options, Run
from pdrgate.gate.scenario import Scenario
from pdrgate.guests.guest import GuestError
from pdrgate.history.results import read_result
from pdrgate.reports.console import verdict_table
from pdrgate.results.verdict import Verdict
from pdrgate.safety.journal import Journal
from pdrgate.traffic.simulated import Behaviour, Ceiling, IdealCurve, SimulatedSut

STEADY = [1e6, 1.003e6, 0.998e6, 1.001e6, 0.999e6, 1.002e6]
PANIC = Crash("panic", "Kernel panic - not syncing: VFS", "mount_root+0x1/0x2", ("do_mount+0x3/0x4", "init+0x5/0x6"))


class Machine:
    """Boots builds of which each boot has a speed of its own, in turn from a list that begins anew at its end."""

    def __init__(self, crashes: tuple[int, ...] = (), dies: tuple[int, ...] = ()) -> None:
        self.booted: list[str] = []
        self.up = 0
        self.most_up = 0
        self._crashes = crashes
        self._dies = dies
        """Boots whose kernel dies in the middle of their trials."""

    def boots(self, name: str, speeds: list[float]) -> Callable[[Journal], FakeTestbed]:
        left = itertools.cycle(speeds)

        def boot(journal: Journal) -> FakeTestbed:
            self.booted.append(name)
            number = len(self.booted)
            if number in self._crashes:
                raise GuestError(f"{name} does not boot: {PANIC.sentence()}", Path("console.log"), PANIC)
            sut = SimulatedSut(
                IdealCurve(next(left)), Behaviour(0.003), seed=number, ceiling=Ceiling(4e6), phase="repeat"
            )
            return _Booted(self, sut, f"boot-{number}", name, dies=number in self._dies)

        return boot


class _Booted(FakeTestbed):
    def __init__(self, machine: Machine, sut: SimulatedSut, boot: str, kernel: str, dies: bool) -> None:
        super().__init__(sut, boot=boot, kernel=kernel)
        self._machine = machine
        self._dies = dies
        machine.up += 1
        machine.most_up = max(machine.most_up, machine.up)

    def check(self) -> tuple[str, ...]:
        if self._dies and len(self.calls) > 8:
            raise TestbedError(f"{self.kernel} crashed: BUG: soft lockup")
        return ("WARNING: at net/core/dev.c:1",) if self.kernel == "warns" else ()

    def close(self) -> None:
        if self.open:
            self._machine.up -= 1
        super().close()


def comparison(
    tmp_path: Path,
    baseline: list[float],
    candidate: list[float],
    machine: Machine,
    *,
    pairs: int = 24,
    together: bool = True,
    watcher: Watcher | None = None,
    name: str = "b",
) -> tuple[Run, BuildComparison]:
    run = Run(CONFIG, Options(profile("quick"), tmp_path / "run"), watcher or Watcher(), state=tmp_path / "state")
    sides = {
        "baseline": Side("baseline", "linux-a", machine.boots("a", baseline)),
        "candidate": Side("candidate", f"linux-{name}", machine.boots(name, candidate)),
    }
    run.take()
    return run, BuildComparison(run, Scenario(), sides, Plan(pairs, 1e9, 0.02, together))  # type: ignore[arg-type]


def compared(
    tmp_path: Path, baseline: list[float], candidate: list[float], machine: Machine | None = None, **options: Any
) -> tuple[BuildComparison, dict[str, Any], Machine]:
    machine = machine or Machine()
    run, subject = comparison(tmp_path, baseline, candidate, machine, **options)
    subject.measure()
    subject.judge(0.02)
    subject.finish()
    run.close()
    assert machine.up == 0
    return subject, read_result(tmp_path / "run"), machine


def test_a_slower_build_is_a_regression_told_by_the_fewest_pairs(tmp_path: Path) -> None:
    subject, result, machine = compared(tmp_path, STEADY, [0.85e6, 0.84e6, 0.86e6])
    assert result["verdict"] == Verdict.REGRESSION
    assert "".join(machine.booted) == "abbaabbaabba"
    assert len(subject.pdrs("baseline")) == len(subject.pdrs("candidate")) == 6
    assert subject.pdrs("candidate")[0] == pytest.approx(0.85e6 / 0.995, rel=0.01)
    (entry,) = result["scenarios"]
    assert entry["builds"] == {"baseline": "linux-a", "candidate": "linux-b"}
    assert [boot["pair"] for boot in entry["boots"]] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert entry["comparison"]["differs"]["kernel"] == ["a", "b"]
    assert entry["comparison"]["change"] == pytest.approx(-0.15, abs=0.01)
    assert entry["baseline_pdr"]["load"] == pytest.approx(1e6 / 0.995, rel=0.01)
    assert entry["search"]["trials"] > 3


def test_both_pdrs_their_intervals_and_the_boots_are_told_at_the_end(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, STEADY, [0.85e6, 0.84e6, 0.86e6])
    _, candidate, baseline, reason = verdict_table(result)
    assert re.search(r" -1[45]\.\d%  REGRESSION$", candidate)
    assert baseline.startswith("  against linux-a ")
    assert baseline.endswith("boots of each: 6")
    assert all(line.count(" kpps") + line.count(" Mpps") == 3 for line in (candidate, baseline))
    assert "at 99% confidence" in reason
    assert result["scenarios"][0]["comparison"]["confidence"] == 0.99


def test_the_boots_of_a_pair_are_up_together_and_measured_in_turn(tmp_path: Path) -> None:
    watcher = Watcher()
    _, _, machine = compared(tmp_path, STEADY, STEADY, watcher=watcher)
    assert machine.most_up == 2
    boots = [told.trial.boot for told in watcher.progress if told.trial.phase == "repeat"]
    assert set(boots[:16]) == {"boot-1-baseline-1", "boot-2-candidate-1"}
    assert "".join(boot.split("-")[2][0] for boot in boots[:8]) == "bccbbccb"


def test_a_testbed_with_one_sut_boots_one_after_the_other(tmp_path: Path) -> None:
    subject, result, machine = compared(tmp_path, STEADY, STEADY, together=False)
    assert machine.most_up == 1
    assert result["verdict"] == Verdict.PASS
    assert len({boot.boot for boot in subject.boots}) == len(subject.boots)


def test_what_changes_over_time_meets_both_builds_and_drops_out(tmp_path: Path) -> None:
    """The machine loses a fifth of its speed half-way; pair by pair the builds agree."""
    speeds = [1e6, 0.99e6, 1e6, 0.8e6, 0.81e6, 0.79e6]
    _, result, _ = compared(tmp_path, speeds, speeds)
    assert result["verdict"] == Verdict.PASS


def test_boots_that_differ_leave_a_small_change_open(tmp_path: Path) -> None:
    """Within a boot repeats agree to 0.3 %; the boots do not, and only they count."""
    subject, result, _ = compared(tmp_path, STEADY, [0.99e6, 0.95e6, 1e6, 0.97e6], pairs=8)
    assert result["verdict"] == Verdict.INCONCLUSIVE
    assert len(subject.pdrs("candidate")) == 8


def test_a_much_faster_build_is_an_improvement(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, [0.4e6, 0.401e6], [1e6, 1.001e6])
    assert result["verdict"] == Verdict.IMPROVEMENT


def test_a_boot_that_fails_once_is_tried_again_and_its_crash_is_kept(tmp_path: Path) -> None:
    subject, result, machine = compared(tmp_path, STEADY, STEADY, Machine(crashes=(2,)))
    assert result["verdict"] == Verdict.PASS
    assert "".join(machine.booted)[:6] == "ababba"
    assert "VFS" in subject.boots[0].failure
    crash = result["scenarios"][0]["boots"][0]["crash"]
    assert (crash["kind"], crash["rip"], crash["trace"]) == ("panic", PANIC.rip, list(PANIC.trace))
    assert crash["fingerprint"] == PANIC.fingerprint


def test_a_build_that_fails_twice_is_an_error_and_never_a_regression(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, STEADY, [0.5e6], Machine(crashes=(3, 4)))
    assert result["verdict"] == Verdict.ERROR
    assert result["reason"].startswith(
        "2 boots of the candidate linux-b failed, the last: b does not boot: Kernel panic"
    )


def test_a_kernel_that_dies_in_the_middle_of_its_trials_costs_the_pair_only(tmp_path: Path) -> None:
    subject, result, machine = compared(tmp_path, STEADY, STEADY, Machine(dies=(1,)))
    assert result["verdict"] == Verdict.PASS
    assert (subject.boots[0].side, subject.boots[0].pdr) == ("baseline", None)
    assert "soft lockup" in subject.boots[0].failure
    assert "".join(machine.booted)[:4] == "abab"


def test_new_warnings_of_the_candidates_kernel_are_told(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, STEADY, STEADY, name="warns")
    assert result["scenarios"][0]["complaints"] == ["WARNING: at net/core/dev.c:1"]


def test_a_ratio_that_jumps_from_pair_to_pair_is_unstable(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, STEADY, [1e6, 0.8e6, 0.78e6, 1.01e6, 0.99e6], pairs=10)
    assert result["verdict"] == Verdict.UNSTABLE
    assert "pairs of boots: the candidate's PDR relative to the baseline's deviates" in result["reason"]


def test_a_ratio_that_jumps_beyond_the_tolerance_is_a_regression_all_the_same(tmp_path: Path) -> None:
    _, result, _ = compared(tmp_path, STEADY, [0.2e6, 0.22e6, 0.18e6, 0.21e6])
    assert result["verdict"] == Verdict.REGRESSION


def test_a_killed_comparison_goes_on_after_its_last_whole_pair(tmp_path: Path) -> None:
    machine = Machine()
    baseline, candidate = [1e6, 1.03e6, 0.98e6, 1.01e6], [0.985e6, 1.01e6, 0.97e6, 0.99e6]
    run, subject = comparison(tmp_path, baseline, candidate, machine, watcher=Watcher(kill_after=9_999), pairs=6)
    original, left = subject._pair, [3]

    def pair(number: int) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        original(number)

    subject._pair = pair  # type: ignore[method-assign]
    with pytest.raises(Killed):
        subject.measure()
    run.close()
    assert len(machine.booted) == 6
    again, result, later = compared(tmp_path, baseline, candidate, pairs=6)
    assert len(later.booted) == 6
    assert [boot.pair for boot in again.boots] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert again.pdrs("baseline")[:3] == subject.pdrs("baseline")
    assert result["scenarios"][0]["search"]["trials"] > 3
    assert all(point.runs >= 6 for point in again.assessments["baseline"].curve.points)


def test_a_damaged_file_of_pairs_is_told_with_its_name(tmp_path: Path) -> None:
    run, subject = comparison(tmp_path, STEADY, STEADY, Machine())
    (tmp_path / "run" / PAIRS_FILE).write_text('{"scenario": 3}\n')
    with pytest.raises(DataError, match=r"pairs\.jsonl: it is damaged"):
        subject.measure()
    run.close()


def test_after_the_budget_no_pair_is_begun(tmp_path: Path) -> None:
    machine = Machine()
    run, subject = comparison(tmp_path, STEADY, STEADY, machine)
    subject._deadline = 0.0
    subject.measure()
    assert len(subject.pdrs("baseline")) == 2
    subject.finish()
    run.close()

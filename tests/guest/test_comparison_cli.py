"""Two builds compared by the command line, and what goes wrong meanwhile."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from machine_noise import MEASURED, UNDECIDED
from tools_folder import tools_but

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.cli.command_line import main
from pdrgate.history.results import read_result
from pdrgate.results.model import RunResult
from pdrgate.results.verdict import Verdict
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.values.errors import EXIT_PASS

CHECKOUT = Path(__file__).parents[2]
PDRGATE = [sys.executable, "-m", "pdrgate.cli"]
LOCK_WAIT = 600.0

LeftBehind = Callable[[], dict[str, list[str]]]

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("capable", "nothing_left_by_runs")]


def arguments(build: KernelBuild, output: Path) -> list[str]:
    """Compares a build with itself in two pairs; a boot that is twice as slow is within the tolerance."""
    return [
        *PDRGATE, "gate", "--kernel", build.source, "--against", build.source, "--measure", "pdr", "--profile", "smoke",
        "--set", "boots=3", "--set", "budget=1 s", "--tolerance", "50%", "--wait", "900 s", "--output", str(output),
    ]  # fmt: skip


def environment(**changes: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(CHECKOUT / "libraries")} | changes


def result_of(output: Path) -> RunResult:
    (folder,) = (path for path in output.iterdir() if path.is_dir() and not path.is_symlink())
    return read_result(folder)


def test_a_suite_for_namespaces_runs_in_a_guest(cloud: KernelBuild, tmp_path: Path) -> None:
    """With no change but the testbed file. The kernel's own routing does so wherever a gate has no options."""
    text = (CHECKOUT / "resources/testbeds/local-vm.yaml").read_text()
    testbed = tmp_path / "vm.yaml"
    testbed.write_text(text.replace("sut:\n", f"sut:\n  kernel: {cloud.source}\n"))
    done = subprocess.run(
        [*PDRGATE, "gate", "--testbed", str(testbed), "--scenario", "path-xdp-ipv6",
         "--profile", "smoke", "--wait", "900 s", "--output", str(tmp_path / "out")],
        env=environment(), capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    result = result_of(tmp_path / "out")
    assert result.verdict in MEASURED, done.stdout + done.stderr
    (entry,) = result.scenarios
    assert entry.name.startswith("xdp-")
    assert entry.origin.carried.startswith("XDP ")
    assert entry.findings.fingerprint["kernel"] == cloud.release
    assert entry.findings.calibration is not None
    assert entry.findings.calibration.forwarding_rate > 1000


@dataclasses.dataclass(frozen=True)
class Interrupted:
    """A comparison that was interrupted while two guests ran, and went on from there."""

    told: str
    """Until it was interrupted, and afterwards."""
    code: int
    guests: int
    """That were left."""
    pairs: int
    """Whole ones that were stored."""
    first: RunResult
    folder: Path
    again: subprocess.CompletedProcess[str]
    left: dict[str, set[str]]
    """Of guests and namespaces, by both."""

    @property
    def whole(self) -> RunResult:
        return read_result(self.folder)


@pytest.fixture(scope="module")
def interrupted(
    capable: None,
    cloud: KernelBuild,
    tmp_path_factory: pytest.TempPathFactory,
    left_behind: LeftBehind,
    newly_left: Callable[[dict[str, list[str]]], dict[str, set[str]]],
) -> Interrupted:
    output = tmp_path_factory.mktemp("interrupted") / "out"
    with Lease.acquire(whole_machine(), wait=LOCK_WAIT):
        before = left_behind()
    with subprocess.Popen(
        arguments(cloud, output), env=environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        assert run.stdout is not None
        lines: list[str] = []
        for line in run.stdout:
            lines.append(line)
            if line.startswith("  pair 1"):
                break
        deadline = time.monotonic() + 120
        while len(left_behind()["guests"]) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(left_behind()["guests"]) == 2, "".join(lines)
        os.killpg(run.pid, signal.SIGINT)
        told = "".join([*lines, run.stdout.read()])
        code = run.wait(60)
    guests = len(left_behind()["guests"])
    (folder,) = (path for path in output.iterdir() if path.is_dir() and not path.is_symlink())
    first, pairs = read_result(folder), len((folder / "pairs.jsonl").read_text().splitlines())
    again = subprocess.run(
        [*PDRGATE, "gate", "--resume", str(folder)],
        env=environment(), capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    with Lease.acquire(whole_machine(), wait=LOCK_WAIT):
        left = newly_left(before)
    return Interrupted(told, code, guests, pairs, first, folder, again, left)


def test_ctrl_c_while_two_guests_run(interrupted: Interrupted) -> None:
    assert interrupted.code == 130, interrupted.told
    assert interrupted.guests == 0
    assert "interrupted" in interrupted.first.reason
    assert interrupted.pairs == 1
    assert f"--resume {interrupted.folder}" in interrupted.told


def test_an_interrupted_comparison_goes_on_from_there(interrupted: Interrupted) -> None:
    again = interrupted.again
    assert again.returncode in (0, 1) or interrupted.whole.verdict in UNDECIDED, again.stdout + again.stderr
    assert "1 pairs of boots are taken over from the run that is continued" in again.stdout
    (entry,) = interrupted.whole.scenarios
    assert [boot.pair for boot in entry.builds.boots] == [1, 1, 2, 2]
    assert "the time is up: no further boots" in again.stdout
    assert interrupted.left == {}


def test_a_build_is_gated_against_itself(interrupted: Interrupted, cloud: KernelBuild) -> None:
    result = interrupted.whole
    assert result.verdict in {"PASS", "IMPROVEMENT"} | UNDECIDED
    (entry,) = result.scenarios
    assert [boot.kernel for boot in entry.builds.boots] == [cloud.release] * 4
    assert len({boot.boot for boot in entry.builds.boots}) == 4
    # It is called as often, and differs in nothing: nothing is told.
    assert entry.comparison is not None
    assert (entry.comparison.notice, entry.comparison.build_differences) == ("", ())
    assert not any(one.renamed_from for one in entry.comparison.functions)
    options = [side.findings.environment["config_options"] for side in entry.builds.sides]
    assert options[0]["INIT_ON_ALLOC_DEFAULT_ON"] == "y"
    assert options[0] == options[1]
    assert "pair 1 of at most 3: PDR " in interrupted.told
    assert "pair 2 of at most 3: PDR " in interrupted.again.stdout
    assert interrupted.told.count("boot 1 of the candidate") == 1
    assert "boot 1 of the candidate" not in interrupted.again.stdout


def test_a_missing_qemu_is_told_in_one_line(cloud: KernelBuild, tmp_path: Path) -> None:
    tools = tools_but(tmp_path / "bin", lambda name: name.startswith("qemu-system"))
    done = subprocess.run(
        arguments(cloud, tmp_path / "out"),
        env=environment(PATH=str(tools)), capture_output=True, text=True, timeout=1000, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    told = result_of(tmp_path / "out")
    assert told.verdict == "ERROR"
    assert "qemu-system-x86_64 is not installed" in told.reason


def test_builds_that_differ_in_nothing_pass_without_a_guest(cloud: KernelBuild, tmp_path: Path) -> None:
    done = subprocess.run(
        [*PDRGATE, "gate", "--kernel", cloud.source, "--against", cloud.source, "--paths", "affected", "--wait",
         "900 s", "--output", str(tmp_path)],
        env=environment(), capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS: both builds are the same, byte by byte; all 7" in done.stdout
    assert "stays up" not in done.stdout
    result = result_of(tmp_path)
    assert result.scenarios == ()
    assert result.selection is not None
    assert len(result.selection.because("same")) == len(result.selection.paths) > 60
    assert result.selection.identical
    for page in ("summary.html", "summary.md", "report.html"):
        (found,) = tmp_path.glob(f"2*/{page}")
        assert "run the same code" in found.read_text()


def test_a_part_of_the_paths_is_measured_by_itself(cloud: KernelBuild, tmp_path: Path) -> None:
    done = subprocess.run(
        [*PDRGATE, "gate", "--kernel", cloud.source, "--against", cloud.source, "--scenario", "path-nat", "--scenario",
         "path-bridge", "--shard", "2/2", "--wait", "900 s", "--output", str(tmp_path)],
        env=environment(), capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    (only,) = result_of(tmp_path).scenarios
    assert only.origin.test == "NAT"
    assert only.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE), done.stdout + done.stderr


def test_workers_measure_all_paths_and_leave_one_report(
    cloud: KernelBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On two CPUs workers have the same ones, and wait for each other."""
    monkeypatch.setattr("pdrgate.launch.workers.shared_out", lambda workers: (os.sched_getaffinity(0),) * workers)
    words = ["--kernel", cloud.source, "--against", cloud.source, "--scenario", "path-nat", "--scenario", "path-bridge"]
    code = main(["gate", *words, "--workers", "2", "--wait", "900 s", "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    assert code in (EXIT_PASS, Verdict.INCONCLUSIVE.exit_code), printed
    runs = {path.parent: read_result(path.parent) for path in tmp_path.glob("*/result.json")}
    parts = [one for folder, one in runs.items() if not folder.is_symlink() and "--shard" in one.command]
    measured = {path.origin.test for one in parts for path in one.scenarios}
    assert (len(parts), measured) == (2, {"A Bridge", "NAT"})
    assert {line[:5] for line in printed.splitlines() if "pdrgate run" in line} == {"1/2  ", "2/2  "}
    (page,) = tmp_path.glob("*-merged/summary.html")
    assert all(f">{path}<" in page.read_text() for path in ("NAT", "A Bridge"))

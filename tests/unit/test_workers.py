"""Workers measure parts of the paths at once, each on CPUs of its own."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from pdrgate.cli.command_line import main
from pdrgate.launch.workers import PathWorker, run_workers, shared_out
from pdrgate.this_process.interruption import interruptible
from pdrgate.values.errors import EXIT_STOP, EXIT_USAGE, UsageError

BUILDS = ("--kernel", "a.deb", "--against", "b.deb")


def threads(cpus: Collection[int], each: int) -> dict[int, frozenset[int]]:
    """By CPU, those of its core, as Linux numbers them: the second threads come after all first ones."""
    cores = len(cpus) // each
    return {cpu: frozenset(cpu % cores + cores * thread for thread in range(each)) for cpu in cpus}


@pytest.mark.parametrize(
    ("workers", "cpus", "each", "shares"),
    [
        (1, 2, 1, [{0, 1}]),
        (2, 4, 1, [{0, 1}, {2, 3}]),
        (2, 8, 2, [{0, 1, 4, 5}, {2, 3, 6, 7}]),
        (3, 8, 2, [{0, 4}, {1, 5}, {2, 6}]),
        (4, 9, 1, [{0, 1}, {2, 3}, {4, 5}, {6, 7}]),
        (8, 16, 2, [{core, core + 8} for core in range(8)]),
    ],
)
def test_workers_get_equal_shares_and_whole_cores(workers: int, cpus: int, each: int, shares: list[set[int]]) -> None:
    assert list(shared_out(workers, range(cpus), threads(range(cpus), each))) == shares


def test_more_workers_than_pairs_of_cpus_are_refused_with_the_number_that_fits() -> None:
    with pytest.raises(UsageError, match=r"--workers 3: each needs 2 CPUs, and there are 5 \(0-4\); ask for 2 at most"):
        shared_out(3, range(5), threads(range(5), 1))


@pytest.mark.parametrize(
    ("more", "code"), [(("--shard", "1/2"), EXIT_USAGE), (("--bisect",), EXIT_STOP)], ids=["shard", "bisect"]
)
def test_workers_share_no_part_and_no_bisection(
    more: tuple[str, ...], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", *BUILDS, "--workers", "2", *more, "--output", str(tmp_path / "out")]) == code
    assert f"leave out {more[0]}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_lines_begin_with_the_worker_that_printed_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cpus = frozenset(os.sched_getaffinity(0))
    parts = [PathWorker(f"{number}/3", tmp_path / f"absent-{number}", cpus) for number in (1, 2, 3)]
    assert run_workers(parts, at_once=2) == 0
    assert os.sched_getaffinity(0) == cpus
    lines = capsys.readouterr().out.splitlines()
    for worker in parts:
        assert any(line.startswith(f"{worker.label}  pdrgate: ") and worker.folder.name in line for line in lines)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_workers_that_run_and_begins_no_other(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    slow = tmp_path / "python"
    slow.write_text(f"#!/bin/sh\necho x >>{begun}\nexec sleep 100\n")
    slow.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(slow))

    def interrupt() -> None:
        while not (begun.exists() and begun.read_text().count("x") == 2):
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    cpus = frozenset(os.sched_getaffinity(0))
    by = threading.Thread(target=interrupt)
    by.start()
    with interruptible():
        code = run_workers([PathWorker(f"{part}/4", tmp_path, cpus) for part in range(1, 5)], at_once=2)
    by.join()
    assert code == 128 + number
    assert begun.read_text().count("x") == 2

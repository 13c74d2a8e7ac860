"""A run that others keep waiting: what is named is looked at before, and to git bisect no commit is at fault."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pdrgate.safety.locks import Lease, Resource, whole_machine

ROOT = Path(__file__).resolve().parents[2]
STARTED = """
import sys
from pathlib import Path
import pdrgate.safety.state_folder as folder
folder.STATE_DIR, folder.SUT_LOCK = Path(sys.argv[1]), Path(sys.argv[1]) / "sut.lock"
from pdrgate.cli import main
sys.exit(main(sys.argv[2:]))
"""
"""The command with its locks in a place of this test: nobody else's are held."""
PACKAGES = ("--kernel", "linux-image-a", "--against", "linux-image-b")
"""Nobody asks for these before the machine is had."""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """Where all that a run uses is held by this process, as another run would."""
    resources = {*whole_machine(), Resource("host", "another")}
    with Lease.acquire(resources, tmp_path / "state"):
        yield tmp_path / "state"


def command(state: Path, *words: str) -> list[str]:
    return [sys.executable, "-c", STARTED, str(state), *words]


def ended(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(state, *words), cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
        env={"PYTHONPATH": str(ROOT / "libraries"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )  # fmt: skip


@pytest.mark.parametrize(("bisect", "code"), [((), 2), (("--bisect",), 255)])
def test_what_others_hold_is_no_commits_fault(tmp_path: Path, state: Path, bisect: Sequence[str], code: int) -> None:
    found = ended(state, "gate", *PACKAGES, *bisect, "--wait", "1 s", "--output", str(tmp_path / "out"))
    assert "is in use by another pdrgate run" in found.stdout
    assert found.returncode == code, found.stdout + found.stderr


@pytest.mark.parametrize("words", [("--bisect",), ("--wait", "1 h")])
def test_ctrl_c_while_it_waits_stops_a_bisection(tmp_path: Path, state: Path, words: Sequence[str]) -> None:
    """With --bisect it waits though nothing was said of that."""
    process = subprocess.Popen(
        command(state, "gate", *PACKAGES, *words, "--output", str(tmp_path / "out")), cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={"PYTHONPATH": str(ROOT / "libraries"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        told = ""
        while "waiting for it to end" not in told:
            line = process.stdout.readline()
            assert line, told
            told += line
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
        assert process.returncode == 130, told + rest
        assert "ERROR: interrupted" in rest
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("gate", "--kernel", "nope.deb", "--against", "linux-image-b"), 2),
        (("gate", "--kernel", "linux-image-b", "--against", "/no/vmlinuz"), 64),
        (("gate", "--kernel", "linux-image-b,vmlinux=/no/vmlinux", "--against", "linux-image-b"), 2),
        (("gate", "--bisect", "--kernel", "nope.deb", "--against", "linux-image-b"), 125),
        (("gate", "--bisect", "--kernel", "linux-image-b", "--against", "nope.deb"), 255),
        (("gate", "--bpf", "nope.o", "--against", "nope.o"), 2),
        (("bisect", "linux-image-a", "nope.deb", "linux-image-b"), 2),
        (("bisect", "--bpf", "nope.o", "nope.o"), 2),
    ],
)
def test_what_is_named_is_looked_at_before_anybody_is_waited_for(
    tmp_path: Path, state: Path, words: Sequence[str], code: int
) -> None:
    found = ended(state, *words, "--wait", "1 h", "--output", str(tmp_path / "out"))
    assert found.returncode == code, found.stdout + found.stderr
    assert "waiting for" not in found.stdout
    (line,) = found.stderr.splitlines()
    assert "no" in line
    assert not (tmp_path / "out").exists()

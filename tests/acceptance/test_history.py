"""Runs put themselves into a history; one that cannot take them costs neither a trial nor the verdict."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from made_results import scenario, written

from pdrgate.cli import main
from tests.acceptance.conftest import ROOT

SMOKE = ("--profile", "smoke")

DISK = """
import subprocess, sys
from pdrgate.cli import main
def bring(run):
    print("exit", main(["history", "import", run, "--history", "disk/runs.db"]), flush=True)
def mount(options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", "disk"], check=True)
sys.stderr = sys.stdout
mount("size=700k")
bring("small")
bring("large")
mount("remount,size=32m")
bring("large")
mount("remount,ro")
bring("small")
"""


def listed(history: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the history holds, without the head of the table."""
    capsys.readouterr()
    assert main(["history", "list", "--history", str(history)]) == 0
    return capsys.readouterr().out.splitlines()[1:]


def test_a_run_puts_itself_into_the_history(simulated_gate, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = tmp_path / "new" / "runs.db"
    ended = simulated_gate(*SMOKE, "--history", str(history))
    assert (ended.code, ended.stderr) == (0, "")
    (line,) = listed(history, capsys)
    title = ended.result["scenarios"][0]["title"]
    assert " ".join(line.split()[2:]).startswith(f"{ended.folder.name} {title} 6.1.0-simulated NO_BASELINE"), line
    with sqlite3.connect(history) as connection:
        assert connection.execute("SELECT count(*) FROM experience WHERE kind = 'noise'").fetchall() == [(1,)]
    assert main(["history", "import", str(ended.folder), "--history", str(history)]) == 0
    assert f"there already (1 result, {ended.result['scenarios'][0]['trials']} trials)" in capsys.readouterr().out


def test_a_history_that_cannot_take_it_costs_nothing(
    simulated_gate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "runs.db"
    assert main(["history", "import", str(written(tmp_path / "earlier", scenario())), "--history", str(history)]) == 0
    with sqlite3.connect(history) as connection:
        connection.execute("UPDATE pdrgate_schema SET schema = 999")
    ended = simulated_gate(*SMOKE, "--history", str(history))
    assert (ended.result["verdict"], ended.code) == ("NO_BASELINE", 0)
    assert f"\n\n{ended.headline}\n" in ended.stdout
    assert (ended.folder / "trials.jsonl").read_text().count("\n") == ended.result["scenarios"][0]["trials"]
    (line,) = ended.stderr.splitlines()
    said, _, rest = line.partition("; put it in later: pdrgate ")
    assert said == "pdrgate: the run is complete in its folder and not in the history"
    command, _, why = rest.partition(" (the history ")
    assert why.endswith("'pdrgate history import')")
    history.unlink()
    assert main(shlex.split(command)) == 0
    (line,) = listed(history, capsys)
    assert ended.folder.name in line


@pytest.fixture
def own_mounts() -> list[str]:
    """A command's begin, so that what it mounts nobody else sees, and that ends with it."""
    begin = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    if shutil.which("unshare") is None or subprocess.run([*begin, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace can be made here")
    return begin


def test_a_full_and_a_read_only_disk(own_mounts: list[str], tmp_path: Path) -> None:
    written(tmp_path / "small", scenario(), started=1.0)
    written(tmp_path / "large", scenario(), started=2.0, trials=5000)
    (tmp_path / "disk").mkdir()
    done = subprocess.run(
        [*own_mounts, sys.executable, "-c", DISK], cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=300, env={**os.environ, "PYTHONPATH": str(ROOT / "libraries")},
    )  # fmt: skip
    assert done.stderr == ""
    told = done.stdout.splitlines()
    assert told[:6] == [
        "small: added (1 result)", "exit 0",
        "pdrgate: the history disk/runs.db: database or disk is full; make room there", "exit 2",
        "large: added (1 result, 5000 trials)", "exit 0",
    ]  # fmt: skip
    assert told[6].startswith("pdrgate: the history disk/runs.db: ")
    assert told[6].endswith(": take another file, or mend its permissions")
    assert told[7:] == ["exit 2"]

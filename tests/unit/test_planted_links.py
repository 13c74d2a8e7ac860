"""Folders that a stranger has prepared: nothing is written or read through what was planted there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import robot
from made_results import compared, written

from pdrgate.cli import main
from pdrgate.gate.run.options import RunOptions

SECRET = "hunter2"
WRITTEN = (
    "summary.html", "summary.md", "xunit.xml", "log.html", "report.html", "plots", "plots/planted",
    "allure-results/environment.properties", "allurerc.json",
)  # fmt: skip
"""Files and folders that a report makes."""


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "root's"
    folder.mkdir()
    (folder / "secret").write_text(SECRET)
    return folder


def ran(folder: Path) -> Path:
    """The folder of a run with all that a run leaves."""
    made = written(folder, compared())
    suite = folder.parent / "a.robot"
    suite.write_text("*** Test Cases ***\nOne\n    Fail    REGRESSION: slower\n")
    robot.run(str(suite), outputdir=str(made), log=None, report=None, console="none", stdout=None)
    (made / "allure-results").mkdir()
    (made / "allure-results/1-result.json").write_text(json.dumps({"name": "One", "start": 1, "attachments": []}))
    return made


def untouched(victim: Path) -> bool:
    return [path.name for path in victim.iterdir()] == ["secret"] and (victim / "secret").read_text() == SECRET


def texts(folder: Path) -> str:
    """All that can be read of a folder without following a link."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return "".join(path.read_bytes().decode(errors="replace") for path in files)


@pytest.mark.parametrize("part", ["", ".part"], ids=["in its place", "in place of its part"])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_report_is_not_written_through_a_link(
    tmp_path: Path, victim: Path, name: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ran(tmp_path / "run")
    planted = folder / f"{name}{part}"
    planted.parent.mkdir(exist_ok=True)
    planted.symlink_to(victim if name == "plots" else victim / "secret")
    code = main(["report", str(folder)])
    assert untouched(victim)
    assert code == (2 if planted == folder / "plots" else 0)
    assert SECRET not in texts(folder)
    if code:
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(f"{folder}/plots is a link; name the folder itself")


@pytest.mark.parametrize(
    "name", ["result.json", "output.xml", "trials.jsonl", "xunit.xml", "allure-results/1-result.json", "consoles/1.log"]
)
@pytest.mark.parametrize("kind", ["a link", "a FIFO", "a device"])
def test_a_report_does_not_read_what_was_planted(
    tmp_path: Path, victim: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ran(tmp_path / "run")
    planted = folder / name
    planted.parent.mkdir(exist_ok=True)
    planted.unlink(missing_ok=True)
    plant: dict[str, Callable[[], object]] = {
        "a link": lambda: planted.symlink_to(victim / "secret"),
        "a FIFO": lambda: os.mkfifo(planted),
        "a device": lambda: planted.symlink_to("/dev/zero"),
    }
    plant[kind]()
    code = main(["report", str(folder)])
    assert code == (2 if name == "result.json" else 0)
    assert SECRET not in texts(folder) + "".join(capsys.readouterr())
    assert untouched(victim)


def test_a_run_behind_a_link_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(tmp_path / "real/run")
    (tmp_path / "runs").symlink_to("real")
    before = sorted(tmp_path.rglob("*"))
    assert main(["report", str(tmp_path / "runs/run")]) == 2
    assert f"{tmp_path}/runs is a link; name the folder itself" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_latest_is_the_run_beside_it_and_no_other_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ran(tmp_path / "results/20261101-120000")
    latest = folder.with_name("latest")
    for target, code in (("20261101-120000", 0), ("../elsewhere", 2), ("..", 2), (str(folder), 2)):
        latest.unlink(missing_ok=True)
        latest.symlink_to(target)
        assert main(["report", str(latest), "--format", "sentence"]) == code, target
    assert capsys.readouterr().out == "PASS: because, on IPv6 routing\n"


class TestMerge:
    @pytest.mark.parametrize("name", ["", "plots", "merged.json", "summary.md.part", "xunit.xml", "plots/x.png"])
    def test_it_does_not_write_through_a_link(self, tmp_path: Path, victim: Path, name: str) -> None:
        run, into = ran(tmp_path / "gates/a"), tmp_path / "merged"
        planted = into / name if name else into
        planted.parent.mkdir(parents=True, exist_ok=True)
        planted.symlink_to(victim if name in ("", "plots") else victim / "secret")
        code = main(["merge", str(run), "--into", str(into)])
        assert (code, untouched(victim)) == (2 if name in ("", "plots") else 0, True)

    @pytest.mark.parametrize("link", ["gates", "gates/a", "gates/a/result.json"])
    def test_a_run_behind_a_link_is_an_error_of_its_own(
        self, tmp_path: Path, link: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ran(tmp_path / "gates/a")
        ran(tmp_path / "gates/b")
        (tmp_path / link).rename(tmp_path / "elsewhere")
        (tmp_path / link).symlink_to(tmp_path / "elsewhere")
        runs = [str(tmp_path / f"gates/{name}") for name in ("a", "b")]
        assert main(["merge", *runs, "--into", str(tmp_path / "merged")]) == 2
        assert capsys.readouterr().out.startswith("ERROR: ")

    @pytest.mark.parametrize("name", ["verdict.txt", "xunit.xml"])
    def test_it_repeats_nothing_of_a_file_of_roots(
        self, tmp_path: Path, victim: Path, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = tmp_path / "gates/a"
        if name == "verdict.txt":
            folder.mkdir(parents=True)
        else:
            ran(folder)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(victim / "secret")
        main(["merge", str(folder), "--into", str(tmp_path / "merged")])
        assert SECRET not in texts(tmp_path / "merged") + "".join(capsys.readouterr())


class TestGate:
    @pytest.mark.parametrize("link", ["results", "parent"])
    def test_its_runs_do_not_go_behind_a_link(
        self,
        tmp_path: Path,
        victim: Path,
        link: str,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path(link).symlink_to(victim)
        output = "results" if link == "results" else "parent/results"
        assert main(["gate", "--testbed", "resources/testbeds/local-netns.yaml", "--output", output]) == 2
        assert f"{link} is a link; name the folder itself" in capsys.readouterr().err
        assert untouched(victim)

    @pytest.mark.parametrize("name", ["output.xml", "trials.jsonl", "plots", "allure-results/x", "run.json"])
    def test_a_handed_over_run_with_a_link_is_not_resumed(
        self, tmp_path: Path, victim: Path, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = tmp_path / "run"
        RunOptions(testbed=Path("resources/testbeds/local-netns.yaml")).keep(folder)
        planted = folder / name
        planted.parent.mkdir(exist_ok=True)
        if planted.exists():
            shutil.move(planted, victim.parent / "moved")
        planted.symlink_to(victim / "secret" if name != "run.json" else victim.parent / "moved")
        assert main(["gate", "--resume", str(folder)]) == 2
        assert f"{planted} is a link, or no plain file, and no run leaves one" in capsys.readouterr().err
        assert untouched(victim)


@pytest.mark.parametrize("plant", [lambda path, secret: path.symlink_to(secret), lambda path, secret: os.mkfifo(path)])
def test_settings_of_pictures_in_the_working_directory_are_not_read(
    tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root secret\naxes.labelsize: 77\n")
    plant(tmp_path / "matplotlibrc", secret)
    seen = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "libraries")}
    script = "import os, pdrgate.reports.plots, matplotlib as m; print(m.rcParams, os.getcwd())"
    told = subprocess.run(
        (sys.executable, "-c", script), cwd=tmp_path, env=seen, capture_output=True, text=True, check=True, timeout=120
    )
    assert "secret" not in told.stderr
    assert "axes.labelsize: medium" in told.stdout
    assert told.stdout.endswith(f"{tmp_path}\n")

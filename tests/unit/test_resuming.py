"""`gate --resume`: a run that was begun here goes on by itself, and a stranger's runs no command of its own."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pdrgate.cli import gate as gate_command
from pdrgate.cli import main
from pdrgate.gate.run.declaration import declarations
from pdrgate.gate.run.options import OPTIONS_FILE, RunOptions
from pdrgate.history.address import Address
from pdrgate.history.seal import is_sealed, seal
from pdrgate.launch import resumed_options
from pdrgate.this_process.cache import cache_folder
from pdrgate.this_process.own_files import PACKAGE, beside_own, found, is_own
from pdrgate.values.errors import UsageError

NETNS = Path("resources/testbeds/local-netns.yaml")
PLANTED = {
    "suites": (Path("robot/gate"), Path("evil.robot")),
    "testbed": Path("evil.yaml"),
    "scenario_file": Path("evil.yaml"),
    "project": Path("evil.yaml"),
    "maps": Path("evil.yaml"),
    "rodata": ("evil.yaml",),
    "history": Address.parse("/etc/evil.db"),
    "bpf": "evil.o",
    "replaces": "evil.o:x/y",
}
"""A value of each option that is run or written as root."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def begun(folder: Path, **options: object) -> Path:
    RunOptions(**{"testbed": NETNS} | options).keep(folder)  # type: ignore[arg-type]
    return folder


def handed_over(folder: Path, **options: object) -> Path:
    """The same as an artifact: another folder, or a folder of another machine."""
    begun(folder, **options)
    (folder / f"{OPTIONS_FILE}.seal").unlink()
    return folder


def test_each_option_that_names_commands_is_tried() -> None:
    named = {name for name, one in declarations(RunOptions).items() if one.said.commands}
    assert named == {*PLANTED, "against"}


@pytest.mark.parametrize("name", PLANTED)
class TestOptionOfAStranger:
    def test_it_is_refused_in_one_line_that_says_what_to_do(
        self, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = handed_over(tmp_path / "run", **{name: PLANTED[name]})
        assert main(["gate", "--resume", str(folder)]) == 64
        (line,) = capsys.readouterr().err.splitlines()
        assert "was not begun here, and its run.json names what would be run or written" in line
        assert (option := declarations(RunOptions)[name].option) in line
        assert re.search(rf"--resume {folder} {option}[ =]\S*evil", line)

    def test_it_is_taken_where_the_command_names_it_too(self, name: str, tmp_path: Path) -> None:
        folder = handed_over(tmp_path / "run", **{name: PLANTED[name]})
        options = resumed_options(folder, {name: PLANTED[name]}, {name: "--x"})
        assert getattr(options, name) == PLANTED[name]

    def test_it_is_taken_of_a_run_that_was_begun_here(self, name: str, tmp_path: Path) -> None:
        folder = begun(tmp_path / "run", **{name: PLANTED[name]})
        assert getattr(resumed_options(folder, {}, {}), name) == PLANTED[name]

    def test_another_value_than_the_runs_is_refused(self, name: str, tmp_path: Path) -> None:
        folder = begun(tmp_path / "run")
        with pytest.raises(UsageError, match=r"^--x: the run in .* was made with another; name that, or start a new"):
            resumed_options(folder, {name: PLANTED[name]}, {name: "--x"})


def test_a_strangers_run_of_our_own_suites_goes_on(tmp_path: Path) -> None:
    folder = handed_over(
        tmp_path / "results/run",
        kernel="a.deb",
        against="b.deb",
        history=Address(file=Path("results/history.db")),
        profile="smoke",
    )
    assert resumed_options(folder, {"history": Address.beside(folder.parent)}, {}).profile == "smoke"


class TestSeal:
    @pytest.mark.parametrize(
        "change",
        [
            lambda folder: (folder / OPTIONS_FILE).write_text((folder / OPTIONS_FILE).read_text().replace("25", "26")),
            lambda folder: (folder / f"{OPTIONS_FILE}.seal").write_text("0" * 64),
            lambda folder: (folder / f"{OPTIONS_FILE}.seal").unlink(),
            lambda folder: (cache_folder() / "seal.key").unlink(),
            lambda folder: (cache_folder() / "seal.key").chmod(0o644),
            lambda folder: (cache_folder() / "seal.key").write_bytes(b""),
            lambda folder: os.chown(cache_folder() / "seal.key", 65534, -1),
        ],
        ids=["options", "seal", "no seal", "no key", "a key that others read", "an empty key", "a key of somebody's"],
    )  # fmt: skip
    def test_a_run_is_ours_until_something_changes(self, tmp_path: Path, change: Callable[[Path], object]) -> None:
        if os.geteuid() != 0:
            pytest.skip("gives a file to somebody else")
        folder = begun(tmp_path / "run", boots=25)
        assert is_sealed(folder / OPTIONS_FILE)
        change(folder)
        assert not is_sealed(folder / OPTIONS_FILE)

    def test_a_run_elsewhere_is_not_ours(self, tmp_path: Path) -> None:
        shutil.copytree(begun(tmp_path / "run"), tmp_path / "copy")
        assert not is_sealed(tmp_path / "copy" / OPTIONS_FILE)

    def test_a_cache_that_cannot_be_written_seals_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "cache").write_text("")
        folder = begun(tmp_path / "run")
        seal(folder / OPTIONS_FILE)
        assert [path.name for path in folder.iterdir()] == [OPTIONS_FILE]


class TestOwnFiles:
    """A workspace once had its own `robot/gate` in place of ours: a change could bring suites, which root then ran."""

    @pytest.fixture
    def planted(self, tmp_path: Path) -> Path:
        for name in ("robot/gate/evil.robot", "resources/testbeds/steady-guest.yaml", "resources/testbeds/mine.yaml"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("planted")
        return tmp_path

    @pytest.mark.usefixtures("planted")
    def test_defaults_are_ours_wherever_we_are_called(self) -> None:
        assert [found(suite) for suite in declarations(RunOptions)["suites"].default] == [PACKAGE / "robot/gate"]
        assert found(Path("resources/testbeds/steady-guest.yaml")).read_text() != "planted"
        assert found(Path("resources/testbeds/mine.yaml")).read_text() == "planted"
        assert not is_own(Path("resources/testbeds/mine.yaml"))
        assert is_own(Path("robot/gate"))
        assert not is_own(Path("robot/../../../etc/passwd"))

    def test_what_somebody_types_is_what_is_there(self, planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: dict[str, object] = {}

        def stop(**given: object) -> RunOptions:
            asked.update(given)
            raise UsageError("enough")

        monkeypatch.setattr(gate_command, "_asked", stop)
        main(["gate", "--suite", "robot/gate", "--testbed", "resources/testbeds/steady-guest.yaml"])
        assert asked["suites"] == (planted / "robot/gate",)
        assert asked["testbed"] == planted / "resources/testbeds/steady-guest.yaml"
        asked.clear()
        main(["gate"])
        assert "suites" not in asked
        assert not Path(str(asked["testbed"])).is_absolute()

    def test_of_a_checkout_both_are_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(Path(__file__).parents[2])
        assert beside_own(Path("robot/gate")) == Path("robot/gate")


def test_options_that_name_no_commands_are_left_out_as_ever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = begun(tmp_path / "run")
    assert main(["gate", "--resume", str(folder), "--set", "boots=9"]) == 64
    assert "--resume takes the options of the run that it continues; leave out --set boots" in capsys.readouterr().err
    assert (
        json.loads((folder / OPTIONS_FILE).read_text())["boots"] == dataclasses.replace(RunOptions(testbed=NETNS)).boots
    )

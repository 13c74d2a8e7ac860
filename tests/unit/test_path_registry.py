"""Data paths say all of themselves: a file is found by being there, and no other module knows a path by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import pdrgate
from pdrgate.data_paths import paths
from pdrgate.data_paths.catalogue import DATA_PATHS, Hop, PathDescription, _found, data_path
from pdrgate.data_paths.steps import Command, Step, SteppedPath
from pdrgate.gate.run.scenario import Scenario
from pdrgate.hosts.host import CommandError, Completed
from pdrgate.keywords.describing import ScenarioKeywords
from pdrgate.values.errors import TestbedError

SOURCES = Path(pdrgate.__file__).parent
ROOT = SOURCES.parents[1]
each = pytest.mark.parametrize("path", DATA_PATHS.values(), ids=lambda path: path.name)

A_PATH = """\
from pdrgate.data_paths.path_description import PathDescription
from pdrgate.data_paths.paths.kernel_routing import Routing
from pdrgate.traffic.frames import Frames

PATHS = (PathDescription("a-bridge", "a bridge", "It switches.", lambda asked: Routing(4), Frames(4)),)
"""


def test_a_path_is_there_once_its_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.name for one in _found()] == list(DATA_PATHS)  # no name twice
    (tmp_path / "switching.py").write_text(A_PATH)
    monkeypatch.setattr(paths, "__path__", [*paths.__path__, str(tmp_path)])
    added = next(one for one in _found() if one.name not in DATA_PATHS)
    monkeypatch.setitem(DATA_PATHS, added.name, added)
    scenario = Scenario(added.name)
    assert scenario.title.startswith("a bridge, 1 cpu, ")
    assert (scenario.frames.family, scenario.delivery, scenario.streams) == (4, None, None)
    assert data_path(added.name).family == 4


@each
def test_what_is_said_of_a_path_stands_where_people_look(path: PathDescription) -> None:
    document = ScenarioKeywords.set_data_path.__doc__ or ""
    assert f"| ``{path.name}`` | {path.help} |" in document.splitlines()
    assert path.help.endswith(".")
    assert path.fate == "forwarded" or path.delivers != path.transfers


@each
def test_no_module_knows_a_path_by_its_name(path: PathDescription) -> None:
    """But for the one that a scenario, a command or the doctor takes where nobody said which."""
    usual = Scenario().data_path
    knowing = {
        str(file.relative_to(SOURCES))
        for file in SOURCES.rglob("*.py")
        if file.parent.name != "paths" and re.search(rf"""["']{path.name}\b""", file.read_text())
    }
    choosing = {"gate/run/scenario.py", "doctor/traffic.py"}
    assert knowing == (choosing if path.name == usual else set())


class Recorded:
    """A step that only notes what is asked of it."""

    def __init__(self, name: str, log: list[str], fails: str = "") -> None:
        self._name, self._log, self._fails = name, log, fails

    def _note(self, what: str) -> None:
        self._log.append(f"{what} {self._name}")
        if what == self._fails:
            raise TestbedError(f"{self._name} does not {what}")

    def apply(self) -> None:
        self._note("apply")

    def read_back(self) -> None:
        self._note("read back")

    def undo(self) -> Sequence[str]:
        self._note("undo")
        return ()


class OfSteps(SteppedPath):
    """A path of such steps."""

    def __init__(self, *fails: str) -> None:
        super().__init__("a-path", 4)
        self.log: list[str] = []
        self._fails = fails

    def sentence(self) -> str:
        return "nothing"

    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        for name, fails in zip("abc", self._fails, strict=True):
            yield Recorded(name, self.log, fails)


def test_steps_are_read_back_once_all_are_applied_and_undone_the_last_one_first() -> None:
    path = OfSteps("", "", "")
    path.apply(())
    assert path.restore() == path.restore() == []
    assert path.log == [f"{what} {name}" for what in ("apply", "read back") for name in "abc"] + [
        "undo c", "undo b", "undo a",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fails", "log"),
    [
        (("", "apply", ""), ["apply a", "apply b", "undo b", "undo a"]),
        (("read back", "", ""), ["apply a", "apply b", "apply c", "read back a", "undo c", "undo b", "undo a"]),
    ],
)
def test_a_step_that_fails_half_way_is_undone_as_well(fails: Any, log: list[str]) -> None:
    path = OfSteps(*fails)
    with pytest.raises(TestbedError, match="does not"):
        path.apply(())
    assert path.restore() == []
    assert path.log == log


class Refusing:
    """A host that takes no command."""

    name = "sut"

    def run(self, *words: str) -> Completed:
        raise CommandError(self.name, f"`{' '.join(words)}`", Completed(words, 2, "", "Error: Unknown device type."))


def test_a_command_tells_what_it_needs_of_a_kernel() -> None:
    needing = Command(Refusing(), ("ip", "link", "add"), ("ip", "link", "delete"), needs="CONFIG_VLAN_8021Q")  # type: ignore[arg-type]
    with pytest.raises(TestbedError, match=r"Unknown device type\.; has its kernel CONFIG_VLAN_8021Q\?$"):
        needing.apply()
    assert not needing.undo()  # nothing was done


def test_what_cannot_be_undone_is_told_and_keeps_nothing_else_from_it() -> None:
    path = OfSteps("undo", "", "undo")
    path.apply(())
    assert path.restore() == ["c does not undo", "a does not undo"]
    assert path.log[-3:] == ["undo c", "undo b", "undo a"]

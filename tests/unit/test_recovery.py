"""Journals that are damaged: told by name, in one line, and in nobody else's way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pdrgate.cli import main
from pdrgate.safety.recovery import NotUndone, living, recover_stale
from pdrgate.safety.state_folder import boot_id

DEAD = {"journal": 1, "pid": 4_000_000, "start": 1, "held": []}
"""No process has such a number."""


def head(**changes: Any) -> dict[str, Any]:
    return DEAD | {"boot": boot_id()} | changes


def journal(state: Path, name: str, *lines: object) -> Path:
    state.mkdir(exist_ok=True)
    path = state / f"run-{name}.jsonl"
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines))
    return path


def change(target: Path, number: int = 1, **changes: Any) -> dict[str, Any]:
    knob = {"kind": "file", "path": str(target), "form": "plain"}
    return {"change": number, "host": "local", "knob": knob, "old": "was", "new": "is", **changes}


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([head(held=[["cpu"]])], "is damaged: its first line does not name its owner"),
        ([head(held=5)], "is damaged: its first line does not name its owner"),
        ([head(held=[[["cpu"], "1"]])], "is damaged: its first line does not name its owner"),
        ([head(pid="x")], "is damaged: its first line does not name its owner"),
        ([DEAD], "is damaged: its first line does not name its owner"),
        ([head(), "[" * 100_000], "unreadable lines in "),
        (["[" * 100_000], "unreadable lines in "),
        ([head(), {"change": [1]}], "unreadable lines in "),
        ([head(), {"undone": {}}], "unreadable lines in "),
        ([head(), {"change": 1}, {"change": 2}], 'could not undo {"change": 2} of the killed run of pid 4000000: '),
        ([head(), {"change": 1, "knob": 1}, {"change": 2, "host": 5}], 'could not undo {"change": 2, "host": 5} of '),
        ([head(), change(Path("x"), knob={"kind": "file", "path": 5})], "could not undo "),
        ([head(journal=2, held=5, pid=[])], "is of another version of pdrgate and was not undone"),
    ],
)
def test_a_damaged_journal_is_told_and_keeps_none_from_being_undone(
    tmp_path: Path, lines: list[object], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It once was an internal error, of `pdrgate restore` and of each later run on the machine."""
    state, target = tmp_path / "state", tmp_path / "target"
    target.write_text("is")
    damaged = journal(state, "1-2-3", *lines)
    journal(state, "4-5-6", head(), change(target))
    assert living(state).owners == frozenset()
    assert main(["restore", "--state", str(state)]) == 2
    told = capsys.readouterr().out.splitlines()
    assert target.read_text().strip() == "was"
    assert [line for line in told if "put back" in line]
    (line,) = (line for line in told if says in line)
    if "could not undo" not in says:
        assert str(damaged) in line


def test_what_a_damaged_journal_notes_waits_for_a_person(tmp_path: Path) -> None:
    state, target = tmp_path / "state", tmp_path / "target"
    target.write_text("is")
    damaged = journal(state, "1-2-3", head(held=[["cpu"]]), change(target))
    for _ in range(2):
        (told,) = recover_stale(state)
        assert isinstance(told, NotUndone)
        assert told.endswith("what it notes was not undone, remove it by hand once nothing of that run is left")
    assert target.read_text() == "is"
    assert damaged.exists()

"""How long several paths take: by the runs of a history before they begin, and by those that have ended after that."""

from __future__ import annotations

from pathlib import Path

import pytest
from flat_values import changed
from made_results import compared, written

from pdrgate.gate.run.options import RunOptions
from pdrgate.history.address import Address
from pdrgate.history.database.connection import Database
from pdrgate.history.database.importing import add
from pdrgate.launch.running import expected_time
from pdrgate.reports.words.durations import about, time_left


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (20, "less than a minute"), (60, "about 1 min"), (2400, "about 40 min"), (3600, "about 1 h"),
        (7900, "about 2 h 10 min"),
    ],
)  # fmt: skip
def test_a_time_is_said_as_people_say_it(seconds: float, words: str) -> None:
    assert about(seconds) == words


def test_what_is_left_goes_by_what_has_ended() -> None:
    assert time_left(600, 10, 72) == "about 1 h left"
    assert time_left(600, 72, 72) == time_left(0, 0, 72) == ""


def options(where: Address, tmp_path: Path) -> RunOptions:
    return RunOptions(
        testbed=tmp_path / "local-netns.yaml", kernel="a", against="b", history=where,
        scenarios=("path-nat", "path-bridge"),
    )  # fmt: skip


def test_runs_of_a_history_say_how_long_paths_take(tmp_path: Path) -> None:
    where = Address(file=tmp_path / "history.db")
    asked = options(where, tmp_path)
    assert expected_time(asked) == "2 paths; how long they take is known once the first one has ended"
    for day in (1, 2):
        paths = [changed(compared("PASS"), name=f"path-{number}") for number in range(4)]
        folder = written(tmp_path / str(day), *paths, started=1000.0 * day)
        with Database.open(where, create=True) as history, history.writing() as connection:
            add(connection, folder)
    # A made run takes a second for its four paths.
    assert expected_time(asked) == "2 paths, less than a minute by the last 2 runs"


def test_of_a_single_path_nothing_is_said(tmp_path: Path) -> None:
    where = Address(file=tmp_path / "history.db")
    assert expected_time(RunOptions(testbed=tmp_path, kernel="a", against="b", scenarios=("path-nat",))) == ""
    assert not where.file or not where.file.exists()

"""The files of the portfolio: the path that each is, its rank, the reason why it is there, and a fault that is seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from robot.api import TestSuite

from pdrgate.this_process.own_files import found
from pdrgate.values.errors import UsageError

PATHS = Path("robot/gate/portfolio")
_TAG = "path-"
_RANKS = ("primary", "secondary")


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of a path's set-up that makes its packets cost more."""

    steps: tuple[str, ...]
    """Steps behind the path's own, as `Set Up SUT` takes them."""
    seen_in: str
    """A regular expression for the functions that take more instructions then."""


@dataclass(frozen=True, slots=True)
class PathFile:
    """What a path's file says of it beside its steps and its traffic."""

    file: Path
    title: str
    """The name of its test."""
    about: str
    tag: str
    rank: Literal["primary", "secondary"]
    """Whether it stands for a kind of path, or is a variation of one."""
    why: str
    """What it stands for, and what it exercises that no other path does."""
    fault: Fault | None
    """None: a closed loop, or a program; tests of their own make these slower."""


def path_files() -> list[PathFile]:
    """The paths of the portfolio, by the names of their files. Raises UsageError where a file lacks its metadata."""
    whole = TestSuite.from_file_system(str(found(PATHS)))
    return [_path(suite) for suite in sorted(whole.suites, key=lambda suite: suite.source.name)]


def _path(suite: TestSuite) -> PathFile:
    known = {name: str(value) for name, value in suite.metadata.items()}
    for name in ("Rank", "Why"):
        if name not in known:
            raise UsageError(f"{suite.source}: a path says why it is there; add its metadata {name}")
    if known["Rank"] not in _RANKS:
        raise UsageError(f"{suite.source}: a path's rank is {' or '.join(_RANKS)}, and not {known['Rank']}")
    tests = [(test, tag) for test in suite.tests for tag in test.tags if tag.startswith(_TAG)]
    if len(tests) != 1:
        raise UsageError(f"{suite.source}: a path has one test with a tag {_TAG}NAME, and this file has {len(tests)}")
    (test, tag), fault = tests[0], known.get("Fault")
    return PathFile(
        file=suite.source, title=test.name, about=suite.doc, tag=tag,
        rank=known["Rank"],  # type: ignore[arg-type]  # it is one of the two
        why=" ".join(known["Why"].split()),
        fault=None if fault is None else Fault(tuple(_steps(fault)), known["Seen In"]),
    )  # fmt: skip


def _steps(text: str) -> Iterator[str]:
    """The lines of the metadata."""
    yield from (line.strip() for line in text.splitlines() if line.strip())

"""A part of the tests that are asked for: several jobs measure a portfolio together, and their results are merged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from robot.api import SuiteVisitor, TestSuite

from pdrgate.gate.run.options import RunOptions
from pdrgate.launch.drawn_order import PORTFOLIO
from pdrgate.launch.suites import RUN_NAME, Listed, listed
from pdrgate.values.errors import UsageError

_WORDS = re.compile(r"([1-9]\d{0,3})/([1-9]\d{0,3})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts."""

    number: int
    """Which of the parts it is, counted from 1."""
    of: int

    @classmethod
    def parse(cls, words: str) -> Self:
        """Read ``2/4``. Raises UsageError."""
        found = _WORDS.fullmatch(words)
        if found is None or int(found[1]) > int(found[2]):
            raise UsageError(f"--shard {words}: name a part of how many, such as 2/4")
        return cls(int(found[1]), int(found[2]))

    def tests(self, asked: Sequence[Listed]) -> frozenset[str]:
        """The long names of the tests of this part, the same wherever the same tests are asked for.

        Paths are dealt out in the order of their names, in which paths of a kind stand together, so that parts take
        about as long. Tests of no path belong to each part: they look at what was measured there.
        """
        if self.of == 1:
            return frozenset(one.longname for one in asked)
        paths = sorted(one.longname for one in asked if _is_path(one))
        mine = paths[self.number - 1 :: self.of]
        if not mine:
            raise UsageError(
                f"--shard {self.number}/{self.of}: there are {len(paths)} paths to share; ask for fewer parts"
            )
        return frozenset(mine) | frozenset(one.longname for one in asked if not _is_path(one))


def _is_path(test: Listed) -> bool:
    """Whether the test lies in the folder of the portfolio: others have its tag that look at what was measured."""
    return f".{PORTFOLIO.capitalize()}." in test.longname


def shard_of(options: RunOptions) -> frozenset[str]:
    """The long names of the tests that a run measures of those that it is asked for. Raises UsageError."""
    asked = listed(options.suites, options.patterns)
    if not options.shard:
        return frozenset(one.longname for one in asked)
    return Shard.parse(options.shard).tests(asked)


class OnlyTests(SuiteVisitor):  # type: ignore[misc]  # Robot has no types of it
    """Takes all tests away but some.

    Args:
        names: the long names of those that stay.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self._names = {_below(RUN_NAME, name) for name in names}
        self._top = ""
        """The topmost suite's name, which Robot replaces only later."""

    def start_suite(self, suite: TestSuite) -> None:
        """Called by Robot for each suite, before the suites below it."""
        self._top = suite.full_name if suite.parent is None else self._top
        suite.tests = [one for one in suite.tests if _below(self._top, one.full_name) in self._names]

    def end_suite(self, suite: TestSuite) -> None:
        """Called by Robot for each suite, after the suites below it."""
        suite.suites = [one for one in suite.suites if one.test_count]


def _below(top: str, longname: str) -> str:
    """A long name without that of the topmost suite."""
    return longname.removeprefix(f"{top}.")

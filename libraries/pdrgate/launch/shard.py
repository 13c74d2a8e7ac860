"""Which tests of a portfolio a run measures, and in which order.

Several jobs measure a portfolio together, each a part of it, and their results are merged. Each run has another order,
so that no path has a place.
"""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from robot.api import SuiteVisitor, TestSuite

from pdrgate.gate.run.options import RunOptions
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
        paths = sorted(one.longname for one in asked if is_of_a_path(one))
        mine = paths[self.number - 1 :: self.of]
        if not mine:
            raise UsageError(
                f"--shard {self.number}/{self.of}: there are {len(paths)} paths to share; ask for fewer parts"
            )
        return frozenset(mine) | frozenset(one.longname for one in asked if not is_of_a_path(one))


def is_of_a_path(test: Listed) -> bool:
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


PORTFOLIO = "portfolio"
"""The folder of suites whose order is drawn, and the tag of its tests."""
_SEEDS = 1_000_000


def new_order() -> int:
    """A number that an order is drawn by."""
    return secrets.randbelow(_SEEDS)


class DrawnOrder(SuiteVisitor):  # type: ignore[misc]  # Robot has no types of it
    """Puts the suites of the portfolio into the order that a number draws; all others stay where they are.

    Args:
        first: the place of a path, by the name of its test, where some go before others; paths of one place are drawn.
    """

    def __init__(self, order: int, first: Mapping[str, int] | None = None) -> None:
        self._order = order
        self._first = first or {}

    def start_suite(self, suite: TestSuite) -> None:
        """Called by Robot for each suite, before the suites below it."""
        if suite.name.lower() != PORTFOLIO:
            return
        below = sorted(suite.suites, key=lambda one: str(one.name))
        random.Random(self._order).shuffle(below)
        below.sort(key=lambda one: min((self._first.get(str(test.name), 0) for test in one.tests), default=0))
        suite.suites = below
        suite.metadata["Order"] = f"drawn; once more by --set order={self._order}"

"""The order in which the paths of a portfolio are measured: another one in each run, so that none has a place."""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping

from robot.api import SuiteVisitor, TestSuite

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

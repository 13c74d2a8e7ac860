"""A failed test is somebody's fault: what a suite asserts may fail because of the build, all else may not."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from typing import Any

from pdrgate.reports.words.headline import scenario_in_lines
from pdrgate.results.model import ScenarioResult

STOPPED = "Execution terminated by signal"
"""What Robot says of what Ctrl-C or SIGTERM has ended."""


class CheckError(AssertionError):
    """A getter's assertion failed. Robot's message of it does not begin with this name."""

    ROBOT_SUPPRESS_NAME = True


def verdict_failure(scenario: ScenarioResult) -> AssertionError:
    """What a keyword fails with by the verdict of a scenario: the headline is its first line."""
    return AssertionError(scenario_in_lines(scenario))


def is_assertion(implementation: Any) -> bool:
    """Whether a library keyword failed by what it asserts, asked by a listener at the keyword's end.

    A keyword that never came to assert (an expression that is none, too few arguments, a variable that is not there)
    fails as well, and Robot's result shows no difference. The exception does: listeners are called while it is handled.
    """
    error = sys.exception()
    if isinstance(error, CheckError):
        return True
    asserts = implementation.owner.name == "BuiltIn" and implementation.name.startswith("Should ")
    return asserts and isinstance(error, AssertionError)


def failed_by(test: Any, assertions: Collection[Any]) -> bool:
    """Whether a test failed by nothing but assertions.

    Args:
        test: Robot's result.
        assertions: the results of keywords that `is_assertion` is true of.
    """
    # What a test caught has failed as well, and is no part of its message.
    why = [one for one in _origins(test) if one.message in test.message]
    return bool(why) and all(any(one is other for other in assertions) for one in why)


def _origins(result: Any) -> Iterator[Any]:
    """What failed in a result, and not for something in it that failed."""
    parts = [
        *([result.setup] if getattr(result, "has_setup", False) else []),
        *getattr(result, "body", ()),
        *([result.teardown] if getattr(result, "has_teardown", False) else []),
    ]
    for part in parts:
        if getattr(part, "failed", False):  # messages are parts, too
            inner = list(_origins(part))
            yield from inner or [part]

"""Why the first test failed, as Robot knows it: a run that leaves no result has nobody else to ask."""

from __future__ import annotations

from typing import Any


class FirstFailure:
    """A listener of Robot that keeps the message of the first test that failed."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        self.sentence = ""
        """The first line of the message; empty where no test failed."""

    def end_suite(self, data: object, result: Any) -> None:
        """Called by Robot after each suite: the library fails a test that has ended when its result cannot be kept."""
        failed = (test for test in result.tests if test.failed)
        if not self.sentence and (first := next(failed, None)) is not None:
            told = (line for line in first.message.splitlines() if not line.endswith("setup failed:"))
            self.sentence = next(told, "").rstrip(".")

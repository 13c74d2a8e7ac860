"""Why the first test failed, as Robot knows it: a run that leaves no result has nobody else to ask."""

from __future__ import annotations

from typing import Any


class FirstFailure:
    """A listener of Robot that keeps the message of the first test that failed."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        self.sentence = ""
        """The first line of the message; empty where no test failed."""

    def end_test(self, data: object, result: Any) -> None:
        """Called by Robot after each test."""
        if result.failed and not self.sentence:
            self.sentence = next(iter(result.message.splitlines()), "").rstrip(".")

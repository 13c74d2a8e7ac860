"""Ctrl-C, from the moment at which Robot is started: what was changed is put back, and nothing but pdrgate speaks."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_FIRST = "pdrgate: stopping: what was changed is put back first; a second Ctrl-C ends it at once\n"
_SECOND = "pdrgate: ended at once; the next start puts back what was changed, and so does: sudo pdrgate restore\n"

_Handler = Callable[[int, FrameType | None], object]


@contextlib.contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """A stretch of code in which SIGTERM does what Ctrl-C does: a KeyboardInterrupt is raised."""
    with _answered(signal.SIGTERM, by=signal.default_int_handler):
        yield


@contextlib.contextmanager
def _answered(*numbers: int, by: _Handler) -> Iterator[None]:
    """Have signals answered otherwise for a while."""
    before = {number: signal.signal(number, by) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class StoppedError(BaseException):
    """Somebody stops the run before Robot runs a suite, or after; like KeyboardInterrupt, which Robot would tell of."""


class Stopping:
    """A listener of Robot that answers the signals in its place, and has it do what it does at one.

    Robot takes the signals when it begins with the suites, so they are taken from it when the first of them begins. It
    puts back what was there before when it is through.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        self.count = 0
        """Of signals so far."""
        self._robots: dict[int, _Handler] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """A stretch of code that a signal leaves by StoppedError, but for the suites, which end in order."""
        with _answered(*_SIGNALS, by=self._outside):
            yield

    def start_suite(self, data: object, result: object) -> None:
        """Called by Robot for each suite."""
        if self._robots:
            return
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._robots[number] = handler
                signal.signal(number, self._inside)

    def _outside(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        raise StoppedError

    def _inside(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        with contextlib.suppress(OSError):
            # Not by a stream: one of them may be what is interrupted.
            os.write(2, (_FIRST if self.count == 1 else _SECOND).encode())
        stderr, sys.__stderr__ = sys.__stderr__, None  # type: ignore[misc]  # where Robot tells of a signal
        try:
            self._robots[number](number, frame)
        finally:
            sys.__stderr__ = stderr  # type: ignore[misc]

"""What listens to a run of Robot's: signals, on which what was changed is put back, and why the first test failed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from pdrgate.this_process.interruption import ECHOES_WITHIN, Handler, Heard, answered

_FIRST = "pdrgate: stopping{why}: what was changed is put back first; a second {again} ends it at once\n"
_SECOND = "pdrgate: ended at once; the next start puts back what was changed, and so does: sudo pdrgate restore\n"


class StoppedError(BaseException):
    """Somebody stops the run before Robot runs a suite, or after its last one.

    It is no Exception, as KeyboardInterrupt is none. Robot would print a message of its own for a KeyboardInterrupt.
    """


class Stopping:
    """A listener of Robot that answers the signals in its place, and has it do what it does at one.

    Robot takes two of the signals before it begins with the suites, so they are taken from it as soon as it asks its
    listeners anything. It puts back what was there before when it is through.
    """

    def __init__(self) -> None:
        self.heard = Heard()
        self._robots: Handler | None = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """A stretch of code that a signal leaves by StoppedError, but for the suites, which end in order."""
        with answered(self._outside):
            yield

    @property
    def ROBOT_LISTENER_API_VERSION(self) -> int:  # noqa: N802
        """The interface that this listener has; Robot asks for it before it imports others, which takes a while."""
        self._take_from_robot()
        return 3

    def start_suite(self, data: object, result: object) -> None:
        """Called by Robot for each suite."""
        self._take_from_robot()

    def _take_from_robot(self) -> None:
        handler = signal.getsignal(signal.SIGTERM)
        if self._robots is None and callable(handler) and handler != self._outside:
            self._robots = handler
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self._inside)

    def _outside(self, number: int, frame: FrameType | None) -> None:
        if signal.getsignal(signal.SIGTERM) == self._inside:
            self._inside(number, frame)  # SIGHUP, which Robot does not take
        elif self.heard.asks(number):
            raise StoppedError

    def _inside(self, number: int, frame: FrameType | None) -> None:
        if not self.heard.asks(number) or self._robots is None:
            return
        why = "" if number == signal.SIGINT else f" ({signal.Signals(number).name})"
        again = f"SIGTERM more than {ECHOES_WITHIN:g} s later" if number == signal.SIGTERM else "Ctrl-C"
        with contextlib.suppress(OSError):
            # Not by a stream: one of them may be what is interrupted.
            os.write(2, (_FIRST.format(why=why, again=again) if self.heard.count == 1 else _SECOND).encode())
        stderr, sys.__stderr__ = sys.__stderr__, None  # type: ignore[misc]  # where Robot reports a signal
        try:
            self._robots(number, frame)
        finally:
            sys.__stderr__ = stderr  # type: ignore[misc]


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

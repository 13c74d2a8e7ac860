"""Signals that end a command: of a terminal (Ctrl-C), of a CI that cancels its job, of a session that ends (ssh)."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ECHOES_WITHIN = 1.0
"""Seconds within which a second SIGTERM is the first one, come by another way: sudo hands on what each process got."""

Handler = Callable[[int, FrameType | None], object]


class Interruption(KeyboardInterrupt):
    """Somebody ends the command, by one of the signals."""

    def __init__(self, number: int) -> None:
        super().__init__("interrupted" if number == signal.SIGINT else f"interrupted ({signal.Signals(number).name})")
        self.exit_code = interrupted_code(number)


def interrupted_code(number: int = signal.SIGINT) -> int:
    """The exit code of a command that a signal has ended: what a shell makes of it."""
    return 128 + number


def was_interrupted(code: int) -> bool:
    """Whether a command with this exit code was ended by a signal."""
    return code > 128


class Heard:
    """The signals that have come so far."""

    def __init__(self) -> None:
        self.count = 0
        """Number of signals that asked for something: a second Ctrl-C does, a second end of a session does not."""
        self.first: int = signal.SIGINT
        self._when = 0.0

    def asks(self, number: int) -> bool:
        """Note a signal, and return whether it asks for something that those before it did not."""
        now = time.monotonic()
        echo = number == signal.SIGHUP or (number == signal.SIGTERM and now - self._when < ECHOES_WITHIN)
        if self.count and echo:
            return False
        if not self.count:
            self.first, self._when = number, now
        self.count += 1
        return True


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """A stretch of code that each of the signals leaves by an Interruption."""
    heard = Heard()

    def leave(number: int, frame: FrameType | None) -> None:
        if heard.asks(number):
            raise Interruption(number)

    with answered(leave):
        yield


@contextlib.contextmanager
def answered(by: Handler) -> Iterator[None]:
    """Replace the handlers of the signals for a while. Ignored signals stay ignored (nohup, a shell's ``&``)."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, by)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

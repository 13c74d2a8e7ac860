"""Which signals ask for something, and how a stretch of code is left at one."""

from __future__ import annotations

import os
import signal
from unittest import mock

import pytest

from pdrgate.this_process import interruption
from pdrgate.this_process.interruption import SIGNALS, Heard, Interruption, interruptible


@pytest.mark.parametrize("number", SIGNALS)
def test_each_of_them_leaves_as_ctrl_c_does(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt) as left, interruptible():
        os.kill(os.getpid(), number)
    assert isinstance(left.value, Interruption)
    assert left.value.exit_code == 128 + number
    assert signal.getsignal(number) is before


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("first", "second", "seconds", "asks"),
    [
        (signal.SIGINT, signal.SIGINT, 0.0, True),
        (signal.SIGTERM, signal.SIGTERM, 0.0, False),
        (signal.SIGTERM, signal.SIGTERM, 5.0, True),
        (signal.SIGTERM, signal.SIGINT, 0.0, True),
        (signal.SIGHUP, signal.SIGHUP, 5.0, False),
        (signal.SIGHUP, signal.SIGINT, 0.0, True),
    ],
)
def test_a_second_one_asks_for_something_unless_it_is_an_echo(
    first: int, second: int, seconds: float, asks: bool
) -> None:
    heard = Heard()
    with mock.patch.object(interruption.time, "monotonic", side_effect=(100.0, 100.0 + seconds)):
        assert heard.asks(first)
        assert heard.asks(second) is asks
    assert (heard.first, heard.count) == (first, 1 + asks)

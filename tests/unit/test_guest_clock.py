"""A guest's clock is compared with this machine's, whatever its answers take."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from pdrgate.guests.guest_clock import GuestClock
from pdrgate.values.errors import TestbedError


class Guest:
    """Answers at given times of this machine, with times of its own."""

    name = "guest"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: tuple[float, float, float]) -> None:
        self._told = iter(answer[1] for answer in answers)
        clock: Iterator[float] = iter([moment for before, _, after in answers for moment in (before, after)])
        monkeypatch.setattr(time, "monotonic", lambda: next(clock))

    def read(self, path: str) -> str:
        assert path == "/proc/uptime"
        return f"{next(self._told):.2f} 0.00\n"


@pytest.mark.parametrize(
    "second",
    [(102.0, 5.0, 102.01), (102.0, 5.4, 102.01), (102.0, 6.5, 105.0), (100.02, 3.01, 100.03), (102.0, 9.0, 106.0)],
    ids=["right", "a fifth fast", "a late answer", "at once", "an answer that came late and may be right"],
)
def test_a_clock_that_may_be_right(monkeypatch: pytest.MonkeyPatch, second: tuple[float, float, float]) -> None:
    GuestClock(Guest(monkeypatch, (100.0, 3.0, 100.01), second)).check()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("second", "times"), [((102.0, 133.0, 102.01), "65"), ((102.0, 3.9, 102.01), r"0\.45")], ids=["fast", "slow"]
)
def test_a_clock_that_is_wrong(monkeypatch: pytest.MonkeyPatch, second: tuple[float, float, float], times: str) -> None:
    clock = GuestClock(Guest(monkeypatch, (100.0, 3.0, 100.01), second))  # type: ignore[arg-type]
    with pytest.raises(TestbedError, match=rf"^guest: its clock goes {times} times as fast as it should: "):
        clock.check()

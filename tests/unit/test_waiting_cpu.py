"""When a guest's CPU is stopped before a burst, and when it goes on."""

from __future__ import annotations

from itertools import count

import pytest

from pdrgate.testbeds.vm import standing_guest
from pdrgate.testbeds.vm.standing_guest import BURST, WaitingCpu


class MeterOfHalts:
    """A meter whose CPU halts when that is looked at, as often as it is made for; it keeps the speeds that it held."""

    def __init__(self, most: int = 1000) -> None:
        self._looks = count()
        self._most = most
        self.held: list[tuple[int, int]] = []
        """Speeds, each with how often the CPU had halted by then."""
        self._seen = 0

    @property
    def halts(self) -> int:
        self._seen = min(next(self._looks), self._most)
        return self._seen

    def hold(self, speed: int) -> None:
        self.held.append((speed, self._seen))


def handed_over() -> int:
    return next(_TAKEN)


_TAKEN = count(step=BURST)


def test_a_cpu_is_stopped_once_it_has_halted_some_times_since_it_was_let_go_on() -> None:
    meter = MeterOfHalts()
    cpu = WaitingCpu(meter, handed_over)
    for _ in range(2):
        cpu.stop()
        cpu.go_on()
    (crawl, first), (full, gone_on), (again, second), _ = meter.held
    assert 0 < crawl == again < 1_000_000
    assert full == 0
    assert first >= 4
    assert second >= gone_on + 4


def test_a_cpu_that_does_not_halt_is_stopped_when_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_guest, "_PATIENCE", 0.01)
    meter = MeterOfHalts(most=1)
    WaitingCpu(meter, handed_over).stop()
    assert [halts for _, halts in meter.held] == [1]

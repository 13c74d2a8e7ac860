"""Replicates that are measured side by side: in turn, or at the same time where that shows in none of them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from pdrgate.gate.scenarios.replicate_samples import measure_in_turn

_PATIENCE = 60.0
"""Seconds after which a trial that waits for another one to be under way gives up."""


@dataclass
class Counted:
    """A made-up replicate of some trials."""

    name: str
    trials: int
    log: list[str]
    meets: threading.Barrier | None = None
    """Where its trials wait until as many others are under way."""
    threads: set[str] = field(default_factory=set)

    def go_on(self) -> bool:
        if not self.trials:
            return False
        self.trials -= 1
        if self.meets is not None:
            self.meets.wait(_PATIENCE)
        self.log.append(self.name)
        self.threads.add(threading.current_thread().name)
        return True


def test_who_begins_takes_turns() -> None:
    log: list[str] = []
    turns: list[int] = []
    measure_in_turn([Counted("a", 3, log), Counted("b", 3, log)], lambda: turns.append(len(log)))
    assert log == ["a", "b", "b", "a", "a", "b"]
    assert turns == [2, 4, 6]


def test_those_that_stand_others_are_under_way_at_the_same_time() -> None:
    log: list[str] = []
    meets = threading.Barrier(2)
    measure_in_turn([Counted("a", 3, log, meets), Counted("b", 3, log, meets)], beside=lambda one: True)
    assert sorted(log) == ["a"] * 3 + ["b"] * 3


def test_one_that_does_not_stand_others_has_them_wait() -> None:
    log: list[str] = []
    both = [Counted("a", 2, log), Counted("b", 2, log)]
    measure_in_turn(both, beside=lambda one: one.name == "a")
    assert log == ["a", "b", "b", "a"]
    assert {name for one in both for name in one.threads} == {threading.current_thread().name}


def test_what_one_raises_is_raised_when_the_other_has_ended_its_trial() -> None:
    class Fails(Counted):
        def go_on(self) -> bool:
            super().go_on()
            raise OSError(f"{self.name} is gone")

    log: list[str] = []
    meets = threading.Barrier(2)
    other = Counted("b", 3, log, meets)
    with pytest.raises(OSError, match="a is gone"):
        measure_in_turn([Fails("a", 3, log, meets), other], beside=lambda one: True)
    assert sorted(log) == ["a", "b"]
    assert other.trials == 2

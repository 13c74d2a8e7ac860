"""What watches trials that show one thing, by phase."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from pdrgate.gate.sut.cost_counting import watching_during
from pdrgate.record.phase import Phase


class Counting:
    """Knows the names of functions once memory was asked, as guests do."""

    knows = False

    def tracing(self) -> tuple[Any, ...]:
        return ("calls",)

    def memory(self) -> tuple[Any, ...]:
        self.knows = True
        return ("lines",)

    def in_lockstep(self) -> dict[Phase, tuple[Any, ...]]:
        return {Phase.ALL_CPUS: ("turns",)} if self.knows else {}


def test_cpus_are_watched_in_turn_by_the_names_that_memory_has_read() -> None:
    found = watching_during(cast("Any", SimpleNamespace(executed=Counting())))
    assert found == {Phase.PATH: ("calls",), Phase.MEMORY: ("lines",), Phase.ALL_CPUS: ("turns",)}
    assert watching_during(cast("Any", SimpleNamespace(executed=None))) == {}

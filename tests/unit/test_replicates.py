"""The loop that asks a replication: it knows no boots, and takes any that satisfies the contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pdrgate.replication.replicates import Replicates, SutFacts, replicate
from pdrgate.results.model import BootResult, Side, SideResult
from pdrgate.results.verdict import Judgement


class Counting:
    """A made-up replication: its replicates are numbers, and it starts nothing."""

    failure: Judgement | None = None
    unlike: Judgement | None = None
    sides: Mapping[Side, SideResult] = {}
    loads: tuple[float, ...] = ()
    latency_loads: tuple[float, ...] = ()
    facts = SutFacts()
    baseline_came_up = True

    def __init__(self, failing: tuple[int, ...] = ()) -> None:
        self.failing = set(failing)
        self.ahead: list[bool] = []

    def next(self, number: int, *, wanted: Callable[[int], bool]) -> Replicates[int]:
        self.ahead.append(wanted(number + 1))
        if number in self.failing:
            self.failing.remove(number)
            return Replicates((BootResult(side="candidate", pair=number, boot="", kernel="", failure="it fell over"),))
        sides: tuple[Side, Side] = ("baseline", "candidate")
        results = [BootResult(side=side, pair=number, boot=f"{side}-{number}", kernel="") for side in sides]
        return Replicates(results, [number, 10 * number])

    def close(self) -> None:
        pass

    def go_on_from(
        self, loads: tuple[float, ...], latency_loads: tuple[float, ...], sides: Mapping[Side, SideResult],
        facts: SutFacts,
    ) -> None:  # fmt: skip
        pass


class Wanting:
    """Wants so many pairs."""

    def __init__(self, pairs: int) -> None:
        self.pairs = pairs
        self.boots: list[BootResult] = []
        self.trials: list[int] = []

    def next_number(self) -> int | None:
        number = sum(not one.failure for one in self.boots) // 2 + 1
        return number if number <= self.pairs else None

    def certain(self, pair: int) -> bool:
        return pair <= self.pairs

    def measured(self, found: Replicates[int]) -> None:
        self.boots += found.results
        self.trials += found.trials


def test_pairs_are_measured_until_no_further_one_is_wanted() -> None:
    replication, asks = Counting(), Wanting(3)
    replicate(replication, asks)
    assert asks.trials == [1, 10, 2, 20, 3, 30]
    assert replication.ahead == [True, True, False]


def test_a_pair_of_which_a_replicate_failed_is_asked_for_again() -> None:
    asks = Wanting(2)
    replicate(Counting(failing=(2,)), asks)
    assert [(one.pair, one.failure) for one in asks.boots] == [
        (1, ""), (1, ""), (2, "it fell over"), (2, ""), (2, "")
    ]  # fmt: skip
    assert asks.trials == [1, 10, 2, 20]


def test_nothing_is_measured_where_nothing_is_wanted() -> None:
    replication = Counting()
    replicate(replication, Wanting(0))
    assert replication.ahead == []

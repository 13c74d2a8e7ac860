"""Replicates of two builds, one step after the other: what measures them, and the loop that asks it.

The loop knows no boots. Pairs of cold boots are one replication; guests that stay up while several paths are measured
on them are another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pdrgate.record.trial import Trial
from pdrgate.results.model import BootResult, Side, SideResult
from pdrgate.results.verdict import Judgement


@dataclass(frozen=True, slots=True)
class Replicates:
    """What one step of a replication came to."""

    results: Sequence[BootResult] = ()
    """Results of a boot of each build, or of the one that failed; empty where there is nothing to compare."""
    trials: Sequence[Trial] = ()
    """What was measured of both builds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SutFacts:
    """What is known of a SUT, whichever build it runs."""

    carried: str = ""
    """How it carries packets, in words."""
    uncounted: str = ""
    """Why the cost of a packet is not counted."""
    sees_memory: bool = False
    """Whether memory trials can be made: what functions of its kernel touch is recorded."""
    follows_calls: bool = False
    """Whether trials can follow calls, and so record the callers of each function."""
    cost_tolerance: float | None = None
    """How much the cost of a packet may rise, relative; None where it is not judged."""
    sut_cpus: tuple[int, ...] = ()
    """CPUs of this machine that it runs on."""
    steady: bool = False
    """Whether its speed is constant."""
    remedy: str = ""
    """What a user can do where the machine disturbs."""


class Replication(Protocol):
    """What measures replicates of two builds, and knows what they ran on."""

    def next(self, number: int, *, wanted: Callable[[int], bool]) -> Replicates:
        """Measure one replicate of each build; nothing comes of it where `failure` is set then.

        Args:
            number: of the pair that these two replicates are, from 1.
            wanted: whether a later pair is measured, whatever this one shows, so that it may be begun meanwhile.
        """

    def close(self) -> None:
        """End what was begun for later replicates."""

    def go_on_from(
        self, loads: tuple[float, ...], latency_loads: tuple[float, ...], sides: Mapping[Side, SideResult],
        facts: SutFacts,
    ) -> None:  # fmt: skip
        """Take over what earlier replicates have found out."""

    @property
    def failure(self) -> Judgement | None:
        """Why there is nothing to compare."""

    @property
    def unlike(self) -> Judgement | None:
        """The `failure` that packets showed before any speed was compared, so that no load explains it."""

    @property
    def sides(self) -> Mapping[Side, SideResult]:
        """What is known of each build: its environment, its search."""

    @property
    def baseline_came_up(self) -> bool:
        """Whether a boot of the baseline has come up, measured or not: what the candidate dies of is its own then."""

    @property
    def loads(self) -> tuple[float, ...]:
        """Loads that all replicates are offered, packets/s; empty until they are known."""

    @property
    def latency_loads(self) -> tuple[float, ...]:
        """Loads at which latency is measured, packets/s; empty until they are known."""

    @property
    def facts(self) -> SutFacts:
        """What is known of the SUT, whichever build it runs."""


class Asks(Protocol):
    """What asks a replication, and takes what it has measured."""

    def next_number(self) -> int | None:
        """The pair to measure next; None where no further one is wanted. Raises what ends the comparison."""

    def certain(self, pair: int) -> bool:
        """Whether that later pair will be measured, whatever those before it show."""

    def measured(self, found: Replicates) -> None:
        """Take what a step came to; it is not asked for again."""


def replicate(replication: Replication, asks: Asks) -> None:
    """Measure replicates until no further one is wanted."""
    while (number := asks.next_number()) is not None:
        asks.measured(replication.next(number, wanted=asks.certain))

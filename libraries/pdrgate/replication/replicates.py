"""Replicates of two builds, as a step of their measurement brings them, and what is known of their SUT then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.record.trial import Trial
from pdrgate.results.model import BootResult


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

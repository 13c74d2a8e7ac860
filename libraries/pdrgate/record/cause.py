"""Disturbances of a trial or transfer by the machine: why it shows nothing of the SUT."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class CauseKind(StrEnum):
    """A kind of cause: which observer reports it, and what was disturbed. Causes of one kind are counted together."""

    STOOD_STILL = "stood still"
    """A CPU: not even the timer's interrupt came (heartbeat)."""
    WITHHELD = "withheld"
    """Others had the CPU for long while packets waited (heartbeat)."""
    WAITED = "waited"
    """Others had the CPU many times for a short while, as long in all as for `WITHHELD` (heartbeat)."""
    SLOWER = "slower"
    """A CPU took longer for work that is always equal (heartbeat)."""
    SLOWER_MEMORY = "slower memory"
    """The CPU reached its memory slower."""
    LATE = "late"
    """A guest's CPU could not be held at its speed."""
    STARVED = "starved"
    """QEMU had no CPU."""
    UNSEEN = "unseen"
    """The generator did not look for too long."""
    ALLOWANCE = "allowance"
    """A cloud let its instance have no more packets."""
    GENERATOR_LOST = "generator lost"
    """The generator, or the way to it, failed in the middle of it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause that disturbed a trial."""

    kind: CauseKind
    part: float
    """The part of the trial's time that the cause took, or by which a CPU was slower. The worst of a kind has the
    largest."""
    words: str
    """The cause for people, with its numbers: ``CPU 1 stood still for up to 38.2 ms, 9.0% of the trial``."""


def causes_in_words(causes: Iterable[Cause]) -> str:
    """All of a trial's, as a clause; empty where there are none."""
    return "; ".join(cause.words for cause in causes)

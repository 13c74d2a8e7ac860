"""What guests of several CPUs have shown of both builds, and what they were to show and did not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pdrgate.results.model import MemoryResult, Side
from pdrgate.results.verdict import Judgement


@dataclass(frozen=True, slots=True)
class SeveralCpusSeen:
    """What several CPUs do to each other for a packet, with each build."""

    results: Mapping[Side, MemoryResult] = field(default_factory=dict)
    """What is known of both builds, or nothing."""
    unmeasured: tuple[str, ...] = ()
    """What was to be measured and was not, each with why, in a sentence."""
    crash: Judgement | None = None
    """CRASH of the candidate, where its guests died each time, and the baseline's did not; else None."""

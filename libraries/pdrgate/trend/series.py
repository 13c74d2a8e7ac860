"""What was measured of builds, one after the other: what the alarm looks at, whoever kept it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pdrgate.results.model import Better
from pdrgate.results.verdict import Verdict

LEFT_OUT = frozenset({Verdict.UNSTABLE, Verdict.CRASH, Verdict.DISTURBED, Verdict.GENERATOR_LIMITED, Verdict.ERROR})
"""Verdicts of runs whose numbers mean nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A measurand of one build, as one run found it."""

    build: str
    """What a person calls it."""
    time: float
    """The time when the run began, in seconds of the epoch."""
    value: float
    lower: float | None = None
    upper: float | None = None
    """The upper end of its 95 % interval."""
    verdict: Verdict
    run: str = ""
    digest: str = ""
    """Equal for two points of one and the same build; empty where that is not known."""
    option: str = ""
    """The words that name the build to the gate, such as ``--kernel linux.deb``; empty where nobody knows them."""

    @property
    def counts(self) -> bool:
        """Whether the alarm looks at it."""
        return self.verdict not in LEFT_OUT and math.isfinite(self.value) and self.value > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A measurand of one scenario on one testbed, over builds. Its points are in the order of time."""

    scenario: str
    title: str
    testbed: str
    fingerprint: str
    """Digest of all that must be equal but for what a build has a say in."""
    measurand: str
    unit: str
    better: Better
    points: tuple[Point, ...]

"""Series of measured builds: what the alarm looks at, whoever stored it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pdrgate.results.model import Better
from pdrgate.results.verdict import Verdict

LEFT_OUT = frozenset({Verdict.UNSTABLE, Verdict.CRASH, Verdict.DISTURBED, Verdict.GENERATOR_LIMITED, Verdict.ERROR})
"""Verdicts of runs whose numbers mean nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Measurand of a build, as one run measured it."""

    build: str
    """The build's name for people."""
    time: float
    """The time when the run began, in seconds of the epoch."""
    value: float
    lower: float | None = None
    upper: float | None = None
    """The upper end of its 95 % interval."""
    verdict: Verdict
    run: str = ""
    digest: str = ""
    """Digest of the build, equal for two points of the same build; empty if it is not known."""
    option: str = ""
    """Option that names the build to the gate, such as ``--kernel linux.deb``; empty if nobody knows it."""

    @property
    def counts(self) -> bool:
        """Whether the alarm looks at this point."""
        return self.verdict not in LEFT_OUT and math.isfinite(self.value) and self.value > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Measurand of a scenario on a testbed, over builds. The points are in the order of time."""

    scenario: str
    title: str
    testbed: str
    fingerprint: str
    """Digest of all that must be equal except for a build's own choices."""
    measurand: str
    unit: str
    better: Better
    points: tuple[Point, ...]

"""Builds in a row, such as a branch's commits, each compared with the one before.

A bisection asks a few of them and finds one that is slower; this asks each, and finds also what a later one undoes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.gate.comparisons.bisection import BisectionStep, Steps
from pdrgate.results.verdict import Verdict

_WORDS = {Verdict.REGRESSION: "slower", Verdict.IMPROVEMENT: "faster", Verdict.PASS: "no slower"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSeries:
    """What became of builds in a row."""

    steps: tuple[BisectionStep, ...]
    """All but the first build, in their order; each was compared with the last one before that had a verdict."""

    @property
    def slower(self) -> tuple[BisectionStep, ...]:
        """The builds that are surely slower than the one before."""
        return tuple(step for step in self.steps if step.bad)

    @property
    def sentence(self) -> str:
        """What was found, for a person."""
        without = sum(step.bad is None for step in self.steps)
        beside = f"; {without} had no verdict" if without else ""
        if not self.slower:
            return f"none of {len(self.steps)} builds is surely slower than the one before{beside}"
        first = self.slower[0]
        more = f" (and {len(self.slower) - 1} later)" if len(self.slower) > 1 else ""
        return f"{first.build} is the first that is slower than the one before{more}: {first.reason}{beside}"


def judged_series(builds: Sequence[str], steps: Steps) -> JudgedSeries:
    """Compare each of the builds with the one before.

    Args:
        builds: in their order, as a person names them.

    Raises:
        PdrGateError: what keeps all builds from being measured.
    """
    before, judged = builds[0], list[BisectionStep]()
    for build in builds[1:]:
        step = steps.judge(build, before)
        judged.append(step)
        if step.bad is None:
            steps.session.observer.said(step.sentence)
            continue
        steps.session.observer.said(f"{build} is {_WORDS[step.verdict]} than {before}: {step.reason}")
        before = build
    return JudgedSeries(steps=tuple(judged))

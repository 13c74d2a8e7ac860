"""Builds in a row, such as a branch's commits, each judged against the one before by what its packets cost.

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
    """All but the first build, in their order; each verdict is against the last one before that could be told."""

    @property
    def slower(self) -> tuple[BisectionStep, ...]:
        """The builds that surely cost more than the one before."""
        return tuple(step for step in self.steps if step.bad)

    @property
    def sentence(self) -> str:
        """What was found, for a person."""
        untold = sum(step.bad is None for step in self.steps)
        beside = f"; {untold} could not be told" if untold else ""
        if not self.slower:
            return f"none of {len(self.steps)} builds surely costs more than the one before{beside}"
        first = self.slower[0]
        more = f" (and {len(self.slower) - 1} later)" if len(self.slower) > 1 else ""
        return f"{first.build} is the first that is slower than the one before{more}: {first.reason}{beside}"


def judged_series(builds: Sequence[str], steps: Steps) -> JudgedSeries:
    """Judge each of the builds against the one before.

    Args:
        builds: in their order, as a person names them; the first is the steps' good end.

    Raises:
        PdrGateError: what keeps all builds from being measured.
    """
    before, judged = steps.good, list[BisectionStep]()
    for source in builds[1:]:
        step = steps.judge(source, before)
        judged.append(step)
        if step.bad is None:
            steps.session.observer.said(f"{step.build} cannot be told: {step.reason}")
            continue
        steps.session.observer.said(f"{step.build} is {_WORDS[step.verdict]} than {before.build}: {step.reason}")
        before = step
    return JudgedSeries(steps=tuple(judged))

"""The first of a list of builds that is slower than the first of them, by the gate's own comparison of two builds.

1. Both ends are compared. Where the last build is not surely slower, there is nothing to look for.
2. The build in the middle of those between is compared with the good end: by what a packet costs where instructions are
   counted, else by pairs of boots. The verdict says on which side of the change it is.
3. That goes on until a good build and a bad one are neighbours. A build without a verdict is passed over, as
   `git bisect skip` does.

`judged_series` compares each build with the one before, and so finds also what a later one undoes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pdrgate.builds.bpf_build import bpf_build
from pdrgate.builds.identity import build_identity
from pdrgate.builds.named_build import check_one_architecture, named_build
from pdrgate.data_paths.catalogue import DATA_PATHS
from pdrgate.gate.comparisons.by_scenario import comparison_of, living_comparison_of
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.replication import PairsRule
from pdrgate.results.model import ComparisonResult, Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.values.errors import TestbedError

MOST_LIVING = 12
"""Boots of each build, at most, where they stay up."""
_BAD = {0: False, 1: True}
"""Whether a build is bad, by the exit code that its verdict has for git."""
_WORDS = {Verdict.REGRESSION: "slower", Verdict.IMPROVEMENT: "faster", Verdict.PASS: "no slower"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionRequest:
    """What is compared, and how."""

    scenario: Scenario
    measure: Literal["cost", "pairs"]
    """Whether packets are counted on guests that stay up, or pairs of boots are measured."""
    bpf: bool
    """Whether builds are eBPF objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionStep:
    """What became of a build that was compared with another."""

    build: str
    against: str
    verdict: Verdict
    reason: str
    comparison: ComparisonResult | None = None

    @property
    def bad(self) -> bool | None:
        """Whether the build is slower; None where there is no verdict."""
        return _BAD.get(self.verdict.bisect_code)

    @property
    def sentence(self) -> str:
        """What became of it, for a person."""
        words = {None: "has no verdict", True: "is bad", False: "is good"}[self.bad]
        return f"{self.build} {words}: {self.reason}"


class Steps:
    """Compares builds of a list, two at a time.

    Args:
        session: one that is taken, and not open.
    """

    def __init__(self, session: Session, asked: BisectionRequest) -> None:
        self.session = session
        self._asked = asked

    def ends(self, good: str, bad: str) -> tuple[Judgement, BisectionStep]:
        """Both ends compared, which is the run's result. Raises PdrGateError as `PairsComparison.measure`."""
        return self._compared(good, bad, lambda comparison: comparison.run())

    def judge(self, build: str, against: str) -> BisectionStep:
        """A build between them. Where it cannot be had, or does not come up, there is no verdict."""
        try:
            with self.session.recorded_in(self.session.record.steps):
                return self._compared(against, build, _measured)[1]
        except TestbedError as error:
            self.session.leave()
            return BisectionStep(build=build, against=against, verdict=Verdict.ERROR, reason=str(error))

    def _compared(
        self, before: str, after: str, ended: Callable[[PairsComparison], Judgement]
    ) -> tuple[Judgement, BisectionStep]:  # fmt: skip
        session, counts = self.session, self._asked.measure == "cost"
        builds = builds_of(session, self._asked, before, after)
        most = MOST_LIVING if counts else PairsRule().most
        plan = Plan(most, None, float(session.options.tolerance), session.config.side_by_side)
        task = ComparisonTask(session, self._asked.scenario, builds, plan, after, after)
        if counts:
            with contextlib.closing(LivingSuts(session, builds)) as suts:
                comparison = living_comparison_of(task, suts)
                judgement = ended(comparison)
        else:
            comparison = comparison_of(task)
            judgement = ended(comparison)
        step = BisectionStep(
            build=after, against=before, verdict=judgement.verdict, reason=judgement.reason,
            comparison=comparison.comparison,
        )  # fmt: skip
        return judgement, step


def _measured(comparison: PairsComparison) -> Judgement:
    """What a comparison comes to that is no scenario of the run's result."""
    comparison.measure()
    comparison.session.leave()
    assert comparison.judgement is not None
    return comparison.judgement


def builds_of(session: Session, asked: BisectionRequest, before: str, after: str) -> dict[Side, Build]:
    """The two builds that a person named. Raises BpfBuildError, or BuildError, of two architectures too."""
    if asked.bpf:
        program = DATA_PATHS[asked.scenario.data_path].program
        objects = zip(SIDES, (bpf_build(one, program) for one in (before, after)), strict=True)
        return {side: Build(side, one.label, session.make, one, identity=one.digest) for side, one in objects}
    named = [named_build(one, report=session.observer.said) for one in (before, after)]
    check_one_architecture(named)
    return {
        side: Build(
            side, one.label, partial(session.boot, one), counted=partial(session.boot, one, counted=True),
            identity=build_identity(one),
        )
        for side, one in zip(SIDES, named, strict=True)
    }  # fmt: skip


def first_bad(count: int, judge: Callable[[int], bool | None]) -> tuple[int, int]:
    """The last build that is good and the first one that is bad; those between them have no verdict.

    Args:
        count: of builds, the first of them good and the last bad.
        judge: whether one is bad; None where there is no verdict.
    """
    good, bad = 0, count - 1
    passed_over: set[int] = set()
    while left := [number for number in range(good + 1, bad) if number not in passed_over]:
        middle = min(left, key=lambda number: abs(2 * number - good - bad))
        verdict = judge(middle)
        if verdict is None:
            passed_over.add(middle)
        elif verdict:
            bad = middle
        else:
            good = middle
    return good, bad


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisected:
    """What a bisection has found."""

    builds: tuple[str, ...]
    good: str
    """The last that is good."""
    bad: str
    """The first that is bad."""
    between: tuple[str, ...]
    """Builds without a verdict: any of them may be the first bad one."""
    first: BisectionStep
    """The comparison of the first bad build with the good end."""
    steps: tuple[BisectionStep, ...]
    """The comparisons of builds between the ends, in measured order."""

    @property
    def sentence(self) -> str:
        """What was found, for a person."""
        first = f"{self.bad} is the first bad build"
        if self.between:
            first = f"{self.bad} is the first build that is surely bad; {', '.join(self.between)} had no verdict"
        return f"{first}: {self.first.reason}; {self.good} is the last good one"


def bisected(builds: Sequence[str], steps: Steps, end: BisectionStep) -> Bisected:
    """Find the first bad build between two ends.

    Args:
        builds: from the good end to the bad one, as a person names them.
        end: the comparison of both ends, of which the last is bad.

    Raises:
        PdrGateError: what keeps all builds from being measured.
    """
    judged: dict[int, BisectionStep] = {}

    def judge(number: int) -> bool | None:
        step = judged[number] = steps.judge(builds[number], builds[0])
        steps.session.observer.said(step.sentence)
        return step.bad

    good, bad = first_bad(len(builds), judge)
    return Bisected(
        builds=tuple(builds), good=builds[good], bad=builds[bad], between=tuple(builds[good + 1 : bad]),
        first=judged.get(bad, end), steps=tuple(judged.values()),
    )  # fmt: skip


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

"""A scenario of one SUT, whatever is measured on it: its verdict so far, its baseline, its end."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from pdrgate.gate.run.progress import Estimate
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.prepared_sut import Identity, PreparedSut
from pdrgate.gate.verdicts.against_baseline import AgainstBaseline
from pdrgate.gate.verdicts.baseline import BaselineSource
from pdrgate.gate.verdicts.change_verdict import check_tolerance
from pdrgate.gate.verdicts.disturbance import Disturbance, remedy
from pdrgate.gate.verdicts.interference import interference
from pdrgate.record.trial import Trial
from pdrgate.results.losses import LossResult
from pdrgate.results.model import CostResult, MeasurandResult, ScenarioResult
from pdrgate.results.verdict import Judgement, Verdict, graver
from pdrgate.values.errors import TestbedError


class OneSutRun(ABC):
    """One scenario on one SUT. Each step leaves what it found behind, so that one that ends early is reported.

    Args:
        baselines: what to compare with; None where nothing was asked for.
        test: the Robot test that asks.
        longname: name of the test that no other test of the run has; empty where ``test`` is unique.

    Raises:
        TestbedError: the scenario has nothing of what is measured.
    """

    def __init__(
        self,
        session: Session,
        scenario: Scenario,
        *,
        baselines: BaselineSource | None = None,
        test: str = "",
        longname: str = "",
    ) -> None:
        self._check(scenario)
        self.session = session
        self.sut = PreparedSut(
            session, scenario, session.testbed, Identity(test=longname or test), on_trial=self._on_trial
        )  # fmt: skip
        self.test = test
        self.measurands: tuple[MeasurandResult, ...] = ()
        self.judgement: Judgement | None = None
        """The gravest so far; None while nothing was judged."""
        self.interference = ""
        self.disturbance = Disturbance()
        """Disturbance of the repeats by the machine."""
        self.cost: CostResult | None = None
        self._ends = (0.0, 0.0)
        """When the step that is going on ends, by the clock: at the earliest, at the latest."""
        self._after = 0.0
        """Seconds that the steps after it take at least."""
        self._against = AgainstBaseline(self.sut, baselines)
        self._failure: Judgement | None = None
        """Why there is nothing to compare."""

    @abstractmethod
    def _check(self, scenario: Scenario) -> None:
        """Raise TestbedError where the scenario has nothing of what is measured."""

    @property
    def scenario(self) -> Scenario:
        """What is asked, by now."""
        return self.sut.scenario

    @property
    def trials(self) -> list[Trial]:
        """All trials of the scenario so far."""
        return self.sut.trials

    def judge(self, tolerance: float) -> Judgement:
        """Compare with the baseline by a tolerance, and return the verdict. Each call may have another tolerance.

        A change that can be computed is reported in any case.
        """
        check_tolerance(tolerance)
        if not self._repeated:
            raise TestbedError(f"there is nothing to judge; {self._first} first")
        judgement = self._against.judge(
            self.measurands, tolerance, failure=self._failure, disturbance=self.disturbance, cost=self.cost,
            losses=self._losses,
        )  # fmt: skip
        self._judged(judgement)
        return judgement

    @property
    def left(self) -> Estimate:
        """What the scenario still takes, by what is known so far."""
        now = time.monotonic()
        least, most = (max(0.0, end - now) for end in self._ends)
        return Estimate(max(self._after, least), max(self._after, most))

    def finish(self, judgement: Judgement | None = None) -> Judgement:
        """Put the SUT back and record the scenario; ``judgement`` is for one that ended by an error."""
        self.release()
        final = judgement or self.judgement or Judgement(Verdict.ERROR, "the scenario ended before its verdict")
        self.judgement = final = self._against.concluded(self._told_in_words(final), self.measurands)
        if self._failure is None and self._repeated:
            self._against.remember(self.measurands, [trial for trial in self.trials if not trial.closed_loop])
        self.session.record.add(self.result(final))
        return final

    def release(self) -> None:
        """Put the SUT back; may be called twice."""
        self.sut.release()

    def result(self, judgement: Judgement | None = None) -> ScenarioResult:
        """The scenario as result.json has it, as far as it came."""
        final = judgement or self.judgement or Judgement(Verdict.ERROR, "the scenario has not ended")
        result = self.sut.result(final, self.test)
        return self._detailed(
            replace(
                result,
                comparison=self._against.comparison,
                findings=replace(result.findings, measurands=self.measurands),
                details=replace(result.details, interference=self.interference),
            )
        )

    def _judged(self, judgement: Judgement | None) -> None:
        """Take a judgement into the verdict so far."""
        self.judgement = graver(self.judgement, judgement)

    def _explain(
        self, failure: Judgement | None, made: Sequence[Trial], repeats: Sequence[Trial], beyond: str = ""
    ) -> None:
        """Judge the repeats by what speaks against them, and by what the machine did meanwhile.

        Args:
            failure: why they show nothing of the SUT; None where they do.
            made: all that was measured.
            beyond: as `Disturbance.explained` takes it.
        """
        testbed = self.session.testbed
        if not testbed.steady:  # at a constant speed each trial shows it itself, where it mattered
            self.interference = interference(repeats, testbed.sut_cpus)
        self.disturbance = Disturbance.of([one for one in made if one.occasion.repeat], self.session.profile.patience)
        self._failure = self.disturbance.explained(failure, self.interference, remedy(testbed), beyond)
        if self.interference and self._failure is None:
            self.session.observer.said(f"while the repeats were measured, {self.interference}")
        self._judged(self._failure)

    def _foresee(self, least: float, most: float, then: tuple[float, float] = (0.0, 0.0)) -> None:
        """Seconds that the step which begins now takes, and those after it."""
        now = time.monotonic()
        self._ends = now + least + then[0], now + most + then[1]
        self._after = then[0]

    @property
    def _losses(self) -> LossResult | None:
        """Packets that were lost, and where; None where none are counted."""
        return None

    def _told_in_words(self, final: Judgement) -> Judgement:
        """The last judgement, in the words of the result."""
        return final

    @property
    @abstractmethod
    def _repeated(self) -> bool:
        """Whether there are repeats that can be judged."""

    @property
    @abstractmethod
    def _first(self) -> str:
        """What must be done before there are, for a person."""

    @abstractmethod
    def _on_trial(self, trial: Trial, replayed: bool) -> None:
        """Show whoever watches a trial that was measured, or that is one of the run that is resumed."""

    @abstractmethod
    def _detailed(self, result: ScenarioResult) -> ScenarioResult:
        """The result with what was measured."""

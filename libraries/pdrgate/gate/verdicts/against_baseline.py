"""What a scenario came to against a baseline that was measured before, whatever was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.sut.cost_counting import cost_tolerance_of
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.gate.verdicts.baseline import Baseline, BaselineSource, besides_the_kernel, differing_entries
from pdrgate.gate.verdicts.build_pair import BuildPair
from pdrgate.gate.verdicts.change_verdict import (
    check_tolerance,
    comparison,
    judged,
    remedy_of_boots,
    shown_value,
    told,
    tolerances_asked,
    unpaired_changes,
)
from pdrgate.gate.verdicts.disturbance import Disturbance
from pdrgate.gate.verdicts.noise_floor import as_observed, noise_floor, remember
from pdrgate.measurands import BuildSeen, Rule, changes_by_rule, described
from pdrgate.measurands.functions.function_changes import function_changes
from pdrgate.record.trial import Trial
from pdrgate.replication import NoiseFloor, Samples
from pdrgate.results.losses import LossResult, compared
from pdrgate.results.model import ChangeResult, ComparisonResult, CostResult, MeasurandResult, ScenarioResult
from pdrgate.results.verdict import Judgement, Verdict, graver
from pdrgate.values.errors import DataError


class AgainstBaseline:
    """The comparison of one scenario of a run: `find` the baseline, `judge` what was measured, then `remember` it.

    Whether it was judged or not, what the scenario came to is `concluded`.

    Args:
        sut: what is measured on; prepared before any of these.
        baselines: what to compare with; None where nothing was asked for.
    """

    def __init__(self, sut: PreparedSut, baselines: BaselineSource | None) -> None:
        self._sut = sut
        self._session = sut.session
        self._baselines = baselines
        self._baseline: Baseline | None = None
        self._no_baseline = ""
        """Why there is none."""
        self._floor = NoiseFloor()
        """What is known of the testbed's noise, before this run adds to it."""
        self._gravest: Judgement | None = None
        """The gravest of the judgements by several tolerances."""
        self.comparison: ComparisonResult | None = None
        """Comparison of the gravest judgement."""

    def find(self) -> None:
        """Find the baseline.

        Raises:
            DataError: the one that was named cannot serve, or one is required and there is none.
        """
        if self._baselines is None:
            self._no_baseline = f"compare the next build with it by --baseline {_as_typed(self._session.record.folder)}"
        else:
            self._baseline, self._no_baseline = self._baselines.find(self._sut.fingerprint)
        if self._baseline is None and self._session.options.require_baseline:
            why = self._no_baseline if self._baselines else "none was named; name one with --baseline"
            raise DataError(f"a baseline is required, and there is none: {why}")

    def judge(
        self,
        measurands: Sequence[MeasurandResult],
        tolerance: float,
        *,
        failure: Judgement | None,
        disturbance: Disturbance,
        cost: CostResult | None = None,
        losses: LossResult | None = None,
    ) -> Judgement:
        """The verdict by a tolerance. A change that can be computed is reported in any case.

        The comparison of the gravest verdict is kept.

        Args:
            failure: why there is nothing to compare.
            disturbance: of what was measured.
            cost: what a packet costs, by function.
            losses: where packets were lost.
        """
        check_tolerance(tolerance)
        session = self._session
        self._floor = noise_floor(session.experience, self._sut.fingerprint, session.observer)
        changes = self._changes(measurands, tolerance)
        change = self._compared(changes, failure, cost) if changes else None
        found = self._judged(measurands, change, failure, disturbance, losses)
        if graver(self._gravest, found) is found:
            self._gravest, self.comparison = found, change
        return found

    def _compared(
        self, changes: Sequence[ChangeResult], failure: Judgement | None, cost: CostResult | None
    ) -> ComparisonResult:
        assert self._baseline is not None
        differs = differing_entries(self._baseline.scenario.findings.fingerprint, self._sut.fingerprint)
        if (others := besides_the_kernel(differs)) and failure is None:
            self._session.observer.said(others)
        functions = function_changes(self._baseline.scenario.findings.cost, cost)
        why_not = failure.reason if failure else ""
        return comparison(
            changes, self._baseline.source, differs, why_not=why_not, functions=functions, builds=self._builds
        )

    def _judged(
        self,
        measurands: Sequence[MeasurandResult],
        change: ComparisonResult | None,
        failure: Judgement | None,
        disturbance: Disturbance,
        losses: LossResult | None,
    ) -> Judgement:
        session = self._session
        if failure is not None:
            if change is None:
                return failure
            not_accepted = "; ".join(map(told, change.changes))
            return failure.remarked(self._places(failure, losses), f"not accepted therefore: {not_accepted}")
        if change is not None:
            allowed = session.options.allow_config_differences
            judgement = self._builds.weighed(judged(change.changes, change.functions), allowed=allowed)
            if judgement.verdict is Verdict.NO_BASELINE and session.options.require_baseline:
                judgement = Judgement(Verdict.INCONCLUSIVE, judgement.reason)
            calibrated = f"{_as_typed(session.config.source)} {self._not_the_default}"
            return judgement.remarked(
                disturbance.remark(),
                self._places(judgement, losses),
                remedy_of_boots(change.changes, self._floor, calibrated.strip()),
            )
        why = self._no_baseline
        if self._baseline is not None:
            why = f"{self._baseline.source} has none of these measurands by two samples or more"
        verdict = Verdict.INCONCLUSIVE if session.options.require_baseline else Verdict.NO_BASELINE
        measured, _, others = measurands_in_words(measurands).partition(", ")
        return Judgement(verdict, f"nothing was compared: {measured}").remarked(why, others, disturbance.remark())

    def concluded(self, judgement: Judgement, measurands: Sequence[MeasurandResult]) -> Judgement:
        """The last judgement of a scenario. It names a baseline that was asked for in vain, or is an ERROR where one is
        required.

        Args:
            judgement: what it came to.
            measurands: what was measured.
        """
        if self._gravest is not None or not judgement.verdict.passes:
            return judgement
        only_told = bool(measurands) and all(described(one.name).rule is not Rule.PAIRS for one in measurands)
        why = f"no verdict goes by an {measurands[0].name}" if only_told else "the test asked for no comparison"
        source = f" with {self._baseline.source}" if self._baseline is not None else ""
        if judgement.verdict is Verdict.NO_BASELINE and self._session.options.require_baseline:
            return Judgement(Verdict.ERROR, f"a baseline is required, and nothing was compared{source}: {why}")
        return judgement.remarked(f"nothing was compared{source}: {why}" if source else "")

    def remember(self, measurands: Sequence[MeasurandResult], trials: Sequence[Trial] = ()) -> None:
        """Remember the boot for what boots deviate by, of what can be trusted.

        Args:
            trials: of the replicates, where they were trials.
        """
        sut, session = self._sut, self._session
        # Namespaces that are made anew are a boot of their own; a machine that goes on is not.
        own = sut.boot_id if session.config.boots_builds else f"{session.record.folder.name}-{sut.boot_id}"
        boot = as_observed(sut.fingerprint, own, {one.name: one.value for one in measurands}, trials)
        remember(session.experience, sut.fingerprint, (boot,), session.observer)

    def _changes(self, measurands: Sequence[MeasurandResult], tolerance: float) -> tuple[ChangeResult, ...]:
        if self._baseline is None:
            return ()
        theirs, options = self._baseline.samples, self._session.options
        asked = tolerances_asked(options, tolerance, cost_tolerance_of(self._sut.testbed, options.cost_tolerance))
        known = [(one, described(one.name, one.unit, one.better)) for one in measurands]
        delivered = self._sut.scenario.starves
        samples = [
            Samples(
                one.name, one.unit, one.better, about.tolerance.accepted(asked, delivered=delivered),
                theirs[one.name], one.samples,
            )
            for one, about in known
            if about.judged(asked) and len(one.samples) > 1 and len(theirs.get(one.name, ())) > 1
        ]  # fmt: skip
        if not samples:
            return ()
        boots = (1, self._baseline.boots)
        changes = unpaired_changes(samples, self._baseline.source, self._floor, boots, baseline_tells=False)
        ours = {one.name: one.samples for one in measurands}
        return *changes, *changes_by_rule(BuildSeen(values=theirs), BuildSeen(values=ours), asked)

    @property
    def _builds(self) -> BuildPair:
        theirs = self._baseline.scenario.findings.environment if self._baseline is not None else {}
        return BuildPair.of(theirs, self._sut.environment.to_dict())

    @property
    def scenario(self) -> ScenarioResult | None:
        """The baseline's; None where there is none."""
        return self._baseline.scenario if self._baseline is not None else None

    @property
    def _not_the_default(self) -> str:
        """The option that names another scenario than the one that is calibrated by default."""
        return "" if self._sut.scenario.name == Scenario().name else f"--scenario {self._sut.scenario.name}"

    def _places(self, judgement: Judgement, losses: LossResult | None) -> str:
        """A clause that names where both builds lose packets; empty unless that explains the verdict."""
        if self._baseline is None or judgement.verdict not in (Verdict.REGRESSION, Verdict.UNSTABLE):
            return ""
        return compared(self._baseline.scenario.findings.losses, losses)


def so_far(measurands: Sequence[MeasurandResult]) -> Judgement:
    """What is shown of a measurement that nothing speaks against, before it is judged."""
    return Judgement(Verdict.NO_BASELINE, "; ".join(filter(None, (measurands_in_words(measurands), "not judged yet"))))


def measurands_in_words(measurands: Sequence[MeasurandResult]) -> str:
    """What was measured, in a line. Report-only measurands stand in the table of the page alone."""
    judged = [one for one in measurands if described(one.name).rule is Rule.PAIRS]
    return ", ".join(f"{one.name} {shown_value(one.value, one.unit)}" for one in judged or measurands)


def _as_typed(folder: Path) -> Path:
    """The folder as a person in the working directory would write it."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder

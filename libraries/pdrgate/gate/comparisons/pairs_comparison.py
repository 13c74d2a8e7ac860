"""Two builds, measured over several boots of each, in pairs, whatever is measured.

Repeats within a boot do not show what the next boot would give: boots are the replicates, and the comparison works on
one sample of each measurand per boot. A pair is one boot of each build. Where the testbed can have both up at once,
trials alternate between them: what changes over time (another guest of the host, heat) meets both alike and drops out
of their ratio. Where it cannot, the boots of a pair follow each other, A B, then B A.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic

from pdrgate.crashes.faults import Crash
from pdrgate.errors import SutError
from pdrgate.gate.comparisons.boots import SIDES, BootError, Boots, Build
from pdrgate.gate.comparisons.failed_boots import too_many_failed
from pdrgate.gate.comparisons.pairs_judgement import PairsContext, PairsSamples, judged_pairs
from pdrgate.gate.comparisons.pairs_plan import PairsClock, Plan
from pdrgate.gate.comparisons.pairs_shape import PairsShape
from pdrgate.gate.comparisons.resumed_pairs import resumed_pairs
from pdrgate.gate.comparisons.tries_ledger import Earlier, Tries
from pdrgate.gate.run.pairs_file import StoredStep
from pdrgate.gate.run.progress import Estimate
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.scenarios.scenario_run import pdr_of
from pdrgate.gate.verdicts.baseline import besides_the_kernel, differing_entries
from pdrgate.gate.verdicts.change_verdict import (
    check_tolerance,
    shown,
    summarised,
    tolerances_asked,
)
from pdrgate.gate.verdicts.disturbance import Disturbance
from pdrgate.gate.verdicts.interference import interference
from pdrgate.gate.verdicts.noise_floor import as_observed, check_resolvable, noise_floor, remember, resolvable_in_words
from pdrgate.guests.guest import GuestError
from pdrgate.measurands import Asked, Description
from pdrgate.phase import Phase
from pdrgate.replication import PairsRule, Samples
from pdrgate.replication.earlier_tries import Pairs
from pdrgate.results.losses import LossResult
from pdrgate.results.model import (
    ArrivalsResult,
    BootResult,
    ComparisonResult,
    CostResult,
    CrashResult,
    ForwardedFrameResult,
    LatencyResult,
    ScenarioResult,
    Side,
    SideResult,
    SpikeInResult,
    TransfersResult,
)
from pdrgate.results.verdict import Judgement, Verdict, graver
from pdrgate.stability import Assessment
from pdrgate.trial import AnyStretch, Trial

_TELLING = frozenset({Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.INCONCLUSIVE})
"""What a comparison ends with that tells how boots of its testbed deviate."""


class PairsComparison(ABC, Generic[AnyStretch]):
    """One scenario over boots of two builds: `run`; or `measure`, `judge` by tolerances of one's own, and `finish`.

    However it ends, `finish` tells and stores the change of what was measured until then.

    What is measured of a boot, by trials or by transfers, is a subclass's.

    Args:
        test: the Robot test that asks.
        longname: what tells it from all other tests of the run; empty where its name does.
    """

    compared: ClassVar[tuple[Description, ...]]
    """What is compared, where all boots have it, the one that the run is about first."""
    also_told: ClassVar[tuple[Description, ...]] = ()
    """What is told of each build, where all its boots have it."""

    def __init__(
        self,
        session: Session,
        scenario: Scenario,
        builds: Mapping[Side, Build],
        plan: Plan,
        *,
        test: str = "",
        longname: str = "",
    ) -> None:
        check_tolerance(plan.tolerance)
        self.session = session
        self.scenario = scenario
        self.builds = builds
        self.plan = plan
        self.test = test
        self.longname = longname or test
        self._boots = self._new_boots()
        self.boots: list[BootResult] = []
        self.shape: PairsShape | None = None
        """Once all pairs are measured."""
        self.comparison: ComparisonResult | None = None
        self.spike_in: SpikeInResult | None = None
        """Whether it could have failed, see `pdrgate.gate.comparisons.spike_in`."""
        self.judgement: Judgement | None = None
        """By the plan's tolerance, until `judge` is asked: then the gravest of what it said; None before both."""
        self._asked: Judgement | None = None
        """The gravest that `judge` said."""
        self.interference = ""
        self.disturbance = Disturbance()
        """Of all pairs."""
        self._trials: list[AnyStretch] = []
        """Of all whole pairs, those of a run that is resumed included."""
        self._now: list[AnyStretch] = []
        """Those of the pair that is being measured, repeats of disturbed ones included."""
        self._all: list[AnyStretch] = []
        """Those of all pairs, the same."""
        self._tries = Tries(
            session.ledgers, f"{session.record.run} {self.longname}".rstrip(), afresh=session.options.afresh,
            resumed=session.record.resumed, observer=session.observer,
        )  # fmt: skip
        self._count = 0
        self._clock = PairsClock(plan)
        self._ended: Judgement | None = None
        """Why it came to another end than its own: an error, an interruption, what else its test asserts."""
        self._outlooks: dict[tuple[int, int], tuple[int, int]] = {}
        """By boots and earlier pairs: every trial asks, and only a boot changes it."""

    # --- What is measured ---

    @abstractmethod
    def _new_boots(self) -> Boots[Any, AnyStretch]:
        """What boots both builds and asks them; it tells `_told`, and `_begin_on` of the first boot."""

    @abstractmethod
    def _shape_of(self, samples: Mapping[str, Mapping[Side, tuple[float, ...]]]) -> PairsShape:
        """What may speak against comparing by means, once all pairs are measured; samples by measurand and side."""

    @abstractmethod
    def _progress(self, one: AnyStretch, replayed: bool) -> None:
        """Tell whoever watches of one that was measured."""

    @abstractmethod
    def _known(self) -> Sequence[AnyStretch]:
        """Those of the run that is resumed."""

    def _cost(self, side: Side) -> CostResult | None:
        """What a packet costs over all boots of a build, by function."""
        return None

    def _latency(self, side: Side) -> tuple[LatencyResult, ...]:
        """Latency over all boots of a build, by load."""
        return ()

    def _losses(self, side: Side) -> LossResult | None:
        """Where packets were lost, over all boots of a build."""
        return None

    def _arrivals(self, side: Side) -> tuple[ArrivalsResult, ...]:
        """How packets arrived at the receivers of an end host, over all boots of a build, by load."""
        return ()

    def _frames(self) -> tuple[ForwardedFrameResult, ...]:
        """Of frames that speak against a build, or against both."""
        return ()

    def _curve_trials(self, boot: str) -> Sequence[Trial]:
        """A boot's trials, where it has any."""
        return ()

    def _transfers(self) -> TransfersResult | None:
        """What TCP did in the candidate's boots, where that was measured."""
        return None

    # --- What a suite calls ---

    def run(self) -> Judgement:
        """Measure and `finish`; what ends it before is raised once that is done."""
        try:
            self.measure()
        except BaseException as error:
            why = str(error) if isinstance(error, Exception) else "interrupted; all trials are kept"
            self.session.observer.said(str(self.finish(Judgement(Verdict.ERROR, why))))
            raise
        return self.finish()

    def measure(self) -> None:
        """Pairs of boots until the rule has its answer, and what that is by the plan's tolerance."""
        with contextlib.closing(self._boots):
            self._resume()
            while (
                self._given_up is None and self._judged_samples().standing().verdict is None and not self._time_is_up()
            ):
                known = len(self.boots)
                self._now.clear()
                try:
                    boots, trials = self._boots.measure(self._pairs + 1, wanted=self._certain)
                    self.boots += boots
                    self._trials += trials
                except BootError as failed:
                    self._failed(failed)
                if len(self.boots) > known:
                    if not self.boots[-1].failure:
                        self._clock.pair_ended()
                    self.session.record.pairs.append(self._stored(self.boots[known:]))
                    self._find_tries()
                    self._tell()
        if self._given_up is None:
            self._assess()
        self.judgement, self.comparison = self._by(self.plan.tolerance)

    def prove(self, spike_in: SpikeInResult | None) -> None:
        """Take into account whether it could have failed, see the module `spike_in`; None: that was not tried."""
        self.spike_in = spike_in
        self.judgement, self.comparison = self._by(self.plan.tolerance)

    def judge(self, tolerance: float) -> Judgement:
        """What the rule says of the pairs by a tolerance. Of several the gravest stands, and its comparison is stored.

        What the plan's tolerance made of them stands no longer: a suite has asked by one of its own.
        """
        found, change = self._by(tolerance)
        if graver(self._asked, found) is found:
            self._asked = self.judgement = found
            self.comparison = change
        return found

    def _by(self, tolerance: float) -> tuple[Judgement, ComparisonResult | None]:
        """The verdict by a tolerance, and the change: one that was measured is told in any case."""
        check_tolerance(tolerance)
        return judged_pairs(self._judged_samples(tolerance), self._context())

    def _context(self) -> PairsContext:
        """What a verdict rests on beside the samples."""
        failure = self._failure
        if failure is not None and failure is not self._boots.unlike:
            failure = Disturbance.of(self._now, self.session.profile.patience).weighed(failure, self._boots.remedy)
        sides = {
            side: replace(self._boots.sides[side], cost=self._cost(side), losses=self._losses(side)) for side in SIDES
        }
        return PairsContext(
            sides=sides, failure=failure, shape=self.shape, disturbance=self.disturbance,
            interference=self.interference, remedy=self._boots.remedy, spike_in=self.spike_in,
            differing_configs_allowed=self.session.options.allow_config_differences,
        )  # fmt: skip

    @property
    def loads(self) -> tuple[float, ...]:
        """Those that all boots are offered, packets/s; empty until they are known."""
        return self._boots.loads

    @property
    def _differs(self) -> Mapping[str, tuple[str | None, str | None]]:
        return differing_entries(*(self._boots.sides[side].fingerprint for side in SIDES))

    @property
    def left(self) -> Estimate | None:
        """What the comparison still takes: as many pairs as the rule may want, and the budget allows; None before the
        first pair has shown what one takes.
        """
        if not self._clock.has_timed_a_pair:
            return None
        return self._clock.left(self._outlook, self._pairs, self._boots.steady)

    @property
    def _outlook(self) -> tuple[int, int]:
        known = len(self.boots), self._tries.earlier.pairs
        if known not in self._outlooks:
            self._outlooks = {known: self._rule.outlook(self._judged_samples().all, self._earlier.pairs)}
        return self._outlooks[known]

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Those of all whole pairs, where there are any."""
        return ()

    def samples(self, measurand: str, side: Side) -> tuple[float, ...]:
        """A measurand of each boot of a build, in the order of the pairs."""
        whole = [boot for boot in self.boots if not boot.failure and boot.side == side]
        return tuple(boot.values[measurand] for boot in whole)

    def stability(self) -> Judgement | None:
        """Why the trials of the builds support no comparison; None when they do."""
        return self._context().veto(self._judged_samples().standing(ended=True))

    def finish(self, judgement: Judgement | None = None) -> Judgement:
        """Leave the last boots, judge what nobody has judged yet, and record the scenario.

        Args:
            judgement: of one that came to another end than its own.
        """
        self.session.leave()
        if judgement is not None and not judgement.verdict.passes and judgement != self.judgement:
            self._ended = judgement
        if self.judgement is None or self._ended is not None:
            tolerance = self.plan.tolerance if self.comparison is None else self.comparison.tolerance
            self.judgement, self.comparison = self._by(tolerance)
        final = self.judgement
        assert final is not None
        self._remember()
        if self.shape is not None:
            self._tries.keep(final.verdict, {one.name: self._paired(one.name) for one in self._compared})
        self.session.record.add(self.result(final))
        return final

    def result(self, judgement: Judgement | None = None) -> ScenarioResult:
        """The scenario as result.json has it, as far as it came."""
        final = judgement or self.judgement or Judgement(Verdict.ERROR, "the comparison has not ended")
        sides = tuple(self._side_result(side) for side in SIDES)
        candidate = sides[1]
        return ScenarioResult(
            name=self.scenario.name,
            title=self.scenario.title,
            verdict=final.verdict,
            reason=final.reason,
            test=self.test,
            carried=self._boots.carried,
            fingerprint=candidate.fingerprint,
            environment=candidate.environment,
            trials=self._count,
            calibration=candidate.calibration,
            search=candidate.search,
            pdr=pdr_of(candidate.measurands),
            measurands=candidate.measurands,
            assessment=candidate.assessment,
            comparison=self.comparison,
            spike_in=self.spike_in,
            interference=self.interference,
            complaints=candidate.complaints,
            sides=sides,
            boots=tuple(self.boots),
            cost=candidate.cost,
            latency=candidate.latency,
            uncounted=self._boots.uncounted,
            losses=candidate.losses,
            arrivals=candidate.arrivals,
            frames=self._frames(),
            transfers=self._transfers(),
        )

    # --- Where it stands ---

    @property
    def _failure(self) -> Judgement | None:
        """Why no verdict rests on the pairs, whatever they show."""
        unjudged = Judgement(Verdict.ERROR, "the comparison ended before its verdict") if self.shape is None else None
        return self._ended or self._given_up or unjudged

    @property
    def _given_up(self) -> Judgement | None:
        """Why no further pair is measured, though the rule has no answer."""
        return self._boots.failure or too_many_failed(
            self.boots, {side: self.builds[side].label for side in SIDES}, baseline_came_up=self._baseline_came_up
        )

    @property
    def _pairs(self) -> int:
        return sum(not boot.failure for boot in self.boots) // 2

    def _certain(self, pair: int) -> bool:
        """Whether that pair will be measured, whatever those before it show, as far as time is left for it."""
        known = self._earlier if self._pairs else self._tries.earlier
        return self._rule.wants(pair, known.pairs) and self._clock.in_time(pair, self._pairs, self._boots.steady)

    def _ended_by_rule(self) -> bool:
        """Whether the rule has its answer, or there can be none."""
        return self._given_up is not None or self._judged_samples().standing().verdict is not None

    def _time_is_up(self) -> bool:
        if self._clock.in_time(self._pairs + 1, self._pairs, self._boots.steady):
            return False
        self.session.observer.said("the time is up: no further boots")
        return True

    def _judged_samples(self, tolerance: float | None = None) -> PairsSamples:
        return PairsSamples(rule=self._rule, fresh=self._fresh(tolerance), pairs=self._pairs, earlier=self._earlier)

    def _fresh(self, tolerance: float | None = None) -> list[Samples]:
        """Those of the pairs of this try."""
        asked = self._accepts(self.plan.tolerance if tolerance is None else tolerance)
        delivered = self.scenario.starves
        return [
            Samples(
                one.name, one.unit, one.better, one.tolerance.accepted(asked, delivered=delivered),
                self.samples(one.name, "baseline"), self.samples(one.name, "candidate"),
            )
            for one in self._compared
        ]  # fmt: skip

    @property
    def _earlier(self) -> Earlier:
        """The tries that had all that is compared now, where they do not contradict it."""
        return self._tries.earlier.having([one.name for one in self._compared]).agreeing(self._fresh())

    def _find_tries(self) -> None:
        self._tries.find(
            {side: self.builds[side].identity for side in SIDES},
            {side: self._boots.sides[side].fingerprint for side in SIDES},
        )

    def _paired(self, measurand: str) -> Pairs:
        return tuple(zip(self.samples(measurand, "baseline"), self.samples(measurand, "candidate"), strict=True))

    @property
    def _rule(self) -> PairsRule:
        rule = PairsRule(
            most=self.plan.pairs,
            comparisons=self.plan.comparisons,
            affordable=self._clock.affordable(self._pairs, self._boots.steady),
        )
        return replace(rule, fewest=rule.most, fewest_scattered=rule.most) if self.plan.whole else rule

    def _accepts(self, tolerance: float) -> Asked:
        return tolerances_asked(self.session.options, tolerance, self._boots.cost_tolerance)

    @property
    def _compared(self) -> tuple[Description, ...]:
        """What all boots have: the cost of a packet is not counted everywhere, and not judged wherever it is."""
        asked = self._accepts(self.plan.tolerance)
        return self._everywhere([one for one in self.compared if one.judged(asked)])

    def _everywhere(self, measurands: Sequence[Description]) -> tuple[Description, ...]:
        whole = [boot for boot in self.boots if not boot.failure]
        return tuple(one for one in measurands if all(one.name in boot.values for boot in whole))

    def _assessment(self, side: Side) -> Assessment | None:
        return self.shape.assessments.get(side) if self.shape is not None else None

    # --- The testbed's noise ---

    def _begin_on(self, fingerprint: Mapping[str, str]) -> None:
        """Say what can be told apart on the testbed that it is; refuse to look for less."""
        floor = noise_floor(self.session.noise, fingerprint, self.session.observer)
        asked = self._accepts(self.plan.tolerance)
        delivered = self.scenario.starves
        tolerances = {one.name: one.tolerance.accepted(asked, delivered=delivered) for one in self.compared}
        if self.session.noise:
            self.session.observer.said(resolvable_in_words(floor, tolerances))
        if not self.session.options.below_noise:
            check_resolvable(floor, tolerances, self.plan.pairs)

    def _remember(self) -> None:
        """What ratios deviate by does not depend on a true change: each comparison tells of the testbed.

        One that was disturbed does not, and a build that flips tells of itself, unless it is the same on both sides.
        """
        if not self.observed:
            return
        whole = sorted((boot for boot in self.boots if not boot.failure), key=lambda boot: (boot.pair, boot.side))
        seen = [
            as_observed(
                self._boots.sides[boot.side].fingerprint, boot.boot, boot.values, self._curve_trials(boot.boot),
                label=self.builds[boot.side].label, pair=boot.pair,
            )
            for boot in whole
        ]  # fmt: skip
        remember(self.session.noise, self._boots.sides["candidate"].fingerprint, seen, self.session.observer)

    @property
    def observed(self) -> bool:
        """Whether it has ended in something that tells how boots of its testbed deviate."""
        if self.shape is None or self.judgement is None:
            return False
        one_build = len({build.label for build in self.builds.values()}) == 1
        verdict = self.judgement.verdict
        return verdict in _TELLING or (verdict is Verdict.UNSTABLE and one_build)

    # --- Boots that failed, and how it goes ---

    def _failed(self, failed: BootError) -> None:
        number = self._pairs + 1
        crash = failed.error.crash if isinstance(failed.error, GuestError) else None
        self.boots.append(
            BootResult(
                side=failed.side, pair=number, boot=failed.boot, kernel=failed.kernel, failure=str(failed.error),
                sut_failed=isinstance(failed.error, SutError), crash=_crash_result(crash) if crash else None,
            )
        )  # fmt: skip
        self.session.observer.said(f"boot {number} of the {failed.side} failed: {failed.error}")
        for frame in crash.trace if crash is not None else ():
            self.session.observer.said(f"    {frame}")
        self._boots.forget_searches()

    @property
    def _baseline_came_up(self) -> bool:
        """Whether a boot of another build than the candidate has come up beside it."""
        baseline, candidate = (self.builds[side].identity for side in SIDES)
        one_build = baseline and baseline == candidate
        return bool(self._boots.sides["baseline"].fingerprint) and not one_build

    def _tell(self) -> None:
        """Where the comparison stands after a pair."""
        if self.boots[-1].failure:
            return
        so_far = {
            one.measurand: f", so far {one.change:+.1%} ({one.lower:+.1%} to {one.upper:+.1%})"
            for one in self._judged_samples().standing().changes
        }
        told = []
        for one in self._compared:
            baseline, candidate = (self.samples(one.name, side)[-1] for side in SIDES)
            ours, theirs = shown(candidate, one.unit), shown(baseline, one.unit)
            told.append(f"{one.name} {ours} against {theirs}{so_far.get(one.name, '')}")
        self.session.observer.said(f"pair {self._pairs} of at most {self.plan.pairs}: {'; '.join(told)}")

    def _told(self, one: AnyStretch, replayed: bool) -> None:
        self._count += 1
        self._now.append(one)
        if one.repeat or one.pair:
            self._all.append(one)
        self._progress(one, replayed)

    # --- All pairs ---

    def _assess(self) -> None:
        """Judge the shape of both curves, and whether the changes stay the same from pair to pair."""
        if others := besides_the_kernel(self._differs):
            self.session.observer.said(others)
        self.shape = self._shape_of(
            {one.name: {side: self.samples(one.name, side) for side in SIDES} for one in self._compared}
        )
        if not self._boots.steady:  # else trials tell of it themselves, where it mattered
            self.interference = interference(self._trials, self._boots.sut_cpus)
        self.disturbance = Disturbance.of(
            [trial for trial in self._all if trial.phase not in (Phase.CALIBRATION, Phase.SEARCH)],
            self.session.profile.patience,
        )

    def _side_result(self, side: Side) -> SideResult:
        measured = (*self._compared, *self._everywhere(self.also_told))
        found = [summarised(one.name, one.unit, one.better, self.samples(one.name, side)) for one in measured]
        told = {name: [line for boot in self.boots if boot.side == name for line in boot.complaints] for name in SIDES}
        fresh = [line for line in dict.fromkeys(told[side]) if side == "baseline" or line not in told["baseline"]]
        assessment = self._assessment(side)
        return replace(
            self._boots.sides[side],
            measurands=tuple(one for one in found if one is not None),
            assessment=assessment.result() if assessment else None,
            complaints=tuple(fresh),
            cost=self._cost(side),
            latency=self._latency(side),
            losses=self._losses(side),
            arrivals=self._arrivals(side),
        )

    # --- What a run that continues this one must know ---

    def _stored(self, boots: Sequence[BootResult]) -> StoredStep:
        return StoredStep(
            test=self.longname, scenario=self.scenario.name,
            builds={side: build.label for side, build in self.builds.items()},
            identities={side: build.identity for side, build in self.builds.items()},
            elapsed=self._clock.elapsed, boots=tuple(boots), loads=self._boots.loads,
            latency_loads=self._boots.latency_loads, sides=self._boots.sides,
        )  # fmt: skip

    def _resume(self) -> None:
        """Take over the pairs of the run that is continued, its failures and the time it took.

        Raises DataError when they are of other builds, or what was measured in their boots is not there.
        """
        taken = resumed_pairs(
            self.session.record.folder, self.longname, self.scenario.name, self.builds,
            self.session.record.pairs.take(self.longname, self.scenario.name), self._known(),
        )  # fmt: skip
        if (last := taken.last) is not None:
            self._clock.spent = last.elapsed
            self._boots.loads, self._boots.latency_loads = last.loads, last.latency_loads
            self._boots.sides.update(last.sides)
        self.boots += taken.boots
        self._count += len(taken.measured)
        self._all += taken.measured
        self._trials += [one for one in taken.measured if one.phase not in (Phase.CALIBRATION, Phase.SEARCH)]
        self._find_tries()
        if self.boots:
            self.session.observer.said(f"{self._pairs} pairs of boots are taken over from the run that is continued")


def _crash_result(crash: Crash) -> CrashResult:
    return CrashResult(
        kind=crash.kind, line=crash.line, rip=crash.rip, trace=crash.trace, fingerprint=crash.fingerprint
    )

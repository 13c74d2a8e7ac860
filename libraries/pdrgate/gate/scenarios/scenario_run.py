"""One scenario on one SUT: search, repeat, judge, and what of it goes into result.json."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from functools import cached_property

from pdrgate.gate.run.profile import TOP_TRIALS
from pdrgate.gate.run.progress import Progress
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.scenarios.load_plan import ends, further_load, grid, is_highest, overloads, past_the_pdr, round_order
from pdrgate.gate.scenarios.one_sut_run import OneSutRun
from pdrgate.gate.scenarios.receive_rates import check_count, receive_rate
from pdrgate.gate.scenarios.replicate_samples import Measurands, Replicate, measure_in_turn, summaries
from pdrgate.gate.scenarios.soaking import SHARE, judged_soak, slices, soaked
from pdrgate.gate.sut.dropped_packets import drop_tracer, look, lossy_load, traced_file
from pdrgate.gate.sut.load_search import LoadSearch, goals_of
from pdrgate.gate.verdicts.against_baseline import measurands_in_words
from pdrgate.gate.verdicts.arrivals import arrivals
from pdrgate.gate.verdicts.build_latency import latencies, latency_trials
from pdrgate.gate.verdicts.disturbance import Disturbance, beyond_the_machine, remedy
from pdrgate.gate.verdicts.packet_cost import cost_result
from pdrgate.measurands import RECEIVE_RATE, Ask, LatencyTrials, PartialDropRate, Setting, Sweep
from pdrgate.measurands.measurand import rounded
from pdrgate.observers.accounting import total
from pdrgate.observers.drop_trace import DropTracer
from pdrgate.record.phase import OF_CURVE, SPECIAL, Phase
from pdrgate.record.trial import Trial
from pdrgate.results.drops import DropsResult
from pdrgate.results.losses import LossResult
from pdrgate.results.model import (
    LatencyResult,
    MeasurandResult,
    PdrResult,
    ScenarioResult,
    SearchResult,
)
from pdrgate.results.soak import SoakResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.search.calibration import Calibration
from pdrgate.search.goals import known_bounds
from pdrgate.search.mlr import GoalOutcome
from pdrgate.search.mlr import SearchOutcome as Search
from pdrgate.search.patience import Patience
from pdrgate.stability import Assessment, assess
from pdrgate.stability import StabilityVerdict as Stability
from pdrgate.stability.checks import ENOUGH_DATA, SATURATION
from pdrgate.values.errors import TestbedError, UsageError
from pdrgate.values.units import Rate

LOWER_BOUND = "the lower bound"
_WAVERING = 1.25
"""Largest time of repeats, about, as a multiple of what is planned for: a PDR takes as many trials as enclose it."""


class ScenarioRun(OneSutRun):
    """One scenario: `prepare`, then `search`, `repeat` and `judge` in this order, then `finish`.

    Raises:
        TestbedError: the scenario is a closed loop.
    """

    found: Search | None = None
    assessment: Assessment | None = None
    latency: tuple[LatencyResult, ...] = ()
    soak: SoakResult | None = None
    drops: DropsResult | None = None
    _tracer: DropTracer | None = None

    def _check(self, scenario: Scenario) -> None:
        if scenario.streams is not None:
            raise TestbedError(
                f"{scenario.data_path} has no PDR: a closed loop offers what it gets acknowledged; measure transfers"
            )

    @cached_property
    def loads(self) -> LoadSearch:
        """The search, with the calibration of the generator that it begins with."""
        return LoadSearch(self.sut)

    def prepare(self) -> None:
        """Set the SUT up for the scenario and start the generator. Raises TestbedError."""
        profile = self.session.profile
        self._foresee(*profile.search_time, then=(profile.repeats_time, _WAVERING * profile.repeats_time))
        self.sut.prepare()
        self._tracer = drop_tracer(self.session.options, self.sut.testbed)

    def measure_load(self, load: float, duration: float) -> Trial:
        """One trial that a suite asks for."""
        return self.sut.measure_patiently(Ask(load, duration, Phase.LOAD), Patience())

    def search(self, loss_ratio: float | None = None, width: float | None = None) -> Search:
        """Find the baseline, then search for the goal's bounds; judges when there is no PDR to go on with.

        Raises:
            DataError: the baseline that was named cannot serve, or one is required and there is none.
        """
        asked = self.scenario
        if loss_ratio is not None:
            asked = dataclasses.replace(asked, loss_ratio=loss_ratio)
        if width is not None:
            asked = dataclasses.replace(asked, width=width)
        self.sut.ask(asked)
        self._against.find()
        self.found = self.loads.search(goals_of(self.session.profile, self.scenario))
        assert self.loads.calibration is not None
        failure = search_failure(self.found, self.loads.calibration)
        if failure is not None:
            self._failure = Disturbance.of(self.trials).weighed(failure, remedy(self.session.testbed))
        self._judged(self._failure)
        if self._failure is not None:  # there will be no repeats
            self._look_at_drops([trial for trial in self.trials if trial.occasion.phase == Phase.SEARCH])
        return self.found

    def repeat(self) -> Assessment:
        """Measure the replicates around the PDR, and judge by PASTRAMI whether it can be trusted."""
        profile, calibration = self.session.profile, self.loads.calibration
        if self.found is None or calibration is None:
            raise TestbedError("there is no PDR to repeat trials around; search it first")
        result = self.found.results[-1]
        centre = result.lower or result.upper
        if centre is None:
            raise TestbedError("the search found no load to repeat trials around; its verdict says why")
        starves = self.scenario.starves
        loads = set(grid(centre, ends(profile.grid) if starves else profile.grid, calibration.max_load))
        before, began = len(self.trials), time.monotonic()
        self._foresee(profile.repeats_time, _WAVERING * profile.repeats_time)
        first = Replicate(self.sut, (Sweep(round_order(loads, 0), profile.trial_duration),), 1)
        measure_in_turn([first])
        needs = 1 if starves else 2
        while (load := further_load(first.trials, result.loss_ratio, calibration.max_load, needs)) is not None:
            loads.add(load)
            first.trials.append(
                self.sut.measure_patiently(Ask(load, profile.trial_duration, Phase.REPEAT), profile.patience, 1)
            )
        measurands = Measurands.of(
            Setting(
                loads=tuple(loads), duration=profile.trial_duration, loss_ratio=result.loss_ratio,
                top_trials=TOP_TRIALS, width=result.width, past=past_the_pdr(max(loads)) if starves else (),
                overloads=overloads(max(loads), self.scenario.overload, calibration.max_load),
                paths=self.sut.follows_calls,
            ),
            LatencyTrials() if self.scenario.latency else None,
        )  # fmt: skip
        if self.scenario.overload and measurands.overload is None:
            self.session.observer.said(f"no overload: the generator ends at {Rate(calibration.ceiling)}")
        replicates = [first]
        replicates += [Replicate(self.sut, (), number) for number in range(2, profile.repeats + 1)]
        for number, replicate in enumerate(replicates, start=1):
            replicate.steps = measurands.steps(Sweep(round_order(loads, number - 1), profile.trial_duration))
            measure_in_turn([replicate])
            if measurands.latency == LatencyTrials():  # its loads are shares of the first repeat's PDR
                measurands = self._with_latency(measurands, replicate)
            # The next repeats will take as many trials for the PDR as these took. In a resumed run these took no time.
            seconds = max(profile.trials_time(len(self.trials) - before), time.monotonic() - began) / number
            self._foresee(*2 * (seconds * (profile.repeats - number),))
        self._summarise(measurands, replicates)
        self.cost = cost_result([one.trials for one in replicates], result.loss_ratio)
        self.latency = latencies([one.trials for one in replicates])
        repeats = [trial for one in replicates for trial in one.trials if trial.occasion.phase in OF_CURVE]
        pdr = pdr_result_of(self.measurands)
        self.assessment = assess(
            repeats, plr_threshold=result.loss_ratio,
            spare_dips=True, pdr=pdr.load if pdr else None, source=self.scenario.name,
        )  # fmt: skip
        unstable = stability_failure(self.assessment, calibration)
        failure = self._failure or unstable or self._no_pdr(measurands, replicates)
        beyond = beyond_the_machine(repeats, self.session.testbed.sut_cpus)
        self._explain(failure, self.trials, repeats, beyond)
        self._look_at_drops(repeats)
        return self.assessment

    def measure_soak(self, duration: float, share: float = SHARE) -> SoakResult:
        """Offer a share of the PDR for so many seconds, or of the search's lower bound where there were no repeats.

        The soak runs in slices. Each is on disk before the next.

        Raises:
            TestbedError: neither is known.
            UsageError: a share or a duration makes no sense.
        """
        pdr = pdr_result_of(self.measurands)
        known, share_of = (self.lower_bound, LOWER_BOUND) if pdr is None else (pdr.load, "the PDR")
        if known is None:
            raise TestbedError("there is no PDR to soak below; search it first")
        times = slices(duration)
        if not times or not 0 < share <= 1:
            raise UsageError(f"a soak of {duration:g} s at {share:.3g} of the PDR makes no sense; use 1 h at 0.9")
        self._foresee(duration, duration)
        load, before = rounded(known * share), len(self.trials)
        for number, each in enumerate(times, start=1):
            self.sut.measure(Ask(load, each, Phase.SOAK), repeat=number)
            self.soak = soaked(self.trials[before:], share, share_of, duration)
        assert self.soak is not None
        self.session.observer.said(self.soak.sentence())
        return self.soak

    def judge_soak(self, tolerated: float) -> Judgement:
        """Whether the soak lost no more than this part of its packets."""
        if self.soak is None:
            raise TestbedError("there is no soak to judge; soak the SUT first")
        judgement = judged_soak(self.soak, tolerated)
        self._judged(judgement)
        return judgement

    def measure_receive_rate(self, count: int, duration: float) -> MeasurandResult | None:
        """The MRR: what is forwarded of all that the generator can offer, in some trials of one length.

        Judges when the machine kept it from being measured.

        Raises:
            UsageError: one trial has no deviation.
            DataError: as `search`.
        """
        check_count(count)
        self._against.find()
        load = rounded(self.loads.calibrate().ceiling)
        self._foresee(count * duration, count * duration)
        found, failure = receive_rate(self.sut, load, duration, count)
        self._judged(failure)
        if found is not None:
            self.measurands = (*self.measurands, found)
        return found

    @property
    def lower_bound(self) -> float | None:
        """The search's relevant lower bound, packets/s, which is no PDR; None while there is none."""
        return self.found.results[-1].lower if self.found is not None else None

    def _told_in_words(self, final: Judgement) -> Judgement:
        """The last judgement. Its reason begins with the measurands where none of them was judged."""
        if self.judgement is None and self.measurands and final.verdict is Verdict.NO_BASELINE:
            return Judgement(final.verdict, measurands_in_words(self.measurands)).remarked(final.reason)
        return final

    def _detailed(self, result: ScenarioResult) -> ScenarioResult:
        return dataclasses.replace(
            result,
            trials=len(self.trials),
            pdr=pdr_result_of(self.measurands),
            findings=dataclasses.replace(
                result.findings,
                calibration=self.loads.calibrated(),
                search=searched(self.found) if self.found else None,
                assessment=self.assessment.result() if self.assessment else None,
                cost=self.cost,
                latency=self.latency,
                losses=self._losses,
                arrivals=arrivals(trial for trial in self.trials if trial.occasion.repeat),
            ),
            details=dataclasses.replace(result.details, soak=self.soak, drops=self.drops),
        )

    # --- Steps of these ---

    @property
    def _losses(self) -> LossResult | None:
        """Losses of the repeats; where there are none, of a soak or the trials of the MRR, and else of all trials."""
        numbered = [trial for trial in self.trials if trial.occasion.repeat and trial.occasion.phase not in SPECIAL]
        return total(
            [one for one in numbered if one.occasion.phase not in (Phase.SOAK, Phase.MRR)] or numbered or self.trials
        )

    def _with_latency(self, measurands: Measurands, first: Replicate) -> Measurands:
        """Add the loads at which latency is measured, and measure the first repeat's trials there."""
        pdr = measurands.pdr.value(first.trials)
        latency = latency_trials(pdr, self.session.profile.trial_duration, self._against.scenario)
        first.steps = (latency,)
        measure_in_turn([first])
        return dataclasses.replace(measurands, latency=latency)

    def _look_at_drops(self, trials: Sequence[Trial]) -> None:
        if self._tracer is None:
            return
        lossy = lossy_load(trials, self.scenario.loss_ratio)
        if lossy is None:
            self.session.observer.said("no load lost packets while it was measured: there are no drops to trace")
            return
        file = traced_file(self.session.record.folder, self._tracer, self.scenario.title)
        self.drops = look(self.sut, self._tracer, *lossy, self.session.profile.trial_duration, file)
        self.session.observer.said(self.drops.sentence())

    def _summarise(self, measurands: Measurands, replicates: list[Replicate]) -> None:
        rates = [one for one in self.measurands if one.name == RECEIVE_RATE.name]
        self.measurands = (*summaries(measurands.all, replicates), *rates)

    def _no_pdr(self, measurands: Measurands, replicates: list[Replicate]) -> Judgement | None:
        """Judgement that there is no PDR, where most repeats came to none; else None."""
        pdr = pdr_result_of(self.measurands)
        samples = self.measurands[0].samples if pdr else ()
        if 2 * len(samples) > len(replicates):
            return None
        failure = Judgement(
            Verdict.UNSTABLE, f"in {len(replicates) - len(samples)} of {len(replicates)} repeats no load held the goal"
        )
        without = {one.repeat for one in replicates if measurands.pdr.value(one.trials) is None}
        theirs = [trial for trial in self.trials if trial.occasion.repeat in without]
        return Disturbance.of(theirs, self.session.profile.patience).weighed(failure, remedy(self.session.testbed))

    @property
    def _repeated(self) -> bool:
        return self.assessment is not None

    @property
    def _first(self) -> str:
        return "search the PDR and repeat trials around it"

    def _on_trial(self, trial: Trial, replayed: bool) -> None:
        lower, upper = known_bounds(self.trials, self.scenario.loss_ratio)
        progress = Progress(self.scenario, trial, len(self.trials), replayed, lower, upper, self.left)
        self.session.observer.measured(progress)


def pdr_result_of(measurands: tuple[MeasurandResult, ...]) -> PdrResult | None:
    """The PDR among measurands."""
    pdr = next((one for one in measurands if one.name == PartialDropRate.name), None)
    return None if pdr is None else PdrResult(load=pdr.value, lower=pdr.lower, upper=pdr.upper)


def searched(found: Search) -> SearchResult:
    """A search as result.json has it."""
    return SearchResult(goals=found.results, trials=found.trials, elapsed=found.elapsed)


def search_failure(found: Search, calibration: Calibration) -> Judgement | None:
    """Why a search came to no PDR; None when it did."""
    result = found.results[-1]
    if result.outcome == GoalOutcome.NO_UPPER_BOUND:
        return Judgement(
            Verdict.GENERATOR_LIMITED,
            f"even {Rate(found.max_load)} loses no more than {result.loss_ratio:.1%}, and the generator ends at "
            f"{Rate(calibration.ceiling)}; give the SUT more hops or less CPU, or use a faster generator",
        )
    if result.outcome == GoalOutcome.GENERATOR_LIMITED:
        return Judgement(
            Verdict.GENERATOR_LIMITED,
            f"the generator fell short at {Rate(found.max_load)} and above, again and again; "
            "look for what else uses its CPU, or use a faster generator",
        )
    if result.outcome == GoalOutcome.NO_LOWER_BOUND:
        return Judgement(
            Verdict.UNSTABLE,
            f"even the lowest load, {Rate(found.min_load)}, loses more than {result.loss_ratio:.1%}: "
            "there is no PDR to find",
        )
    if result.lower is None:
        return Judgement(
            Verdict.INCONCLUSIVE,
            f"the search ended after {found.elapsed:.0f} s and {found.trials} trials without a lower bound; "
            "take a longer profile or a quieter machine",
        )
    return None


def stability_failure(assessment: Assessment, calibration: Calibration) -> Judgement | None:
    """Why a curve supports no PDR; None when it does."""
    if assessment.verdict is Stability.STABLE:
        return None
    unseen = assessment.saturation.potential_index is None and is_highest(
        max(assessment.curve.loads, default=0.0), calibration.max_load
    )
    if unseen and {check.name for check in assessment.failed} <= {SATURATION, ENOUGH_DATA}:
        return Judgement(
            Verdict.GENERATOR_LIMITED,
            f"the generator ends at {Rate(calibration.ceiling)}, too near the PDR to show saturation "
            f"({assessment.reason}); give the SUT more hops or less CPU, or use a faster generator",
        )
    return Judgement(Verdict(assessment.verdict.value), assessment.reason)

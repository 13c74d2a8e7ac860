"""Two builds, measured over several boots of each, in pairs, whatever is measured.

Repeats within a boot do not show what the next boot would give: boots are the replicates, and the comparison works on
one sample of each measurand per boot. A pair is one boot of each build. Where the testbed can have both up at once,
trials lie beside each other: what changes over time (another guest of the host, heat) meets both alike and drops out
of their ratio. Where it cannot, the boots of a pair follow each other, A B, then B A.

`PairsLoop` measures, `judged_pairs` judges; this is what a suite calls, and what result.json gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.gate.comparisons.living_boots.packets_on_cpus import SeveralCpusSeen
from pdrgate.gate.comparisons.living_boots.several_cpu_suts import SeveralCpuSuts
from pdrgate.gate.comparisons.pairs.builds_boots import BuildsBoots
from pdrgate.gate.comparisons.pairs.compared_trials import ComparedBy, ComparedTrials
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, ComparisonTask
from pdrgate.gate.comparisons.pairs.foreseen import PairAlone
from pdrgate.gate.comparisons.pairs.pairs_judgement import PairsContext, judged_pairs
from pdrgate.gate.comparisons.pairs.pairs_loop import PairsLoop
from pdrgate.gate.comparisons.pairs.pairs_noise import remember_boots, tells_of_noise
from pdrgate.gate.comparisons.pairs.pairs_shape import PairsShape
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.scenarios.scenario_run import pdr_result_of
from pdrgate.gate.verdicts.baseline import besides_the_kernel, differing_entries
from pdrgate.gate.verdicts.change_verdict import check_tolerance, summarised
from pdrgate.gate.verdicts.disturbance import Disturbance
from pdrgate.gate.verdicts.interference import interference
from pdrgate.gate.verdicts.program_remarks import program_remarks
from pdrgate.measurands import DESCRIPTIONS, Cost
from pdrgate.measurands.counted.program_run import ran_none
from pdrgate.measurands.measurand import Values
from pdrgate.record.trial import Trial
from pdrgate.results.model import (
    BootResult,
    ComparedBuilds,
    ComparisonResult,
    Details,
    MemoryResult,
    Origin,
    ScenarioResult,
    Side,
    SideResult,
    SpikeInResult,
)
from pdrgate.results.verdict import Judgement, Verdict, graver


class PairsComparison:
    """A comparison over boots of two builds: `run` it; or `measure`, `judge` by other tolerances, and `finish`.

    However it ends, `finish` reports and stores the change of what was measured until then.

    `pdrgate.gate.comparisons.by_scenario` makes one for a task.

    Args:
        task: what is compared, and how much it may cost.
        by: what the boots are compared by.
        boots: measures them.
        on_cpus: guests of several CPUs, on which the scenario is seen once beside the pairs; None where nobody asks for
            these, or the scenario has no packets for several CPUs.
        stay_up: whether the boots stay up for other scenarios.
    """

    def __init__(
        self, task: ComparisonTask, by: ComparedBy, boots: BuildsBoots, on_cpus: SeveralCpuSuts | None = None, *,
        stay_up: bool = False,
    ) -> None:  # fmt: skip
        check_tolerance(task.plan.tolerance)
        self.task = task
        self.stay_up = stay_up
        self._on_cpus = on_cpus
        self._compared = ComparedTrials(task, by)
        self.loop = PairsLoop(task, self._compared, boots, self._alone())
        self.context = PairsContext(sides=self.loop.replication.sides)
        """What a verdict rests on beside the samples, as of the last one."""
        self.comparison: ComparisonResult | None = None
        self.judgement: Judgement | None = None
        """Verdict by the plan's tolerance, until `judge` is asked: then the gravest of its verdicts; None before both.
        """
        self._asked: Judgement | None = None
        """The gravest that `judge` said."""
        self._known: dict[Side, tuple[int, SideResult, SideResult]] = {}
        self._ended: Judgement | None = None
        """Why it came to another end than its own: an error, an interruption, what else its test asserts."""
        self._several_cpus = SeveralCpusSeen()

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
        on_cpus = self._on_cpus if self.session.profile.several_cpus and not self._is_planted else None
        if on_cpus is not None:
            on_cpus.begin(self.task)
        self.loop.run()
        if self.loop.failure is None:
            self._assess()
            if on_cpus is not None and (self.stay_up or self.loop.replication.facts.sees_memory):
                self._several_cpus = on_cpus.seen(self.task)
            self._take(self._several_cpus.results)
        self.judgement, self.comparison = self._by(self.task.plan.tolerance)

    def prove(self, spike_in: SpikeInResult | None) -> None:
        """Take into account whether it could have failed, see the module `spike_in`; None: that was not tried."""
        self.context = replace(self.context, spike_in=spike_in)
        self.judgement, self.comparison = self._by(self.task.plan.tolerance)

    def judge(self, tolerance: float) -> Judgement:
        """What the rule says of the pairs by a tolerance. Of several the gravest stands, and its comparison is stored.

        What the plan's tolerance made of them stands no longer: a suite has asked by one of its own.
        """
        found, change = self._by(tolerance)
        if graver(self._asked, found) is found:
            self._asked = self.judgement = found
            self.comparison = change
        return found

    def stability(self) -> Judgement | None:
        """Why the trials of the builds support no comparison; None when they do."""
        return self.context.veto(self.loop.samples().standing(ended=True))

    def finish(self, judgement: Judgement | None = None) -> Judgement:
        """Leave the last boots, judge what nobody has judged yet, and record the scenario.

        Args:
            judgement: of one that came to another end than its own.
        """
        self.session.leave()
        if judgement is not None and not judgement.verdict.passes and judgement != self.judgement:
            self._ended = judgement
        if self.judgement is None or self._ended is not None:
            tolerance = self.task.plan.tolerance if self.comparison is None else self.comparison.tolerance
            self.judgement, self.comparison = self._by(tolerance)
        final, found, sides = self.judgement, self.loop.found, self.loop.replication.sides
        if self.observed:
            remember_boots(self.task, found.boots, sides, self.trials)
        if self.shape is not None:
            self.loop.tries.keep(final.verdict, {one.name: found.paired(one.name) for one in self.loop.compared})
        self.session.record.add(self.result(final))
        return final

    def result(self, judgement: Judgement | None = None) -> ScenarioResult:
        """The scenario as result.json has it, as far as it came."""
        final = judgement or self.judgement or Judgement(Verdict.ERROR, "the comparison has not ended")
        sides = tuple(self._side_result(side) for side in SIDES)
        findings, replication, found = sides[1].findings, self.loop.replication, self.loop.found
        result = ScenarioResult(
            name=self.scenario.name,
            title=self.scenario.title,
            verdict=final.verdict,
            reason=final.reason,
            trials=found.count,
            pdr=pdr_result_of(findings.measurands),
            comparison=self.comparison,
            origin=Origin(test=self.task.test, carried=replication.facts.carried, set_up=self.scenario.recorded),
            findings=findings,
            builds=ComparedBuilds(spike_in=self.context.spike_in, sides=sides, boots=tuple(found.boots)),
            details=Details(
                interference=self.context.interference,
                uncounted=replication.facts.uncounted,
                unmeasured=self._several_cpus.unmeasured,
            ),
        )
        frames = replication.frames if replication.unlike is not None else {}
        return self._compared.detailed(result, found.trials, frames)

    # --- What it has ---

    @property
    def session(self) -> Session:
        """The session that measures."""
        return self.task.session

    @property
    def scenario(self) -> Scenario:
        """The scenario that is measured."""
        return self.task.scenario

    @property
    def boots(self) -> list[BootResult]:
        """All boots, those that failed included."""
        return self.loop.found.boots

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials of all whole pairs; of a closed loop none."""
        return tuple(one for one in self.loop.found.trials if not one.closed_loop)

    def samples(self, measurand: str, side: Side) -> tuple[float, ...]:
        """A measurand of each boot of a build, in the order of the pairs."""
        return self.loop.found.values(measurand, side)

    @property
    def shape(self) -> PairsShape | None:
        """What may speak against comparing by means; None until all pairs are measured."""
        return self.context.shape

    @property
    def loads(self) -> tuple[float, ...]:
        """Loads that all boots are offered, packets/s; empty until they are known."""
        return self.loop.replication.loads

    @property
    def observed(self) -> bool:
        """Whether it has ended in a verdict after which its pairs show how boots of its testbed deviate."""
        return (
            self.shape is not None and self.judgement is not None and tells_of_noise(self.task, self.judgement.verdict)
        )

    # --- The judgement ---

    def _take(self, several_cpus: Mapping[Side, MemoryResult]) -> None:
        """Have what was seen of several CPUs among what is known of each build."""
        known = self.loop.replication
        sides = {
            side: known.sides[side].but(replace(known.sides[side].findings, several_cpus=one))
            for side, one in several_cpus.items()
        }  # fmt: skip
        known.go_on_from(known.loads, known.latency_loads, sides, known.facts)

    def _by(self, tolerance: float) -> tuple[Judgement, ComparisonResult | None]:
        """The verdict by a tolerance, and the change, which is reported also where the verdict does not rest on it."""
        check_tolerance(tolerance)
        sides = {side: self._accounted(side) for side in SIDES}
        programs = {side: build.program for side, build in self.task.builds.items()}
        self.context = replace(
            self.context, sides=sides, failure=self._failure(),
            values=self._values(), asked=self.loop.accepts(tolerance),
            programs=program_remarks(programs, sides, self.loop.found.trials), planted=self._is_planted,
            remedy=self.loop.replication.facts.remedy, alone=self.loop.is_alone,
            differing_configs_allowed=self.session.options.allow_config_differences,
        )  # fmt: skip
        return judged_pairs(self.loop.samples(tolerance), self.context)

    @property
    def _is_planted(self) -> bool:
        return any(build.planted for build in self.task.builds.values())

    def _values(self) -> dict[Side, Values]:
        """Values of the boots of each build, 0 for a boot that has none."""
        found = self.loop.found
        names = [one.name for one in DESCRIPTIONS]
        return {side: {name: found.values_or_none(name, side) for name in names} for side in SIDES}

    def _alone(self) -> PairAlone | None:
        """What may vouch for a single pair; None where that ends no comparison: all are asked for, or it is no count
        of packets whose pairs deviate by a known amount."""
        by, plan = self._compared.by, self.task.plan
        first = by.compared[0].name
        if not self.stay_up or plan.whole or self._is_planted or by.replacements or first != Cost.name:
            return None
        return PairAlone(self.task, by.pairs_deviate[first]) if first in by.pairs_deviate else None

    def _failure(self) -> Judgement | None:
        """Why no verdict rests on the pairs, whatever they show; the machine, where it explains that."""
        unjudged = Judgement(Verdict.ERROR, "the comparison ended before its verdict") if self.shape is None else None
        failure = self._ended or self.loop.failure or self._several_cpus.crash or unjudged or self._uncalled()
        replication = self.loop.replication
        if failure is None or failure is replication.unlike:
            return failure
        return Disturbance.of(self.loop.found.now, self.session.profile.patience).weighed(
            failure, replication.facts.remedy
        )

    def _uncalled(self) -> Judgement | None:
        """Why the builds, eBPF programs, are not compared: no packet ran either of them."""
        programs = [one.program for one in self.task.builds.values() if isinstance(one.program, BpfBuild)]
        costs = [self._accounted(side).findings.cost for side in SIDES]
        # A program of connections runs less than once a packet, and counts leave out what hardly runs.
        if (
            not programs
            or self.scenario.streams is not None
            or not all(one is not None and ran_none(one.functions) for one in costs)
        ):
            return None
        return Judgement(
            Verdict.ERROR,
            f"no packet ran a program of {programs[-1].name} ({programs[-1].section}), so nothing of it was compared; "
            "name a path whose packets call it with --scenario",
        )

    def _assess(self) -> None:
        """Judge the shape of both curves, and whether the changes stay the same from pair to pair."""
        found, replication = self.loop.found, self.loop.replication
        if others := besides_the_kernel(
            differing_entries(*(replication.sides[side].findings.fingerprint for side in SIDES))
        ):
            self.session.observer.said(others)
        samples = {one.name: {side: found.values(one.name, side) for side in SIDES} for one in self.loop.compared}
        self.context = replace(
            self.context,
            shape=self._compared.shape(samples, found.trials, self.loop.earlier),
            # At a constant speed the trials show it themselves, where it mattered.
            interference="" if replication.facts.steady else interference(found.trials, replication.facts.sut_cpus),
            disturbance=Disturbance.of(found.judged, self.session.profile.patience),
        )

    def _accounted(self, side: Side) -> SideResult:
        """The side with what its trials come to, which is computed once for as many of them."""
        known_side, trials = self.loop.replication.sides[side], self.loop.found.trials
        known = self._known.get(side)
        if known is None or known[0] != len(trials) or known[1] is not known_side:
            known = self._known[side] = len(trials), known_side, self._compared.accounted(known_side, trials)
        return known[2]

    def _side_result(self, side: Side) -> SideResult:
        found = self.loop.found
        measured = (*self.loop.compared, *found.somewhere(self._compared.by.also_told))
        values = [summarised(one.name, one.unit, one.better, found.values(one.name, side)) for one in measured]
        assessment = self.shape.assessments.get(side) if self.shape is not None else None
        accounted = self._accounted(side)
        findings = replace(
            accounted.findings,
            measurands=tuple(one for one in values if one is not None),
            assessment=assessment.result() if assessment else None,
            complaints=found.complaints(side),
        )
        return accounted.but(findings)

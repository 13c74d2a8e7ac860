"""The first of a list of builds whose packets cost more than they may.

Both ends are compared whole, by PDR, throughput and cost, as any two builds are. A build between them is then judged by
its cost alone, at the load that has saturated both ends: a boot of it tells that to the few tenths of a percent that
boots deviate by. Where one boot is not enough, further ones are made; where these are not either, the build is passed
over, as `git bisect skip` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from pdrgate.builds.bpf_build import bpf_build
from pdrgate.builds.identity import build_identity
from pdrgate.builds.named_build import named_build
from pdrgate.data_paths.catalogue import DATA_PATHS
from pdrgate.gate.comparisons.build_comparison import BuildComparison
from pdrgate.gate.comparisons.pairs.compared_builds import SIDES, Build
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.open_loop_sut import OpenLoopSut, goals_of
from pdrgate.gate.sut.prepared_sut import Identity, fingerprint_differences
from pdrgate.gate.verdicts.noise_floor import noise_floor
from pdrgate.gate.verdicts.packet_cost import cost_result
from pdrgate.history.seal import seal
from pdrgate.history.whole_file import write_whole
from pdrgate.measurands import Ask, Cost
from pdrgate.measurands.counted.cost import cost_change_in_words, idle_of, on_path, saturated
from pdrgate.measurands.functions.function_changes import function_changes
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.replication import PairsRule, Samples
from pdrgate.replication.noise import KNOWN
from pdrgate.results.fingerprint import conditions
from pdrgate.results.model import ChangeResult, CostResult, FunctionChange, ScenarioResult, Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.stats.pooled import Deviation, pooled_deviation
from pdrgate.this_process.no_follow import read_no_follow
from pdrgate.values.errors import EXIT_FAULT, DataError, TestbedError

ENDS_FILE = "bisection.json"
"""This file lies in the folder of the run that compared both ends; the steps of other processes read it."""
_LARGEST_ENDS = 64 << 20
"""Bytes of it."""

MOST_BOOTS = 4
"""A build is passed over after so many boots."""
_TRIALS = 3
"""Each boot has so many trials at saturation."""
_CONFIDENCE = 0.98
"""The confidence of a step's interval: one look at a boot in a hundred calls a build good or bad wrongly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionRequest:
    """What is bisected on what, as a person asked for it; other processes go on with it."""

    testbed: str
    scenario: str
    profile: str
    bpf: bool
    """Whether builds are eBPF objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionStep:
    """What became of a build that was judged by what its packets cost."""

    build: str
    verdict: Verdict
    """PASS or IMPROVEMENT: good; REGRESSION: bad; others: it cannot be told."""
    reason: str
    boots: int
    costs: tuple[float, ...] = ()
    """Instructions per packet, by trial or by boot."""
    cost: CostResult | None = None

    @property
    def sentence(self) -> str:
        """What became of it, for a person."""
        words = {None: "cannot be told", True: "is bad", False: "is good"}[self.bad]
        return f"{self.build} {words}: {self.reason}"

    @property
    def bad(self) -> bool | None:
        """Whether the build is bad; None: it cannot be told."""
        told = {Verdict.PASS: False, Verdict.IMPROVEMENT: False, Verdict.REGRESSION: True}
        return told.get(self.verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What the packets of one of both ends cost."""

    build: str
    boots: tuple[float, ...]
    """Instructions per packet, by boot."""
    cost: CostResult

    def step(self, verdict: Verdict) -> BisectionStep:
        """The same as what became of a build."""
        return BisectionStep(
            build=self.build, verdict=verdict, reason="it is an end", boots=len(self.boots), costs=self.boots,
            cost=self.cost,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionEnds:
    """Both ends, of which the bad one surely costs more: what steps are judged by."""

    asked: BisectionRequest
    good: End
    bad: End
    load: float
    """A load that has saturated both ends, packets/s."""
    tolerance: float
    """Growth of the cost that is no fault."""
    fingerprint: Mapping[str, str]

    @property
    def deviation(self) -> Deviation:
        """What the logs of boots' costs deviate by."""
        found = pooled_deviation([[(math.log(cost), 1.0) for cost in end.boots] for end in (self.good, self.bad)])
        assert found is not None  # two pairs of boots at least
        return found

    def keep(self, folder: Path) -> None:
        """Write them for other processes. Raises StorageError."""
        seal(write_whole(folder / ENDS_FILE, msgspec.json.format(msgspec.json.encode(self), indent=1)))

    @classmethod
    def kept(cls, folder: Path) -> BisectionEnds:
        """The ends that an earlier process kept. Raises DataError when there are none."""
        path = folder / ENDS_FILE
        try:
            return msgspec.json.decode(read_no_follow(path, _LARGEST_ENDS), type=cls)
        except (OSError, msgspec.MsgspecError) as error:
            why = getattr(error, "strerror", None) or error
            raise DataError(
                f"{path}: cannot be read ({why}); compare both ends first: pdrgate bisect GOOD BAD"
            ) from error


def ends_of(comparison: BuildComparison, asked: BisectionRequest, *, each: bool = False) -> BisectionEnds | str:
    """What a comparison of both ends has left for the steps between them; else why there is nothing to look for.

    Args:
        each: whether every build is judged against the one before, and it is no matter how the ends differ.
    """
    judgement, result = comparison.judgement, comparison.result()
    assert judgement is not None
    changes = result.comparison.changes if result.comparison is not None else ()
    cost = next((one for one in changes if one.measurand == Cost.name), None)
    if cost is None:
        return result.details.uncounted or f"the ends were not compared by the cost of a packet: {judgement}"
    if judgement.verdict.exit_code == EXIT_FAULT or (each and cost.verdict is Verdict.INCONCLUSIVE):
        return f"what the ends cost is not known well enough: {judgement}"
    if not each and (judgement.verdict is not Verdict.REGRESSION or cost.verdict is not Verdict.REGRESSION):
        elsewhere = "; the gate's --bisect goes by all measurands" if judgement.verdict is Verdict.REGRESSION else ""
        return f"the last build's packets do not surely cost more than the first one's{elsewhere}: {judgement}"
    good, bad = (_end(result, number) for number in (0, 1))
    load = max(trial.intended_load for trial in comparison.trials if trial.occasion.phase == Phase.SATURATION)
    return BisectionEnds(
        asked=asked, good=good, bad=bad, load=load, tolerance=float(cost.tolerance),
        fingerprint=result.findings.fingerprint
    )  # fmt: skip


def _end(result: ScenarioResult, number: int) -> End:
    side = result.builds.sides[number]
    boots = next(one.samples for one in side.findings.measurands if one.name == Cost.name)
    assert side.findings.cost is not None
    return End(build=side.build, boots=boots, cost=side.findings.cost)


def compare_ends(
    session: Session, asked: BisectionRequest, good: str, bad: str, tolerance: float, *, each: bool = False
) -> tuple[Judgement, BisectionEnds | str]:  # fmt: skip
    """Compare the two builds as any two are, and say what that leaves for the steps between them.

    Args:
        session: one that is taken, and not open.
        each: as `ends_of` has it.

    Returns:
        What the comparison came to; and the ends, or why there is nothing to look for between them.

    Raises:
        PdrGateError: as `PairsComparison.measure`.
    """
    scenario = Scenario.named(asked.scenario)
    builds = {side: build_of(session, asked, side, source) for side, source in zip(SIDES, (good, bad), strict=True)}
    plan = Plan(PairsRule().most, None, tolerance, session.config.side_by_side)
    comparison = BuildComparison(session, scenario, builds, plan)
    return comparison.run(), ends_of(comparison, asked, each=each)


def build_of(session: Session, asked: BisectionRequest, side: Side, source: str) -> Build:
    """A build of what a person named. Raises BuildError or BpfBuildError."""
    if asked.bpf:
        kind = DATA_PATHS[Scenario.named(asked.scenario).data_path].program
        loaded = bpf_build(source, kind)
        return Build(side, loaded.label, session.make, loaded, identity=loaded.digest)
    named = named_build(source, report=session.observer.said)
    return Build(side, named.label, partial(session.boot, named), identity=build_identity(named))


class Steps:
    """Judges builds by what their packets cost, beside the good end's.

    Args:
        session: one that is taken, and not open.
    """

    def __init__(self, session: Session, ends: BisectionEnds) -> None:
        self.session = session
        self.ends = ends
        self.good = ends.good.step(Verdict.PASS)
        self.bad = ends.bad.step(Verdict.REGRESSION)
        self._scenario = Scenario.named(ends.asked.scenario)
        self._loss_ratio = goals_of(session.profile, self._scenario)[-1].loss_ratio
        floor = noise_floor(session.noise, ends.fingerprint, session.observer).of(Cost.name).boots
        own = ends.deviation
        known = floor is not None and floor.freedom >= max(KNOWN, own.freedom)
        self._deviation = floor if known and floor is not None else own

    def judge(self, source: str, against: BisectionStep | None = None) -> BisectionStep:
        """Boots of a build until its cost is known well enough, each told to the session's observer.

        Args:
            against: what it is judged against; else the good end.
        """
        try:
            build = build_of(self.session, self.ends.asked, "candidate", source)
        except TestbedError as error:
            return BisectionStep(build=source, verdict=Verdict.ERROR, reason=str(error), boots=0)
        replicates: list[list[Trial]] = []
        step = BisectionStep(build=build.label, verdict=Verdict.INCONCLUSIVE, reason="", boots=0)
        while step.verdict is Verdict.INCONCLUSIVE and len(replicates) < MOST_BOOTS:
            self.session.observer.said(f"boot {len(replicates) + 1} of {build.label}")
            try:
                replicates.append(self._measured(build, len(replicates) + 1))
            except TestbedError as error:
                return BisectionStep(build=build.label, verdict=Verdict.ERROR, reason=str(error), boots=len(replicates))
            step = self._judged(build.label, replicates, against or self.good)
        return step

    def _measured(self, build: Build, number: int) -> list[Trial]:
        """The trials of a boot."""
        session, profile = self.session, self.session.profile
        testbed = session.begin(build.start)
        sut: OpenLoopSut | None = None
        try:
            session.ready(testbed, introduce=False)
            identity = Identity("candidate", build.label, number, f"{testbed.boot_id}-{number}", build.program)
            sut = OpenLoopSut(session, self._scenario, testbed, identity, introduce=False)
            sut.prepare()
            self._check(sut)
            asks = [Ask(self.ends.load, profile.boot_trial, Phase.SATURATION)] * _TRIALS
            if not sut.uncounted:
                asks.append(Ask(0.0, Cost(self.ends.load, profile.boot_trial, self._loss_ratio).idle, Phase.IDLE))
            return [sut.measure_patiently(ask, profile.patience) for ask in asks]
        finally:
            if sut is not None:
                sut.release(ending=True)
            session.leave([testbed])

    def _check(self, sut: OpenLoopSut) -> None:
        """Raises DataError where anything but the build is another."""
        told = fingerprint_differences(conditions(self.ends.fingerprint), conditions(sut.fingerprint))
        if told:
            raise DataError(
                f"what the ends cost is no measure for {sut.identity.build}: {'; '.join(told)}; compare both ends again"
            )

    def _judged(
        self, build: str, replicates: Sequence[Sequence[Trial]], against: BisectionStep
    ) -> BisectionStep:  # fmt: skip
        costs = [cost for trials in replicates for cost in costs_of(trials, self._loss_ratio)]
        cost = cost_result(replicates, self._loss_ratio)
        if len(costs) < 2 or cost is None:
            why = "its trials at saturation tell no cost: it is faster than both ends, or the machine disturbed them"
            verdict = Verdict.INCONCLUSIVE
            return BisectionStep(build=build, verdict=verdict, reason=why, boots=len(replicates))
        change = self.change(against.costs, costs, (len(replicates), against.boots))
        reason = cost_change_in_words(change, function_changes(against.cost, cost))
        return BisectionStep(
            build=build, verdict=change.verdict, reason=reason, boots=len(replicates), costs=tuple(costs), cost=cost
        )  # fmt: skip

    def change(self, before: Sequence[float], after: Sequence[float], boots: tuple[int, int]) -> ChangeResult:
        """How the cost of a packet changed.

        Args:
            before: instructions per packet, by boot or by trial.
            after: the same.
            boots: that ``after`` and ``before`` are of.
        """
        samples = Samples(Cost.name, Cost.unit, Cost.better, self.ends.tolerance, tuple(before), tuple(after))
        return samples.change(_CONFIDENCE, self._deviation, boots)


def costs_of(trials: Sequence[Trial], loss_ratio: float) -> list[float]:
    """Instructions per packet of each of a boot's trials at saturation that were counted."""
    idle = idle_of(trials)
    return [sum(each for each, _ in on_path(trial, idle).values()) for trial in saturated(trials, loss_ratio)]


def first_bad(count: int, judge: Callable[[int], bool | None]) -> tuple[int, int]:
    """The last build that is good and the first one that is bad, of which nothing between them could be told.

    Args:
        count: of builds, the first of them good and the last bad.
        judge: whether one is bad; None where it cannot be told.
    """
    good, bad = 0, count - 1
    untold: set[int] = set()
    while left := [number for number in range(good + 1, bad) if number not in untold]:
        middle = min(left, key=lambda number: abs(2 * number - good - bad))
        told = judge(middle)
        if told is None:
            untold.add(middle)
        elif told:
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
    """Builds of which nothing could be told: any of them may be the first bad one."""
    reason: str
    """How it differs from the last that is good."""
    change: ChangeResult
    """The change of a packet's cost."""
    functions: tuple[FunctionChange, ...]
    """The same, by function."""
    steps: tuple[BisectionStep, ...]
    """The steps in measured order."""

    @property
    def sentence(self) -> str:
        """What was found, for a person."""
        first = f"{self.bad} is the first bad build"
        if self.between:
            first = f"{self.bad} is the first build that is surely bad; {', '.join(self.between)} could not be told"
        return f"{first}: {self.reason}, than under {self.good}"


def bisected(builds: Sequence[str], steps: Steps) -> Bisected:
    """Find the first bad build between two ends.

    Args:
        builds: from the good end to the bad one, as a person names them.

    Raises:
        PdrGateError: what keeps all builds from being measured.
    """
    told: dict[int, BisectionStep] = {}

    def judge(number: int) -> bool | None:
        step = told[number] = steps.judge(builds[number])
        steps.session.observer.said(step.sentence)
        return step.bad

    good, bad = first_bad(len(builds), judge)
    before, after = told.get(good, steps.good), told.get(bad, steps.bad)
    functions = function_changes(before.cost, after.cost)
    change = steps.change(before.costs, after.costs, (after.boots, before.boots))
    return Bisected(
        builds=tuple(builds), good=builds[good], bad=builds[bad], between=tuple(builds[good + 1 : bad]),
        reason=cost_change_in_words(change, functions), change=change,
        functions=functions, steps=tuple(told.values()),
    )  # fmt: skip

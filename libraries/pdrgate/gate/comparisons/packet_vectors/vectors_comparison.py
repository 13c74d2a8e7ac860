"""Two builds of an eBPF program on one kernel, compared by what they do with packets of a capture: no ports, no load.

Both are loaded in turn on one testbed that is up. That is what a suite calls, and what result.json gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from pdrgate.builds.bpf_build import BpfBuild, BpfRefusedError
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.catalogue import DataPath, data_path
from pdrgate.gate.comparisons.packet_vectors.compared_vectors import ComparedVectors
from pdrgate.gate.comparisons.packet_vectors.loaded_runs import LoadedRuns, RunsOfTestbed
from pdrgate.gate.comparisons.packet_vectors.packet_vector import PacketVectors
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES
from pdrgate.gate.comparisons.pairs.failed_boots import refused_alone
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.fingerprinting import fingerprint
from pdrgate.gate.verdicts.change_verdict import comparison, summarised
from pdrgate.hosts.answers import understood
from pdrgate.measurands import Cost
from pdrgate.measurands.counted.load_cost import LOAD_COSTS
from pdrgate.measurands.counted.program_run import CodeReached
from pdrgate.observers.environment import Environment
from pdrgate.record.trial import Trial
from pdrgate.results.model import (
    ComparedBuilds,
    ComparisonResult,
    Details,
    Findings,
    Origin,
    ScenarioResult,
    Side,
    SideResult,
)
from pdrgate.results.vectors import VectorsResult
from pdrgate.results.verdict import Judgement, Verdict, graver
from pdrgate.testbeds import Testbed
from pdrgate.values.units import COST_TOLERANCE

_NO_GENERATOR = {"name": "none", "engine": "BPF_PROG_RUN"}


@dataclass(frozen=True, slots=True)
class VectorsScenario:
    """What is asked of both builds, by name and in words."""

    capture: PacketVectors
    beneath: Scenario
    """What the SUT is set up with besides."""

    @property
    def name(self) -> str:
        return f"packets-{self.capture.sha256[:12]}"

    @property
    def title(self) -> str:
        return f"{self.capture.title}, each by itself"


class VectorsComparison:
    """A comparison on packets: `measure`, `judge`, and `finish`.

    Args:
        beneath: the kernel's network beneath the programs, for what they ask of it.
        test: the Robot test that asks.
        kernel: the build that is booted under both programs; None: the testbed's own kernel.
    """

    def __init__(
        self, session: Session, beneath: Scenario, builds: Mapping[Side, BpfBuild], capture: PacketVectors, *,
        test: str = "", kernel: KernelBuild | None = None,
    ) -> None:  # fmt: skip
        self._kernel = kernel
        self.session = session
        self.scenario = VectorsScenario(capture, beneath)
        self.builds = builds
        self.judgement: Judgement | None = None
        self.uncounted = ""
        """Why instructions are not counted; empty when they are."""
        self.trials: tuple[Trial, ...] = ()
        """None: no traffic is sent."""
        self._test = test
        self._loads: dict[Side, list[LoadedRuns]] = {side: [] for side in SIDES}
        self._refused: Judgement | None = None
        """Why the candidate was not run, where the baseline was."""
        self._runs = 0
        self._environment = Environment()
        self._fingerprint: dict[str, str] = {}
        self._testbed = ""
        self._boot = ""

    def measure(self) -> None:
        """Load both builds in turn until their difference is known. Raises TestbedError."""
        session = self.session
        if (kernel := self._kernel) is None:
            self._measure_on(session.standing())
        else:
            session.leave()
            with session.booted(partial(session.boot, kernel)) as testbed:
                self._measure_on(testbed)
        self.judgement = self._refused or self.compared().judgement()

    def _measure_on(self, testbed: Testbed) -> None:
        session = self.session
        path = data_path(
            self.scenario.beneath.data_path, None, changes=None if testbed.disposable else session.changes,
            set_up=self.scenario.beneath.set_up, stays=True, report=session.observer.said,
        )  # fmt: skip
        try:
            self._set_up(testbed, path)
            while not self.compared().known and self._refused is None:
                number = len(self._loads["candidate"]) + 1
                for side in SIDES if number % 2 else SIDES[::-1]:
                    self._load(side, number)
        finally:
            for failure in path.restore():
                session.observer.said(failure)

    def _load(self, side: Side, number: int) -> None:
        build = self.builds[side]
        try:
            found = self._runner.load(build, self.scenario.capture.vectors)
        except BpfRefusedError as error:
            if side == "candidate" and self._loads["baseline"]:
                self._refused = refused_alone(str(error))
                return
            raise
        self._loads[side].append(found)
        self.session.observer.said(f"load {number} of the {side}, {build.label}: {found.load_cost}")

    def _set_up(self, testbed: Testbed, path: DataPath) -> None:
        set_up = self.scenario.beneath.set_up
        if set_up is not None:
            testbed.furnish(set_up.programs, set_up.words)
        with understood(testbed.hops[0].host.name):
            path.apply(testbed.hops)
            self._runner = RunsOfTestbed(testbed)
            self._environment = testbed.environment()
        self.uncounted, self._runs = self._runner.uncounted, self._runner.runs
        self._testbed, self._boot = testbed.sentence(), testbed.boot_id
        self._fingerprint = fingerprint(
            self.scenario.name, self.session.profile.name, self.session.config.name, testbed.describe(),
            _NO_GENERATOR, self._environment,
        )  # fmt: skip
        self.session.observer.said(f"{self.scenario.title}, by BPF_PROG_RUN, {self._runs} times for each load")
        self.session.say_once(self.uncounted)

    def compared(self, tolerance: float | None = None) -> ComparedVectors:
        """What the loads so far say by a tolerance; without one by that of the run."""
        asked = self.session.options.cost_tolerance
        usual = float(COST_TOLERANCE if asked is None else asked)
        return ComparedVectors(
            self.scenario.capture, self.builds["baseline"].kind, self._loads, usual if tolerance is None else tolerance,
            self.session.options.load_tolerance,
        )  # fmt: skip

    def judge(self, tolerance: float | None = None) -> Judgement:
        """The verdict by a tolerance of the cost; of several the gravest stands."""
        found = self._refused or self.compared(tolerance).judgement()
        self.judgement = graver(self.judgement, found)
        return found

    def finish(self, judgement: Judgement | None = None) -> Judgement:
        """Record what it came to.

        Args:
            judgement: of one that came to another end than its own.
        """
        final = judgement if judgement is not None and not judgement.verdict.passes else self.judgement or judgement
        final = final or Judgement(Verdict.ERROR, "the comparison ended before its verdict")
        self.session.record.add(self.result(final))
        return final

    def result(self, judgement: Judgement | None = None) -> ScenarioResult:
        """The scenario as result.json has it, as far as it came."""
        final = judgement or self.judgement or Judgement(Verdict.ERROR, "the comparison has not ended")
        ended = all(self._loads.values())
        compared = self.compared()
        return ScenarioResult(
            name=self.scenario.name, title=self.scenario.title, verdict=final.verdict, reason=final.reason,
            comparison=self._comparison(compared) if ended else None,
            origin=Origin(
                test=self._test, testbed=self._testbed, boot=self._boot,
                set_up={} if (steps := self.scenario.beneath.set_up) is None else steps.recorded(),
            ),
            findings=self._findings("candidate", compared if ended else None),
            builds=ComparedBuilds(sides=tuple(self._side(side, compared) for side in SIDES) if ended else ()),
            details=Details(uncounted=self.uncounted, vectors=self._vectors(compared) if ended else None),
        )  # fmt: skip

    def _vectors(self, compared: ComparedVectors) -> VectorsResult:
        capture = self.scenario.capture
        return VectorsResult(
            capture=capture.name, sha256=capture.sha256, packets=capture.packets, kind=compared.kind,
            loads=min(map(len, self._loads.values())), runs=self._runs, vectors=compared.vectors(),
            remarks=compared.remarks(),
        )  # fmt: skip

    def _comparison(self, compared: ComparedVectors) -> ComparisonResult | None:
        changes = (*filter(None, (compared.change,)), *compared.load_changes)
        if not changes:
            return None
        return comparison(
            changes, self.builds["baseline"].label, {}, functions=compared.functions,
            why_not="" if not any(compared.differences) else "its answers are others than the baseline's",
        )  # fmt: skip

    def _findings(self, side: Side, compared: ComparedVectors | None) -> Findings:
        """What is known of a build; without what was compared, what it ran on."""
        found = Findings(environment=self._environment.to_dict(), fingerprint=self._fingerprint)
        if compared is None:
            return found
        samples = {Cost.name: compared.samples(side)} | compared.load_costs(side)
        samples[CodeReached.name] = compared.reached(side)
        known = (Cost.about, *(kind.about for kind in LOAD_COSTS), CodeReached.about)
        told = [summarised(one.name, one.unit, one.better, samples.get(one.name, ())) for one in known]
        return replace(found, measurands=tuple(filter(None, told)), cost=compared.cost(side))

    def _side(self, side: Side, compared: ComparedVectors) -> SideResult:
        build = self.builds[side]
        return SideResult(
            side=side, build=build.label, digest=build.digest, findings=self._findings(side, compared)
        )  # fmt: skip

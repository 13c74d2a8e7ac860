"""One scenario of a run: set up, search, repeat, judge, and what of it goes into result.json."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pdrgate.crashes.kernel_log import KernelLog, read_kernel_log
from pdrgate.data_paths.catalogue import DataPath, data_path
from pdrgate.errors import PdrGateError, TestbedError
from pdrgate.gate.baseline import find_baseline
from pdrgate.gate.compare import Comparison, compare
from pdrgate.gate.fingerprint import fingerprint
from pdrgate.gate.interference import interference
from pdrgate.gate.measurer import Measurer
from pdrgate.gate.plan import further_load, grid, is_highest, round_order
from pdrgate.gate.probe import probe
from pdrgate.gate.progress import Progress, known_bounds
from pdrgate.gate.run import Run
from pdrgate.gate.scenario import Scenario
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.search.calibration import Calibration, calibrate
from pdrgate.search.goals import Goal
from pdrgate.search.mlr import GoalResult, Outcome, SearchResult, search
from pdrgate.search.patience import attempts
from pdrgate.stability import Assessment, assess
from pdrgate.stability import Verdict as Stability
from pdrgate.stability.checks import ENOUGH_DATA, SATURATION
from pdrgate.stats.intervals import mean, t_interval
from pdrgate.testbeds import Testbed
from pdrgate.traffic.generator import Generator, in_words
from pdrgate.trial import Trial
from pdrgate.units import Rate

CALIBRATION, SEARCH, REPEAT = "calibration", "search", "repeat"
"""Phases: why a trial was measured."""


@dataclass
class ScenarioRun:
    """One scenario of a run: `prepare`, then `search`, `repeat` and `judge` in this order, then `finish`.

    Each step leaves what it found behind, so that a scenario that ends early is reported as far as it came.

    Args:
        on: the testbed, where a run has several open; else its only one.
        boot: what tells this start of the SUT from all others; else what the testbed says.
        program: the eBPF object that the data path runs; else pdrgate's own, where it runs one.
        introduce: whether to say what is measured and with what.
        deadline: when the scenario should have ended, by the monotonic clock; else as its profile plans.
    """

    run: Run
    scenario: Scenario
    on: Testbed | None = None
    boot: str = ""
    program: Path | None = None
    introduce: bool = True
    deadline: float | None = None
    calibration: Calibration | None = None
    found: SearchResult | None = None
    assessment: Assessment | None = None
    comparison: Comparison | None = None
    judgement: Judgement | None = None
    carried: str = ""
    """How the SUT carries packets, in words; known once it is set up."""
    trials: list[Trial] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """What the SUT's kernel complained of meanwhile."""
    _path: DataPath | None = None
    _generator: Generator | None = None
    _measurer: Measurer | None = None
    fingerprint: dict[str, str] = field(default_factory=dict)
    _log: KernelLog | None = None

    def prepare(self) -> None:
        """Set the SUT up for the scenario and start the generator. Raises TestbedError."""
        testbed = self._testbed()
        options = self.run.options
        self.boot = self.boot or testbed.boot
        self._log = _kernel_log(testbed)
        self._path = data_path(self.scenario.data_path, self.program)
        self._path.apply(testbed.hops)
        testbed.set_buffer(self.scenario.buffer)
        testbed.pin(self.scenario.pinning)
        self._generator = testbed.generator(self._path.family)
        if not self._path.by_kernel:
            probe(self._path, testbed, self._generator, self.scenario.frames)
        self.carried = self._path.sentence()
        self.fingerprint = fingerprint(
            self.scenario.name,
            options.profile.name,
            self.run.config.name,
            testbed.describe(),
            self._generator.describe(),
            self.run.environment,
        ) | dict(self._path.describe())
        self._measurer = Measurer(
            self._generator,
            self.scenario.frames,
            testbed.counters,
            self.run.file,
            scenario=self.scenario.name,
            boot=self.boot,
            earlier=[
                trial for trial in self.run.earlier if trial.scenario == self.scenario.name and trial.boot == self.boot
            ],
            on_trial=self._told,
            check=self._check,
        )
        self.trials = self._measurer.trials
        if self.deadline is None:
            self.deadline = time.monotonic() + options.profile.estimate
        if not self.introduce:
            return
        carried = "" if self._path.by_kernel else f" ({self.carried})"
        self.run.observer.said(f"{self.scenario.title}{carried}; generator {in_words(self._generator.describe())}")

    def measure(self, load: float, duration: float, phase: str) -> Trial:
        """One trial."""
        if self._measurer is None:
            raise TestbedError("the SUT is not set up for a scenario; begin with what it routes")
        return self._measurer.measure(load, duration, phase)

    def measure_patiently(self, load: float, duration: float, phase: str) -> Trial:
        """One trial, the last of those that it takes; see `attempts`."""
        *_, trial = attempts(self._in(phase), load, duration)
        return trial

    def search(self, goals: Sequence[Goal]) -> SearchResult:
        """Calibrate, then search for the goals' bounds; sets a judgement when there is no PDR to go on with."""
        profile = self.run.options.profile
        if self.calibration is None:
            self.calibration = calibrate(self._in(CALIBRATION), profile.calibration_duration)
            self.run.observer.said(
                f"the generator offers up to {Rate(self.calibration.ceiling)}; "
                f"there the SUT forwards {Rate(self.calibration.forwarding_rate)}"
            )
        self.found = search(
            self._in(SEARCH),
            goals,
            min_load=self.calibration.min_load,
            max_load=self.calibration.max_load,
            budget=profile.search_budget,
        )
        result = self.found.results[-1]
        self.judgement = _search_failure(result, self.found, self.calibration)
        return self.found

    def repeat(self) -> Assessment:
        """Repeat trials below, at and beyond the PDR, and judge by PASTRAMI whether it can be trusted."""
        profile = self.run.options.profile
        if self.found is None or self.calibration is None:
            raise TestbedError("there is no PDR to repeat trials around; search it first")
        result = self.found.results[-1]
        centre = result.lower or result.upper
        if centre is None:
            raise TestbedError("the search found no load to repeat trials around")
        loads = set(grid(centre, profile.grid, self.calibration.max_load))
        repeats = self.rounds(loads, 1)
        repeats += self._extend(repeats, loads, result.goal.loss_ratio)
        repeats += self.rounds(loads, profile.repeats, begin=1)
        self.assessment = assess(
            repeats, reading=self.run.options.reading, plr_threshold=result.goal.loss_ratio, source=self.scenario.name
        )
        self.judgement = self.judgement or _stability_failure(self.assessment, self.calibration)
        disturbed = interference(repeats, self._testbed().sut_cpus)
        if disturbed and self.judgement is not None:
            self.judgement = Judgement(self.judgement.verdict, f"{self.judgement.reason}; meanwhile {disturbed}")
        elif disturbed:
            self.run.observer.said(f"while the repeats were measured, {disturbed}")
        return self.assessment

    def rounds(self, loads: Collection[float], end: int, begin: int = 0) -> list[Trial]:
        """The repeats of rounds ``begin`` to ``end`` (exclusive), each once through all loads."""
        return [self._repeat_one(load) for number in range(begin, end) for load in round_order(loads, number)]

    def judge(self, tolerance: float) -> Judgement:
        """Compare with the baseline, unless an earlier step has judged already."""
        if self.assessment is None:
            raise TestbedError("there is nothing to judge; search the PDR and repeat trials around it first")
        options = self.run.options
        if self.judgement is not None:
            return self.judgement
        per_run = self.pdr_per_run
        numbers = f"PDR {Rate(mean(per_run))}"
        if options.baseline is None:
            self.judgement = Judgement(
                Verdict.NO_BASELINE,
                f"{numbers}; this result can be the next run's: --baseline {_shown(options.folder)}",
            )
            return self.judgement
        baseline, why = find_baseline(options.baseline, self.fingerprint, options.folder)
        if baseline is None:
            self.judgement = Judgement(Verdict.NO_BASELINE, f"{numbers}; {why}")
            return self.judgement
        self.comparison, self.judgement = compare(per_run, baseline, tolerance, self.fingerprint)
        if others := self.comparison.besides_the_kernel():
            self.run.observer.said(others)
        return self.judgement

    @property
    def pdr_per_run(self) -> tuple[float, ...]:
        """The PDR of each repeat, packets/s; see `LoadLossCurve.saturated_pdr_per_run`."""
        if self.assessment is None:
            return ()
        return self.assessment.curve.saturated_pdr_per_run(self.assessment.plr_threshold)

    @property
    def left(self) -> float:
        """Seconds the scenario still takes, as planned."""
        return max(0.0, (self.deadline or 0.0) - time.monotonic())

    def finish(self, judgement: Judgement | None = None) -> Judgement:
        """Put the SUT back and record the scenario; ``judgement`` is for one that ended by an error."""
        self.release()
        final = judgement or self.judgement or Judgement(Verdict.ERROR, "the scenario ended before its verdict")
        self.judgement = final
        self.run.record(self.entry(final))
        return final

    def release(self) -> None:
        """Stop the generator, ask what the kernel complained of, and put the SUT back; may be called twice."""
        failures: list[str] = []
        if self._generator is not None:
            self._generator.close()
            self._generator = None
        if self._log is not None:
            earlier, self._log = self._log, None
            for line in _kernel_log(self._testbed(), earlier).since(earlier):
                self._complained(line)
        if self._path is not None:
            try:
                failures = [sentence for sentence in self._path.restore() if not sentence.startswith("put back")]
            except PdrGateError as error:
                failures = [str(error)]
            self._path = None
        for failure in failures:
            self.run.observer.said(failure)

    def _testbed(self) -> Testbed:
        return self.on or self.run.testbed

    def _check(self) -> None:
        for sentence in self._testbed().check():
            self._complained(sentence)

    def _complained(self, sentence: str) -> None:
        if sentence not in self.complaints:
            self.complaints.append(sentence)
            self.run.observer.said(f"the SUT's kernel: {sentence}")

    def _extend(self, repeats: Sequence[Trial], loads: set[float], plr_threshold: float) -> list[Trial]:
        """Load by load upwards, until the first round shows two loads past the PDR."""
        assert self.calibration is not None
        more: list[Trial] = []
        while (load := further_load([*repeats, *more], plr_threshold, self.calibration.max_load)) is not None:
            loads.add(load)
            more.append(self._repeat_one(load))
        return more

    def _repeat_one(self, load: float) -> Trial:
        return self.measure_patiently(load, self.run.options.profile.trial_duration, REPEAT)

    def _in(self, phase: str) -> Callable[[float, float], Trial]:
        return lambda load, duration: self.measure(load, duration, phase)

    def _told(self, trial: Trial, replayed: bool) -> None:
        goal = self.run.options.profile.goals[-1] if self.found is None else self.found.results[-1].goal
        lower, upper = known_bounds(self.trials, goal.loss_ratio)
        self.run.observer.measured(Progress(self.scenario, trial, len(self.trials), replayed, lower, upper, self.left))

    def entry(self, judgement: Judgement) -> dict[str, Any]:
        """The scenario as result.json has it."""
        return {
            "name": self.scenario.name,
            "title": self.scenario.title,
            "verdict": judgement.verdict,
            "reason": judgement.reason,
            "carried": self.carried,
            "boot": self.boot,
            "fingerprint": self.fingerprint,
            "trials": len(self.trials),
            "calibration": self.calibration
            and {"ceiling": self.calibration.ceiling, "forwarding_rate": self.calibration.forwarding_rate},
            "search": self.found and _search_entry(self.found),
            "pdr": pdr_entry(self.pdr_per_run),
            "assessment": self.assessment and self.assessment.to_dict(),
            "comparison": self.comparison and self.comparison.to_dict(),
            "complaints": list(self.complaints),
        }


def _kernel_log(testbed: Testbed, otherwise: KernelLog | None = None) -> KernelLog:
    """The log of the SUT's kernel; ``otherwise`` where it does not answer, for that is told elsewhere."""
    nothing = otherwise or KernelLog(None, None)
    try:
        return read_kernel_log(testbed.hops[0].host) if testbed.hops else nothing
    except TestbedError:
        return nothing


def _shown(folder: Path) -> Path:
    """As a person in the working directory would write it."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def pdr_entry(values: Sequence[float]) -> dict[str, Any] | None:
    """The mean of PDRs (packets/s) with its 95 % interval, as result.json has it; None when there are none."""
    if not values:
        return None
    interval = t_interval(values) if len(values) > 1 else None
    return {
        "load": mean(values),
        "lower": interval and interval.low,
        "upper": interval and interval.high,
        "per_run": list(values),
    }


def _search_failure(result: GoalResult, found: SearchResult, calibration: Calibration) -> Judgement | None:
    goal = result.goal
    if result.outcome is Outcome.NO_UPPER_BOUND:
        return Judgement(
            Verdict.GENERATOR_LIMITED,
            f"even {Rate(found.max_load)} loses no more than {goal.loss_ratio:.1%}, and the generator ends at "
            f"{Rate(calibration.ceiling)}; give the SUT more hops or less CPU, or use a faster generator",
        )
    if result.outcome is Outcome.GENERATOR_LIMITED:
        return Judgement(
            Verdict.GENERATOR_LIMITED,
            f"the generator fell short at {Rate(found.max_load)} and above, again and again; "
            "look for what else uses its CPU, or use a faster generator",
        )
    if result.outcome is Outcome.NO_LOWER_BOUND:
        return Judgement(
            Verdict.UNSTABLE,
            f"even the lowest load, {Rate(found.min_load)}, loses more than {goal.loss_ratio:.1%}: "
            "there is no PDR to find",
        )
    if result.lower is None:
        return Judgement(
            Verdict.INCONCLUSIVE,
            f"the search ended after {found.elapsed:.0f} s and {found.trials} trials without a lower bound; "
            "take a longer profile or a quieter machine",
        )
    return None


def _stability_failure(assessment: Assessment, calibration: Calibration) -> Judgement | None:
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


def _search_entry(found: SearchResult) -> dict[str, Any]:
    return {
        "goals": [
            {
                "name": result.goal.name,
                "loss_ratio": result.goal.loss_ratio,
                "width": result.goal.width,
                "outcome": result.outcome,
                "lower": result.lower,
                "upper": result.upper,
                "conditional_throughput": result.conditional_throughput,
            }
            for result in found.results
        ],
        "trials": found.trials,
        "elapsed": found.elapsed,
    }

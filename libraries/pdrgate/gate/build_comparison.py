"""Two builds of a kernel or an eBPF object, measured over several boots of each, in pairs.

Repeats within a boot do not show what the next boot would give: boots are the replicates, and the comparison works on
one number per boot. A pair is one boot of each build. Where the testbed can have both up at once, trials alternate
between them: what changes over time (another guest of the host, heat) meets both alike and drops out of their ratio.
Where it cannot, the boots of a pair follow each other, A B, then B A.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pdrgate.crashes.faults import Crash
from pdrgate.errors import DataError, PdrGateError, TestbedError
from pdrgate.gate.compare import CONFIDENCE, Baseline, Comparison, compare_pairs
from pdrgate.gate.plan import grid, round_order
from pdrgate.gate.profile import BOOT_GRID
from pdrgate.gate.run import Run
from pdrgate.gate.scenario import Scenario
from pdrgate.gate.scenario_run import REPEAT, ScenarioRun, pdr_entry
from pdrgate.guests.guest import GuestError
from pdrgate.history.lines import LineFile
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.safety.journal import Journal
from pdrgate.stability import Assessment, assess
from pdrgate.stability import Verdict as Stability
from pdrgate.stability.assessment import steady
from pdrgate.stats.intervals import mean
from pdrgate.testbeds import Booting, Testbed
from pdrgate.trial import Trial
from pdrgate.units import Rate

PAIRS_FILE = "pairs.jsonl"
"""Each pair of boots on a line, for the run that continues this one."""

SideName = Literal["baseline", "candidate"]
_MOST_FAILURES = 2
"""Boots of one build that may fail; one failure can be the testbed's, two are the build's."""
_FEWEST_PAIRS = 6
"""Before the comparison may end early: the deviation of fewer is anybody's guess."""
_EARLY_CONFIDENCE = 0.99
"""Looking after every pair makes wrong verdicts likelier: the looks before the last ask for more. By simulation, a
change of just the tolerance is called PASS in 3 to 5 %, REGRESSION in 4 to 6 % (tests/bench/boot_pairs.py)."""
_TOP_TRIALS = 3
"""Further trials at the highest load in each boot: they are what its PDR is told by."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two builds: what a person calls it, and how a testbed on a fresh boot of it is had."""

    name: SideName
    label: str
    boot: Callable[[Journal], Testbed]
    program: Path | None = None
    """The eBPF object that is the build, on one kernel for both sides."""


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot of a side; ``pdr`` in packets/s is None when it did not come to one, as ``failure`` says."""

    side: SideName
    pair: int
    boot: str
    kernel: str
    pdr: float | None
    failure: str = ""
    complaints: tuple[str, ...] = ()
    """What the kernel complained of meanwhile."""
    crash: Crash | None = None

    def to_dict(self) -> dict[str, Any]:
        """The boot as result.json has it."""
        crash = self.crash and {
            "kind": self.crash.kind,
            "line": self.crash.line,
            "rip": self.crash.rip,
            "trace": list(self.crash.trace),
            "fingerprint": self.crash.fingerprint,
        }
        return {
            "side": self.side,
            "pair": self.pair,
            "boot": self.boot,
            "kernel": self.kernel,
            "pdr": self.pdr,
            "failure": self.failure,
            "complaints": list(self.complaints),
            "crash": crash,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """How many pairs of boots a comparison may cost. It ends early once the interval has left the tolerance."""

    pairs: int
    """At most."""
    budget: float
    """Seconds after which no pair is begun, once there are two."""
    tolerance: float
    together: bool = True
    """Whether the boots of a pair are up at once and measured in turn."""


@dataclass
class _Started:
    """A boot that is up, with its trials."""

    side: Side
    subject: ScenarioRun
    boot: str = ""
    kernel: str = ""
    trials: list[Trial] = field(default_factory=list)


class _BootError(Exception):
    def __init__(self, side: SideName, error: TestbedError, boot: str = "", kernel: str = "") -> None:
        self.side = side
        self.error = error
        self.boot = boot
        self.kernel = kernel


def decided(candidate: Sequence[float], baseline: Baseline, tolerance: float) -> Verdict | None:
    """The verdict of a comparison that needs no further pair; None while it does."""
    if len(candidate) < _FEWEST_PAIRS or len(candidate) % 2:
        # Of two guests the one booted later is a little slower: only even numbers of pairs are fair to both.
        return None
    _, judgement = compare_pairs(candidate, baseline, tolerance, confidence=_EARLY_CONFIDENCE)
    return None if judgement.verdict is Verdict.INCONCLUSIVE else judgement.verdict


class BuildComparison:
    """One scenario over boots of two builds: `measure`, then `judge`, then `finish`.

    The first boot of each side searches its PDR. All boots then measure one grid of loads around both, so that the
    trials of a side can be assessed together.
    """

    def __init__(self, run: Run, scenario: Scenario, sides: Mapping[SideName, Side], plan: Plan) -> None:
        self.run = run
        self.scenario = scenario
        self.sides = sides
        self.plan = plan
        self.boots: list[Boot] = []
        self.assessments: dict[SideName, Assessment] = {}
        self.comparison: Comparison | None = None
        self.judgement: Judgement | None = None
        self._searched: dict[SideName, ScenarioRun] = {}
        self._entry: dict[str, Any] = {}
        """What of the candidate's first boot is reported."""
        self._deadline = time.monotonic() + plan.budget
        self._repeats: dict[SideName, list[Trial]] = {"baseline": [], "candidate": []}
        self._loads: tuple[float, ...] = ()
        self._fingerprints: dict[str, dict[str, str]] = {}

    def measure(self) -> None:
        """Pairs of boots until the change is known; sets a judgement when there is nothing to compare."""
        with LineFile(self.run.options.folder / PAIRS_FILE) as file:
            self._resume(file)
            while self.judgement is None and self._pairs < self.plan.pairs and not self._decided():
                if time.monotonic() > self._deadline and self._pairs >= 2:
                    self.run.observer.said("the time is up: no further boots")
                    break
                try:
                    self._pair(self._pairs + 1)
                except _BootError as failed:
                    self._failed(failed)
                    continue
                if self.judgement is None:
                    file.append_line(json.dumps(self._line(), allow_nan=False))
                    self._tell()
        if self.judgement is None:
            self._assess()

    def pdrs(self, side: SideName) -> tuple[float, ...]:
        """The PDR of each boot of a side, packets/s, in the order of the pairs."""
        return tuple(boot.pdr for boot in self.boots if boot.side == side and boot.pdr is not None)

    def judge(self, tolerance: float) -> Judgement:
        """Compare the boots' PDRs, unless an earlier step has judged already."""
        if self.judgement is None:
            self.comparison, self.judgement = self._compared(tolerance, self._confidence)
            if others := self.comparison.besides_the_kernel():
                self.run.observer.said(others)
        return self.judgement

    def finish(self, judgement: Judgement | None = None) -> Judgement:
        """Leave the last boots and record the scenario; ``judgement`` is for one that ended by an error."""
        self.run.leave()
        final = judgement or self.judgement or Judgement(Verdict.ERROR, "the comparison ended before its verdict")
        self.judgement = final
        entry = ScenarioRun(self.run, self.scenario).entry(final)
        self.run.record(
            entry
            | self._entry
            | {
                "fingerprint": self._fingerprints.get("candidate", {}),
                "trials": sum(map(len, self._repeats.values())),
                "pdr": pdr_entry(self.pdrs("candidate")),
                "baseline_pdr": pdr_entry(self.pdrs("baseline")),
                "assessment": self.assessments["candidate"].to_dict() if "candidate" in self.assessments else None,
                "comparison": self.comparison and self.comparison.to_dict(),
                "complaints": self._new_complaints(),
                "builds": {name: side.label for name, side in self.sides.items()},
                "boots": [boot.to_dict() for boot in self.boots],
            }
        )
        return final

    def _new_complaints(self) -> list[str]:
        """What the candidate's kernel complained of and the baseline's did not."""
        told: dict[SideName, list[str]] = {
            name: [line for boot in self.boots if boot.side == name for line in boot.complaints] for name in self.sides
        }
        return [line for line in dict.fromkeys(told["candidate"]) if line not in told["baseline"]]

    @property
    def _pairs(self) -> int:
        return len(self.pdrs("candidate"))

    def _compared(self, tolerance: float, confidence: float) -> tuple[Comparison, Judgement]:
        return compare_pairs(
            self.pdrs("candidate"), self._baseline(), tolerance, self._fingerprints["candidate"], confidence=confidence
        )

    def _baseline(self) -> Baseline:
        return Baseline(self.sides["baseline"].label, self.pdrs("baseline"), self._fingerprints.get("baseline", {}))

    def _decided(self) -> bool:
        """Whether the pairs so far leave no doubt."""
        return decided(self.pdrs("candidate"), self._baseline(), self.plan.tolerance) is not None

    @property
    def _confidence(self) -> float:
        """What the interval of the verdict holds: an early end asks for more."""
        return _EARLY_CONFIDENCE if self._decided() else CONFIDENCE

    # --- One pair ---

    def _pair(self, number: int) -> None:
        order: tuple[SideName, ...] = ("baseline", "candidate") if number % 2 else ("candidate", "baseline")
        groups = [order] if self.plan.together else [(name,) for name in order]
        done: list[_Started] = []
        for group in groups:
            started: list[_Started] = []
            try:
                booting = [self._begin(self.sides[name], number) for name in group]
                for side, testbed in zip(group, booting, strict=True):
                    # One by one: what was started before a failure must be released.
                    started.append(self._start(self.sides[side], testbed, number))
                for one in started:
                    self._search(one)
                if self.judgement is not None:
                    return
                self._loads = self._loads or self._grid()
                self._measure(started, number)
            finally:
                for one in reversed(started):
                    self._release(one.subject)
                self.run.leave()
            done += started
        for one in done:
            self._repeats[one.side.name] += one.trials
            complaints = tuple(one.subject.complaints)
            self.boots.append(Boot(one.side.name, number, one.boot, one.kernel, self._pdr(one), complaints=complaints))

    def _begin(self, side: Side, number: int) -> Testbed:
        self.run.observer.said(f"boot {number} of the {side.name}, {side.label}")
        try:
            return self.run.begin(side.boot)
        except TestbedError as error:
            raise _BootError(side.name, error) from error

    def _start(self, side: Side, testbed: Testbed, number: int) -> _Started:
        boot = kernel = ""
        try:
            introduce = not self._loads
            self.run.ready(testbed, introduce)
            # Namespaces made anew are a start of the SUT too, though its kernel stays.
            boot = testbed.boot if isinstance(testbed, Booting) else f"{testbed.boot}-{side.name}-{number}"
            kernel = self.run.environment.kernel_release or "unknown"
            subject = ScenarioRun(
                self.run, self.scenario, on=testbed, boot=boot, program=side.program, introduce=introduce,
                deadline=self._deadline,
            )  # fmt: skip
            try:
                subject.prepare()
            except BaseException:
                self._release(subject)
                raise
        except TestbedError as error:
            raise _BootError(side.name, error, boot, kernel) from error
        self._fingerprints[side.name] = subject.fingerprint
        return _Started(side, subject, boot, kernel)

    def _search(self, one: _Started) -> None:
        """Search the PDR, once for each side."""
        name = one.side.name
        if name in self._searched or self._loads or self.judgement is not None:
            return
        with _blamed_on(one):
            one.subject.search(self.run.options.profile.goals)
        self._searched[name] = one.subject
        found = one.subject.judgement
        if name == "candidate":
            self._entry = {key: one.subject.entry(Judgement(Verdict.ERROR, ""))[key] for key in _FIRST_BOOT}
        if found is not None:
            self.judgement = Judgement(found.verdict, f"the {name} {one.side.label}: {found.reason}")

    def _grid(self) -> tuple[float, ...]:
        centres, ceilings = [], []
        for subject in self._searched.values():
            assert subject.found is not None
            assert subject.calibration is not None
            result = subject.found.results[-1]
            centre = result.lower or result.upper
            assert centre is not None
            centres.append(centre)
            ceilings.append(subject.calibration.max_load)
        return grid(min(centres), BOOT_GRID, min(ceilings), highest=max(centres))

    def _measure(self, started: Sequence[_Started], number: int) -> None:
        """All loads once and the highest some times more, each load on one boot after the other."""
        loads = [*round_order(self._loads, number), *[self._loads[-1]] * _TOP_TRIALS]
        for turn, load in enumerate(loads):
            for one in started if turn % 2 == 0 else reversed(started):
                with _blamed_on(one):
                    duration = self.run.options.profile.boot_trial
                    one.trials.append(one.subject.measure_patiently(load, duration, REPEAT))

    def _pdr(self, one: _Started) -> float:
        """The boot's PDR by its saturation throughput; the highest load tells it best (PASTRAMI Eq. 3)."""
        threshold = self.run.options.profile.goals[-1].loss_ratio
        top = [trial for trial in one.trials if trial.intended_load == self._loads[-1]]
        sound = [trial for trial in top if not trial.generator_limited]
        return mean([trial.forwarding_rate for trial in sound or top]) / (1.0 - threshold)

    def _release(self, subject: ScenarioRun) -> None:
        try:
            subject.release()
        except PdrGateError as error:
            # The guest may be gone, and with it all that was to be put back.
            self.run.observer.said(str(error))

    def _failed(self, failed: _BootError) -> None:
        number = self._pairs + 1
        crash = failed.error.crash if isinstance(failed.error, GuestError) else None
        self.boots.append(Boot(failed.side, number, failed.boot, failed.kernel, None, str(failed.error), crash=crash))
        self.run.observer.said(f"boot {number} of the {failed.side} failed: {failed.error}")
        if crash is not None:
            for frame in crash.trace:
                self.run.observer.said(f"    {frame}")
        if not self._loads:
            self._searched.clear()
        failures = [boot for boot in self.boots if boot.side == failed.side and boot.failure]
        if len(failures) >= _MOST_FAILURES:
            label = self.sides[failed.side].label
            self.judgement = Judgement(
                Verdict.ERROR, f"{len(failures)} boots of the {failed.side} {label} failed, the last: {failed.error}"
            )

    def _tell(self) -> None:
        """Where the comparison stands after a pair."""
        values = ", ".join(f"{name} {Rate(self.pdrs(name)[-1])}" for name in self.sides)
        standing = ""
        if self._pairs > 1:
            comparison, _ = self._compared(self.plan.tolerance, CONFIDENCE)
            standing = f"; change so far {comparison.change:+.1%} ({comparison.lower:+.1%} to {comparison.upper:+.1%})"
        self.run.observer.said(f"pair {self._pairs} of at most {self.plan.pairs}: {values}{standing}")

    # --- All pairs ---

    def _assess(self) -> None:
        """Judge the shape of both curves, and whether the change stays the same from pair to pair."""
        threshold = self.run.options.profile.goals[-1].loss_ratio
        for name, side in self.sides.items():
            found = assess(
                self._repeats[name], reading=self.run.options.reading, plr_threshold=threshold, over_time=False,
                source=f"{self.scenario.name} {name}",
            )  # fmt: skip
            self.assessments[name] = found
            if found.verdict is not Stability.STABLE and self.judgement is None:
                self.judgement = Judgement(Verdict(found.verdict.value), f"the {name} {side.label}: {found.reason}")
        self._check_ratios()

    def _check_ratios(self) -> None:
        """Whether the change is one number; where it lies beyond the tolerance on any account, it need not be."""
        ratios = tuple(
            candidate / base for candidate, base in zip(self.pdrs("candidate"), self.pdrs("baseline"), strict=True)
        )
        checks = steady("candidate's PDR relative to the baseline's", ratios)
        failed = [check for check in checks if check.passed is False]
        if not failed or self.judgement is not None:
            return
        _, judgement = self._compared(self.plan.tolerance, self._confidence)
        if judgement.verdict not in (Verdict.REGRESSION, Verdict.IMPROVEMENT):
            self.judgement = Judgement(Verdict.UNSTABLE, f"over {len(ratios)} pairs of boots: {failed[0].sentence}")

    def _line(self) -> dict[str, Any]:
        """The last pair, and what the run that continues this one must know."""
        return {
            "scenario": self.scenario.name,
            "builds": {name: side.label for name, side in self.sides.items()},
            "loads": list(self._loads),
            "fingerprints": self._fingerprints,
            "entry": self._entry,
            "boots": [boot.to_dict() for boot in self.boots if boot.pdr is not None][-2:],
        }

    def _resume(self, file: LineFile) -> None:
        """Take over the pairs of the run that is continued; their boots are gone, their trials are on disk."""
        builds = {name: side.label for name, side in self.sides.items()}
        trials: dict[str, list[Trial]] = {}
        for trial in self.run.earlier:
            if trial.phase == REPEAT:
                trials.setdefault(trial.boot, []).append(trial)
        try:
            lines = [json.loads(text) for text in file.path.read_text().splitlines()]
            for line in (line for line in lines if (line["scenario"], line["builds"]) == (self.scenario.name, builds)):
                boots = [
                    Boot(
                        record["side"], record["pair"], record["boot"], record["kernel"], record["pdr"],
                        complaints=tuple(record["complaints"]),
                    )
                    for record in line["boots"]
                ]  # fmt: skip
                self._loads = tuple(line["loads"])
                self._fingerprints, self._entry = line["fingerprints"], line["entry"]
                self.boots += boots
                for boot in boots:
                    self._repeats[boot.side] += trials[boot.boot]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"cannot continue from {file.path}: it is damaged ({error!r}); start a new run") from error
        if self.boots:
            self.run.observer.said(f"{self._pairs} pairs of boots are taken over from the run that is continued")


_FIRST_BOOT = ("boot", "carried", "calibration", "search")


@contextlib.contextmanager
def _blamed_on(one: _Started) -> Iterator[None]:
    """A fault of the testbed while a boot is measured is that boot's."""
    try:
        yield
    except TestbedError as error:
        raise _BootError(one.side.name, error, one.boot, one.kernel) from error

"""Two builds of a kernel or an eBPF object, measured over several boots of each in turn.

Repeats within a boot do not show what the next boot would give: boots are the replicates, and the comparison works on
one number per boot. They alternate (A B B A …), so that what changes over time meets both sides alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pdrgate.errors import PdrGateError, TestbedError
from pdrgate.gate.compare import Baseline, Comparison, compare
from pdrgate.gate.plan import grid
from pdrgate.gate.run import Run
from pdrgate.gate.scenario import Scenario
from pdrgate.gate.scenario_run import ScenarioRun, pdr_entry
from pdrgate.gate.verdict import Judgement, Verdict
from pdrgate.stability import Assessment, assess
from pdrgate.stability import Verdict as Stability
from pdrgate.stats.intervals import mean
from pdrgate.sut.journal import Journal
from pdrgate.testbed import Testbed
from pdrgate.trial import Trial
from pdrgate.units import Rate

SideName = Literal["baseline", "candidate"]
_MOST_FAILURES = 2
"""Boots of one build that may fail; one failure can be the testbed's, two are the build's."""
_FEWEST_BOOTS = 2


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two builds: what a person calls it, and how a testbed on a fresh boot of it is had."""

    name: SideName
    label: str
    boot: Callable[[Journal], Testbed]


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot of a side that was measured; ``pdr`` in packets/s is None when the boot failed, as ``failure`` says."""

    side: SideName
    boot: str
    kernel: str
    pdr: float | None
    failure: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The boot as result.json has it."""
        return {"side": self.side, "boot": self.boot, "kernel": self.kernel, "pdr": self.pdr, "failure": self.failure}


def order(boots: int) -> Iterator[SideName]:
    """Whose turn it is, ``boots`` times each: A B, B A, A B …"""
    for pair in range(boots):
        first: tuple[SideName, SideName] = ("baseline", "candidate")
        yield from first if pair % 2 == 0 else first[::-1]


class BuildComparison:
    """One scenario over boots of two builds: `measure`, then `judge`, then `finish`.

    The first boot of each side searches its PDR. All boots of both sides repeat trials on one grid, around the
    baseline's, so that the trials of a side can be assessed together.

    Args:
        boots: of each side.
        rounds: repeats at each load in each boot.
        budget: seconds after which no boot is begun, once each side has two.
    """

    def __init__(
        self, run: Run, scenario: Scenario, sides: Mapping[SideName, Side], *, boots: int, rounds: int, budget: float
    ) -> None:
        self.run = run
        self.scenario = scenario
        self.sides = sides
        self.boots: list[Boot] = []
        self.assessments: dict[SideName, Assessment] = {}
        self.comparison: Comparison | None = None
        self.judgement: Judgement | None = None
        self.searched: dict[SideName, ScenarioRun] = {}
        self._wanted = boots
        self._rounds = rounds
        self._deadline = time.monotonic() + budget
        self._repeats: dict[SideName, list[Trial]] = {"baseline": [], "candidate": []}
        self._loads: tuple[float, ...] = ()
        self._fingerprints: dict[SideName, dict[str, str]] = {}

    def measure(self) -> None:
        """All boots of both sides; sets a judgement when there is nothing to compare."""
        for name in order(self._wanted):
            if time.monotonic() > self._deadline and min(map(len, map(self.pdrs, self.sides))) >= _FEWEST_BOOTS:
                self.run.observer.said("the time is up: no further boots")
                break
            while not self._boot(self.sides[name]):
                failures = [boot for boot in self.boots if boot.side == name and boot.pdr is None]
                if len(failures) >= _MOST_FAILURES:
                    self.judgement = Judgement(
                        Verdict.ERROR,
                        f"{len(failures)} boots of the {name} {self.sides[name].label} failed, "
                        f"the last: {failures[-1].failure}",
                    )
                    return
            if self.judgement is not None:
                return
        self._assess()

    def pdrs(self, side: SideName) -> tuple[float, ...]:
        """The PDR of each boot of a side, packets/s."""
        return tuple(boot.pdr for boot in self.boots if boot.side == side and boot.pdr is not None)

    def judge(self, tolerance: float) -> Judgement:
        """Compare the boots' PDRs, unless an earlier step has judged already."""
        if self.judgement is None:
            base = Baseline(self.sides["baseline"].label, self.pdrs("baseline"), self._fingerprints["baseline"])
            self.comparison, self.judgement = compare(
                self.pdrs("candidate"), base, tolerance, self._fingerprints["candidate"]
            )
        return self.judgement

    def finish(self, judgement: Judgement | None = None) -> Judgement:
        """Leave the last boot and record the scenario; ``judgement`` is for one that ended by an error."""
        self.run.leave()
        final = judgement or self.judgement or Judgement(Verdict.ERROR, "the comparison ended before its verdict")
        self.judgement = final
        candidate = self.searched.get("candidate") or ScenarioRun(self.run, self.scenario)
        self.run.record(
            candidate.entry(final)
            | {
                "trials": sum(map(len, self._repeats.values())),
                "pdr": pdr_entry(self.pdrs("candidate")),
                "assessment": self.assessments["candidate"].to_dict() if "candidate" in self.assessments else None,
                "comparison": self.comparison and self.comparison.to_dict(),
                "builds": {name: side.label for name, side in self.sides.items()},
                "boots": [boot.to_dict() for boot in self.boots],
            }
        )
        return final

    def _boot(self, side: Side) -> bool:
        """Boot a side and measure; False when the boot failed and another may be tried."""
        number = len([boot for boot in self.boots if boot.side == side.name]) + 1
        self.run.observer.said(f"boot {number} of the {side.name}, {side.label}")
        subject = ScenarioRun(self.run, self.scenario)
        boot, kernel = "", ""
        try:
            self.run.use(side.boot)
            boot, kernel = self.run.testbed.boot, self.run.environment.kernel_release or "unknown"
            subject.prepare()
            self._fingerprints[side.name] = subject.fingerprint
            if side.name not in self.searched:
                self.searched[side.name] = subject
                subject.search(self.run.options.profile.goals)
                if subject.judgement is not None:
                    self.judgement = Judgement(
                        subject.judgement.verdict, f"the {side.name} {side.label}: {subject.judgement.reason}"
                    )
                    return True
            if not self._loads:
                self._loads = self._grid(subject)
            repeats = subject.rounds(self._loads, self._rounds)
        except TestbedError as error:
            self.boots.append(Boot(side.name, boot, kernel, None, str(error)))
            self.searched.pop(side.name, None)
            self.run.observer.said(f"the boot failed: {error}")
            return False
        finally:
            self._release(subject)
        self._repeats[side.name] += repeats
        pdr = self._pdr(repeats)
        self.boots.append(Boot(side.name, boot, kernel, pdr))
        self.run.observer.said(f"boot {number} of the {side.name}: PDR {Rate(pdr)}")
        return True

    def _release(self, subject: ScenarioRun) -> None:
        try:
            subject.release()
        except PdrGateError as error:
            # The guest may be gone, and with it all that was to be put back.
            self.run.observer.said(str(error))

    def _grid(self, subject: ScenarioRun) -> tuple[float, ...]:
        assert subject.found is not None
        assert subject.calibration is not None
        result = subject.found.results[-1]
        centre = result.lower or result.upper
        assert centre is not None
        return grid(centre, self.run.options.profile.grid, subject.calibration.max_load)

    def _pdr(self, repeats: list[Trial]) -> float:
        """The boot's PDR by its saturation throughput; the highest load tells it best (PASTRAMI Eq. 3)."""
        threshold = self.run.options.profile.goals[-1].loss_ratio
        top = [trial for trial in repeats if trial.intended_load == self._loads[-1] and not trial.generator_limited]
        past = top or repeats
        return mean([trial.forwarding_rate for trial in past]) / (1.0 - threshold)

    def _assess(self) -> None:
        threshold = self.run.options.profile.goals[-1].loss_ratio
        for name in self.sides:
            found = assess(
                self._repeats[name], reading=self.run.options.reading, plr_threshold=threshold,
                source=f"{self.scenario.name} {name}",
            )  # fmt: skip
            self.assessments[name] = found
            if found.verdict is not Stability.STABLE and self.judgement is None:
                label = self.sides[name].label
                self.judgement = Judgement(Verdict(found.verdict.value), f"the {name} {label}: {found.reason}")

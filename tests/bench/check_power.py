"""How often each stability check fails: on sound SUTs, and on SUTs with the fault that it is for, by simulation.

    .venv/bin/python tests/bench/check_power.py [--runs 200] [--profile quick]

No packet is sent: these say how the checks behave and nothing about a machine. Each run is a whole one of the profile's
size, with the trials that the gate would make, in its order. In % of the runs: verdicts other than STABLE, and every
check that failed. A check that a profile is too small for is named with what it says.
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))

from curves import EarlyLoss, Livelock
from flat_values import changed
from simulated_sut import Behaviour, IdealCurve, LoadLoss, RealisticCurve, SimulatedSut

from pdrgate.gate.run.profile import PROFILES, TOP_TRIALS, Profile
from pdrgate.gate.scenarios.load_plan import grid, round_order
from pdrgate.gate.scenarios.replicate_samples import Measurands
from pdrgate.measurands import Setting, Sweep
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.search.goals import PDR_GOAL
from pdrgate.stability import Assessment, StabilityVerdict, assess
from pdrgate.stability.checks import ENOUGH_DATA
from pdrgate.stats.intervals import mean

CAPACITY = 500e3


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of SUT."""

    name: str
    check: str
    """The check that is to find it; empty for a sound one."""
    behaviour: Behaviour = field(default_factory=Behaviour)
    curve: Callable[[float], LoadLoss] = IdealCurve
    drift: float = 0.0
    """Over the run."""


def slow_loss(share: float, level: float) -> LoadLoss:
    return EarlyLoss(level, 0.0, share)


SOUND = (
    Case("quiet (0.3 %)", ""),
    Case("noise of 1 %", "", Behaviour(0.01)),
    Case("noise of 3 %", "", Behaviour(0.03)),
    Case("1 %, heavy tails", "", Behaviour(0.01, heavy_tails=True)),
    Case("1 %, realistic curve", "", Behaviour(0.01), RealisticCurve),
    Case("1 %, 1 of 36 trials dips", "", Behaviour(0.01, dips=1 / 36)),
    Case("0.3 %, neighbours alike (0.9)", "", Behaviour(0.003, correlation=0.9)),
    Case("0.5 %, neighbours alike (0.5)", "", Behaviour(0.005, correlation=0.5)),
)
FAULTS = (
    Case("drifts by 2 %, noise 0.3 %", "trend", drift=-0.02),
    Case("drifts by 3 %, noise 0.3 %", "trend", drift=-0.03),
    Case("drifts by 5 %, noise 1 %", "trend", Behaviour(0.01), drift=-0.05),
    Case("wanders (0.5) by 1 %", "autocorrelation", Behaviour(0.01, correlation=0.5)),
    Case("wanders (0.9) by 2 %", "autocorrelation", Behaviour(0.02, correlation=0.9)),
    Case("wanders (0.95) by 5 %", "autocorrelation", Behaviour(0.05, correlation=0.95)),
    Case("flips by 5 %, noise 0.3 %", "two modes", Behaviour(0.003, modes=(1.0, 0.95))),
    Case("flips by 10 %, noise 1 %", "two modes", Behaviour(0.01, modes=(1.0, 0.9))),
    Case("flips by 20 %, noise 1 %", "two modes", Behaviour(0.01, modes=(1.0, 0.8))),
    Case("flips by 10 %, 20:80, noise 0.3 %", "two modes", Behaviour(0.003, modes=(1.0, 1.0, 1.0, 1.0, 0.9))),
    Case("noise of 7 %", "spread", Behaviour(0.07)),
    Case("noise of 10 %", "spread", Behaviour(0.10)),
    Case("loses 0.2 % at low load", "low load loss", curve=partial(slow_loss, 0.002)),
    Case("loses 0.3 % at low load", "low load loss", curve=partial(slow_loss, 0.003)),
    Case("livelocks at 1.3 of its capacity", "livelock", curve=Livelock),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Of one run."""

    verdict: StabilityVerdict
    failed: tuple[str, ...]
    silent: tuple[tuple[str, str], ...]
    """Checks that could not tell, and what they say."""


def trials_of(profile: Profile, case: Case, seed: int) -> list[tuple[list[Trial], float | None]]:
    """Of a run whose search found the PDR: of each repeat, with the PDR that they tell."""
    # The search of a SUT that flips ends somewhere between its speeds: the lower is the hardest for the checks.
    loads = grid(CAPACITY * min(case.behaviour.modes), profile.grid, 1e9)
    measurands = Measurands.of(
        Setting(
            loads=tuple(loads),
            duration=profile.trial_duration,
            loss_ratio=PDR_GOAL.loss_ratio,
            top_trials=TOP_TRIALS,
            width=max(0.01, profile.finest_width),
        )
    )
    expected = profile.repeats * (len(loads) + TOP_TRIALS)  # one more tells the PDR
    sut = SimulatedSut(case.curve(CAPACITY), replace(case.behaviour, drift=case.drift / expected), seed=seed)
    trials: list[tuple[list[Trial], float | None]] = []
    for number in range(profile.repeats):
        own: list[Trial] = []
        for step in measurands.steps(Sweep(round_order(loads, number), profile.trial_duration))[:3]:
            while (ask := step.next(own)) is not None:
                own.append(changed(sut.measure(ask.load, ask.duration), phase=ask.phase, repeat=number + 1))
        trials.append((own, measurands.pdr.value(own)))
    return trials


def run(profile: str, case: Case, seed: int) -> Found:
    repeats = trials_of(PROFILES[profile], case, seed)  # type: ignore[index]
    pdrs = [value for _, value in repeats if value is not None]
    found: Assessment = assess(
        [trial for own, _ in repeats for trial in own if trial.occasion.phase == Phase.REPEAT],
        spare_dips=True,
        pdr=mean(pdrs) if pdrs else None,
    )
    return Found(
        found.verdict,
        tuple(check.name for check in found.failed if check.name != ENOUGH_DATA),
        tuple((check.name, check.sentence) for check in found.checks if check.passed is None),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="of each case and profile; a tenth of them for pastrami")
    parser.add_argument("--profile", choices=PROFILES, action="append")
    options = parser.parse_args()
    began = time.monotonic()
    with ProcessPoolExecutor(2) as pool:
        for profile in options.profile or PROFILES:
            runs = max(20, options.runs // 10) if profile == "pastrami" else options.runs
            silent: dict[str, str] = {}
            sound: Counter[str] = Counter()
            print(f"\n{profile}, {runs} runs of each: verdicts in %, and which checks failed in % of them")
            for case in (*SOUND, *FAULTS):
                first = zlib.crc32(f"{profile} {case.name}".encode())
                found = list(pool.map(partial(run, profile, case), range(first, first + runs), chunksize=20))
                verdicts = Counter(one.verdict for one in found)
                failed = Counter(name for one in found for name in one.failed)
                if not case.check:
                    sound.update(failed)
                    sound["UNSTABLE"] += verdicts[StabilityVerdict.UNSTABLE]
                    silent |= dict(pair for one in found for pair in one.silent)
                shares = "".join(f"{100 * verdicts[each] / runs:>7.1f}" for each in list(StabilityVerdict)[:3])
                hit = f"{case.check} {100 * failed[case.check] / runs:.1f}" if case.check else ""
                others = ", ".join(
                    f"{name} {100 * times / runs:.1f}" for name, times in failed.most_common() if name != case.check
                )
                print(f"{case.name:<36}{shares}  {hit:<22}{others}", flush=True)
            total = runs * len(SOUND)
            print("sound, all: " + ", ".join(f"{name} {100 * n / total:.2f}" for name, n in sound.most_common()))
            for name, sentence in silent.items():
                print(f"  {name}: {sentence}")
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()

"""The PDR by one curve through all trials, beside MLRsearch and today's measurand, on the same simulated trials.

    .venv/bin/python tests/bench/curve_fit.py [--runs 200] [--profile quick]

No packet is sent: these say how the rules behave and nothing about a machine. Each run searches with the profile's
goals, and then repeats as the gate does. "search" is the conditional throughput of MLRsearch, "repeats" the mean of the
PDRs of the repeats with its t-interval of 95 %, "curve" the fit through the trials of both. "boot" has the trials of
one boot of a comparison. Errors are of the PDR, in %: median, and what 95 of 100 stay below; "x s" is the median times
the root of the seconds of traffic, which compares methods that may take as long as they like.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
import types
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))

from curves import EarlyLoss, Livelock
from flat_values import changed
from one_curve import fit
from scipy.optimize import brentq
from simulated_sut import Behaviour, IdealCurve, LoadLoss, RealisticCurve, SimulatedSut

from pdrgate.gate.run.profile import BOOT_GRID, BOOT_WIDTH, PROFILES, STEADY_TOP_TRIALS, TOP_TRIALS
from pdrgate.gate.scenarios.load_plan import grid, round_order
from pdrgate.gate.scenarios.replicate_samples import Measurands
from pdrgate.measurands import Setting, Sweep
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.search import mlr
from pdrgate.search.goals import PDR_GOAL
from pdrgate.stats.intervals import mean, t_interval

CAPACITY = 500e3


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    behaviour: Behaviour
    curve: Callable[[float], LoadLoss] = IdealCurve

    @property
    def pdr(self) -> float:
        """The true one, packets/s."""
        curve = self.curve(CAPACITY)
        if isinstance(curve, EarlyLoss):
            return curve.begins * CAPACITY
        return float(brentq(lambda load: curve.loss_ratio(load) - PDR_GOAL.loss_ratio, 0.5 * CAPACITY, 1.2 * CAPACITY))


def early(level: float) -> LoadLoss:
    return EarlyLoss(level, 0.9)


CASES = (
    Case("trials deviate by 0.5 %", Behaviour(0.005)),
    Case("1 %", Behaviour(0.01)),
    Case("3 %", Behaviour(0.03)),
    Case("5 %", Behaviour(0.05)),
    Case("1 %, 1 of 36 dips", Behaviour(0.01, dips=1 / 36)),
    Case("1 %, 1 of 10 dips", Behaviour(0.01, dips=0.1)),
    Case("1 %, realistic curve", Behaviour(0.01), RealisticCurve),
    Case("1 %, loses 2 % from 0.9 on", Behaviour(0.01), early),
    Case("1 %, livelocks at 1.3", Behaviour(0.01), Livelock),
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a method said of the PDR in one run: packets/s, its interval, and what it cost in seconds of traffic."""

    value: float | None
    low: float
    high: float
    seconds: float


def run(profile_name: str, case: Case, seed: int) -> dict[str, Told]:
    profile = PROFILES[profile_name]  # type: ignore[index]
    clock = [0.0]
    mlr.time = types.SimpleNamespace(monotonic=lambda: clock[0])  # type: ignore[attr-defined]
    sut = SimulatedSut(case.curve(CAPACITY), case.behaviour, seed=seed)
    searching: list[Trial] = []

    def measure(load: float, duration: float) -> Trial:
        clock[0] += duration
        searching.append(changed(sut.measure(load, duration), phase=Phase.SEARCH))
        return searching[-1]

    found = mlr.search(
        measure, profile.goals, min_load=CAPACITY / 100, max_load=2 * CAPACITY, budget=profile.search_budget
    ).results[-1]
    bounds = found.lower or CAPACITY, found.upper or CAPACITY
    told = {"search": Told(found.conditional_throughput, bounds[0], bounds[1], clock[0])}
    centre = found.lower or found.upper or CAPACITY
    told |= _repeated("", sut, grid(centre, profile.grid, 1e9), profile.trial_duration, profile.repeats, TOP_TRIALS,
                      max(found.width, profile.finest_width), searching)  # fmt: skip
    told |= _repeated("boot: ", sut, grid(centre, BOOT_GRID, 1e9), profile.boot_trial, 1, STEADY_TOP_TRIALS,
                      BOOT_WIDTH, [])  # fmt: skip
    return told


def _repeated(
    name: str, sut: SimulatedSut, loads: tuple[float, ...], duration: float, repeats: int, top: int, width: float,
    before: list[Trial],
) -> dict[str, Told]:  # fmt: skip
    measurands = Measurands.of(
        Setting(loads=tuple(loads), duration=duration, loss_ratio=PDR_GOAL.loss_ratio, top_trials=top, width=width)
    )
    values, trials = [], []
    for number in range(repeats):
        own: list[Trial] = []
        for step in measurands.steps(Sweep(round_order(loads, number), duration))[:3]:
            while (ask := step.next(own)) is not None:
                own.append(changed(sut.measure(ask.load, ask.duration), phase=ask.phase, repeat=number + 1))
        if (value := measurands.pdr.value(own)) is not None:
            values.append(value)
        trials += own
    seconds = sum(trial.sending_time for trial in trials)
    interval = t_interval(values) if len(values) > 1 else None
    old = Told(mean(values) if values else None, interval.low if interval else math.nan,
               interval.high if interval else math.nan, seconds)  # fmt: skip
    everything = [*before, *trials]
    curve = fit(everything, PDR_GOAL.loss_ratio)
    cost = seconds + sum(trial.sending_time for trial in before)
    new = Told(curve.pdr.value, curve.pdr.interval.low, curve.pdr.interval.high, cost) if curve else \
        Told(None, math.nan, math.nan, cost)  # fmt: skip
    return {f"{name}repeats": old, f"{name}curve": new}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--profile", choices=PROFILES, default="quick")
    options = parser.parse_args()
    began = time.monotonic()
    head = f"{'METHOD':<18}{'NONE':>6}{'MEDIAN':>8}{'95 OF 100':>11}{'BIAS':>8}{'x s':>8}{'HOLDS':>7}"
    head += f"{'WIDTH':>7}{'SECONDS':>9}"
    with ProcessPoolExecutor(2) as pool:
        for case in CASES:
            first = zlib.crc32(case.name.encode())
            runs = list(pool.map(partial(run, options.profile, case), range(first, first + options.runs), chunksize=10))
            print(f"\n{case.name}\n{head}")
            for method in runs[0]:
                told = [one[method] for one in runs]
                known = [one for one in told if one.value is not None]
                if not known:
                    print(f"{method:<18}{100:>6}")
                    continue
                signed = [(one.value or 0.0) / case.pdr - 1 for one in known]
                errors = sorted(map(abs, signed))
                middle = statistics.median(errors)
                seconds = statistics.median(one.seconds for one in told)
                holds = statistics.mean(one.low <= case.pdr <= one.high for one in known)
                width = statistics.median(one.high - one.low for one in known) / case.pdr
                print(
                    f"{method:<18}{100 - 100 * len(known) / len(told):>6.1f}{100 * middle:>8.2f}"
                    f"{100 * errors[int(0.95 * (len(errors) - 1))]:>11.2f}{100 * statistics.mean(signed):>8.2f}"
                    f"{100 * middle * math.sqrt(seconds):>8.2f}{100 * holds:>7.1f}{100 * width:>7.2f}{seconds:>9.1f}",
                    flush=True,
                )
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()

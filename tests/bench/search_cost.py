"""What a search costs: trials, traffic seconds and scatter of the result, for the profiles' goals on simulated SUTs.

    .venv/bin/python tests/bench/search_cost.py [--seeds 50] [--overhead 0.03]

The clock is the traffic's own, plus an overhead per trial; no packet is sent.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))

from simulated_sut import Behaviour, Ceiling, IdealCurve, LoadLoss, RealisticCurve, SimulatedSut

from pdrgate.gate.run.profile import PROFILES, Profile
from pdrgate.record.trial import Trial
from pdrgate.search import mlr
from pdrgate.search.calibration import calibrate
from pdrgate.search.mlr import GoalOutcome, search

CAPACITY = 500e3
CURVES: dict[str, LoadLoss] = {"ideal": IdealCurve(CAPACITY), "realistic": RealisticCurve(CAPACITY)}
NOISES = (0.0, 0.003, 0.01)


def one(profile: Profile, curve: LoadLoss, noise: float, seed: int, overhead: float) -> tuple[int, float, float | None]:
    """Trials, seconds and the PDR's lower bound of one search."""
    clock = [0.0]
    mlr.time = types.SimpleNamespace(monotonic=lambda: clock[0])  # type: ignore[attr-defined]
    sut = SimulatedSut(curve, Behaviour(noise), seed=seed, ceiling=Ceiling(3 * CAPACITY))

    def measure(load: float, duration: float) -> Trial:
        trial = sut.measure(load, duration)
        clock[0] += trial.sending_time + overhead
        return trial

    calibration = calibrate(measure, profile.calibration_duration)
    clock[0] = 0.0
    found = search(measure, profile.goals, min_load=calibration.min_load, max_load=calibration.search_load,
                   budget=profile.search_budget)  # fmt: skip
    result = found.results[-1]
    return found.trials, clock[0], result.lower if result.outcome == GoalOutcome.FOUND else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--overhead", type=float, default=0.03, help="seconds that a trial takes beyond its traffic")
    options = parser.parse_args()
    print(f"medians of {options.seeds} searches; budget and time in seconds")
    print(f"{'profile':<10}{'goals':<10}{'curve':<11}{'noise':>6}{'found':>7}{'trials':>16}{'time':>17}{'budget':>8}"
          f"{'CV of PDR':>11}{'bias':>8}")  # fmt: skip
    for profile in PROFILES.values():
        goals = "+".join(goal.name for goal in profile.goals)
        for name, curve in CURVES.items():
            truth = _true_pdr(curve, profile.goals[-1].loss_ratio)
            for noise in NOISES:
                runs = [one(profile, curve, noise, seed, options.overhead) for seed in range(options.seeds)]
                trials, times = [run[0] for run in runs], [run[1] for run in runs]
                lowers = [lower for _, _, lower in runs if lower is not None]
                spread = statistics.stdev(lowers) / statistics.mean(lowers) if len(lowers) > 1 else float("nan")
                bias = statistics.mean(lowers) / truth - 1 if lowers else float("nan")
                print(
                    f"{profile.name:<10}{goals:<10}{name:<11}{noise:>6.1%}{len(lowers) / len(runs):>7.0%}"
                    f"{statistics.median(trials):>7.0f} ({min(trials)}-{max(trials)})".ljust(60)
                    + f"{statistics.median(times):>6.1f} ({min(times):.0f}-{max(times):.0f})".rjust(17)
                    + f"{profile.search_budget:>8.0f}{spread:>11.2%}{bias:>+8.2%}",
                    flush=True,
                )


def _true_pdr(curve: LoadLoss, loss_ratio: float) -> float:
    low, high = 1.0, 10 * CAPACITY
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if curve.loss_ratio(middle) <= loss_ratio else (low, middle)
    return low


if __name__ == "__main__":
    main()

"""How often the stability checks are wrong: false alarms on stable SUTs, power on unstable ones, by simulation.

    .venv/bin/python tests/bench/false_alarms.py [--assessments 400] [--samples 20000]

The numbers quoted in docstrings come from this script with its defaults.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from pdrgate.stability import Verdict, assess
from pdrgate.stats import lag1_autocorrelation, trend, two_modes
from pdrgate.traffic.simulated import Behaviour, IdealCurve, RealisticCurve, SimulatedSut, TrashingCurve

SIZES = (8, 10, 15, 20, 30, 50)
CAPACITY = 1e6
WIDE = [CAPACITY * factor for factor in (0.3, 0.5, 0.7, 0.85, 0.95, 1.1, 1.25, 1.4, 1.6)]
NARROW = [CAPACITY * factor for factor in (0.4, 0.6, 0.75, 0.9, 0.96, 1.02, 1.08, 1.14, 1.2)]
DURATION = 1.0


def samples(random: np.random.Generator, size: tuple[int, int]) -> dict[str, np.ndarray]:
    """Samples of one mode; ``cut off`` is a normal throughput that the offered load limits from above."""
    return {
        "normal": 1 + 0.02 * random.normal(size=size),
        "uniform": 1 + 0.04 * random.random(size),
        "Laplace": 1 + 0.02 * random.laplace(size=size),
        "t, 3 df": 1 + 0.02 * random.standard_t(3, size),
        "exponential": 1 + 0.02 * random.exponential(size=size),
        "log-normal": 1 + 0.02 * random.lognormal(size=size),
        "cut off": np.minimum(1.0, 1 + 0.02 * random.normal(size=size)),
    }


def print_modes(count: int) -> None:
    print(f"two_modes: % of {count} one-mode samples called two modes (no gap asked)")
    print(f"{'n':>4}" + "".join(f"{name:>13}" for name in samples(np.random.default_rng(0), (1, 8))))
    for n in SIZES:
        rates = [_mode_rate(sample) for sample in samples(np.random.default_rng(n), (count, n)).values()]
        print(f"{n:>4}" + "".join(f"{rate * 100:>13.2f}" for rate in rates))
    few = count // 10
    print(f"two_modes: % of {few} samples flipping between 10 and 8 Mpps that are called so")
    cases = [(noise, share) for noise in (0.003, 0.01, 0.02, 0.03) for share in (0.5, 0.2)]
    print(f"{'n':>4}" + "".join(f"{noise * 100:g}% {share * 100:.0f}:{100 - share * 100:.0f}".rjust(13)
                                for noise, share in cases))  # fmt: skip
    for n in SIZES:
        random = np.random.default_rng(n)
        rates = []
        for noise, share in cases:
            level = np.where(random.random((few, n)) < share, 8e6, 10e6)
            rates.append(_mode_rate(level * (1 + noise * random.normal(size=(few, n)))))
        print(f"{n:>4}" + "".join(f"{rate * 100:>13.1f}" for rate in rates))


def _mode_rate(sample: np.ndarray) -> float:
    return float(np.mean([found is not None and found.significant for found in map(two_modes, sample.tolist())]))


def print_drift(count: int) -> None:
    level = 0.005 / 3
    few = count // 4
    print(f"trend and lag-1 autocorrelation at {level:.4f}: % of {few} independent samples called drifting")
    for n in (
        7,
        *SIZES,
    ):
        random = np.random.default_rng(n)
        for name in ("normal", "t, 3 df", "log-normal"):
            sample = samples(random, (few, n))[name].tolist()
            rising = np.mean([found is not None and found.p_value <= level for found in map(trend, sample)])
            lagged = np.mean([lag is not None and lag.significant
                              for lag in (lag1_autocorrelation(values, level) for values in sample)])  # fmt: skip
            print(f"{n:>4} {name:<12} trend {rising * 100:.3f}  lag-1 {lagged * 100:.3f}")


def print_assessments(count: int) -> None:
    curves = {
        "ideal": IdealCurve(CAPACITY),
        "realistic": RealisticCurve(CAPACITY),
        "trashing": TrashingCurve(RealisticCurve(CAPACITY), 1.3 * CAPACITY, 2 * CAPACITY),
    }
    noises = {"0.3 %": Behaviour(0.003), "1 %": Behaviour(0.01), "1 % heavy": Behaviour(0.01, heavy_tails=True),
              "2 %": Behaviour(0.02)}  # fmt: skip
    print(f"assess: verdicts in % of {count} assessments of a STABLE noisy SUT, and which checks failed")
    totals: dict[int, Counter[Verdict]] = {}
    for grid, loads in (("wide", WIDE), ("narrow", NARROW)):
        for shape, curve in curves.items():
            for noise, behaviour in noises.items():
                for runs in (5, 10, 50):
                    found = _line(f"{grid:<7}{shape:<10}{noise:<10}", curve, behaviour, loads, runs, count)
                    totals.setdefault(runs, Counter()).update(found)
    for runs, verdicts in totals.items():
        rate = verdicts[Verdict.UNSTABLE] / verdicts.total()
        print(f"all stable cases, K={runs}: UNSTABLE in {rate * 100:.2f} % of {verdicts.total()}")
    print(f"assess: verdicts in % of {count} assessments of an UNSTABLE SUT (realistic curve, 0.5 % noise)")
    loads_of_flip = [CAPACITY * factor for factor in (0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5)]
    cases = {
        "flips 10:8": (Behaviour(0.005, modes=(1.0, 0.8)), loads_of_flip),
        "flips 10:9.5": (Behaviour(0.005, modes=(1.0, 0.95)), WIDE),
        "drifts 2 %": (Behaviour(0.005), WIDE),
        "drifts 5 %": (Behaviour(0.005), WIDE),
        "wanders 2 %": (Behaviour(0.02, correlation=0.9), WIDE),
    }
    for name, (behaviour, loads) in cases.items():
        for runs in (5, 10, 50):
            total = {"drifts 2 %": 0.02, "drifts 5 %": 0.05}.get(name, 0.0)
            # A wander between passes over the loads, so that neighbours of one load are alike.
            correlation = behaviour.correlation ** (1 / len(loads)) if behaviour.correlation else 0.0
            how = Behaviour(behaviour.noise, modes=behaviour.modes, drift=-total / (runs * len(loads)),
                            correlation=correlation)  # fmt: skip
            _line(f"{name:<27}", RealisticCurve(CAPACITY), how, loads, runs, count)


def _line(
    what: str, curve: object, behaviour: Behaviour, loads: list[float], runs: int, count: int
) -> Counter[Verdict]:
    verdicts: Counter[Verdict] = Counter()
    failed: Counter[str] = Counter()
    rounds = max(50, count * 5 // runs)
    first = zlib.crc32(f"{what} {runs}".encode())  # other noise in every case
    for seed in range(first, first + rounds):
        sut = SimulatedSut(curve, behaviour, seed=seed)  # type: ignore[arg-type]
        found = assess(sut.repeat(loads, DURATION, runs))
        verdicts[found.verdict] += 1
        failed.update(check.name for check in found.failed)
    shares = "  ".join(f"{verdict} {verdicts[verdict] / rounds * 100:5.1f}" for verdict in list(Verdict)[:3])
    why = ", ".join(f"{name} {times / rounds * 100:.1f}" for name, times in failed.most_common())
    print(f"{what} K={runs:<3} {shares}  ({rounds}) {why}", flush=True)
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assessments", type=int, default=400)
    parser.add_argument("--samples", type=int, default=20000)
    options = parser.parse_args()
    print_modes(options.samples)
    print_drift(options.samples)
    print_assessments(options.assessments)


if __name__ == "__main__":
    main()

"""How often the statistics under the stability checks are wrong, on samples of many kinds and sizes.

    .venv/bin/python tests/bench/false_alarms.py [--samples 20000]

The numbers quoted in docstrings come from this script with its defaults. The checks as a whole: check_power.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from pdrgate.stats.modes import two_modes
from pdrgate.stats.ranks import lag1_autocorrelation, monotone_trend

SIZES = (8, 10, 15, 20, 30, 50)


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
            rising = np.mean([found is not None and found.p_value <= level for found in map(monotone_trend, sample)])
            lagged = np.mean([lag is not None and lag.significant
                              for lag in (lag1_autocorrelation(values, level) for values in sample)])  # fmt: skip
            print(f"{n:>4} {name:<12} trend {rising * 100:.3f}  lag-1 {lagged * 100:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20000)
    options = parser.parse_args()
    print_modes(options.samples)
    print_drift(options.samples)


if __name__ == "__main__":
    main()

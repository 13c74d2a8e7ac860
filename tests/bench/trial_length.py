"""Does what is told of a SUT depend on how long its trials last? Forwarding rate and steady loss for three durations.

    sudo .venv/bin/python tests/bench/trial_length.py [--rate 20e3] [--queue 4096] [--trials 5]

The SUT is a forwarder of constant speed behind a TAP's queue: `paced_forwarder.py`. Twice overloaded it forwards its
rate; of 1.03 times its rate it loses 2.9 %, once its queue is full, which takes longer than most of these trials. What
was told before drained packets were kept apart is beside it: the loss ratio, and a rate with drained packets in it.
The machine should be quiet: each number is the median of the trials that the generator did not limit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from paced_forwarder import PacedForwarder

from pdrgate.hosts.cpus import plan_cpus
from pdrgate.record.trial import Trial
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.traffic.embedded import EmbeddedGenerator
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

DURATIONS = (0.25, 1.0, 4.0)
ATTEMPTS = 4
"""Trials for each that is asked for, at most."""


def median(trials: Sequence[Trial], value: Callable[[Trial], float]) -> float:
    return statistics.median(map(value, trials))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=20e3)
    parser.add_argument("--queue", type=int, default=4096)
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args()
    plan = plan_cpus(None, None)
    print(f"{options.rate / 1e3:g} kpps behind a queue of {options.queue}; medians of {options.trials} trials")
    print(f"{'engine':<8}{'seconds':>8}{'trials':>8}  {'rate at 2 x':>12}{'its books':>11}{'with drained':>14}"
          f"  {'steady loss at 1.03 x':>22}{'its books':>11}{'loss ratio':>12}")  # fmt: skip
    forwarding = PacedForwarder(options.rate, options.queue, plan.sut[0])
    with Lease.acquire(whole_machine(), wait=600), forwarding as forwarder:
        for engine in ("xdp", "packet"):
            try:
                generator = EmbeddedGenerator(forwarder.namespace, plan.generator, forwarder.paths, engine)  # type: ignore[arg-type]
            except TestbedError as error:
                print(f"{engine:<8}{error}")
                continue

            def measured(
                load: float, duration: float, generator: EmbeddedGenerator = generator
            ) -> tuple[list[Trial], float]:
                """Trials, and the packets/s that the forwarder has written while they sent."""
                trials: list[Trial] = []
                books: list[float] = []
                for _ in range(ATTEMPTS * options.trials):
                    trial = generator.trial(load, duration, Frames(6, probe_rate=1000))
                    written = forwarder.written(trial.sending_time)
                    if not trial.generator_limited:
                        trials.append(trial)
                        books.append(written / trial.sending_time)
                    if len(trials) == options.trials:
                        break
                return trials, statistics.median(books) if books else 0.0

            for duration in DURATIONS:
                over, at_two = measured(2 * options.rate, duration)
                slight, at_little = measured(1.03 * options.rate, duration)
                head = f"{engine:<8}{duration:>8g}{f'{len(over)}, {len(slight)}':>8}  "
                if not (over and slight):
                    print(f"{head}the generator was the limit of all trials")
                    continue
                print(
                    f"{head}{median(over, lambda trial: trial.forwarding_rate):>12.0f}{at_two:>11.0f}"
                    f"{median(over, lambda trial: trial.forwarded / trial.sending_time):>14.0f}"
                    f"  {median(slight, lambda trial: trial.steady_loss_ratio):>22.2%}"
                    f"{1 - at_little / (1.03 * options.rate):>11.2%}"
                    f"{median(slight, lambda trial: trial.loss_ratio):>12.2%}",
                    flush=True,
                )
            generator.close()


if __name__ == "__main__":
    main()

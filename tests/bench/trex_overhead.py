"""What a trial on TRex costs beyond its traffic, and how small a lateness it sees, against the server of the tests.

    .venv/bin/python tests/bench/trex_overhead.py [--trials 12] [--client FOLDER]

The server of the tests answers at once and sends nothing: a real one adds its own time (2 to 10 ms for a request that
starts traffic or reads counters). The drain is in the figures: 20 ms without a packet at least. The machine should be
quiet.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from simulated_sut import Ceiling
from trex_rig import config, ideal, paths
from trex_server import TRexServer

from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.trex import TRexGenerator

LOAD = 500e3
FORMS = {
    "one direction": Frames(6),
    "both directions": Frames(6, directions=2),
    "both, IMIX, probes": Frames(6, directions=2, imix=True, probe_rate=1000),
}
DURATIONS = (0.1, 0.5, 1.0)
STRETCHES = (1.0, 1.002, 1.005, 1.01, 1.02)


def overheads(generator: TRexGenerator, frames: Frames, duration: float, trials: int) -> Iterator[float]:
    """Seconds that each trial took beyond its duration."""
    for _ in range(trials):
        begun = time.perf_counter()
        trial = generator.trial(LOAD, duration, frames)
        yield time.perf_counter() - begun - duration
        if trial.offered != round(LOAD * duration):
            raise SystemExit(f"the trial is not what was asked for: {trial}")


def print_overheads(generator: TRexGenerator, trials: int) -> None:
    print(f"milliseconds beyond the duration, of {trials} trials each, drain included")
    print(f"{'frames':<20}{'duration':>9}{'median':>8}{'10 %':>7}{'90 %':>7}{'highest':>9}")
    for name, frames in FORMS.items():
        for duration in DURATIONS:
            found = [1e3 * seconds for seconds in overheads(generator, frames, duration, trials)]
            tenths = statistics.quantiles(found, n=10, method="inclusive")
            print(
                f"{name:<20}{duration:>7} s{statistics.median(found):>8.1f}{tenths[0]:>7.1f}{tenths[-1]:>7.1f}"
                f"{max(found):>9.1f}",
                flush=True,
            )


def print_lateness(server: TRexServer, generator: TRexGenerator, trials: int) -> None:
    print(f"trials in which a server that sends late was seen to be the limit, of {trials} each, one direction")
    print(f"{'late by':<10}" + "".join(f"{f'in {duration} s':>10}" for duration in DURATIONS))
    for stretch in STRETCHES:
        server.sut = ideal(ceiling=Ceiling(LOAD / stretch, stretches=True))
        seen = [
            sum(generator.trial(LOAD, duration, FORMS["one direction"]).generator_limited for _ in range(trials))
            for duration in DURATIONS
        ]
        print(f"{stretch - 1:<10.1%}" + "".join(f"{count:>10}" for count in seen), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--client", type=Path, help="a server's own client, for API 5.1; else trex-stl-lib and API 4.1")
    options = parser.parse_args()
    with TRexServer(ideal(), api="5.1" if options.client else "4.1") as server:
        begun = time.perf_counter()
        generator = TRexGenerator(config(server, client=options.client), paths())
        about = generator.describe()
        print(f"client: {about['client']}, server {about['server']}; opened in {time.perf_counter() - begun:.2f} s")
        with Lease.acquire(whole_machine(), wait=900):
            print_overheads(generator, options.trials)
        with Lease.acquire(whole_machine(), wait=900):
            print_lateness(server, generator, options.trials)
        generator.close()


if __name__ == "__main__":
    main()

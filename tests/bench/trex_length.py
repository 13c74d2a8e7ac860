"""Does what TRex tells of a SUT depend on how long its trials last? Rate and steady loss for three durations.

    .venv/bin/python tests/bench/trex_length.py [--rate 20e3] [--queue 4096] [--trials 7]
    ... --server 127.0.0.1 --client FOLDER

Without a server it is that of the tests, before a simulated SUT. A real one has its ports 0 and 1 at a SUT whose ports
have the MAC addresses 02:00:00:00:01:00 and :01, which routes 2001:2:0:1::/64 to the second of them at the rate given,
and has the queue given before that: between namespaces, by AF_PACKET ports, `tc qdisc add dev … root tbf` of as many
times 496 bits. Each number is the median of the trials that the generator did not limit.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from trex_rig import config, ideal, paths
from trex_server import TRexServer

from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.trex import TRexGenerator
from pdrgate.traffic.trex.trex_config import TRexConfig

DURATIONS = (0.25, 1.0, 4.0)
LOADS = (0.9, 1.03, 2.0)
"""Times the rate."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server")
    parser.add_argument("--client", type=Path, help="a server's own client, for API 5.1; else trex-stl-lib and API 4.1")
    parser.add_argument("--rate", type=float, default=20e3)
    parser.add_argument("--queue", type=int, default=4096)
    parser.add_argument("--trials", type=int, default=7)
    options = parser.parse_args()
    with contextlib.ExitStack() as until_done:
        if options.server is None:
            api = "5.1" if options.client else "4.1"
            fake = until_done.enter_context(TRexServer(ideal(options.rate, buffer=options.queue), api=api))
            about = config(fake, client=options.client)
        else:
            about = TRexConfig(options.server, client=options.client)
        generator = TRexGenerator(about, paths())
        until_done.callback(generator.close)
        until_done.enter_context(Lease.acquire(whole_machine(), wait=900))
        print(f"{options.rate / 1e3:g} kpps behind a queue of {options.queue}; medians of {options.trials} trials")
        print(f"{'seconds':>8}{'load':>8}{'trials':>8}{'rate':>10}{'part':>9}{'steady loss':>13}{'true':>9}{'lost':>9}")
        for duration in DURATIONS:
            for times in LOADS:
                found = [generator.trial(times * options.rate, duration, Frames(6)) for _ in range(options.trials)]
                sound = [trial for trial in found if trial.sound]
                if not sound:
                    print(f"{duration:>8}{times:>8}{0:>8}")
                    continue
                rate, steady, lost = (
                    statistics.median(getattr(trial, name) for trial in sound)
                    for name in ("forwarding_rate", "steady_loss_ratio", "loss_ratio")
                )
                truth = max(0.0, 1 - 1 / times)
                print(
                    f"{duration:>8}{times:>8}{len(sound):>8}{rate:>10.0f}{rate / options.rate / min(1.0, times):>9.2%}"
                    f"{steady:>13.2%}{truth:>9.2%}{lost:>9.2%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

"""The generator's ceiling with chosen traffic beside that with its own frames, and what the SUT forwards there.

    sudo .venv/bin/python tests/bench/chosen_traffic.py [--trials 9] [--duration 0.3] [--hops 3]

Kinds are measured in turn, so that what the machine does meets all of them. The numbers are medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from pdrgate.data_paths.paths.kernel_routing import Routing
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.record.trial import Trial
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.chosen.traffic_words import chosen_traffic
from pdrgate.traffic.frames import Frames

FLAT_OUT = 20e6
KINDS = (
    "", "udp", "udp dst=@out src=10.0.0.0/16 flows=10000", "udp dst=@out flows=10000 draw=zipf",
    "tcp flags=S flows=1000",
    "udp size=64 weight=7; udp size=570 weight=4; udp size=1518", "size 1518", "udp size=1518",
    "udp src=10.9.0.1 dst=10.9.0.2 in vxlan",
)  # fmt: skip
"""Words; empty and ``size`` are the generator's own frames."""


def frames_of(kind: str) -> Frames:
    if not kind or kind.startswith("size"):
        return Frames(4, int(kind.removeprefix("size") or 64))
    return Frames(4, chosen=chosen_traffic([kind]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=9)
    parser.add_argument("--duration", type=float, default=0.3)
    parser.add_argument("--hops", type=int, default=3)
    options = parser.parse_args()
    made: dict[str, list[Trial]] = {kind: [] for kind in KINDS}
    first: dict[str, float] = {}
    with (
        Lease.acquire(whole_machine(), wait=600),
        tempfile.TemporaryDirectory() as state,
        Journal.begin(Path(state)) as journal,
    ):
        testbed = NetnsTestbed(options.hops, plan_cpus(None, None), journal, engine="xdp")
        try:
            Routing(4).apply(testbed.hops)
            testbed.set_buffer(4096)
            testbed.pin("1 cpu")
            generator = testbed.generator(4)
            for kind in KINDS:  # a table is made and handed over with its first trial
                begun = time.monotonic()
                generator.trial(10e3, 0.01, frames_of(kind))
                first[kind] = time.monotonic() - begun
            for _ in range(options.trials):
                for kind in KINDS:
                    made[kind].append(generator.trial(FLAT_OUT, options.duration, frames_of(kind)))
            generator.close()
        finally:
            testbed.close()
    print(f"{options.hops} routed hops, IPv4, medians of {options.trials} trials of {options.duration} s")
    print(f"{'ceiling, kpps':>14}{'of its own':>12}{'forwarded, kpps':>17}{'ratio':>7}{'first trial, s':>16}  traffic")
    for kind, trials in made.items():
        ceiling = statistics.median(trial.offered_load for trial in trials)
        forwarded = statistics.median(trial.forwarding_rate for trial in trials)
        own = statistics.median(trial.offered_load for trial in made["size 1518" if "size=1518" in kind else ""])
        print(f"{ceiling / 1e3:>14.0f}{ceiling / own:>12.2f}{forwarded / 1e3:>17.0f}{ceiling / forwarded:>7.1f}"
              f"{first[kind]:>16.2f}  {kind or 'its own frames'}")  # fmt: skip


if __name__ == "__main__":
    main()

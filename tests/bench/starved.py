"""Does a trial say so when something else had the CPU of a guest of constant speed?

    sudo .venv/bin/python tests/bench/starved.py [--trials 20] [--duration 0.25]

Trials of one guest below its saturation and at an overload: alone, beside a busy process for each CPU, and beside a
real-time process on the guest's CPU that takes it for so many ms of every so many. A line for each: how many trials
were told of by the lateness of the virtual CPU, and by QEMU's want of a CPU; and how far those that were not lie off
the median of the first, at worst, were there lateness alone, and with both. What others do on the machine is in the
numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from pdrgate.builds.named_build import named_build
from pdrgate.data_paths.catalogue import data_path
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.observers.watching import watching
from pdrgate.record.cause import Cause, CauseKind
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.frames import Frames

SPEED = 100_000_000
HOG = """
import os, sys, time
cpu, on, off = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
os.sched_setaffinity(0, {cpu})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
print(flush=True)
while True:
    end = time.monotonic() + on
    while time.monotonic() < end:
        pass
    time.sleep(off)
"""
BUSY = "print(flush=True)\nwhile True: pass"
HOGS = ((0.005, 0.095), (0.020, 0.180), (0.060, 0.140), (0.300, 0.700))
"""Seconds that it takes, and leaves."""
LOADS = (0.85, 1.9)
"""Of what the guest forwards at most."""


@dataclass(frozen=True)
class Seen:
    rate: float
    disturbed: tuple[Cause, ...]

    @property
    def late(self) -> bool:
        return any(one.kind is CauseKind.LATE for one in self.disturbed)

    @property
    def starved(self) -> bool:
        return any(one.kind is CauseKind.STARVED for one in self.disturbed)


@contextlib.contextmanager
def running(*commands: tuple[str, ...]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for command in commands:
            process = stack.enter_context(subprocess.Popen((sys.executable, "-c", *command), stdout=subprocess.PIPE))
            stack.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
        yield


def worst(rates: list[float], usual: float) -> str:
    return f"{max((rate / usual - 1 for rate in rates), key=abs):+7.2%}" if rates else "       "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--duration", type=float, default=0.25)
    options = parser.parse_args()
    plan, frames = plan_cpus(None, None), Frames(6)
    with contextlib.ExitStack() as stack:
        stack.enter_context(Lease.acquire(whole_machine(), wait=900))
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        journal = Journal.begin(place)
        stack.callback(journal.close)
        testbed = VmTestbed(named_build("linux-image-cloud-amd64"), plan, journal, place, speed=SPEED)
        stack.callback(testbed.close)
        testbed.ready()
        data_path("ipv6-routing", None).apply(testbed.hops)
        testbed.set_buffer(4096)
        testbed.pin("1 cpu")
        generator = testbed.generator(6)
        stack.callback(generator.close)
        observers = testbed.observers()
        generator.trial(10e3, 0.5, frames)  # what is translated now is not translated in a trial
        chance = random.Random(1)

        def trial(load: float) -> Seen:
            with watching(observers) as watch:
                found = generator.trial(load, options.duration, frames)
            time.sleep(chance.random() / 4)  # in no step with what disturbs
            return Seen(found.forwarding_rate, watch.observation.disturbed)

        saturation = statistics.median(trial(40e3).rate for _ in range(5))
        print(f"{options.trials} trials of {options.duration:g} s; of those that were not told the worst")
        print("load, kpps  beside                        late  no CPU  by lateness alone  by both")
        beside = [("nothing", ()), ("a busy process for each CPU", ((BUSY,),) * (os.cpu_count() or 1))]
        beside += [
            (f"{on * 1e3:.0f} ms of every {(on + off) * 1e3:.0f}", ((HOG, str(plan.sut[0]), str(on), str(off)),))
            for on, off in HOGS
        ]
        for load in (part * saturation for part in LOADS):
            usual = 0.0
            for name, commands in beside:
                with running(*commands):
                    seen = [trial(load) for _ in range(options.trials)]
                usual = usual or statistics.median(one.rate for one in seen)
                lateness = [one.rate for one in seen if not one.late]
                both = [one.rate for one in seen if not one.disturbed]
                print(f"{load / 1e3:>10.1f}  {name:<28}{sum(one.late for one in seen):>6}"
                      f"{sum(one.starved for one in seen):>8}{worst(lateness, usual):>19}"
                      f"{worst(both, usual):>9}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

"""How much of a router's scatter does the heartbeat on its CPU explain, and what does it cost?

    sudo .venv/bin/python tests/bench/heartbeat.py [--trials 120] [--duration 0.4] [--hog fifo|other] [--flip]

Trials in namespaces at one overload, with and without the heartbeat in turn. Told are the cost (the mean ratio of
neighbours), what beats and rates have in common, and the deviation of the rates: of all trials that were watched, and
of those that the observer lets pass. Then the beats at smaller loads, for a beat must not tell a load. With ``--hog`` a
process disturbs on the SUT's CPU; with ``--flip`` it is the SUT that flips: every other trial's packets take longer, by
policy rules that none of them matches. What others do on the machine is in the numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
import sys
import tempfile
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

import numpy as np
from hog import hog

from pdrgate.data_paths.catalogue import data_path
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.observers.heartbeat import Heartbeat, HeartbeatObserver
from pdrgate.observers.watching import Observation
from pdrgate.record.trial import Trial
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames

LOADS = (0.01, 0.3, 0.6, 0.9, 1.2)
RULES = 200


@dataclass(frozen=True)
class Watched:
    trial: Trial
    observation: Observation

    def __getitem__(self, name: str) -> int:
        return next(value for counter, value in self.observation.after.items() if counter.name == name)

    @property
    def work(self) -> int:
        return self["arithmetic_median"] + self["loads_median"]


def deviation(rates: Sequence[float]) -> str:
    if len(rates) < 3:
        return f"{len(rates)} trials"
    return f"{len(rates)} trials, CV {statistics.stdev(rates) / statistics.mean(rates):.1%}"


def in_common(one: Sequence[float], other: Sequence[float]) -> float:
    return float(np.corrcoef(np.log(one), np.log(other))[0, 1])


@contextlib.contextmanager
def rules(testbed: NetnsTestbed, number: int) -> Iterator[None]:
    """Policy rules that no packet matches: each costs every packet a little."""
    lines = "".join(f"rule add pref {1000 + one} fwmark {5000 + one} lookup 99\n" for one in range(number))
    for hop in testbed.hops:
        hop.host.run("sh", "-c", f"printf '{lines}' | ip -6 -batch -")
    yield
    for hop in testbed.hops:
        hop.host.run("sh", "-c", f"printf '{lines.replace('rule add', 'rule del')}' | ip -6 -batch -")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=120)
    parser.add_argument("--duration", type=float, default=0.4)
    parser.add_argument("--hog", choices=("fifo", "other"))
    parser.add_argument("--flip", action="store_true")
    options = parser.parse_args()
    plan, frames = plan_cpus(None, None), Frames(6)
    cpu = plan.sut[0]
    with contextlib.ExitStack() as stack:
        stack.enter_context(Lease.acquire(whole_machine(), wait=900))
        journal = Journal.begin(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.callback(journal.close)
        testbed = NetnsTestbed(3, plan, journal)
        stack.callback(testbed.close)
        path = data_path("ipv6-routing", None)
        path.apply(testbed.hops)
        stack.callback(path.restore)
        testbed.set_buffer(4096)
        testbed.pin("1 cpu")
        generator = testbed.generator(6)
        stack.callback(generator.close)
        heartbeat = Heartbeat(cpu)
        stack.callback(heartbeat.close)
        observer = HeartbeatObserver([heartbeat])

        def watched(load: float) -> Watched:
            observer.begin()
            try:
                trial = generator.trial(load, options.duration, frames)
            finally:
                observation = observer.end()
            return Watched(trial, observation)

        flat_out = [generator.trial(20e6, options.duration, frames) for _ in range(4)]
        ceiling = 0.9 * max(trial.offered_load for trial in flat_out)
        capacity = statistics.median(trial.forwarding_rate for trial in flat_out)
        overload = min(ceiling, 1.5 * capacity)
        if options.hog:
            stack.enter_context(hog(cpu, options.hog))
        print(
            f"CPU {cpu}, {capacity / 1e3:.0f} kpps; offered {overload / 1e3:.0f} kpps; {options.duration:g} s a trial"
        )
        seen: list[Watched] = []
        ratios: list[float] = []
        modes: list[int] = []
        for number in range(options.trials):
            slow = options.flip and number % 2
            with rules(testbed, RULES if slow else 0):
                order = (True, False) if number // 2 % 2 else (False, True)
                pair = {}
                for on in order:
                    if on:
                        seen.append(watched(overload))
                        modes.append(int(slow))
                        pair[on] = seen[-1].trial.forwarding_rate
                    else:
                        pair[on] = generator.trial(overload, options.duration, frames).forwarding_rate
                ratios.append(math.log(pair[True] / pair[False]))
        cut = len(ratios) // 5
        kept = sorted(ratios)[cut : len(ratios) - cut]
        error = statistics.stdev(ratios) / math.sqrt(len(ratios))
        own = statistics.median(one["own_time"] / one["elapsed"] for one in seen)
        print(
            f"cost: rate with against without {statistics.mean(kept):+.2%} (20 % trimmed; standard error {error:.2%})"
        )
        print(f"      {own:.2%} of the CPU by the kernel's account, with packets by interrupts; {len(seen)} pairs")
        rates = [one.trial.forwarding_rate for one in seen]
        for name in ("arithmetic_median", "loads_median"):
            print(f"correlation of log rate with log {name}: {in_common([one[name] for one in seen], rates):+.2f}")
        print(f"correlation with both together: {in_common([one.work for one in seen], rates):+.2f}")
        print(f"all that were watched: {deviation(rates)}")
        for name in ("arithmetic_median", "loads_median"):
            best = sorted(one[name] for one in seen)[len(seen) // 20]
            for factor in (1.05, 1.08, 1.12, 1.20):
                some = [one.trial.forwarding_rate for one in seen if one[name] <= factor * best]
                print(f"{name} within {factor:.2f} of the best: {deviation(some)}")
        print(f"not disturbed: {deviation([o.trial.forwarding_rate for o in seen if not o.observation.disturbed])}")
        if options.flip:
            for mode in (0, 1):
                mine = [one for one, its in zip(seen, modes, strict=True) if its == mode]
                print(f"  {'slow' if mode else 'fast'} SUT: median work "
                      f"{statistics.median(one.work for one in mine):.0f} ns, rate "
                      f"{statistics.median(one.trial.forwarding_rate for one in mine) / 1e3:.0f} kpps, "
                      f"{sum(bool(one.observation.disturbed) for one in mine)} of {len(mine)} disturbed")  # fmt: skip
        for name in ("longest_stall", "longest_withheld", "longest_wait"):
            values = sorted(one[name] / 1e6 for one in seen)
            print(f"{name}: median {values[len(values) // 2]:.2f} ms, most {values[-1]:.2f} ms")
        for name in ("stalled", "withheld", "packets_waited"):
            values = sorted(one[name] / one["elapsed"] for one in seen)
            print(f"{name}: median {values[len(values) // 2]:.2%}, most {values[-1]:.2%} of the trial")
        kinds = Tally(str(cause.kind) for one in seen for cause in one.observation.disturbed)
        print(f"disturbed: {dict(kinds)}")
        print("beats by load (of the rate flat out): arithmetic, loads, ns; of the CPU; packets waited")
        for part in LOADS:
            some = [watched(min(ceiling, part * capacity)) for _ in range(10)]
            numbers = [statistics.median(one[name] for one in some) for name in ("arithmetic_median", "loads_median")]
            took = statistics.median(one["own_time"] / one["elapsed"] for one in some)
            waited = statistics.median(one["packets_waited"] / one["elapsed"] for one in some)
            disturbed = sum(bool(one.observation.disturbed) for one in some)
            told = f"{numbers[0]:.0f}, {numbers[1]:.0f}; {took:.2%}; {waited:.2%}"
            print(f"  {part:4.2f}: {told}; {disturbed} of 10 disturbed")


if __name__ == "__main__":
    main()

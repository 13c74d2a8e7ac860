"""What does the processor's count of a packet's cost tell where no emulator counts, and what does it take?

    sudo .venv/bin/python tests/bench/processor_cost.py [--trials 40] [--duration 0.4]

Trials in namespaces at one overload, counted and not in turn: the ratio of neighbours' rates is what counting costs.
Then how much the rate, instructions and cycles per packet scatter, and the same with four policy rules that no packet
matches; where perf is installed, in which functions these are.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from pdrgate.data_paths.catalogue import data_path
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.observers.watching import watching
from pdrgate.record.stretch import USER_SPACE
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator


@dataclass(frozen=True)
class Counted:
    rate: float
    instructions: float = math.nan
    cycles: float = math.nan
    functions: Mapping[str, float] = field(default_factory=dict)


def scatter(values: list[float]) -> str:
    return f"{statistics.median(values):.0f}, CV {statistics.stdev(values) / statistics.mean(values):.1%}"


@contextlib.contextmanager
def rules(testbed: NetnsTestbed, number: int) -> Iterator[None]:
    """Policy rules that no packet matches."""
    lines = "".join(f"rule add pref {1000 + one} fwmark {5000 + one} lookup 99\n" for one in range(number))
    for hop in testbed.hops:
        hop.host.run("sh", "-c", f"printf '{lines}' | ip -6 -batch -")
    yield
    for hop in testbed.hops:
        hop.host.run("sh", "-c", f"printf '{lines.replace('rule add', 'rule del')}' | ip -6 -batch -")


def measured(testbed: NetnsTestbed, generator: Generator, load: float, duration: float, counting: bool) -> Counted:
    with watching(testbed.executed.counting() if counting else ()) as watch:
        trial = generator.trial(load, duration, Frames(6))
    if not counting:
        return Counted(trial.forwarding_rate)
    after = {counter.name: value for counter, value in watch.observation.after.items()}
    packets = trial.forwarded
    own = {name: each / packets for name, (each, _) in watch.observation.functions.items() if name != USER_SPACE}
    return Counted(trial.forwarding_rate, sum(own.values()), after["kernel_cycles"] / packets, own)


def typical(trials: list[Counted]) -> dict[str, float]:
    """By function, the median of its instructions per packet."""
    names = {name for one in trials for name in one.functions}
    return {name: statistics.median(one.functions.get(name, 0.0) for one in trials) for name in names}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--duration", type=float, default=0.4)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        stack.enter_context(Lease.acquire(whole_machine(), wait=1800))
        journal = Journal.begin(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        testbed = NetnsTestbed(3, plan_cpus(None, None), journal)
        stack.callback(testbed.close)
        path = data_path("ipv6-routing", None)
        path.apply(testbed.hops)
        testbed.pin("1 cpu")
        testbed.executed.counting()
        if testbed.executed.uncounted:
            sys.exit(f"the processor does not count here: {testbed.executed.uncounted}")
        generator = testbed.generator(6)
        stack.callback(generator.close)
        capacity = max(generator.trial(20e6, 0.3, Frames(6)).forwarding_rate for _ in range(3))
        load = 1.5 * capacity

        def series(what: str) -> list[Counted]:
            found = []
            for number in range(options.trials):
                order = (True, False) if number % 2 else (False, True)
                pair = {one: measured(testbed, generator, load, options.duration, one) for one in order}
                found.append((pair[True], pair[False]))
            ratios = [math.log(counted.rate / plain.rate) for counted, plain in found]
            error = statistics.stdev(ratios) / len(ratios) ** 0.5
            print(f"{what}: counted against not {statistics.mean(ratios):+.1%} (standard error {error:.1%})")
            for name, unit in (("rate", "packets/s"), ("instructions", "a packet"), ("cycles", "a packet")):
                print(f"  {name} {unit}: {scatter([getattr(counted, name) for counted, _ in found])}", flush=True)
            return [counted for counted, _ in found]

        before = typical(series("no rules"))
        with rules(testbed, 4):
            after = typical(series("4 rules"))
        changes = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in before.keys() | after.keys()}
        for name in sorted(changes, key=lambda name: -abs(changes[name]))[:5]:
            print(f"  {name}: {before.get(name, 0.0):.0f} to {after.get(name, 0.0):.0f} instructions a packet")


if __name__ == "__main__":
    main()

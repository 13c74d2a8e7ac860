"""What a packet costs in instructions, how well that repeats, and where two builds differ.

    .venv/bin/python tests/bench/packet_cost.py [BASELINE CANDIDATE] [--boots 2] [--trials 5] [--speed 0] [--rules 0]

Boots both builds in turn and measures IPv6 routing: trials at saturation, one without packets, two at a lossless load.
Counts do not depend on how fast the machine is, so that it need not be ours alone. ``--rules`` adds policy rules to
the candidate, of which none matches; the baseline has one, which takes it off the fast path too.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.named_build import named_build
from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.scenarios.replicate_samples import Measurands
from pdrgate.gate.sut.measurer import Measurer
from pdrgate.gate.sut.open_loop_traffic import OpenLoopTraffic
from pdrgate.gate.verdicts.packet_cost import cost_result
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.history.trials import TrialFile
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.measurands import Ask, Setting, replicate_of
from pdrgate.measurands.functions.function_changes import function_changes
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging
from pdrgate.record.trial import Trial
from pdrgate.results.model import CostResult
from pdrgate.safety.journal import Journal
from pdrgate.search.goals import PDR_GOAL
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.frames import Frames

OVERLOAD, LOSSLESS = 120_000.0, 8_000.0
LARGEST = 12


def boot_and_measure(
    build: KernelBuild, number: int, options: argparse.Namespace, journal: Journal, place: Path, rules: int
) -> list[Trial]:
    """The trials of one boot."""
    cpus = plan_cpus(None, None)
    machine = GuestConfig(cpus=cpus.sut, accelerator="tcg", metered=True, boot_cpus=(cpus.generator, *cpus.sut))
    testbed = VmTestbed(build, cpus, journal, place, machine=machine, patience=180).ready()
    try:
        path = data_path("ipv6-routing")
        path.apply(testbed.hops)
        for rule in range(rules):
            testbed.guest.run("ip", "-6", "rule", "add", "fwmark", str(77 + rule), "table", "main")
        testbed.pin("1 cpu")
        if testbed.guest.meter is not None:
            testbed.guest.meter.hold(options.speed)
        belonging = Belonging("bench", boot=testbed.boot_id, pair=number)
        cost = Measurands.of(
            Setting(
                loads=(LOSSLESS, OVERLOAD),
                duration=options.duration,
                loss_ratio=PDR_GOAL.loss_ratio,
                top_trials=options.trials,
                width=0.02,
            )
        ).cost
        generator, file = testbed.generator(6), TrialFile(place / "trials.jsonl")
        try:
            measurer = Measurer(
                OpenLoopTraffic(generator, Frames(6, 64), busy=testbed.executed.busy),
                testbed.observers(),
                file,
                belonging,
                check=testbed.check,
                counting=testbed.executed.counting(),
            )
            for _ in range(options.trials):
                measurer.measure(Ask(OVERLOAD, options.duration, Phase.SATURATION))
            while (ask := cost.next(measurer.made)) is not None:
                measurer.measure(ask)
        finally:
            generator.close()
            file.close()
        return measurer.made
    finally:
        testbed.close()


def main() -> None:
    """Print a line for each boot, totals, and the largest changes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", default=["linux-image-amd64", "linux-image-rt-amd64"])
    parser.add_argument("--boots", type=int, default=2)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--duration", type=float, default=0.25)
    parser.add_argument("--speed", type=int, default=0, help="instructions/s; 0: as fast as it can")
    parser.add_argument("--rules", type=int, default=0, help="policy rules of the candidate")
    options = parser.parse_args()
    builds = [named_build(source) for source in options.builds]
    trials: list[list[Trial]] = [[], []]
    values: list[list[float]] = [[], []]
    with tempfile.TemporaryDirectory() as place, Journal.begin(Path(place)) as journal:
        for number in range(1, options.boots + 1):
            for side, build in enumerate(builds):
                rules = min(options.rules, (1, options.rules)[side])
                began = time.monotonic()
                own = boot_and_measure(build, number, options, journal, Path(place), rules)
                trials[side] += own
                values[side].append(told(build, number, own, time.monotonic() - began))
    costs = [cost_result(list(replicate_of(own).values()), PDR_GOAL.loss_ratio) for own in trials]
    for build, cost, each in zip(builds, costs, values, strict=True):
        if cost is not None:
            spread = f", CV of boots {statistics.stdev(each) / statistics.mean(each):.2%}" if len(each) > 1 else ""
            print(f"{build.release}: {cost.instructions:.0f} instructions/packet in {cost.trials} trials{spread}")
    compared(*costs)


def told(build: KernelBuild, number: int, trials: Sequence[Trial], took: float) -> float:
    """Print what one boot came to; its instructions per packet at saturation."""
    each = [
        cost_result([[trial, *(one for one in trials if one.occasion.phase == "idle")]], PDR_GOAL.loss_ratio)
        for trial in trials
    ]
    single = [one.instructions for one in each if one is not None]
    whole = cost_result([trials], PDR_GOAL.loss_ratio)
    assert whole is not None
    print(
        f"{build.release} boot {number}: {whole.instructions:.0f} ({min(single):.0f} to {max(single):.0f} in "
        f"{len(single)} trials), {whole.batch or 0:.1f} packets a poll; at {whole.lossless_load or 0:.0f} pps "
        f"{whole.lossless_instructions or 0:.0f}, {whole.lossless_batch or 0:.1f} a poll; {took:.1f} s",
        flush=True,
    )
    return whole.instructions


def compared(before: CostResult | None, after: CostResult | None) -> None:
    """Print the change and its largest parts."""
    if before is None or after is None:
        return
    print(f"change {after.instructions / before.instructions - 1:+.2%}")
    changes = function_changes(before, after)
    for one in changes[:LARGEST]:
        doubt = "" if one.sure else "  (trials differ by as much)"
        print(f"  {one.function:32s} {one.before:8.1f} {one.after:8.1f} {one.change:+8.1f}{doubt}")
    left = [dataclasses.astuple(one)[3] for one in changes[LARGEST:]]
    print(f"  {len(left)} more: {sum(left):+.1f}")


if __name__ == "__main__":
    main()

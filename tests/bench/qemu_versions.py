"""Does a guest come to the same numbers under another QEMU, and what does the plugin cost there?

    sudo .venv/bin/python tests/bench/qemu_versions.py [--kernel BUILD] [--boots 2] [--trials 8] [--file FILE]

Boots a kernel in the QEMU that is first on PATH, held at 100 MIPS while trials last, and prints a line: boot, speed
unheld, PDR's neighbour (the throughput at saturation) and its CV, and the instructions that a packet costs. A busy loop
in a guest with the plugin and in one without it, in turn, tells what the plugin costs. With --file the line's numbers
are kept there, and the functions that differ from those of its first line are printed: start this once for each QEMU,
in whatever root has it, with the same file and the same build (a .deb file has the same bytes everywhere).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.named_build import named_build
from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.sut.measurer import Measurer
from pdrgate.gate.sut.open_loop_traffic import OpenLoopTraffic
from pdrgate.gate.verdicts.packet_cost import cost_result
from pdrgate.guests.emulator.qemu import qemu_version
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.history.trials import TrialFile
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.measurands import Ask
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging
from pdrgate.record.trial import Trial
from pdrgate.results.model import CostResult
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.search.goals import PDR_GOAL
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.frames import Frames

SPEED = 100_000_000
OVERLOAD, DURATION = 40_000.0, 0.25
LOOP = "i=0; while [ $i -lt 150000 ]; do i=$((i + 1)); done"
ROUNDS = 5
LARGEST, LEAST = 12, 0.5
"""Functions that are printed; instructions a packet by which they differ."""


def held(build: KernelBuild, trials: int, journal: Journal, place: Path) -> tuple[float, list[Trial]]:
    """Seconds of a boot, and its trials at saturation, the last of them without packets."""
    cpus = plan_cpus(None, None)
    machine = GuestConfig(cpus=cpus.sut, accelerator="tcg", boot_cpus=(cpus.generator, *cpus.sut))
    testbed = VmTestbed(build, cpus, journal, place, machine=machine, speed=SPEED, patience=180).ready()
    path = data_path("ipv6-routing")
    try:
        path.apply(testbed.hops)
        testbed.pin("1 cpu")
        generator, file = testbed.generator(6), TrialFile(place / "trials.jsonl")
        try:
            measurer = Measurer(
                OpenLoopTraffic(generator, Frames(6), busy=testbed.executed.busy),
                testbed.observers(),
                file,
                Belonging("bench", boot=testbed.boot_id, pair=1),
                counting=testbed.executed.counting(),
                check=testbed.check,
            )
            for _ in range(trials):
                measurer.measure(Ask(OVERLOAD, DURATION, Phase.SATURATION))
            measurer.measure(Ask(0.0, DURATION, Phase.IDLE))
        finally:
            generator.close()
            file.close()
        return testbed.guest.boot_time or 0.0, measurer.made
    finally:
        testbed.close()


def unheld(build: KernelBuild, journal: Journal, place: Path) -> tuple[float, float]:
    """Instructions/s of a busy loop with the plugin and without it: of the best of the rounds, which take turns."""
    machine = GuestConfig(cpus=plan_cpus(None, None).sut, accelerator="tcg")
    with (
        Guest(build, GuestConfig(cpus=machine.cpus, accelerator="tcg", metered=True), journal, place) as metered,
        Guest(build, machine, journal, place) as bare,
    ):
        best = {}
        executed = 0
        for guest in (metered, bare):
            guest.wait(180)
            guest.count()
        for _ in range(ROUNDS):
            for guest in (metered, bare):
                before = sum(one.instructions for one in guest.meter.counts()) if guest.meter else 0
                began = time.monotonic()
                guest.run("sh", "-c", LOOP)
                took = time.monotonic() - began
                executed = sum(one.instructions for one in guest.meter.counts()) - before if guest.meter else executed
                best[guest.boot_id] = max(best.get(guest.boot_id, 0.0), executed / took)
        return best[metered.boot_id], best[bare.boot_id]


def main() -> None:
    """Print one line for this QEMU, and what differs from the first one of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="linux-image-cloud-amd64")
    parser.add_argument("--boots", type=int, default=2)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--file", type=Path, help="numbers of several QEMUs, a line each")
    options = parser.parse_args()
    build = named_build(options.kernel)
    boots: list[float] = []
    trials: list[list[Trial]] = []
    with (
        Lease.acquire(whole_machine(), wait=1200),
        tempfile.TemporaryDirectory() as place,
        Journal.begin(Path(place)) as journal,
    ):
        for _ in range(options.boots):
            took, own = held(build, options.trials, journal, Path(place))
            boots.append(took)
            trials.append(own)
        fast, bare = unheld(build, journal, Path(place))
    cost = cost_result(trials, PDR_GOAL.loss_ratio)
    assert cost is not None
    sound = [one for own in trials for one in own if one.occasion.phase == Phase.SATURATION and one.sound]
    rates = [one.forwarding_rate for one in sound]
    version = qemu_version(build.architecture)
    print(
        f"QEMU {version}, {build.release}: booted in {statistics.median(boots):.1f} s; unheld {fast / 1e6:.0f} "
        f"MIPS, without the plugin {bare / 1e6:.0f}; held {statistics.median(rates) / 1e3:.2f} kpps, CV "
        f"{statistics.stdev(rates) / statistics.mean(rates):.2%} of {len(rates)} trials; {cost.instructions:.1f} "
        f"instructions/packet, boots {', '.join(f'{one.instructions:.1f}' for one in each(trials))}; "
        f"{cost.batch or 0:.1f} packets a poll",
        flush=True,
    )
    if options.file is not None:
        told(options.file, build, cost)


def each(trials: Sequence[Sequence[Trial]]) -> list[CostResult]:
    """What each boot came to."""
    return [cost for own in trials if (cost := cost_result([own], PDR_GOAL.loss_ratio)) is not None]


def told(file: Path, build: KernelBuild, cost: CostResult) -> None:
    """Keep the functions, and print where they differ from those of the first QEMU that had this kernel."""
    functions = {one.name: one.instructions for one in cost.functions}
    with file.open("a") as out:
        version = qemu_version(build.architecture)
        out.write(json.dumps({"qemu": version, "kernel": build.version, "functions": functions}) + "\n")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    first = next(line for line in lines if line["kernel"] == build.version)
    changes = {
        name: functions.get(name, 0.0) - first["functions"].get(name, 0.0) for name in functions | first["functions"]
    }
    largest = sorted((name for name in changes if abs(changes[name]) >= LEAST), key=lambda name: -abs(changes[name]))
    print(f"  against QEMU {first['qemu']}: {len(largest)} functions differ by {LEAST:g} instructions or more")
    for name in largest[:LARGEST]:
        before, after = (one.get(name, 0.0) for one in (first["functions"], functions))
        print(f"  {name:32s} {before:8.1f} {after:8.1f} {changes[name]:+8.1f}")


if __name__ == "__main__":
    main()

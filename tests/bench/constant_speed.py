"""How much does a saturation throughput scatter from trial to trial, and what does holding a guest's CPU change?

    sudo .venv/bin/python tests/bench/constant_speed.py [--trials 12] [--duration 0.5] [--busy] [--without icount]

Four SUTs are up side by side and get a trial each in turn, so that what this machine does meets all alike: namespaces
(3 hops), an emulated guest as fast as it goes, one whose CPU our plugin holds, and one that QEMU's own `-icount` holds
(with align). A line each: boot, median packets/s, CV of all trials and of the sound ones, and how many were not sound.
`--busy` has a process run on each CPU meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from flat_values import changed
from verdicts import busy

from pdrgate.builds.kernel_build import kernel_build
from pdrgate.data_paths.catalogue import data_path
from pdrgate.guests import qemu_start as guests
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.metering import CpuSpeed
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.observers.watching import watching
from pdrgate.record.trial import Trial
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds import Testbed
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.frames import Frames

BUFFER = 512
ICOUNT = ["-icount", "shift=3,align=on,sleep=on"]
"""8 ns an instruction: 125 MIPS."""
BURN = 4.0
"""Seconds of work in a fresh guest of `-icount`, which pays back what it fell behind in its boot at full speed."""


@dataclass
class Sut:
    name: str
    load: float
    """Packets/s: an overload."""
    testbed: Testbed
    boot: float | None
    trials: list[Trial] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--duration", type=float, default=0.5)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--kernel", default="linux-image-cloud-amd64")
    options = parser.parse_args()
    with (
        Lease.acquire(whole_machine(), wait=1200),
        tempfile.TemporaryDirectory() as place,
        Journal.begin(Path(place)) as journal,
        contextlib.ExitStack() as stack,
    ):
        if options.busy:
            stack.enter_context(busy())
        suts = list(opened(options.kernel, journal, Path(place), options.without, stack))
        for _ in range(options.trials):
            for sut in suts:
                sut.trials.append(trial(sut, options.duration))
        print(f"{'SUT':<24}{'boot':>7}{'median':>14}{'CV':>8}{'CV of sound':>13}{'not sound':>11}")
        for sut in suts:
            tell(sut)


def opened(
    kernel: str, journal: Journal, folder: Path, without: list[str], stack: contextlib.ExitStack
) -> Iterator[Sut]:
    cpus, build = plan_cpus(None, None), kernel_build(kernel)
    path = data_path("ipv6-routing")

    def guest(speed: CpuSpeed) -> VmTestbed:
        config = GuestConfig(cpus=cpus.sut, accelerator="tcg", boot_cpus=(cpus.generator, *cpus.sut))
        made = VmTestbed(build, cpus, journal, folder, machine=config, speed=speed, patience=300.0)
        stack.callback(made.close)
        return made.ready()

    def set_up(name: str, load: float, testbed: Testbed, boot: float | None) -> Sut:
        path.apply(testbed.hops)
        testbed.set_buffer(BUFFER)
        testbed.pin("1 cpu")
        return Sut(name, load, testbed, boot)

    if "netns" not in without:
        netns = NetnsTestbed(3, cpus, journal)
        stack.callback(netns.close)
        yield set_up("namespaces", 2e6, netns, None)
    if "unheld" not in without:
        unheld = guest("full")
        yield set_up("guest, unheld", 150e3, unheld, unheld.guest.boot_time)
    if "held" not in without:
        held = guest("auto")
        yield set_up("guest, " + held.describe()["cpu_speed"], 40e3, held, held.guest.boot_time)
    if "icount" not in without:
        original = guests.command_line

        def with_icount(**arguments: Any) -> list[str]:
            return [*original(**arguments), *ICOUNT]

        guests.command_line = with_icount  # type: ignore[assignment]
        try:
            counted = guest("full")
        finally:
            guests.command_line = original
        with counted.guest.start("sh", "-c", "while :; do :; done"):
            time.sleep(BURN)
        yield set_up("guest, icount 125 MIPS", 50e3, counted, counted.guest.boot_time)


def trial(sut: Sut, duration: float) -> Trial:
    generator = sut.testbed.generator(6)
    try:
        with watching(sut.testbed.observers()) as watch:
            measured = generator.trial(sut.load, duration, Frames(6))
    finally:
        generator.close()
    return changed(measured, disturbed=watch.observation.disturbed)


def tell(sut: Sut) -> None:
    def cv(trials: list[Trial]) -> str:
        rates = [one.forwarding_rate for one in trials]
        return f"{statistics.stdev(rates) / statistics.mean(rates):.2%}" if len(rates) > 1 else "-"

    sound = [one for one in sut.trials if one.sound]
    boot = f"{sut.boot:.1f} s" if sut.boot else "-"
    median = statistics.median(one.forwarding_rate for one in sut.trials)
    unsound = len(sut.trials) - len(sound)
    print(f"{sut.name:<24}{boot:>7}{median / 1e3:>9.2f} kpps{cv(sut.trials):>8}{cv(sound):>13}{unsound:>11}")


if __name__ == "__main__":
    main()

"""How long a memory trial's end takes by the names of its lines, in real trials.

    sudo .venv/bin/python tests/bench/naming_cost.py [--trials 9] [--kernel linux-image-cloud-amd64]

One guest routes IPv6. Told are medians: how long the whole trial's end took, and of that the naming, in seconds and in
seconds of this process's CPU, which others on the machine make no longer.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pdrgate.builds.named_build import named_build
from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.sut.measurer import Measurer
from pdrgate.gate.sut.open_loop_traffic import OpenLoopTraffic
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.metering.memory.line_areas import LineArea
from pdrgate.guests.metering.memory.memory_observer import MemoryObserver
from pdrgate.guests.metering.memory.naming.line_names import GuestLineNames, NamedLines
from pdrgate.guests.metering.symbols import KernelSymbols
from pdrgate.history.trials import TrialFile
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.measurands import Ask
from pdrgate.measurands.memory.memory_trials import SENT_AT_ONCE
from pdrgate.observers.watching import Observation
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.frames import Frames

PATH = "ipv6-routing"
LOAD, DURATION = 120e3, 0.1
"""Packets/s and seconds of the trial before the first memory trial."""


class Timed:
    """Names of lines, and what each naming took."""

    def __init__(self, names: GuestLineNames) -> None:
        self._names = names
        self.took: list[tuple[float, float]] = []
        """Seconds, and seconds of CPU."""
        self.lines: list[tuple[int, int]] = []
        """How many lines were listed, and how many have names."""

    def __call__(self, symbols: KernelSymbols, areas: Sequence[LineArea], listed: npt.NDArray[np.void]) -> NamedLines:
        begun, used = time.monotonic(), time.thread_time()
        found = self._names(symbols, areas, listed)
        self.took.append((time.monotonic() - begun, time.thread_time() - used))
        self.lines.append((len(listed), sum(bool(one.name) for one in found.names)))
        return found


class TimedEnd:
    """An observer, and what its ends took."""

    def __init__(self, observer: MemoryObserver) -> None:
        self._observer = observer
        self.names = observer._names = Timed(observer._names)
        self.took: list[float] = []

    def begin(self) -> None:
        """Begin as the observer does."""
        self._observer.begin()

    def end(self) -> Observation:
        """End as the observer does."""
        begun = time.monotonic()
        found = self._observer.end()
        self.took.append(time.monotonic() - begun)
        return found


def measured(testbed: VmTestbed, name: str, trials: int, folder: Path) -> TimedEnd:
    """Make trials of a path's packets."""
    path = data_path(name)
    path.apply(testbed.hops)
    generator, file = testbed.generator(path.family), TrialFile(folder / f"{name}.jsonl")
    try:
        executed = testbed.executed
        assert executed is not None
        counting = executed.counting()
        (memory,) = executed.memory()
        assert isinstance(memory, MemoryObserver)
        timed = TimedEnd(memory)
        measurer = Measurer(
            OpenLoopTraffic(generator, Frames(path.family, 64), busy=executed.busy),
            testbed.observers(),
            file,
            Belonging("naming", boot=testbed.boot_id),
            counting=counting,
            during={Phase.MEMORY: (timed,)},
        )
        measurer.measure(Ask(LOAD, DURATION, Phase.SATURATION))
        for _ in range(trials):
            measurer.measure(Ask(LOAD, SENT_AT_ONCE / LOAD, Phase.MEMORY))
        return timed
    finally:
        generator.close()
        file.close()
        path.restore()


def main() -> None:
    """Measure, and print a line for each path."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=9)
    parser.add_argument("--kernel", default="linux-image-cloud-amd64")
    asked = parser.parse_args()
    cpus = plan_cpus(None, None)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        journal = stack.enter_context(Journal.begin(folder / "state"))
        config = GuestConfig(cpus=cpus.sut, accelerator="tcg", metered=True)
        build = named_build(asked.kernel, report=print)
        testbed = VmTestbed(build, cpus, journal, folder / "consoles", machine=config, patience=180.0).ready()
        stack.callback(testbed.close)
        found = measured(testbed, PATH, asked.trials, folder)
    seconds, used = (statistics.median(each) for each in zip(*found.names.took, strict=True))
    lines, named = (statistics.median(each) for each in zip(*found.names.lines, strict=True))
    print(
        f"{PATH}: a trial's end takes {statistics.median(found.took):.3f} s, of that names {seconds:.3f} s "
        f"({used:.3f} s of CPU), the first time {found.names.took[0][1]:.3f} s of CPU; {lines:.0f} lines, "
        f"{named:.0f} of them with names; {len(found.took)} trials"
    )


if __name__ == "__main__":
    main()

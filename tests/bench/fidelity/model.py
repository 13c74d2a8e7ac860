"""What the model of a memory trial counts of the same programs, in a metered guest."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hardware import RUN, fill, runs
from programs import Program
from timing.timed_trace import Executed, executed

from pdrgate.bpf.programs import LoadedProgram, loaded
from pdrgate.builds.bpf_build import bpf_build
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.named_build import named_build
from pdrgate.guests.emulator.server_cpus import SERVER_CPUS, ServerCpu
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.guests.metering.memory import CacheLevels
from pdrgate.guests.metering.memory.memory_observer import WARM, memory_marks, memory_seen
from pdrgate.guests.metering.symbols import read_symbols
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.hosts.host import Host
from pdrgate.hosts.piped_program import sent
from pdrgate.measurands.counted.estimated_cycles import PricedEvents, priced_events
from pdrgate.observers.function_names import PROGRAM
from pdrgate.record.stretch import MemoryCounts
from pdrgate.safety.journal import Journal

_MEMORY = 1280
"""MiB: the largest map has 256."""
_PATIENCE, _HEEDED = 300.0, 60.0


@dataclass(frozen=True)
class Kernel:
    """What the guest boots."""

    build: KernelBuild
    cpu: ServerCpu
    """The guest's; a kernel chooses by it how it copies, calls through pointers and returns."""
    cmdline: str

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Options that say it."""
        parser.add_argument("--kernel", default="linux-image-cloud-amd64", help="the guest's")
        parser.add_argument("--guest-cpu", choices=SERVER_CPUS, default="server", help="the CPU that it finds")
        parser.add_argument("--cmdline", default="", help="words for the guest's command line")

    @classmethod
    def asked(cls, options: argparse.Namespace) -> Kernel:
        """The one that options ask for."""
        return cls(named_build(options.kernel), options.guest_cpu, options.cmdline)


@dataclass(frozen=True)
class Counted:
    """What a run of a program does."""

    events: PricedEvents
    """How often it does what has a price."""
    executed: Executed
    """What some runs executed, one step after the other."""


def in_model(
    programs: Sequence[Program],
    objects: Path,
    runner: Path,
    kernel: Kernel,
    caches: CacheLevels,
    folder: Path,
    prepare: Callable[[Host], None] = lambda host: None,
) -> dict[str, Counted]:
    """What a run of each does in a guest, without those that do too much to be counted.

    Args:
        prepare: sets up what the programs need.
    """
    cpus = plan_cpus(None, None)
    machine = GuestConfig(
        cpus=cpus.sut, memory=_MEMORY, accelerator="tcg", cpu=kernel.cpu, cmdline=kernel.cmdline, metered=True,
        caches=caches, boot_cpus=(cpus.generator, *cpus.sut),
    )  # fmt: skip
    found: dict[str, Counted] = {}
    with Journal.begin(folder) as journal, Guest(kernel.build, machine, journal, folder / "consoles") as guest:
        guest.wait(_PATIENCE)
        prepare(guest)
        place = sent(guest, runner, guest.folder("repeat"), "the bench")
        for one in programs:
            compiled = bpf_build(f"{one.compiled(objects)}:run", on_packets=True)
            with loaded(guest, compiled, "classifier", alike=True) as program:
                fill(guest, place, program, one)
                if (seen := _seen(guest, place, program, one, caches)) is None:
                    print(f"{one.title}: its runs touch more than a window has room for")
                else:
                    found[one.title] = seen
                program.leave()
    return found


def _seen(guest: Guest, runner: str, program: LoadedProgram, one: Program, caches: CacheLevels) -> Counted | None:
    meter = guest.memory_meter
    assert meter is not None
    symbols = read_symbols(guest, guest.build.image)
    meter.trace(one.steps)
    meter.begin(caches, memory_marks(symbols, f"{PROGRAM}run"), WARM)
    _heeded(guest)
    runs(guest, runner, program, one.length, RUN, one.runs + WARM + 1)
    meter.end()
    _heeded(guest)
    touched = meter.touched()
    seen = memory_seen(replace(touched, listed=touched.listed[:0]), symbols, caches, ())
    if seen is None:
        return None
    total = MemoryCounts(*map(sum, zip(*seen.functions.values(), strict=True)))
    names = symbols.names(touched.places["address"])
    return Counted(priced_events(total, seen.windows), executed(touched.places, meter.traced(), names))


def _heeded(guest: Guest) -> None:
    meter = guest.memory_meter
    assert meter is not None
    deadline = time.monotonic() + _HEEDED
    while not meter.heeded:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the guest was busy for {_HEEDED:g} s")
        guest.run("true")

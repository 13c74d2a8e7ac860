"""What the programs take on this machine: the least of many short bursts, all of them in turn."""

from __future__ import annotations

import contextlib
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from programs import Program

from pdrgate.bpf.programs import LoadedProgram, loaded
from pdrgate.builds.bpf_build import bpf_build
from pdrgate.hosts.host import Host, ShellHost

FILL, RUN = 255, 0
"""The first byte of a packet."""
_FULL = "0"
"""What a program returns that has nothing more to fill: TC_ACT_OK."""
_FILLED = 60
"""Bursts in which a map is filled at the latest: elements are made in batches, of which some fail."""
_BURST, _BURSTS = 5e5, 50
"""Nanoseconds of a burst, and bursts of a turn: what the turns before have left in caches is gone after the first."""
_LATENCY = 3
"""Cycles that a multiplication waits for another, on each x86 of the last fifteen years."""


@dataclass(frozen=True)
class Taken:
    """What a run of a program takes."""

    cycles: float
    """The least of all bursts."""
    usual: float
    """How much more the median of all bursts is, relative."""
    repeats: float
    """How much the least of the even turns and that of the odd ones differ, relative."""
    turns: Sequence[float]
    """Cycles of the least burst of each turn."""
    nanoseconds: float
    """The time of a cycle."""


def runs(
    host: Host, runner: str, program: LoadedProgram, length: int, first: int, repeat: int, bursts: int = 1
) -> list[list[str]]:
    """What each burst tells: the verdict, and nanoseconds for a run."""
    words = (runner, program.pin, str(length), str(first), str(repeat), str(bursts))
    return [line.split() for line in host.run(*words, timeout=300.0).stdout.splitlines()]


def fill(host: Host, runner: str, program: LoadedProgram, asked: Program) -> None:
    """Fill its maps."""
    for _ in range(_FILLED if asked.elements else 0):
        if runs(host, runner, program, asked.length, FILL, asked.elements)[0][0] == _FULL:
            return
    if asked.elements:
        raise RuntimeError(f"{asked.title}: its maps cannot be filled on {host.name}")


def on_hardware(
    programs: Sequence[Program],
    objects: Path,
    runner: Path,
    rounds: int,
    runners: Mapping[str, Path] | None = None,
) -> dict[str, Taken]:
    """What a run of each takes here, in cycles of this machine's CPU at the speed that it has meanwhile.

    Args:
        rounds: turns of each program; the order of a round is drawn by lot.
        runners: what runs a program in place of ``runner``, by its title.
    """
    found: dict[str, list[list[float]]] = {one.title: [] for one in programs}
    clock: list[float] = []
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(ShellHost("this machine", ("sh",)))
        ready: list[tuple[Program, LoadedProgram, int]] = []
        for one in programs:
            build = bpf_build(f"{one.compiled(objects)}:run", on_packets=True)
            program = stack.enter_context(loaded(host, build, "classifier", alike=True))
            stack.callback(program.leave)
            fill(host, str(runner), program, one)
            tried = float(runs(host, str(runner), program, one.length, RUN, 2000, 2)[-1][1])
            ready.append((one, program, max(100, int(_BURST / tried))))
        for _ in range(rounds):
            clock += map(float, host.run(str(runner), "clock", "20").stdout.split())
            for one, program, repeat in random.sample(ready, len(ready)):
                own = (runners or {}).get(one.title, runner)
                bursts = runs(host, str(own), program, one.length, RUN, repeat, _BURSTS)
                found[one.title].append([float(time) for _, time in bursts])
    cycle = min(clock) / _LATENCY
    return {title: _taken(turns, cycle) for title, turns in found.items()}


def _taken(turns: Sequence[Sequence[float]], cycle: float) -> Taken:
    least = [min(turn) for turn in turns]
    every = [time for turn in turns for time in turn]
    best = min(least)
    repeats = abs(min(least[::2]) - min(least[1::2])) / best if len(least) > 1 else 0.0
    return Taken(best / cycle, statistics.median(every) / best - 1.0, repeats, [one / cycle for one in least], cycle)

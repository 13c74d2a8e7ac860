"""CPU numbers: which ones generate and which ones route, and the masks and lists the kernel writes them in."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pdrgate.values.errors import TestbedError

_CPU_ROOT = Path("/sys/devices/system/cpu")

_MOST_CPUS = 1 << 16
"""A kernel has 8192 at most (CONFIG_NR_CPUS): a list of more is made up, and would fill memory."""


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """CPUs of generator and SUT. ``shared_core`` is true when they had to take two threads of one core."""

    generator: int
    sut: tuple[int, ...]
    shared_core: bool = False


def plan_cpus(
    generator: int | None,
    sut: Collection[int] | None,
    available: Collection[int] | None = None,
    siblings: Mapping[int, Collection[int]] | None = None,
) -> CpuPlan:
    """Give the generator one CPU and the SUT others. A value of None is chosen here.

    The SUT gets one CPU when it may be chosen: one embedded generator cannot saturate more, and a PDR per CPU can be
    compared between machines. The two share no CPU, and no core either when there is a choice: threads of one core slow
    each other, which would read as a slower SUT.

    Args:
        generator: the generator's CPU.
        sut: the CPUs that do the SUT's packet work.
        available: CPUs that may be used; by default those this process may run on.
        siblings: by CPU, the CPUs of its core, itself included; by default read from /sys.

    Raises:
        TestbedError: there is no such CPU, the two were given a CPU in common, or no CPU is left for one of them.
    """
    usable = sorted(os.sched_getaffinity(0) if available is None else available)
    cores = thread_siblings(usable) if siblings is None else siblings
    if len(usable) < 2:
        raise TestbedError(
            f"only CPU {format_cpu_list(usable)} is available, and a generator that shares it with the SUT would slow "
            "the SUT instead of overloading it, so that no loss shows; give this machine or container two CPUs "
            "(check taskset -p $$ and the cpuset)"
        )
    for key, cpus in (("generator.cpu", () if generator is None else (generator,)), ("sut.cpus", sut or ())):
        if absent := sorted(set(cpus) - set(usable)):
            raise TestbedError(
                f"{key}: CPU {format_cpu_list(absent)} is not available, CPUs {format_cpu_list(usable)} are; "
                "choose of these or write auto"
            )
    if sut is not None and generator in sut:
        raise TestbedError(f"sut.cpus: CPU {generator} is the generator's; give the SUT others or write auto")

    if generator is None:
        generator = _choose(usable, avoid=sut or (), cores=cores, key="generator.cpu", other="the SUT")
    if sut is None:
        sut = (_choose(usable, avoid=(generator,), cores=cores, key="sut.cpus", other="the generator"),)
    chosen = tuple(sorted(set(sut)))
    return CpuPlan(generator, chosen, shared_core=any(cpu in chosen for cpu in cores.get(generator, ())))


def _choose(
    usable: Iterable[int], avoid: Collection[int], cores: Mapping[int, Collection[int]], key: str, other: str
) -> int:
    free = [cpu for cpu in usable if cpu not in avoid]
    if not free:
        raise TestbedError(f"{key}: no CPU is left, {other} has them all; leave it one, or write auto for both")
    apart = [cpu for cpu in free if not any(sibling in avoid for sibling in cores.get(cpu, ()))]
    return (apart or free)[0]


def thread_siblings(cpus: Iterable[int], root: Path = _CPU_ROOT) -> dict[int, frozenset[int]]:
    """The CPUs of each CPU's core. A CPU whose core the kernel does not report counts as a core of its own."""
    cores = {}
    for cpu in cpus:
        try:
            text = (root / f"cpu{cpu}/topology/thread_siblings_list").read_text()
            cores[cpu] = frozenset(parse_cpu_list(text)) | {cpu}
        except (OSError, ValueError):
            cores[cpu] = frozenset((cpu,))
    return cores


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """The CPUs of a list such as ``0-2,5``. Raises ValueError if it is no list, or no machine has that many."""
    cpus: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        first, _, last = part.partition("-")
        if int(last or first) >= _MOST_CPUS:
            raise ValueError(f"{part.strip()[:40]} are more CPUs than any kernel has")
        cpus.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(cpus))


def format_cpu_list(cpus: Iterable[int]) -> str:
    """CPUs as the kernel lists them: ``0-2,5``."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1][1:] = [cpu]
        else:
            runs.append([cpu])
    return ",".join("-".join(str(end) for end in run) for run in runs)


def cpu_mask(cpus: Iterable[int]) -> str:
    """CPUs as a mask the kernel takes: hexadecimal, in comma-separated groups of 32 bits (``2``, ``1,00000000``)."""
    bits = 0
    for cpu in cpus:
        bits |= 1 << cpu
    groups = []
    while bits >> 32:
        groups.append(f"{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
    return ",".join([f"{bits:x}", *reversed(groups)])


def parse_cpu_mask(text: str) -> tuple[int, ...]:
    """The CPUs of a mask as the kernel shows it (``00000002``, ``f,ffffffff``). Raises ValueError if it is no mask."""
    bits = 0
    for group in text.strip().split(","):
        bits = bits << 32 | int(group, 16)
    return tuple(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)

"""Somebody has the CPUs while nothing is measured: threads by what they ran, and what the hypervisor withheld."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pdrgate.hosts.host import Host
from pdrgate.observers.counters import parse_stat
from pdrgate.observers.reading import Counter, Place

WINDOW = 2.0
"""Seconds that the CPUs are watched: 1 % of a CPU is then two of its 10 ms ticks."""

_TICK = 0.01
"""Seconds: USER_HZ is 100 on all machines that Linux runs on today (time(7))."""
_READ_TIMEOUT = 30.0
_BUSIEST, _WORTH_NAMING = 3, 0.005
_THREADS = r"find /proc/[0-9]*/task -mindepth 2 -maxdepth 2 -name stat -exec grep -H '' {} + 2>/dev/null"


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread, and the CPU time it has had since it began."""

    process: int
    parent: int
    """Process id of its process's parent."""
    command: str
    cpu: int
    """The CPU that it ran on last."""
    ticks: int


@dataclass(frozen=True, slots=True)
class Busy:
    """A process that had a share of a CPU."""

    process: int
    command: str
    share: float


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Shares of one CPU's time within the window."""

    processes: float
    """The share that all processes but ours had."""
    steal: float
    """Withheld by the hypervisor."""
    busiest: tuple[Busy, ...] = ()
    """The processes that had most of it, the first one most."""


def watch_cpus(
    host: Host, cpus: Collection[int], own: int | None = None, *, window: float = WINDOW,
    pause: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
) -> dict[int, CpuUse]:  # fmt: skip
    """Watch CPUs of a host for ``window`` seconds.

    Args:
        own: a process that, with all its descendants, does not count: our own, on this machine.

    Raises:
        TestbedError: the host cannot be asked.
    """
    threads_before = read_threads(host)
    # Between these two readings nothing of ours runs there; looking through the threads is work.
    ticks_before, begin = parse_stat(host.read("/proc/stat")), clock()
    pause(window)
    ticks_after, end = parse_stat(host.read("/proc/stat")), clock()
    threads_after = read_threads(host)
    seconds = max(end - begin, _TICK)
    ours = {} if own is None else descendants(threads_after, own)
    found = {}
    for cpu in cpus:
        ran = _ran(threads_before, threads_after, cpu)
        mine = sum(ticks for process, ticks in ran.items() if process in ours)
        names = {process: thread.command for (process, number), thread in threads_after.items() if number == process}
        others = sorted(((ticks, process) for process, ticks in ran.items() if process not in ours), reverse=True)

        def share(ticks: int) -> float:
            return min(1.0, max(0.0, ticks * _TICK / seconds))

        def gained(name: str, cpu: int = cpu) -> int:
            key = Counter(Place("cpu", str(cpu)), name)
            return ticks_after.get(key, 0) - ticks_before.get(key, 0)

        found[cpu] = CpuUse(
            processes=share(gained("process_ticks") - mine),
            steal=share(gained("steal_ticks")),
            busiest=tuple(
                Busy(process, names.get(process, "?"), share(ticks))
                for ticks, process in others[:_BUSIEST]
                if share(ticks) >= _WORTH_NAMING
            ),
        )
    return found


def read_threads(host: Host) -> dict[tuple[int, int], Thread]:
    """All threads of the host, by process and thread id. Raises TestbedError when it cannot be asked."""
    return parse_threads(host.run("sh", "-c", _THREADS, timeout=_READ_TIMEOUT, check=False).stdout)


def parse_threads(text: str) -> dict[tuple[int, int], Thread]:
    """Lines of ``/proc/PID/task/TID/stat`` (proc(5)), each with its file before it as grep -H has it."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"/proc/(\d+)/task/(\d+)/stat:\d+ \((.*)\) (.*)", line)
        columns = match[4].split() if match else []
        if match is None or len(columns) < 37:
            continue  # it ended while it was read
        found[int(match[1]), int(match[2])] = Thread(
            process=int(match[1]), parent=int(columns[1]), command=match[3], cpu=int(columns[36]),
            ticks=int(columns[11]) + int(columns[12]),
        )  # fmt: skip
    return found


def descendants(threads: Mapping[tuple[int, int], Thread], process: int) -> set[int]:
    """A process and all its descendants, by process id."""
    parents = {thread.process: thread.parent for thread in threads.values()}
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _ran(before: Mapping[tuple[int, int], Thread], after: Mapping[tuple[int, int], Thread], cpu: int) -> dict[int, int]:
    """Ticks that threads ran meanwhile, by process, of the threads that were on that CPU at the end."""
    ran: dict[int, int] = {}
    for key, thread in after.items():
        if thread.cpu == cpu:
            earlier = before[key].ticks if key in before else 0
            ran[thread.process] = ran.get(thread.process, 0) + max(0, thread.ticks - earlier)
    return ran

"""Placement of QEMU's threads on this machine, and their priority."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from io import FileIO
from pathlib import Path

from pdrgate.hosts.scheduling import go_first, stay_awake, take_short_slices, take_turns


class QemuThreads:
    """The threads of one QEMU, which are put to CPUs and given priorities.

    Args:
        pid: QEMU's process.
        cpus: CPUs of this machine that it runs on; virtual CPUs get one of them each, in turn.
        isolate: whether QEMU goes before other processes on its CPUs.
        metered: whether the guest boots behind others.
    """

    def __init__(self, pid: int, cpus: tuple[int, ...], *, isolate: bool, metered: bool) -> None:
        self._pid = pid
        self._cpus = cpus
        self._isolate = isolate
        self._metered = metered
        self._vcpus: tuple[int, ...] = ()
        """Threads that `go_first` is about."""
        self._awake: FileIO | None = None

    def waits(self) -> Mapping[str, float]:
        """Seconds that each thread has waited for a CPU of this machine so far, by its id (schedstat); empty when QEMU
        has ended."""
        found = {}
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{self._pid}/task").iterdir():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    found[task.name] = int((task / "schedstat").read_text().split()[1]) / 1e9
        return found

    def hurry(self) -> None:
        """Let QEMU go before other processes from now on, if it is isolated."""
        if self._isolate:
            # A nice value counts only within a session; between sessions their autogroups' values do.
            with contextlib.suppress(OSError):
                Path(f"/proc/{self._pid}/autogroup").write_text("-20")

    def settle(self) -> None:
        """Give each virtual CPU a CPU of its own, if there are enough; else they share all of them.

        A guest that is metered boots behind others, one that is being measured for one, and goes before them from here
        at the latest.
        """
        first = self._isolate and self._metered
        if first:
            self.hurry()
        for task in Path(f"/proc/{self._pid}/task").iterdir():
            with contextlib.suppress(OSError):
                if self._isolate:
                    os.setpriority(os.PRIO_PROCESS, int(task.name), -20)
                    take_short_slices(int(task.name))
                os.sched_setaffinity(int(task.name), self._cpus)
                # With debug-threads=on: "CPU 0/TCG", "CPU 1/KVM".
                words = (task / "comm").read_text().split()
                if len(words) > 1 and words[0] == "CPU" and (number := words[1].partition("/")[0]).isdigit():
                    self._vcpus += (int(task.name),) if first else ()
                    own = self._cpus[int(number) % len(self._cpus)]
                    os.sched_setaffinity(int(task.name), {own})

    def go_first(self, first: bool) -> None:
        """Let the virtual CPUs run as soon as they have something to do, or, unless ``first``, take turns with others.

        QEMU's main loop takes turns all the same: if it went first, too, it would hand over packets one by one, and a
        guest that gets fewer of them at a time pays more for each.
        """
        self.let_sleep()
        for thread in self._vcpus:
            if first:
                go_first(thread)
            else:
                take_turns(thread)
        if first and self._vcpus:
            self._awake = stay_awake()

    def let_sleep(self) -> None:
        """Let this machine's CPUs sleep again, which `go_first` keeps awake. Calling it twice is harmless."""
        awake, self._awake = self._awake, None
        if awake is not None:
            awake.close()

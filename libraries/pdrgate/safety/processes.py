"""Processes that no other is mistaken for, and how they and what they started are ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pdrgate.values.errors import TestbedError

MARK = "PDRGATE_JOURNAL"
"""The environment variable that names the journal which a program was started from. Its children inherit it."""

_GRACE = 2.0
"""Seconds a process has to end by itself after SIGTERM."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process that no other is mistaken for: its number and its start, in clock ticks after boot."""

    pid: int
    start: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The process that has this number now; None if there is none, or only one that nobody has reaped."""
        fields = _stat(pid)
        return None if fields is None or fields[0] in "ZX" else cls(pid, int(fields[19]))

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return ProcessId.of(self.pid) == self


def end(process: ProcessId, mark: str = "") -> bool:
    """End a process and what is left of the session that it led. Returns whether there was anything to end.

    If the process leads its group, the group is signalled. Its remaining children, even long after its death, are the
    processes in the session of its number that began after it and carry ``mark`` in their environment (`MARK`): a
    session's number may have passed to somebody else, and then all but the mark looks the same.

    Raises:
        TestbedError: one of them does not end.
    """
    ended = _end_one(process)
    while left := tuple(_left_of_session(process, mark)):
        for one in left:
            ended |= _end_one(one)
    return ended


def left_running(processes: Collection[ProcessId], mark: str) -> frozenset[ProcessId]:
    """The processes of which `end` would find something, by one look at all processes of the machine."""
    alive = {process for process in processes if process.alive}
    left = tuple(_of_sessions({process.pid for process in processes} - {process.pid for process in alive}, mark))
    return frozenset(
        process
        for process in processes
        if process in alive or any(leader == process.pid and one.start >= process.start for leader, one in left)
    )


def _end_one(process: ProcessId) -> bool:
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        # The descriptor holds on to whoever has the number now; what follows is about that one process.
        if not process.alive:
            return False
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(process.pid) == process.pid:
                    os.killpg(process.pid, number)
                else:
                    signal.pidfd_send_signal(pidfd, number)
            if ended.poll(_GRACE * 1000):
                return True
        raise TestbedError(f"process {process.pid} does not end, not even by SIGKILL; look at its state")
    finally:
        os.close(pidfd)


def _left_of_session(leader: ProcessId, mark: str) -> Iterator[ProcessId]:
    return (one for _, one in _of_sessions({leader.pid}, mark) if one.start >= leader.start)


def _of_sessions(leaders: Collection[int], mark: str) -> Iterator[tuple[int, ProcessId]]:
    """Processes in the sessions of these numbers that carry the mark, each with the number of its session."""
    if not mark or not leaders:
        return
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        fields = _stat(pid)
        if fields is None or fields[0] in "ZX" or int(fields[3]) not in leaders:
            continue
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                yield int(fields[3]), ProcessId(pid, int(fields[19]))


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third, the state, on (proc(5)); None if there is no such process."""
    try:
        # The name, in parentheses, may itself hold spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields if len(fields) > 19 else None

"""Workers of one machine: each measures a part of the paths on CPUs of its own, at the same time as the others.

A worker is a run of its own, in a folder of its own, with a lease of its own CPUs (`pdrgate.safety.locks`). One that
dies costs its part; `pdrgate gate --resume FOLDER` measures what it left.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pdrgate.hosts.cpus import format_cpu_list, thread_siblings
from pdrgate.this_process.interruption import Heard, answered, interrupted_code
from pdrgate.values.errors import UsageError

_LEAST = 2
"""CPUs of a worker: one for the generator, one for the SUT."""
_POLL = 0.1
"""Seconds between looks at the signals that came."""


@dataclass(frozen=True, slots=True)
class PathWorker:
    """A run that measures a part of the paths.

    Args:
        label: begins each line that it prints, such as ``2/4``.
        folder: its run, with the options that it is asked for.
        cpus: those that it may use.
    """

    label: str
    folder: Path
    cpus: frozenset[int]


def shared_out(
    workers: int, cpus: Collection[int] | None = None, siblings: Mapping[int, Collection[int]] | None = None
) -> tuple[frozenset[int], ...]:
    """Equal shares of the CPUs. Threads of one core are in one share where each worker can have a core or more.

    Args:
        workers: number of shares.
        cpus: by default those that this process may run on.
        siblings: by CPU, the CPUs of its core, itself included; by default read from /sys.

    Raises:
        UsageError: a share would have less than two CPUs.
    """
    usable = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    if len(usable) < workers * _LEAST:
        raise UsageError(
            f"--workers {workers}: each needs {_LEAST} CPUs, and there are {len(usable)} "
            f"({format_cpu_list(usable)}); ask for {max(1, len(usable) // _LEAST)} at most"
        )
    cores = thread_siblings(usable) if siblings is None else siblings
    by_core = sorted(usable, key=lambda cpu: (min(cores[cpu]), cpu))
    threads = max(len(set(cores[cpu]) & set(usable)) for cpu in usable)
    size = len(usable) // workers
    size -= size % threads if size >= threads else 0
    return tuple(frozenset(by_core[number * size : (number + 1) * size]) for number in range(workers))


def run_workers(workers: Sequence[PathWorker], at_once: int, *, quiet: bool = False, verbose: bool = False) -> int:
    """Run the workers, as many at once as may be, and print their lines.

    A signal that ends this command reaches each worker, which puts back what it changed.

    Args:
        at_once: how many have CPUs of their own.
        quiet: whether each prints its verdict and evidence only.
        verbose: whether each prints all that happens on its paths.

    Returns:
        The exit code of the signal that ended it, or 0. What workers found stands in their folders.
    """
    words = (("--quiet",) if quiet else ()) + (("--verbose",) if verbose else ())
    heard, signals = Heard(), deque[int]()

    def noted(number: int, frame: FrameType | None) -> None:
        if heard.asks(number):
            signals.append(number)

    with answered(noted):
        for first in range(0, len(workers), at_once):
            if not heard.count:
                some = workers[first : first + at_once]
                _print_lines(some, [_started(worker, words) for worker in some], signals)
    return interrupted_code(heard.first) if heard.count else 0


def _started(worker: PathWorker, words: Sequence[str]) -> subprocess.Popen[str]:
    """The run of a worker, on its CPUs. It ends as by SIGTERM where this process dies."""
    command = (sys.executable, "-m", "pdrgate", "gate", "--resume", str(worker.folder), *words)
    with _on(worker.cpus):
        return subprocess.Popen(
            ("setpriv", "--pdeathsig", "TERM", *command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip


@contextlib.contextmanager
def _on(cpus: Collection[int]) -> Iterator[None]:
    """A stretch of code in which this thread starts processes on these CPUs."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _print_lines(workers: Sequence[PathWorker], running: Sequence[subprocess.Popen[str]], signals: deque[int]) -> None:
    """Print what the processes print until all have ended, and hand signals on to them as they come."""
    turn, out = threading.Lock(), sys.stdout

    def copied(label: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with turn:
                out.write(f"{label}  {line}")
                out.flush()
        process.wait()

    threads = [
        threading.Thread(target=copied, args=(worker.label, process))
        for worker, process in zip(workers, running, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_POLL)
            while signals:
                number = signals.popleft()
                for process in running:
                    process.send_signal(number)

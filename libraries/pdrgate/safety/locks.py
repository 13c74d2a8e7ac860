"""What runs on one machine share, and the right to use it: runs that share nothing measure at once.

A run takes all that it uses before it changes anything: the CPUs of generator and SUT, interfaces, settings that the
whole machine has once, the SUT's host. Each is a file that is locked (flock(2)), so that the kernel takes a lock back
from a process that dies. Who waits stands in a queue, so that of many runs none waits for ever while others that came
later go on. Other machines know nothing of these locks but for one, which is the machine itself: all runs that measure
on it hold that one together, and a controller that has it as its SUT by SSH holds it alone, see
`pdrgate.safety.sut_lock`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote

from pdrgate.safety.state_folder import STATE_DIR, make, sut_lock
from pdrgate.values.errors import HeldError, TestbedError

LockKind = Literal["cpu", "interface", "setting", "host", "trex", "machine", "recovery"]

_POLL = 0.1
_QUEUE = "waiting-"
"""Prefix of the names of places in the queue. No kind of a resource has this name."""
_WORDS: Mapping[str, tuple[str, str]] = {
    "cpu": ("CPU {}", "give this testbed other CPUs (generator.cpu, sut.cpus)"),
    "interface": ("interface {}", "give this testbed other ports"),
    "setting": ("{}, which this machine has only once,", "have one of the two leave it alone"),
    "host": ("the SUT {}", "give this testbed another SUT"),
    "trex": ("TRex's port {}", "give this testbed other ports"),
    "machine": ("this machine, as a SUT,", "have that one take another SUT; where it is gone, kill what it left here"),
    "recovery": ("the clearing up after earlier runs", "try again"),
}
"""The name of each kind of resource, and what else than waiting helps."""


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """Something of which only one run at a time can make use, or all runs of this machine, see `shared`."""

    kind: LockKind
    name: str
    """Name that identifies it among its kind: ``1`` of a CPU, ``net.core.netdev_max_backlog`` of a setting."""

    def __str__(self) -> str:
        return _WORDS[self.kind][0].format(self.name)

    @property
    def shared(self) -> bool:
        """Whether runs of this machine hold it together."""
        return self.kind == "machine"


MACHINE = Resource("machine", "itself")
"""Resource of this machine, for runs that measure on it."""


def whole_machine() -> frozenset[Resource]:
    """All CPUs that this process may use, for what nobody else may disturb, whoever it is."""
    return frozenset(Resource("cpu", str(cpu)) for cpu in os.sched_getaffinity(0))


class Lease:
    """Resources of this machine, held until they are released or the process dies. A context manager."""

    def __init__(self, directory: Path, held: Mapping[Resource, int]) -> None:
        self.directory = directory
        self.resources = frozenset(held)
        self._fds = list(held.values())
        _held.add(self)

    @classmethod
    def acquire(
        cls,
        resources: Iterable[Resource],
        directory: Path = STATE_DIR,
        wait: float = 0.0,
        report: Callable[[str], None] = lambda sentence: None,
    ) -> Self:
        """Take all of these resources or none. If another run has one, wait at most ``wait`` seconds.

        With ``math.inf`` it waits for ever. It does not wait for what this process itself holds.

        Args:
            report: gets a sentence when the waiting begins.

        Raises:
            HeldError: a resource is still in use; the message says by whom.
            TestbedError: the directory cannot be written.
        """
        wanted = sorted(set(resources))
        make(directory / "locks")
        deadline = time.monotonic() + wait
        with contextlib.ExitStack() as waiting:
            place: Path | None = None
            while True:
                # One process at a time: what another only tries to take is not in use.
                with _turn(directory):
                    held, refusal = _try(wanted, directory, place)
                    if refusal is None:
                        return cls(directory, held)
                    ours = any(lease.directory == directory and refusal.resource in lease.resources for lease in _held)
                    first = place is None and not ours and wait > 0
                    if first:
                        place = waiting.enter_context(_queued(wanted, directory))
                if ours or time.monotonic() >= deadline:
                    raise HeldError(_sentence(refusal, ours))
                if first:
                    report(f"{refusal}: waiting for it to end")
                time.sleep(_POLL)

    def release(self) -> None:
        """Let others have the resources. Calling it twice is harmless."""
        _held.discard(self)
        while self._fds:
            os.close(self._fds.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


_held: weakref.WeakSet[Lease] = weakref.WeakSet()


def _let_go_in_child() -> None:
    # A forked worker that outlives its parent would go on holding the locks: close-on-exec does not cover it.
    for lease in list(_held):
        lease.release()


os.register_at_fork(after_in_child=_let_go_in_child)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why resources cannot be had now."""

    resource: Resource
    who: str
    """The process that holds it, in parentheses; empty if nobody knows."""
    queued: bool
    """Whether that process has waited for it longer, and does not have it yet."""

    def __str__(self) -> str:
        return f"{self.resource} is {'next for' if self.queued else 'in use by'} another pdrgate run{self.who}"


def _try(
    wanted: Sequence[Resource], directory: Path, place: Path | None
) -> tuple[dict[Resource, int], _Refusal | None]:
    """Lock all or none. Returns the first resource that is in use, or that an earlier process waits for.

    Args:
        place: the caller's place in the queue.
    """
    # Who holds something already lets nobody go first: that one might wait for it.
    if not any(lease.directory == directory for lease in _held) and (before := _earlier(wanted, directory, place)):
        return {}, before
    held: dict[Resource, int] = {}
    holder = json.dumps({"pid": os.getpid(), "since": time.time()}).encode()
    with contextlib.ExitStack() as stack:
        for resource in wanted:
            held[resource] = fd = _open(file := _file(resource, directory))
            stack.callback(os.close, fd)
            if not _locked(fd, shared=resource.shared):
                return {}, _Refusal(resource, _who(file, "since"), queued=False)
        for resource, fd in held.items():
            if not resource.shared:  # of several holders none may write itself over the others
                os.ftruncate(fd, 0)
                os.pwrite(fd, holder, 0)
        stack.pop_all()
    return held, None


@contextlib.contextmanager
def _queued(wanted: Sequence[Resource], directory: Path) -> Iterator[Path]:
    """A place in the queue, by the time since boot: a file that is locked as long as its owner lives and waits."""
    path = directory / "locks" / f"{_QUEUE}{time.monotonic_ns():020}-{os.getpid()}-{threading.get_ident()}"
    fd = _open(path)
    try:
        _locked(fd)
        names = [_file(resource, directory).name for resource in wanted]
        os.write(fd, json.dumps({"pid": os.getpid(), "since": time.time(), "wants": names}).encode())
        yield path
    finally:
        path.unlink(missing_ok=True)
        os.close(fd)


def _earlier(wanted: Sequence[Resource], directory: Path, place: Path | None) -> _Refusal | None:
    """The refusal of a process that came before, still waits, and wants one of these that only one can have."""
    for path in sorted((directory / "locks").glob(f"{_QUEUE}*")):
        if place is not None and path.name >= place.name:
            return None
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(os.close, fd := os.open(path, os.O_RDWR | os.O_CLOEXEC))
            if _locked(fd):
                path.unlink()  # of a process that died
                continue
            entry = path.read_text()
            for resource in wanted:
                if not resource.shared and f'"{_file(resource, directory).name}"' in entry:
                    return _Refusal(resource, _who(path, "waiting since"), queued=True)
    return None


def _locked(fd: int, *, shared: bool = False) -> bool:
    """Lock a file at once. Returns whether that was possible."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _file(resource: Resource, directory: Path) -> Path:
    if resource.kind == "machine":
        return sut_lock(directory)
    return directory / "locks" / f"{resource.kind}-{quote(resource.name, safe='')}"


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TestbedError(f"cannot open {path}: {error.strerror}; run as root or with sudo") from error


@contextlib.contextmanager
def _turn(directory: Path) -> Iterator[None]:
    """Exclusive look at the locks, which takes no time worth mentioning."""
    fd = _open(directory / "locks" / "turn")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _who(path: Path, word: str) -> str:
    try:
        holder = json.loads(path.read_text())
        since = time.strftime("%H:%M:%S", time.localtime(holder["since"]))
        # A controller of this machine, and the process here by which it holds the lock.
        of, by = (
            (f" on {holder['controller']}", f", by process {holder['there']} here") if "there" in holder else ("", "")
        )
        return f" (pid {int(holder['pid'])}{of}, {word} {since}{by})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _sentence(refusal: _Refusal, ours: bool) -> str:
    remedy = _WORDS[refusal.resource.kind][1]
    if ours:
        return f"{refusal.resource} is in use by this run's other testbed; close that one first, or {remedy}"
    return f"{refusal}; wait for it to end (--wait 1h), or {remedy}"

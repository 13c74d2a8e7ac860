"""The journal of changes that outlive a run, and the lock that lets one run at a time measure on a machine.

A run that is killed cannot put anything back. So each change is on disk before it is made, and the next start undoes
what the journals of dead runs hold. A run begins like this, in this order::

    lock = MachineLock.acquire()
    for sentence in recover_stale():
        tell(sentence)
    journal = Journal.begin()

A journal is a file of JSON lines: who writes it, then one change a line. Its owner is known by process id and start
time (a process id alone may have passed to another), and by boot: after a reboot nothing of it is left to undo.

Changes of another machine outlive a reboot of this one. They are noted in a file of their own, in a place that a reboot
does not empty, together with how that machine is reached and with its boot id: it is its reboot that undoes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shlex
import signal
import subprocess
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pdrgate.errors import StorageError, TestbedError
from pdrgate.hosts.host import Host, open_host
from pdrgate.knobs import knob_from_record, of_whole_machine, put_back

STATE_DIR = Path("/run/pdrgate")
"""Where lock and journals lie: a place that a reboot empties."""

LASTING_DIR = Path("/var/lib/pdrgate")
"""Where journals of other machines lie, unless a test has a place of its own for all of them."""

NAMESPACE_PREFIX = "pdrgate"
"""Only namespaces whose names begin so are ever deleted by a recovery."""

_FORMAT = 1
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_GRACE = 2.0
"""Seconds a process has to end by itself after SIGTERM."""
_LOCK_POLL = 0.1


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process that no other is mistaken for: its number and its start, in clock ticks after boot."""

    pid: int
    start: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The process that has this number now; None when there is none, or only one that nobody has reaped."""
        try:
            # The name, in parentheses, may itself hold spaces and parentheses.
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))

    @property
    def alive(self) -> bool:
        return ProcessId.of(self.pid) == self


class Journal:
    """The changes of one run. Every method returns once its line is on disk. Close it when all is undone."""

    def __init__(self, directory: Path) -> None:
        owner = ProcessId.of(os.getpid())
        assert owner is not None
        self._name = f"{owner.pid}-{owner.start}-{time.time_ns()}.jsonl"
        self._head = {"journal": _FORMAT, "pid": owner.pid, "start": owner.start, "boot": _boot_id()}
        self._directory = directory
        self._file = _JournalFile(directory, f"run-{self._name}", self._head | {"began": time.time()})
        self._lasting: _JournalFile | None = None
        self._machines: set[str] = set()
        """Names of other machines."""
        self._elsewhere: set[int] = set()
        """Numbers of the changes that were made there."""
        self._count = 0

    @classmethod
    def begin(cls, directory: Path = STATE_DIR) -> Self:
        """Start the journal of this process.

        Raises:
            TestbedError: the directory cannot be made or written.
        """
        return cls(directory)

    @property
    def path(self) -> Path:
        """The file for changes of this machine."""
        return self._file.path

    def machine(self, name: str, reached: Mapping[str, Any], boot: str) -> None:
        """Note how another machine is reached (`SshHost.to_record`): before its first change, and after a restart.

        Args:
            name: the name of its host, ``ssh:ALIAS``; hosts in its namespaces are called ``ssh:ALIAS/NAMESPACE``.
            boot: its boot id.

        Raises:
            TestbedError: the journal for other machines cannot be written.
        """
        if self._lasting is None:
            head = self._head | {"lasting": True, "began": time.time()}
            self._lasting = _JournalFile(_lasting(self._directory), f"remote-{self._name}", head)
        self._machines.add(name)
        self._lasting.append({"machine": name, "reached": dict(reached), "boot": boot})

    def change(self, host: str, knob: Mapping[str, str], old: str, new: str) -> int:
        """Note that a knob (`Knob.to_record`) of a host (`Host.name`) is about to go from ``old`` to ``new``."""
        self._count += 1
        record = {"change": self._count, "host": host, "knob": dict(knob), "old": old, "new": new}
        if self._lasting is not None and _machine(host) in self._machines:
            self._elsewhere.add(self._count)
            self._lasting.append(record)
        else:
            self._append(record)
        return self._count

    def undone(self, number: int) -> None:
        """Note that the change of that number is no longer to be undone."""
        if self._lasting is not None and number in self._elsewhere:
            self._lasting.append({"undone": number})
        else:
            self._append({"undone": number})

    def namespace(self, name: str) -> None:
        """Note that the network namespace ``name`` is about to be made.

        Raises:
            ValueError: the name does not begin with `NAMESPACE_PREFIX`, so that it could be somebody else's.
        """
        if not name.startswith(NAMESPACE_PREFIX):
            raise ValueError(f"namespace {name!r} does not begin with {NAMESPACE_PREFIX}: it would not be recovered")
        self._append({"namespace": name})

    def process(self, pid: int, command: str) -> None:
        """Note a process that already runs, by itself or as leader of its process group. Prefer `start`."""
        if (process := ProcessId.of(pid)) is not None:
            self._append({"process": process.pid, "start": process.start, "command": command})

    def start(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own, noted before it runs; its standard input is empty.

        Until the note is on disk a shell waits in its place and ends when this process dies first. A program that
        cannot be run ends with exit code 127 or 126. ``options`` are `subprocess.Popen`'s, less stdin and session.
        """
        process = subprocess.Popen(
            ("sh", "-c", 'read -r go && exec "$@" </dev/null', "sh", *argv),
            stdin=subprocess.PIPE, start_new_session=True, **options,
        )  # fmt: skip
        assert process.stdin is not None
        try:
            self.process(process.pid, shlex.join(argv))
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b"go\n")
                process.stdin.flush()
        finally:
            process.stdin.close()
            process.stdin = None
        return process

    def close(self) -> None:
        """End the journal and remove it: the run has undone its changes."""
        for file in self._files:
            if file.close():
                file.path.unlink(missing_ok=True)

    def undo(self) -> None:
        """Undo all that is noted, for a run that was interrupted before it knew itself what it had made.

        What cannot be undone stays in the journal, for the next start.
        """
        for file in self._files:
            if file.close():
                _Stale.load(file.path).undo(open_host)

    @property
    def _files(self) -> tuple[_JournalFile, ...]:
        return (self._file, *([self._lasting] if self._lasting else []))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # After an error something may be left: the next recovery looks, and finds nothing to do if not.
        if error is None:
            self.close()

    def _append(self, record: Mapping[str, Any]) -> None:
        self._file.append(record)


class _JournalFile:
    """One file of a journal, begun with its head. Raises TestbedError when it cannot be made."""

    def __init__(self, directory: Path, name: str, head: Mapping[str, Any]) -> None:
        _make(directory)
        self.path = directory / name
        try:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise TestbedError(f"cannot write {self.path}: {error.strerror}; run as root or with sudo") from error
        self.append(head)
        with _opened(directory, os.O_RDONLY | os.O_DIRECTORY) as folder:
            os.fsync(folder)

    def append(self, record: Mapping[str, Any]) -> None:
        """Put one line on disk. Raises StorageError."""
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        try:
            written = os.write(self._fd, line)
            os.fsync(self._fd)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}; make room there, start again") from error
        if written != len(line):
            raise StorageError(f"cannot write {self.path}: no space is left; make room there, start again")

    def close(self) -> bool:
        """End writing; False when that was done before."""
        if self._fd < 0:
            return False
        os.close(self._fd)
        self._fd = -1
        return True


class NotUndone(str):
    """A sentence on something that a dead run left and that could not be undone; other sentences are on what was."""

    __slots__ = ()


def recover_stale(directory: Path = STATE_DIR, open_host: Callable[[str], Host] = open_host) -> list[str]:
    """Undo what dead runs left behind; call it with the `MachineLock` held.

    Settings go back to what they were, in reverse order, unless somebody else has changed them since. Processes are
    ended when number and start time match. Namespaces are deleted. A journal with something that could not be undone
    stays for the next time. Other machines are reached as the journal says; what a restart of them has undone is
    dropped.

    Returns:
        What was done, in sentences, with a `NotUndone` for what could not be; empty when there was nothing to do.
    """
    told: list[str] = []
    for path in (*sorted(directory.glob("run-*.jsonl")), *sorted(_lasting(directory).glob("remote-*.jsonl"))):
        try:
            stale = _Stale.load(path)
        except OSError as error:
            told.append(
                NotUndone(f"cannot read {path}: {error.strerror}; remove it by hand once nothing of that run is left")
            )
            continue
        if not stale.owner_alive:
            told += stale.undo(open_host)
    return told


@dataclass(frozen=True, slots=True)
class _Stale:
    """A journal that was found on disk."""

    path: Path
    head: Mapping[str, Any]
    entries: tuple[Mapping[str, Any], ...]
    unread: int
    """Lines that are no JSON although others follow; the last line may be torn, its change was then never made."""

    @classmethod
    def load(cls, path: Path) -> Self:
        records: list[Mapping[str, Any]] = []
        unread = 0
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if isinstance(record, dict):
                records.append(record)
            else:
                unread += 1
        has_head = bool(records) and "journal" in records[0]
        return cls(path, records[0] if has_head else {}, tuple(records[1:] if has_head else records), unread)

    @property
    def owner_alive(self) -> bool:
        if not self.head:
            # Just begun, or torn: its name tells the owner too.
            parts = self.path.stem.split("-")
            known = len(parts) > 2 and parts[1].isdigit() and parts[2].isdigit()
            return known and ProcessId(int(parts[1]), int(parts[2])).alive
        if self.head.get("boot") != _boot_id():
            return False
        return ProcessId(self.head.get("pid", 0), self.head.get("start", 0)).alive

    def undo(self, open_host: Callable[[str], Host]) -> list[str]:
        run = f"the killed run of pid {self.head.get('pid', '?')}"
        if self.head and self.head.get("boot") != _boot_id() and not self.head.get("lasting"):
            self.path.unlink(missing_ok=True)
            return [f"dropped the journal of {run}: the machine has been restarted since, which undid its changes"]
        told: list[str] = []
        left: list[Mapping[str, Any]] = []
        if self.unread:
            told.append(NotUndone(f"unreadable lines in {self.path}: {self.unread}; what they noted was not undone"))
        if self.head.get("journal", _FORMAT) != _FORMAT:
            return [
                NotUndone(f"{self.path} is of another version of pdrgate and was not undone; start that version once")
            ]
        done = {entry["undone"] for entry in self.entries if "undone" in entry}
        machines = _Machines.noted(self.entries)
        restarted: set[str] = set()
        away: dict[str, tuple[int, str]] = {}
        with _Hosts(open_host, machines.reached) as hosts:
            for entry in reversed(self.entries):
                if entry.get("change") in done or "machine" in entry:
                    continue
                if any(_same_setting(entry, other) for other in left):
                    left.insert(0, entry)
                    continue
                if (machine := _machine(str(entry.get("host", "")))) in machines.reached:
                    try:
                        if hosts.boot(machine) != machines.boots.get(entry.get("change", 0)):
                            restarted.add(machine)
                            continue
                    except TestbedError as error:
                        left.insert(0, entry)
                        away[machine] = (away.get(machine, (0, ""))[0] + 1, str(error))
                        continue
                try:
                    sentence = _undo(entry, hosts)
                except (TestbedError, KeyError, TypeError, ValueError, OSError) as error:
                    left.insert(0, entry)
                    told.append(
                        NotUndone(
                            f"could not undo {json.dumps(entry)} of {run}: {error}; tried again at the next start"
                        )
                    )
                    continue
                if sentence:
                    told.append(f"{sentence} (left by {run})")
        told += [
            f"dropped what {run} had changed on {machine}: it has been restarted since, which undid that"
            for machine in sorted(restarted)
        ]
        told += [
            NotUndone(
                f"could not undo {count} change{'s' * (count != 1)} of {run} on {machine}: {why}; tried again at the "
                "next start"
            )
            for machine, (count, why) in sorted(away.items())
        ]
        if left:
            # Without what has gone back: by the next start somebody may want that otherwise.
            kept = [entry for entry in self.entries if "machine" in entry or any(entry is other for other in left)]
            shorter = self.path.with_suffix(".new")
            shorter.write_text("".join(json.dumps(record) + "\n" for record in (self.head, *kept) if record))
            shorter.replace(self.path)
        else:
            self.path.unlink(missing_ok=True)
        return told


@dataclass(frozen=True, slots=True)
class _Machines:
    """What a journal notes of other machines."""

    reached: Mapping[str, Mapping[str, Any]]
    """By name, how each is reached."""
    boots: Mapping[int, str]
    """By number of a change, the boot id that its machine had."""

    @classmethod
    def noted(cls, entries: Iterable[Mapping[str, Any]]) -> Self:
        reached: dict[str, Mapping[str, Any]] = {}
        boots: dict[int, str] = {}
        now: dict[str, str] = {}
        for entry in entries:
            match entry:
                case {"machine": str(name), "reached": dict(record), "boot": str(boot)}:
                    reached[name], now[name] = record, boot
                case {"change": int(number), "host": str(host)}:
                    boots[number] = now.get(_machine(host), "")
        return cls(reached, boots)


def _same_setting(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True of two changes of one setting: the earlier one can only be undone after the later one."""
    return "change" in one and "change" in other and (one["host"], one["knob"]) == (other["host"], other["knob"])


class _Hosts:
    """The hosts of one recovery, each opened once."""

    def __init__(self, open_host: Callable[[str], Host], machines: Mapping[str, Mapping[str, Any]]) -> None:
        self._open_host = open_host
        self._machines = machines
        self._hosts: dict[str, Host] = {}
        self._boots: dict[str, str | TestbedError] = {}

    def named(self, name: str) -> Host:
        if name not in self._hosts:
            machine, _, namespace = name.partition("/")
            if machine in self._machines:
                # Only here: SSH takes a while to load, and most journals are of this machine alone.
                from pdrgate.hosts.ssh import host_from_record

                self._hosts[name] = host_from_record(self._machines[machine], namespace or None)
            else:
                self._hosts[name] = self._open_host(name)
        return self._hosts[name]

    def boot(self, machine: str) -> str:
        """The boot id that another machine has now; a machine that does not answer is asked once."""
        if machine not in self._boots:
            try:
                self._boots[machine] = self.named(machine).read(_BOOT_ID).strip()
            except TestbedError as error:
                self._boots[machine] = error
            except (KeyError, TypeError, ValueError) as error:
                self._boots[machine] = TestbedError(f"the journal does not tell how it is reached ({error})")
        known = self._boots[machine]
        if isinstance(known, TestbedError):
            raise known
        return known

    def close(self, name: str) -> None:
        if (host := self._hosts.pop(name, None)) is not None:
            host.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for name in list(self._hosts):
            self.close(name)


def _undo(entry: Mapping[str, Any], hosts: _Hosts) -> str | None:
    match entry:
        case {"change": _, "host": str(host), "knob": dict(knob), "old": str(old), "new": str(new)}:
            outside, namespace = _outside(host)
            if namespace and not hosts.named(outside).exists(f"/run/netns/{namespace}"):
                if not of_whole_machine(knob):
                    return None
                # It was set through the namespace's shell and yet is the whole machine's.
                host = outside
            return put_back(hosts.named(host), knob_from_record(knob, new), old, new)
        case {"process": int(pid), "start": int(start), "command": str(command)}:
            return _end(ProcessId(pid, start), f"process {pid} ({command[:80]})")
        case {"namespace": str(name)} if name.startswith(NAMESPACE_PREFIX):
            # Our own shell in it would keep it alive, and be counted as left over.
            hosts.close(f"netns:{name}")
            return _delete_namespace(name, hosts.named("local"))
        case {"undone": _}:
            return None
    raise ValueError("this version of pdrgate does not know such an entry")


def _outside(host: str) -> tuple[str, str]:
    """The host that a host's namespace belongs to, and the namespace; an empty one for a whole machine."""
    if host.startswith("netns:"):
        return "local", host.removeprefix("netns:")
    machine, _, namespace = host.partition("/")
    return machine, namespace


def _machine(host: str) -> str:
    return host.partition("/")[0]


def _end(process: ProcessId, words: str) -> str | None:
    """End a process, and its process group when it leads one; ``words`` are for people."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    try:
        # The descriptor holds on to whoever has the number now; what follows is about that one process.
        if not process.alive:
            return None
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        for number, patience in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, _GRACE)):
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(process.pid) == process.pid:
                    os.killpg(process.pid, number)
                else:
                    signal.pidfd_send_signal(pidfd, number)
            if ended.poll(patience * 1000):
                return f"ended {words}"
        raise TestbedError(f"{words} does not end, not even by SIGKILL; look at its state")
    finally:
        os.close(pidfd)


def _delete_namespace(name: str, host: Host) -> str | None:
    if not _namespace_path(name).exists():
        return None
    inside = host.run("ip", "netns", "pids", name, check=False).stdout.split()
    host.run("ip", "netns", "delete", name)
    left = f", in which process {', '.join(inside)} still runs" if inside else ""
    return f"deleted namespace {name}{left}"


def _namespace_path(name: str) -> Path:
    return Path("/run/netns") / name


class MachineLock:
    """The right to measure on this machine, held until it is released or the process dies. A context manager."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        _held.add(self)

    @classmethod
    def acquire(cls, directory: Path = STATE_DIR, wait: float = 0.0) -> Self:
        """Take the lock; where another run has it, wait at most ``wait`` seconds, with ``math.inf`` for ever.

        Raises:
            TestbedError: another run still has it, or the directory cannot be written.
        """
        _make(directory)
        path = directory / "lock"
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise TestbedError(f"cannot open {path}: {error.strerror}; run as root or with sudo") from error
        try:
            _lock(fd, wait)
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps({"pid": os.getpid(), "since": time.time()}).encode(), 0)
        except BaseException:
            os.close(fd)
            raise
        return cls(path, fd)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


_held: weakref.WeakSet[MachineLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    # A forked worker that outlives its parent would go on holding the lock: close-on-exec does not cover it.
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_let_go_in_child)


def _lock(fd: int, wait: float) -> None:
    deadline = time.monotonic() + wait
    while not _try_lock(fd):
        if time.monotonic() >= deadline:
            raise TestbedError(f"another pdrgate run{_holder(fd)} is measuring on this machine; wait for it to end")
        time.sleep(_LOCK_POLL)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(fd: int) -> str:
    try:
        holder = json.loads(os.pread(fd, 4096, 0))
        return f" (pid {int(holder['pid'])}, since {time.strftime('%H:%M:%S', time.localtime(holder['since']))})"
    except (ValueError, KeyError, TypeError):
        # It has the lock and has not yet written who it is.
        return ""


def _lasting(directory: Path) -> Path:
    return LASTING_DIR if directory == STATE_DIR else directory


def _make(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise TestbedError(f"cannot make {directory}: {error.strerror}; run as root or with sudo") from error


def _boot_id() -> str:
    return Path(_BOOT_ID).read_text().strip()


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    fd = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)

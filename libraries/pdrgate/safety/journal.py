"""The journal: changes that outlive a run, on disk before they are made.

A run that is killed cannot put anything back. So each change is noted before it is made, and the next start undoes what
the journals of dead runs hold. A run begins like this, in this order::

    lease = Lease.acquire(resources)
    for sentence in recover_stale(lease=lease):
        print(sentence)
    journal = Journal.begin(lease=lease)

A journal is a file of JSON lines: who writes it, then one change a line. Its owner is known by process id and start
time (a process id alone may have passed to another), and by boot: after a reboot nothing of it is left to undo. The
resources that its run held are in it too: no other run may have them while it is undone.

The journal itself decides whether all was put back. It is removed when nothing that it notes is left. Otherwise it
stays, as that of a run which has ended, for the next start.

Changes of another machine outlive a reboot of this one. They are noted in a file of their own, in a place that a reboot
does not empty, together with how that machine is reached and with its boot id: it is its reboot that undoes them.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import textwrap
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pdrgate.knobs import knob_from_record, of_whole_machine
from pdrgate.safety.locks import Lease
from pdrgate.safety.processes import MARK, ProcessId, left_running
from pdrgate.safety.state_folder import STATE_DIR, boot_id, lasting, make
from pdrgate.this_process.child_environment import child_environment
from pdrgate.values.errors import StorageError, TestbedError

NAMESPACE_PREFIX = "pdrgate"
"""Only namespaces whose names begin so are ever deleted by a recovery."""

FORMAT = 1
"""The version of the files."""

RESTORE = "the next start tries again, and so does: sudo pdrgate restore"
"""Advice on a change that could not be undone, for all messages about one."""

_NETNS = "netns:"
_NAMED = 4
"""Changes that a sentence names. Changes that did not go back are reported one by one when they are tried again."""
_WIDTH = 80


def machine_of(host: str) -> str:
    """The name of a host's machine: without the namespace of it that the host may be."""
    return host.partition("/")[0]


def namespace_path(name: str) -> Path:
    """The file that is there for as long as a network namespace of this machine is."""
    return Path("/run/netns") / name


def standing(entries: Iterable[Mapping[str, Any]], mark: str) -> list[Mapping[str, Any]]:
    """The entries whose changes are still to be undone, as far as this machine knows.

    Args:
        entries: those that nothing says of that they are undone.
        mark: of the journal that they are of, see `Journal.mark`.
    """
    entries = tuple(entries)
    noted = [ProcessId(entry["process"], entry["start"]) for entry in entries if "process" in entry]
    running = left_running(noted, mark)
    return [entry for entry in entries if _stands(entry, running)]


def _stands(entry: Mapping[str, Any], running: Collection[ProcessId]) -> bool:
    match entry:
        case {"change": _, "host": str(host), "knob": dict(knob)} if host.startswith(_NETNS):
            # What was set inside of a namespace has ended with it.
            return namespace_path(host.removeprefix(_NETNS)).exists() or of_whole_machine(knob)
        case {"change": _}:
            return True
        case {"namespace": str(name)}:
            return namespace_path(name).exists()
        case {"process": int(pid), "start": int(start)}:
            return ProcessId(pid, start) in running
    return False


class StillChangedError(TestbedError):
    """A run has ended, and something that it had changed is not back. ``journals`` are the files that note it."""

    def __init__(self, entries: Sequence[Mapping[str, Any]], journals: Sequence[Path]) -> None:
        self.journals = tuple(journals)
        named = ", ".join(_in_words(entry) for entry in entries[:_NAMED])
        more = f" and {len(entries) - _NAMED} more" if len(entries) > _NAMED else ""
        super().__init__(f"not all that was changed is back as it was: {named}{more}; {RESTORE}")


class Journal:
    """The changes of one run. Every method returns once its line is on disk. A context manager, see `close`."""

    def __init__(self, directory: Path, lease: Lease | None = None) -> None:
        owner = ProcessId.of(os.getpid())
        assert owner is not None
        self.directory = directory
        self._name = f"{owner.pid}-{owner.start}-{time.time_ns()}.jsonl"
        self._head = {
            "journal": FORMAT,
            "pid": owner.pid,
            "start": owner.start,
            "boot": boot_id(),
            "held": [[resource.kind, resource.name] for resource in sorted(lease.resources)] if lease else [],
        }
        self._file = _JournalFile(directory, f"run-{self._name}", self._head | {"began": time.time()})
        self._lasting: _JournalFile | None = None
        self._machines: dict[str, str] = {}
        """The boot ids of other machines, by name."""
        self._elsewhere: set[int] = set()
        """Numbers of the changes that were made there."""
        self._count = 0

    @classmethod
    def begin(cls, directory: Path = STATE_DIR, lease: Lease | None = None) -> Self:
        """Start the journal of this process, which holds ``lease`` for as long as the journal is open.

        Raises:
            TestbedError: the directory cannot be made or written.
        """
        return cls(directory, lease)

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
            self._lasting = _JournalFile(lasting(self.directory), f"remote-{self._name}", head)
        if self._machines.get(name, boot) != boot:  # its restart has undone what was changed there before
            self._lasting.forget(lambda entry: "change" in entry and machine_of(entry["host"]) == name)
        self._machines[name] = boot
        self._lasting.append({"machine": name, "reached": dict(reached), "boot": boot})

    def change(self, host: str, knob: Mapping[str, str], old: str, new: str) -> int:
        """Note that a knob (`Knob.to_record`) of a host (`Host.name`) is about to go from ``old`` to ``new``."""
        self._count += 1
        record = {"change": self._count, "host": host, "knob": dict(knob), "old": old, "new": new}
        if self._lasting is not None and machine_of(host) in self._machines:
            self._elsewhere.add(self._count)
            self._lasting.append(record)
        else:
            self._append(record)
        return self._count

    def undone(self, number: int) -> None:
        """Note that the change of that number is no longer to be undone. An ended journal ignores it."""
        if self._file.ended:
            return
        file = self._lasting if self._lasting is not None and number in self._elsewhere else self._file
        file.append({"undone": number})
        file.forget(lambda entry: entry.get("change") == number)

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

    @property
    def mark(self) -> str:
        """Value of `MARK` in the environment of the programs that `start` starts, and of all that they start."""
        return self._file.path.stem

    def start(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own, noted before it runs. Its standard input is empty.

        Until the note is on disk a shell waits in its place and ends when this process dies first. A program that
        cannot be run ends with exit code 127 or 126. ``options`` are `subprocess.Popen`'s, less stdin and session.
        """
        options["env"] = {**(options.get("env") or child_environment()), MARK: self.mark}
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
        """End the journal, and remove it when all that it notes is undone. Calling it twice is harmless.

        Raises:
            StillChangedError: something is not undone. It stays in the journal, which nobody owns from here on.
        """
        left = {file.path: found for file in self._files if (found := file.end(self.mark))}
        if left:
            raise StillChangedError([entry for found in left.values() for entry in found], tuple(left))

    @property
    def _files(self) -> tuple[_JournalFile, ...]:
        return (self._file, *([self._lasting] if self._lasting else []))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            self.close()
        except StillChangedError as failure:
            if error is None:
                raise
            error.add_note(str(failure))  # what went wrong first is the error to raise

    def _append(self, record: Mapping[str, Any]) -> None:
        self._file.append(record)


class _JournalFile:
    """One file of a journal, begun with its head. Raises TestbedError when it cannot be made."""

    def __init__(self, directory: Path, name: str, head: Mapping[str, Any]) -> None:
        make(directory)
        self.path = directory / name
        self._head = head
        self._entries: list[Mapping[str, Any]] = []
        """Changes that were not undone, as far as they were noted."""
        self._turn = threading.Lock()
        """Boots come up in threads of their own, beside those that end."""
        try:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise TestbedError(f"cannot write {self.path}: {error.strerror}; run as root or with sudo") from error
        self._write(head)
        with _opened(directory, os.O_RDONLY | os.O_DIRECTORY) as folder:
            os.fsync(folder)

    @property
    def ended(self) -> bool:
        return self._fd < 0

    def append(self, record: Mapping[str, Any]) -> None:
        """Put one line on disk. Raises StorageError."""
        self._write(record)
        if "undone" not in record:
            with self._turn:
                self._entries.append(record)

    def forget(self, undone: Callable[[Mapping[str, Any]], bool]) -> None:
        """Take these entries for undone."""
        with self._turn:
            self._entries = [entry for entry in self._entries if not undone(entry)]

    def end(self, mark: str) -> list[Mapping[str, Any]]:
        """End writing, and leave the file only where something stands: that is returned. Nothing the second time."""
        if self.ended:
            return []
        left = standing(self._entries, mark)
        os.close(self._fd)
        self._fd = -1
        if left:
            # Our process may live for long, and what it left must not wait for its end.
            with contextlib.suppress(StorageError):
                kept = [entry for entry in self._entries if "machine" in entry or entry in left]
                rewrite(self.path, {**self._head, "ended": True}, kept)
        else:
            self.path.unlink(missing_ok=True)
        return left

    def _write(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        try:
            written = os.write(self._fd, line)
            os.fsync(self._fd)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}; make room there, start again") from error
        if written != len(line):
            raise StorageError(f"cannot write {self.path}: no space is left; make room there, start again")


def rewrite(path: Path, head: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> None:
    """Rewrite a journal that nobody writes any more with these entries alone. On StorageError it stays as it was."""
    shorter = path.with_suffix(".new")
    try:
        shorter.write_text("".join(json.dumps(record) + "\n" for record in (head, *entries) if record))
        shorter.replace(path)
    except OSError as error:
        shorter.unlink(missing_ok=True)
        raise StorageError(f"cannot write {shorter}: {error.strerror}; make room there, start again") from error


def _in_words(entry: Mapping[str, Any]) -> str:
    match entry:
        case {"change": _, "host": str(host), "knob": dict(knob), "new": str(new)}:
            return f"{textwrap.shorten(knob_from_record(knob, new).describe(), _WIDTH)} on {host}"
        case {"namespace": str(name)}:
            return f"namespace {name}"
    return f"process {entry['process']} ({textwrap.shorten(entry['command'], _WIDTH)})"


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    fd = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)

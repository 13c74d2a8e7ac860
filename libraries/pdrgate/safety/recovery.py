"""Recovery: what runs left is undone from their journals, by the next run or by ``pdrgate restore``.

A run that was killed could put nothing back, and one that ended may have failed to.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pdrgate.hosts.host import Host, open_host
from pdrgate.knobs import knob_from_record, of_whole_machine, put_back
from pdrgate.safety.journal import (
    FORMAT,
    NAMESPACE_PREFIX,
    RESTORE,
    Journal,
    StillChangedError,
    machine_of,
    namespace_path,
    rewrite,
)
from pdrgate.safety.locks import Lease, Resource
from pdrgate.safety.processes import ProcessId, end
from pdrgate.safety.state_folder import BOOT_ID, STATE_DIR, boot_id, lasting
from pdrgate.values.errors import TestbedError

if TYPE_CHECKING:
    from pdrgate.safety.sut_lock import SutLock

_PATIENCE = 600.0
"""Seconds to wait for another recovery: one that has to reach several machines takes its time."""


class NotUndone(str):
    """Sentence on a change that a run left and that could not be undone. Other sentences are on changes that were."""

    __slots__ = ()


def recover_stale(
    directory: Path = STATE_DIR, open_host: Callable[[str], Host] = open_host, lease: Lease | None = None
) -> list[str]:
    """Undo what dead runs left behind, and runs that have ended.

    Settings go back to what they were, in reverse order, unless somebody else has changed them since. Processes are
    ended when number and start time match, and with them what they started. Namespaces are deleted. A journal with
    something that could not be undone stays for the next time. Other machines are reached as the journal says. Changes
    that a restart of them has undone are dropped. What living runs hold now is left for the next time, too.

    Args:
        lease: what the caller holds: that is undone for it.

    Returns:
        What was done, in sentences, with a `NotUndone` for what could not be; empty when there was nothing to do.

    Raises:
        TestbedError: another recovery is going on and does not end.
    """
    sentences: list[str] = []
    if not _journals(directory):
        return sentences
    with Lease.acquire((Resource("recovery", "recovery"),), directory, _PATIENCE):
        for path in _journals(directory):
            try:
                stale = _Stale.load(path)
            except FileNotFoundError:  # its run has ended meanwhile
                continue
            except OSError as error:
                sentences.append(
                    NotUndone(
                        f"cannot read {path}: {error.strerror}; remove it by hand once nothing of that run is left"
                    )
                )
                continue
            except TestbedError as error:
                sentences.append(NotUndone(str(error)))
                continue
            if stale.owner_alive:
                continue
            try:
                with Lease.acquire(stale.held - (lease.resources if lease else frozenset()), directory):
                    sentences += stale.undo(open_host)
            except TestbedError as error:
                sentences.append(NotUndone(f"left what {stale.run} had changed as it is: {error}"))
    return sentences


def undo(journal: Journal, open_host: Callable[[str], Host] = open_host) -> list[str]:
    """End our own journal, and undo what of it still stands: nobody else is left who would.

    At the end of a run its entries are what its testbed failed to put back. A run that was interrupted may not have
    known yet what it had made. What cannot be undone stays in the journal's files, for the next start.

    Returns:
        Sentences as those of `recover_stale`.
    """
    try:
        journal.close()
    except StillChangedError as error:
        return [sentence for path in error.journals for sentence in _Stale.load(path).undo(open_host)]
    return []


@dataclass(frozen=True, slots=True)
class Living:
    """Processes and namespaces of runs that are alive, which are no leftovers."""

    owners: frozenset[int]
    """Process ids of the runs."""
    namespaces: frozenset[str]


def living(directory: Path = STATE_DIR) -> Living:
    """Processes and namespaces of runs that are alive, by their journals."""
    owners: set[int] = set()
    namespaces: set[str] = set()
    for path in _journals(directory):
        try:
            journal = _Stale.load(path)
        except (OSError, TestbedError):  # it has ended meanwhile, or is another user's, or damaged
            continue
        if journal.owner_alive:
            owners.add(int(journal.head.get("pid", 0)))
            namespaces.update(str(entry["namespace"]) for entry in journal.entries if "namespace" in entry)
    return Living(frozenset(owners), frozenset(namespaces))


def _journals(directory: Path) -> tuple[Path, ...]:
    return (*sorted(directory.glob("run-*.jsonl")), *sorted(lasting(directory).glob("remote-*.jsonl")))


@dataclass(frozen=True, slots=True)
class _Stale:
    """A journal that was found on disk."""

    path: Path
    head: Mapping[str, Any]
    entries: tuple[Mapping[str, Any], ...]
    unread: int
    """Lines that are no JSON although others follow. A torn last line is not counted: its change was never made."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a journal. Raises OSError, and TestbedError if its head names no owner or no held resources."""
        records: list[Mapping[str, Any]] = []
        unread = 0
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if isinstance(record, dict) and all(isinstance(record.get(key, 0), int) for key in ("change", "undone")):
                records.append(record)
            else:
                unread += 1
        has_head = bool(records) and "journal" in records[0]
        if has_head and records[0]["journal"] == FORMAT and not _is_head(records[0]):
            raise TestbedError(
                f"{path} is damaged: its first line does not name its owner; what it notes was not undone, remove it "
                "by hand once nothing of that run is left"
            )
        return cls(path, records[0] if has_head else {}, tuple(records[1:] if has_head else records), unread)

    @property
    def owner_alive(self) -> bool:
        if not self.head:
            # Just begun, or torn: its name holds the owner too.
            parts = self.path.stem.split("-")
            known = len(parts) > 2 and parts[1].isdigit() and parts[2].isdigit()
            return known and ProcessId(int(parts[1]), int(parts[2])).alive
        if self.head.get("ended") or self.head.get("boot") != boot_id():
            return False
        return ProcessId(self.head.get("pid", 0), self.head.get("start", 0)).alive

    @property
    def held(self) -> frozenset[Resource]:
        """Resources that its run held on this machine; none after a restart."""
        if self.head.get("boot") != boot_id() or self.head.get("journal") != FORMAT:
            return frozenset()
        return frozenset(Resource(kind, str(name)) for kind, name in self.head.get("held", ()))

    @property
    def run(self) -> str:
        """The journal's run, in words."""
        pid, start = self.head.get("pid", 0), self.head.get("start", 0)
        if ProcessId.of(os.getpid()) == ProcessId(pid, start):
            return "this run"
        return f"the {'' if self.head.get('ended') else 'killed '}run of pid {pid or '?'}"

    def undo(self, open_host: Callable[[str], Host]) -> list[str]:
        """Undo what it notes and say what was done, see `recover_stale`."""
        run = self.run
        if self.head and self.head.get("boot") != boot_id() and not self.head.get("lasting"):
            self.path.unlink(missing_ok=True)
            return [f"dropped the journal of {run}: the machine has been restarted since, which undid its changes"]
        sentences: list[str] = []
        left: list[Mapping[str, Any]] = []
        if self.unread:
            sentences.append(
                NotUndone(f"unreadable lines in {self.path}: {self.unread}; what they noted was not undone")
            )
        if self.head.get("journal", FORMAT) != FORMAT:
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
                if (machine := machine_of(str(entry.get("host", "")))) in machines.reached:
                    try:
                        if hosts.boot_id(machine) != machines.boots.get(entry.get("change", 0)):
                            restarted.add(machine)
                            continue
                    except TestbedError as error:
                        left.insert(0, entry)
                        away[machine] = (away.get(machine, (0, ""))[0] + 1, str(error))
                        continue
                try:
                    sentence = _undo(entry, hosts, self.path.stem)
                except (TestbedError, LookupError, TypeError, AttributeError, ValueError, OSError) as error:
                    left.insert(0, entry)
                    sentences.append(NotUndone(f"could not undo {json.dumps(entry)} of {run}: {error}; {RESTORE}"))
                    continue
                if sentence:
                    sentences.append(f"{sentence} (left by {run})")
        sentences += [
            f"dropped what {run} had changed on {machine}: it has been restarted since, which undid that"
            for machine in sorted(restarted)
        ]
        sentences += [
            NotUndone(f"could not undo {count} change{'s' * (count != 1)} of {run} on {machine}: {why}; {RESTORE}")
            for machine, (count, why) in sorted(away.items())
        ]
        if left:
            # Without what has gone back: by the next start somebody may want that otherwise.
            kept = [entry for entry in self.entries if "machine" in entry or any(entry is other for other in left)]
            rewrite(self.path, self.head, kept)
        else:
            self.path.unlink(missing_ok=True)
        return sentences


@dataclass(frozen=True, slots=True)
class _Machines:
    """Other machines in a journal."""

    reached: Mapping[str, Mapping[str, Any]]
    """The way that each machine is reached, by its name."""
    boots: Mapping[int, str]
    """The boot id that the machine of a change had, by the change's number."""

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
                    boots[number] = now.get(machine_of(host), "")
        return cls(reached, boots)


def _is_head(record: Mapping[str, Any]) -> bool:
    match record:
        case {"pid": int(), "start": int(), "boot": str()}:
            held = record.get("held", [])
            return isinstance(held, list) and all(
                isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) for one in held
            )
    return False


def _same_setting(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two changes are of the same setting: the earlier one can only be undone after the later one."""
    alike = all(one.get(key) == other.get(key) for key in ("host", "knob"))
    return "change" in one and "change" in other and alike


class _Hosts:
    """The hosts of one recovery, each opened once."""

    def __init__(self, open_host: Callable[[str], Host], machines: Mapping[str, Mapping[str, Any]]) -> None:
        self._open_host = open_host
        self._machines = machines
        self._hosts: dict[str, Host] = {}
        self._boots: dict[str, str | TestbedError] = {}
        self._locks: list[SutLock] = []

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

    def boot_id(self, machine: str) -> str:
        """The boot id that another machine has now. The machine is ours until all is undone.

        A machine that does not answer, or is another controller's now, is asked once.
        """
        if machine not in self._boots:
            try:
                self._claim(machine)
                self._boots[machine] = self.named(machine).read(BOOT_ID).strip()
            except TestbedError as error:
                self._boots[machine] = error
            except (KeyError, TypeError, ValueError) as error:
                self._boots[machine] = TestbedError(f"the journal does not say how it is reached ({error})")
        known = self._boots[machine]
        if isinstance(known, TestbedError):
            raise known
        return known

    def _claim(self, machine: str) -> None:
        # Only here: SSH takes a while to load, and most journals are of this machine alone.
        from pdrgate.hosts.ssh import SshHost
        from pdrgate.safety.sut_lock import SutInUseError, SutLock

        host = self.named(machine)
        if isinstance(host, SshHost):
            try:
                self._locks.append(SutLock.acquire(host))
            except SutInUseError as error:
                if not error.ours:  # our own testbed that was interrupted is what is to be undone
                    raise

    def close(self, name: str) -> None:
        if (host := self._hosts.pop(name, None)) is not None:
            host.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for lock in self._locks:
            lock.release()
        for name in list(self._hosts):
            self.close(name)


def _undo(entry: Mapping[str, Any], hosts: _Hosts, mark: str) -> str | None:
    match entry:
        case {"change": _, "host": str(host), "knob": dict(knob), "old": str(old), "new": str(new)}:
            outside, namespace = _outside(host)
            if namespace and not hosts.named(outside).exists(str(namespace_path(namespace))):
                if not of_whole_machine(knob):
                    return None
                # It was set through the namespace's shell and yet is the whole machine's.
                host = outside
            undone = put_back(hosts.named(host), knob_from_record(knob, new), old, new)
            return None if undone is None else undone.sentence
        case {"process": int(pid), "start": int(start), "command": str(command)}:
            words = f"process {pid} ({command[:80]})"
            leader = ProcessId(pid, start)
            alive = leader.alive
            return f"ended {'' if alive else 'what was left of '}{words}" if end(leader, mark) else None
        case {"namespace": str(name)} if name.startswith(NAMESPACE_PREFIX):
            # Our own shell in it would keep it alive, and be counted as left over.
            hosts.close(f"netns:{name}")
            return _delete_namespace(name, hosts.named("local"))
        case {"undone": _}:
            return None
    raise ValueError("this version of pdrgate does not know such an entry")


def _outside(host: str) -> tuple[str, str]:
    """The host that a host's namespace belongs to, and the namespace, which is empty for a whole machine."""
    if host.startswith("netns:"):
        return "local", host.removeprefix("netns:")
    machine, _, namespace = host.partition("/")
    return machine, namespace


def _delete_namespace(name: str, host: Host) -> str | None:
    if not namespace_path(name).exists():
        return None
    inside = host.run("ip", "netns", "pids", name, check=False).stdout.split()
    host.run("ip", "netns", "delete", name)
    left = f", in which process {', '.join(inside)} still runs" if inside else ""
    return f"deleted namespace {name}{left}"

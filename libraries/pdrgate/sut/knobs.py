"""Knobs: settings of a host that are applied, read back, and put back as they were.

A `Knob` knows one setting; a `KnobSet` keeps what the knobs it applied have replaced. The kernel may take a value and
use another one, so no knob is believed before it was read back.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from pdrgate.errors import TestbedError
from pdrgate.sut.cpus import cpu_mask, parse_cpu_mask
from pdrgate.sut.host import Host


class Knob(Protocol):
    """One setting and the value wanted for it. All texts are the kernel's or the tool's own notation."""

    @property
    def value(self) -> str: ...

    def describe(self) -> str:
        """Setting and wanted value in words."""

    def lacking(self, host: Host) -> str | None:
        """Why this host cannot have the value, as a sentence without an end; None when it can."""

    def read(self, host: Host) -> str:
        """What `restore` needs to bring back the present state."""

    def apply(self, host: Host) -> None:
        """Set the wanted value. Raises TestbedError when the host refuses it or reads back otherwise."""

    def restore(self, host: Host, old: str) -> None:
        """Set what `read` returned earlier. Raises as `apply` does."""

    def holds(self, actual: str, wanted: str) -> bool:
        """Whether the state ``actual``, as read, is or includes the state ``wanted``."""

    def to_record(self) -> dict[str, str]:
        """The setting without its value, for `knob_from_record`."""


class ChangeLog(Protocol):
    """Where a change is written down before it is made, see `pdrgate.sut.journal.Journal`."""

    def change(self, host: str, knob: Mapping[str, str], old: str, new: str) -> int:
        """Note that a knob is about to be set; return the note's number."""

    def undone(self, number: int) -> None:
        """Note that the change of that number no longer needs to be undone."""


@dataclass(frozen=True, slots=True)
class FileKnob:
    """A file below /proc/sys or /sys. Numbers are compared as numbers, with ``mask`` as CPU masks."""

    path: str
    value: str
    mask: bool = False

    def describe(self) -> str:
        return f"{_setting(self.path)} = {self.value}"

    def lacking(self, host: Host) -> str | None:
        if host.exists(self.path):
            return None
        return (
            f"{host.name} has no {self.path}: the kernel lacks it, or the device is absent, or it is one for the whole "
            "machine and not of this namespace"
        )

    def read(self, host: Host) -> str:
        return host.read(self.path).strip()

    def apply(self, host: Host) -> None:
        self._write(host, self.value, "does the kernel or the driver bound it, or does a service set it?")

    def restore(self, host: Host, old: str) -> None:
        self._write(host, old, "set it by hand")

    def _write(self, host: Host, value: str, remedy: str) -> None:
        host.write(self.path, f"{value}\n")
        back = self.read(host)
        if not self.holds(back, value):
            raise TestbedError(f"wrote {value} to {self.path} on {host.name}, but it reads back {back}; {remedy}")

    def holds(self, actual: str, wanted: str) -> bool:
        if self.mask:
            try:
                return parse_cpu_mask(actual) == parse_cpu_mask(wanted)
            except ValueError:
                return False
        return [_number_or_text(word) for word in actual.split()] == [_number_or_text(word) for word in wanted.split()]

    def to_record(self) -> dict[str, str]:
        return {"kind": "file", "path": self.path, "form": "mask" if self.mask else "plain"}


def sysctl(name: str, value: int | str) -> FileKnob:
    """A sysctl by name, ``net.core.netdev_max_backlog`` or ``net/ipv6/conf/eth0.100/forwarding``, as sysctl(8)."""
    first = re.search(r"[./]", name)
    slashed = name if first and first[0] == "/" else name.translate(str.maketrans("./", "/."))
    if not re.fullmatch(r"[\w.:@-]+(/[\w.:@-]+)+", slashed) or ".." in slashed.split("/"):
        raise TestbedError(f"{name!r} is no sysctl name; write one such as net.ipv4.ip_forward")
    return FileKnob(f"/proc/sys/{slashed}", str(value))


def device_attribute(device: str, attribute: str, value: int | str) -> FileKnob:
    """A file of a network device: ``gro_flush_timeout`` (ns), ``napi_defer_hard_irqs``, ``threaded`` and so on."""
    return FileKnob(f"/sys/class/net/{device}/{attribute}", str(value))


def threaded_napi(device: str, on: bool = True) -> FileKnob:
    """Whether a kernel thread per NAPI instance does the device's receive work, instead of softirqs.

    A veth has NAPI only while it is up and has GRO on or an XDP program: apply this after `offloads`.
    """
    return device_attribute(device, "threaded", int(on))


def rps_cpus(device: str, cpus: Iterable[int], queue: int = 0) -> FileKnob:
    """The CPUs that do the further receive work of one queue (receive packet steering); none switches it off."""
    return FileKnob(f"/sys/class/net/{device}/queues/rx-{queue}/rps_cpus", cpu_mask(cpus), mask=True)


def rps_knobs(host: Host, device: str, cpus: Iterable[int]) -> list[FileKnob]:
    """`rps_cpus` for each receive queue the device has."""
    names = host.run("ls", f"/sys/class/net/{device}/queues").stdout.split()
    wanted = tuple(cpus)
    return [
        rps_cpus(device, wanted, queue)
        for queue in sorted(int(name.removeprefix("rx-")) for name in names if name.startswith("rx-"))
    ]


_SHORT_NAMES = {
    "rx": "rx-checksumming", "tx": "tx-checksumming", "sg": "scatter-gather", "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload", "gro": "generic-receive-offload", "lro": "large-receive-offload",
    "rxvlan": "rx-vlan-offload", "txvlan": "tx-vlan-offload", "ntuple": "ntuple-filters", "rxhash": "receive-hashing",
}  # fmt: skip
_GROUPS = {
    "tx-checksumming": re.compile(r"tx-checksum-.+"),
    "scatter-gather": re.compile(r"tx-scatter-gather.*"),
    "tcp-segmentation-offload": re.compile(r"tx-tcp.*-segmentation"),
}
"""Names of ethtool for several of the kernel's features at once."""


_FIXED = ":fixed"
"""Ends the state of a feature that the driver allows nobody to change."""


@dataclass(frozen=True, slots=True)
class _Feature:
    active: bool
    requested: bool
    fixed: bool


@dataclass(frozen=True, slots=True)
class EthtoolFeatures:
    """Offloads of a device, as ``ethtool -K`` sets them; ``value`` is text such as ``gro=off tso=off``.

    What is read and restored is what was *requested* of each single feature: switching checksums off takes TSO with
    it, and switching them on again brings TSO back only when nobody touched that request.
    """

    device: str
    value: str

    def describe(self) -> str:
        return f"offloads of {self.device}: {self.value}"

    def lacking(self, host: Host) -> str | None:
        if not host.exists(f"/sys/class/net/{self.device}"):
            return f"{host.name} has no interface {self.device}"
        features = self._query(host)
        for name, on in _states(self.value).items():
            members = _members(name, features)
            if not members:
                near = difflib.get_close_matches(_SHORT_NAMES.get(name, name), [*features, *_GROUPS, *_SHORT_NAMES], 1)
                hint = f", did you mean {near[0]}?" if near else ""
                return f"{self.device} on {host.name} has no offload {name}{hint}"
            changeable = [member for member in members if not features[member].fixed]
            if not changeable and any(features[member].active for member in members) != on:
                return f"{name} of {self.device} on {host.name} is fixed at {_word(not on)} by its driver"
        return None

    def read(self, host: Host) -> str:
        features = self._query(host)
        return " ".join(
            f"{name}={_word(feature.requested)}{_FIXED if feature.fixed else ''}"
            for name, feature in sorted(features.items())
        )

    def apply(self, host: Host) -> None:
        self._request(host, self.value)
        features = self._query(host)
        for name, on in _states(self.value).items():
            wrong = [m for m in _members(name, features) if not features[m].fixed and features[m].active != on]
            if wrong:
                raise TestbedError(
                    f"set {name} of {self.device} on {host.name} to {_word(on)}, but {wrong[0]} reads back "
                    f"{_word(not on)}; it may need another offload that is off, see ethtool -k {self.device}"
                )

    def restore(self, host: Host, old: str) -> None:
        self._request(host, old)
        if not self.holds(self.read(host), old):
            raise TestbedError(f"offloads of {self.device} on {host.name} do not go back; see ethtool -k {self.device}")

    def holds(self, actual: str, wanted: str) -> bool:
        have = _states(actual)
        # What is fixed has no part in what a group's name asks for.
        fixed = {word.partition("=")[0] for word in actual.split() if word.endswith(_FIXED)}
        return all(
            have[member] == on or (member in fixed and member != _SHORT_NAMES.get(name, name))
            for name, on in _states(wanted).items()
            for member in _members(name, have)
        )

    def to_record(self) -> dict[str, str]:
        return {"kind": "ethtool-features", "device": self.device}

    def _request(self, host: Host, wanted: str) -> None:
        features = self._query(host)
        words: list[str] = []
        for name, on in _states(wanted).items():
            for member in _members(name, features):
                if features[member].requested != on and not features[member].fixed:
                    words += (member, _word(on))
        if words:
            host.run("ethtool", "-K", self.device, *words)

    def _query(self, host: Host) -> dict[str, _Feature]:
        answer: list[dict[str, Any]] = host.run_json("ethtool", "--json", "-k", self.device)
        told = {name: state for name, state in answer[0].items() if isinstance(state, dict)} if answer else {}
        # A group has no state of its own: what ethtool tells of it as fixed and requested is null.
        return {
            name: _Feature(
                active=bool(state["active"]),
                requested=bool(state["active"] if state["fixed"] else state["requested"]),
                fixed=bool(state["fixed"]),
            )
            for name, state in told.items()
            if name not in _GROUPS and state.get("fixed") is not None
        }


def offloads(device: str, features: Mapping[str, bool]) -> EthtoolFeatures:
    """Offloads of a device by ethtool's short or long names: ``{"gro": False, "tx-nocache-copy": True}``."""
    return EthtoolFeatures(device, " ".join(f"{name}={_word(on)}" for name, on in features.items()))


_FIND = 'for c in /proc/[0-9]*/comm; do read -r n <"$c" && [ "$n" = "$1" ] && echo "${c%/comm}"; done; true'


@dataclass(frozen=True, slots=True)
class KernelThreadNice:
    """The nice value of a kernel thread, found by its name: ``ksoftirqd/1`` does CPU 1's packet work under load."""

    thread: str
    value: str

    def describe(self) -> str:
        return f"nice value of {self.thread} = {self.value}"

    def lacking(self, host: Host) -> str | None:
        return None if self._folder(host) else f"{host.name} has no kernel thread {self.thread}"

    def read(self, host: Host) -> str:
        # Behind the name, which may itself hold blanks, nice is the 17th field (proc(5): the 19th of all).
        return host.read(f"{self._folder(host)}/stat").rpartition(")")[2].split()[16]

    def apply(self, host: Host) -> None:
        self._renice(host, self.value)

    def restore(self, host: Host, old: str) -> None:
        self._renice(host, old)

    def holds(self, actual: str, wanted: str) -> bool:
        return actual == wanted

    def to_record(self) -> dict[str, str]:
        return {"kind": "kernel-thread-nice", "thread": self.thread}

    def _folder(self, host: Host) -> str:
        return host.run("sh", "-c", _FIND, "sh", self.thread).stdout.strip()

    def _renice(self, host: Host, value: str) -> None:
        host.run("renice", "-n", value, "-p", self._folder(host).removeprefix("/proc/"))
        if (back := self.read(host)) != value:
            raise TestbedError(
                f"set the nice value of {self.thread} on {host.name} to {value}, but it reads back {back}; "
                "set isolate: false in the testbed file to do without"
            )


def knob_from_record(record: Mapping[str, str], value: str) -> Knob:
    """The knob of a record by `Knob.to_record`, wanting ``value``. Raises ValueError when the record is none."""
    match record:
        case {"kind": "file", "path": path, "form": form}:
            return FileKnob(path, value, mask=form == "mask")
        case {"kind": "ethtool-features", "device": device}:
            return EthtoolFeatures(device, value)
        case {"kind": "kernel-thread-nice", "thread": thread}:
            return KernelThreadNice(thread, value)
    raise ValueError(f"{dict(record)!r} is no knob that this version of pdrgate knows")


def put_back(host: Host, knob: Knob, old: str, new: str) -> str | None:
    """Restore ``old`` where the knob still holds ``new``; what somebody else has set since is left alone.

    Returns a sentence on what was done, None when there was nothing to do.

    Raises:
        TestbedError: the host refuses the old value.
    """
    if knob.lacking(host) is not None:
        return None
    now = knob.read(host)
    if knob.holds(now, old):
        return None
    if knob.holds(now, new):
        knob.restore(host, old)
        return f"put back {knob_from_record(knob.to_record(), _brief(old, now)).describe()} on {host.name}"
    return (
        f"left alone {knob_from_record(knob.to_record(), _brief(now, old)).describe()} on {host.name}: pdrgate had set "
        f"{_brief(new, old)} in place of {_brief(old, now)}, and somebody else has changed it since"
    )


@dataclass(frozen=True, slots=True)
class _Applied:
    host: Host
    knob: Knob
    old: str
    number: int | None


class KnobSet:
    """The knobs a run has turned, so that they can be turned back in reverse order; a context manager that does so."""

    def __init__(self, log: ChangeLog | None = None) -> None:
        self.skipped: list[str] = []
        """Why knobs were skipped, one sentence each."""
        self._log = log
        self._applied: list[_Applied] = []

    def apply(self, host: Host, knob: Knob, missing: Literal["error", "skip"] = "error") -> bool:
        """Set a knob on a host, after what it replaces was written down. False when it was skipped.

        Raises:
            TestbedError: the host lacks the knob and ``missing`` is error, or the value did not take; what was there
                before is then back, or the message says that it is not.
        """
        if lack := knob.lacking(host):
            if missing == "skip":
                self.skipped.append(f"skipped {knob.describe()}: {lack}")
                return False
            raise TestbedError(f"cannot set {knob.describe()}: {lack}; take it out or let missing knobs be skipped")
        old = knob.read(host)
        number = self._log.change(host.name, knob.to_record(), old, knob.value) if self._log else None
        self._applied.append(applied := _Applied(host, knob, old, number))
        try:
            knob.apply(host)
        except TestbedError as error:
            try:
                # Not put_back: a value the kernel made of ours is not somebody else's.
                if not knob.holds(knob.read(host), old):
                    knob.restore(host, old)
            except TestbedError as second:
                raise TestbedError(f"{error}; and it does not go back: {second}") from error
            self._forget(applied)
            raise
        return True

    def restore(self) -> list[str]:
        """Put all knobs back, the last one first, and say in sentences what was done.

        Raises:
            TestbedError: some would not go back; all others did. Those stay for a next try.
        """
        told: list[str] = []
        failures: list[str] = []
        stuck: list[tuple[Host, dict[str, str]]] = []
        for applied in reversed(self._applied.copy()):
            setting = (applied.host, applied.knob.to_record())
            if setting in stuck:  # an earlier change of it can only be undone after the later one
                continue
            try:
                sentence = put_back(applied.host, applied.knob, applied.old, applied.knob.value)
            except TestbedError as error:
                failures.append(str(error))
                stuck.append(setting)
                continue
            self._forget(applied)
            if sentence:
                told.append(sentence)
        if failures:
            raise TestbedError(f"{len(failures)} of the settings could not be put back: {'; '.join(failures)}")
        return told

    def _forget(self, applied: _Applied) -> None:
        self._applied.remove(applied)
        if self._log and applied.number is not None:
            self._log.undone(applied.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.restore()
        except TestbedError as failure:
            if error is None:
                raise
            # What went wrong first is the error to tell; the journal still holds what is left to undo.
            error.add_note(str(failure))


def _setting(path: str) -> str:
    """A path as people know it: /proc/sys files by their sysctl name."""
    if not path.startswith("/proc/sys/"):
        return path
    return path.removeprefix("/proc/sys/").translate(str.maketrans("./", "/."))


def _number_or_text(word: str) -> int | str:
    try:
        return int(word, 16 if word.lower().startswith("0x") else 10)
    except ValueError:
        return word


def _word(on: bool) -> str:
    return "on" if on else "off"


def _states(text: str) -> dict[str, bool]:
    """The features and states of text such as ``gro=off tso=on``."""
    states = {}
    for word in text.split():
        name, equals, state = word.removesuffix(_FIXED).partition("=")
        if not equals or state not in ("on", "off"):
            raise TestbedError(f"{word!r} is no offload setting; write one such as gro=off")
        states[name] = state == "on"
    return states


def _members(name: str, known: Iterable[str]) -> list[str]:
    """The single features that ethtool means by a name; none when the device has no such feature."""
    name = _SHORT_NAMES.get(name, name)
    group = _GROUPS.get(name)
    return [one for one in known if (group.fullmatch(one) if group else one == name)]


def _brief(state: str, other: str) -> str:
    """``state`` without the words it has in common with ``other``, when it has many: a device has sixty features."""
    words = state.split()
    return " ".join(word for word in words if word not in other.split()) or state if len(words) > 8 else state

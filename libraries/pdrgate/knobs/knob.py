"""Knobs: their common parts, the text of settings that have several parts, and the log of changes."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol, cast

from pdrgate.hosts.host import CommandError, Completed, Host
from pdrgate.values.errors import TestbedError

Missing = Literal["error", "skip", "ignore"]
"""Treatment of a knob that a host lacks: skip reports it, ignore does not."""

ANY = "any"
"""The value of a knob that changes nothing: what is there is noted, and put back after other knobs have spoilt it.
Those know it whose settings belong to something that other knobs replace, such as a queue."""


class Knob(ABC):
    """Base of frozen dataclasses: one setting and the value wanted for it. Texts are the kernel's or the tool's own.

    One command sets all of a state, unless a knob says otherwise by its own `halfway`. A setting may have parts, as a
    device has queues. Its states are then words ``part=value``.
    """

    __slots__ = ()

    kind: ClassVar[str]
    """The knob's word in journals."""
    value: str

    @abstractmethod
    def describe(self) -> str:
        """Setting and wanted value in words."""

    @abstractmethod
    def lacking(self, host: Host) -> str | None:
        """Why this host cannot have the value, as a sentence without an end; None when it can.

        Raises:
            TestbedError: the host cannot be asked, for want of a tool for one, or it could have the value and then
                could not get back what is there.
        """

    def gone(self, host: Host) -> bool:
        """Whether there is no such setting any more, so that there is nothing to put back."""
        return False

    @abstractmethod
    def read(self, host: Host) -> str:
        """The present state, in the form that `restore` needs to bring it back."""

    def apply(self, host: Host) -> None:
        """Set the wanted value. Raises TestbedError when the host refuses it or reads back otherwise."""
        self._set(host, self.value)

    def restore(self, host: Host, old: str) -> None:
        """Set what `read` returned earlier. Raises as `apply` does."""
        self._set(host, old)

    def holds(self, actual: str, wanted: str) -> bool:
        """Whether the state ``actual``, as read, is or includes the state ``wanted``."""
        return actual == wanted

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        """Whether ``actual`` can be what an `apply` left that was killed: each part as in ``old`` or as wanted."""
        return False

    def to_record(self) -> dict[str, str]:
        """The setting without its value, for `knob_from_record`."""
        names = [field.name for field in dataclasses.fields(cast(Any, self)) if field.name != "value"]
        return {"kind": self.kind, **{name: getattr(self, name) for name in names}}

    def _read_back(self, host: Host, wanted: str, what: str, remedy: str) -> None:
        """Look whether it is set. Raises TestbedError, with the setting in words and a remedy, if it is not."""
        if not self.holds(back := self.read(host), wanted):
            raise TestbedError(f"set {what} on {host.name} to {wanted}, but it reads back {back}; {remedy}")

    @abstractmethod
    def _set(self, host: Host, wanted: str) -> None:
        """Bring a state about. Raises as `apply` does."""


class DeviceKnob(Knob):
    """Common part of the knobs of a network device. A subclass says what else the device may lack."""

    __slots__ = ()

    device: str

    def lacking(self, host: Host) -> str | None:
        return f"{host.name} has no interface {self.device}" if self.gone(host) else self._lacking(host)

    def gone(self, host: Host) -> bool:
        return not host.exists(f"/sys/class/net/{self.device}")

    def _ethtool(self, host: Host, option: str, *words: str) -> Completed:
        """Ask ethtool about the device. Raises CommandError if the host has none; other failures are the answer."""
        shown = host.run("ethtool", option, self.device, *words, check=False)
        if shown.exit_code == 127:
            raise CommandError(host.name, f"`{' '.join(shown.argv)}`", shown)
        return shown

    def _lacking(self, host: Host) -> str | None:
        """Reason why a device that is there lacks the knob, as `lacking`."""
        return None


class KnobOfParts(Knob):
    """Common part of the knobs whose states are words ``part=value``, of which some may be wanted and others not."""

    __slots__ = ()

    def holds(self, actual: str, wanted: str) -> bool:
        have = parse_state(actual)
        return includes(have, self._parts(wanted, have))

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        have = parse_state(actual)
        return wanted != ANY and mixture(have, parse_state(old), self._parts(wanted, have))

    def _parts(self, wanted: str, names: Mapping[str, str]) -> dict[str, str]:
        """Values that a wish sets, by part, for the parts that there are; without the parts that it leaves alone."""
        return parse_state(wanted)


def parse_state(text: str) -> dict[str, str]:
    """The parts of a state, by name. Raises ValueError when a word is none."""
    parts = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise ValueError(f"{word!r} is no part of a state; it must read name=value")
        parts[name] = value
    return parts


def on_off(on: bool) -> str:
    """The word for a state of two."""
    return "on" if on else "off"


def state_text(parts: Mapping[str, str]) -> str:
    """The words for some parts, in their order."""
    return " ".join(f"{name}={value}" for name, value in parts.items())


def includes(actual: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether every part that is wanted is there, and is so."""
    return all(actual.get(name) == value for name, value in wanted.items())


def mixture(actual: Mapping[str, str], old: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether each part is as it was or as wanted: what is left when a change was stopped in its middle."""
    return all(value in (old.get(name), wanted.get(name)) for name, value in actual.items())


class ChangeLog(Protocol):
    """Log of changes, which notes a change before it is made, see `pdrgate.safety.journal.Journal`."""

    def change(self, host: str, knob: Mapping[str, str], old: str, new: str) -> int:
        """Note that a knob is about to be set; return the note's number."""

    def undone(self, number: int) -> None:
        """Note that the change of that number no longer needs to be undone."""

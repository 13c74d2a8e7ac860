"""Common parts of knobs whose state is set in one way, and of those of a network device, which may be gone by then."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar, cast

from pdrgate.hosts.host import CommandError, Completed, Host
from pdrgate.values.errors import TestbedError


class SetKnob(ABC):
    """Base of frozen dataclasses that satisfy `Knob`. One command sets all of a state, unless a knob says otherwise by
    its own `halfway`."""

    __slots__ = ()

    kind: ClassVar[str]
    """The knob's word in journals."""
    value: str

    @abstractmethod
    def read(self, host: Host) -> str:
        """See `Knob.read`."""

    def gone(self, host: Host) -> bool:
        return False

    def apply(self, host: Host) -> None:
        self._set(host, self.value)

    def restore(self, host: Host, old: str) -> None:
        self._set(host, old)

    def holds(self, actual: str, wanted: str) -> bool:
        return actual == wanted

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        return False

    def to_record(self) -> dict[str, str]:
        names = [field.name for field in dataclasses.fields(cast(Any, self)) if field.name != "value"]
        return {"kind": self.kind, **{name: getattr(self, name) for name in names}}

    def _read_back(self, host: Host, wanted: str, what: str, remedy: str) -> None:
        """Look whether it is set. Raises TestbedError, with the setting in words and a remedy, if it is not."""
        if not self.holds(back := self.read(host), wanted):
            raise TestbedError(f"set {what} on {host.name} to {wanted}, but it reads back {back}; {remedy}")

    @abstractmethod
    def _set(self, host: Host, wanted: str) -> None:
        """Bring a state about. Raises as `Knob.apply` does."""


class DeviceKnob(SetKnob):
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
        """Reason why a device that is there lacks the knob, as `Knob.lacking`."""
        return None

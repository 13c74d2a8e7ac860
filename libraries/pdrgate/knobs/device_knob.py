"""Settings of one network device, which may be gone by the time that they are put back."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pdrgate.hosts.host import Host


class DeviceKnob(ABC):
    """Common part of the knobs of a network device. A subclass says what else the device may lack, and how a state is
    set.

    One command sets all of a state, unless a knob says otherwise by its own `halfway`.
    """

    __slots__ = ()

    device: str
    value: str

    def lacking(self, host: Host) -> str | None:
        return f"{host.name} has no interface {self.device}" if self.gone(host) else self._lacking(host)

    def gone(self, host: Host) -> bool:
        return not host.exists(f"/sys/class/net/{self.device}")

    def apply(self, host: Host) -> None:
        self._set(host, self.value)

    def restore(self, host: Host, old: str) -> None:
        self._set(host, old)

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        return False

    def _lacking(self, host: Host) -> str | None:
        """Reason why a device that is there lacks the knob, as `Knob.lacking`."""
        return None

    @abstractmethod
    def _set(self, host: Host, wanted: str) -> None:
        """Bring a state about. Raises as `Knob.apply` does."""

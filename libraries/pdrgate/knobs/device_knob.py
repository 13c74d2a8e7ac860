"""Settings of one network device, which may be gone by the time that they are put back."""

from __future__ import annotations

from pdrgate.hosts.host import Host
from pdrgate.knobs.set_knob import SetKnob


class DeviceKnob(SetKnob):
    """Common part of the knobs of a network device. A subclass says what else the device may lack."""

    __slots__ = ()

    device: str

    def lacking(self, host: Host) -> str | None:
        return f"{host.name} has no interface {self.device}" if self.gone(host) else self._lacking(host)

    def gone(self, host: Host) -> bool:
        return not host.exists(f"/sys/class/net/{self.device}")

    def _lacking(self, host: Host) -> str | None:
        """Reason why a device that is there lacks the knob, as `Knob.lacking`."""
        return None

"""Settings of one network device, which may be gone by the time that they are put back."""

from __future__ import annotations

from pdrgate.hosts.host import CommandError, Completed, Host
from pdrgate.knobs.set_knob import SetKnob


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

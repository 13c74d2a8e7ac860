"""Settings of a network device that ethtool sets by number or on/off: rings, channels, coalescing, pause frames.

Their text is parsed, for only newer versions than Debian 12's print them as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pdrgate.hosts.host import Completed, Host
from pdrgate.knobs.knob import DeviceKnob, includes, on_off, parse_state, state_text
from pdrgate.values.errors import TestbedError

Family = Literal["rings", "channels", "coalescing", "pause"]

_FLAGS: dict[Family, str] = {"rings": "g", "channels": "l", "coalescing": "c", "pause": "a"}
"""The option that shows a family; in upper case it sets."""
_WORDS: dict[Family, str] = {
    "rings": "rings", "channels": "channels", "coalescing": "interrupt coalescing", "pause": "pause frames"
}  # fmt: skip
_SECTION = "Current hardware settings:"
_ABSENT = "n/a"
_ADAPTIVE = ("rx", "tx")


@dataclass(frozen=True, slots=True)
class EthtoolSettings(DeviceKnob):
    """Some settings of a family; ``value`` is text such as ``rx=512 tx=512`` with the names that ethtool takes."""

    kind = "ethtool"

    device: str
    family: Family
    value: str

    def describe(self) -> str:
        return f"{_WORDS[self.family]} of {self.device}: {self.value}"

    def _lacking(self, host: Host) -> str | None:
        shown = self._ethtool(host, f"-{_FLAGS[self.family]}")
        if shown.exit_code != 0:
            return f"{self.device} on {host.name} has no {_WORDS[self.family]} that can be set ({_reason(shown)})"
        have, most = _settings(shown.stdout), _maxima(shown.stdout)
        for name, value in parse_state(self.value).items():
            if name not in have:
                return f"{self.device} on {host.name} has no {name} among its {_WORDS[self.family]}"
            limit = most.get(name, "")
            if value.isdecimal() and limit.isdecimal() and int(value) > int(limit):
                return f"{self.device} on {host.name} takes at most {name}={limit} of {_WORDS[self.family]}"
        return None

    def read(self, host: Host) -> str:
        return state_text(_settings(host.run("ethtool", f"-{_FLAGS[self.family]}", self.device).stdout))

    def apply(self, host: Host) -> None:
        self._set(host, self.value, "does the driver round or bound it?")

    def holds(self, actual: str, wanted: str) -> bool:
        return includes(parse_state(actual), self._binding(parse_state(wanted)))

    def _binding(self, parts: Mapping[str, str]) -> dict[str, str]:
        """The settings without those that the driver adapts by itself because adaption is on."""
        moving = tuple(f"{side}-" for side in _ADAPTIVE if parts.get(f"adaptive-{side}") == "on")
        return {name: value for name, value in parts.items() if not (moving and name.startswith(moving))}

    def _set(self, host: Host, wanted: str, remedy: str = "") -> None:
        remedy = remedy or f"set it by hand with ethtool -{_FLAGS[self.family].upper()} {self.device}"
        have, parts = parse_state(self.read(host)), parse_state(wanted)
        # Only what differs: drivers refuse a command that names what they lack, or that changes nothing.
        words = [word for name, value in parts.items() if have.get(name) != value for word in (name, value)]
        if words:
            host.run("ethtool", f"-{_FLAGS[self.family].upper()}", self.device, *words)
        back = parse_state(self.read(host))
        for name, value in self._binding(parts).items():
            if back.get(name) != value:
                raise TestbedError(
                    f"set {name} of the {_WORDS[self.family]} of {self.device} on {host.name} to {value}, but it reads "
                    f"back {back.get(name, 'nothing')}; {remedy}"
                )


def _of(family: Family) -> Callable[[str, Mapping[str, int | bool]], EthtoolSettings]:
    """Makes settings of a family by the device, and by numbers or on and off."""

    def made(device: str, settings: Mapping[str, int | bool]) -> EthtoolSettings:
        words = {name: on_off(value) if isinstance(value, bool) else str(value) for name, value in settings.items()}
        return EthtoolSettings(device, family, state_text(words))

    return made


rings = _of("rings")
"""Packets that a device's rings hold: ``rx``, ``tx``, ``rx-mini``, ``rx-jumbo``."""
channels = _of("channels")
"""Queues of a device: ``rx``, ``tx``, ``combined``, ``other``.

Queues that go take their settings with them, so they come before `QueueFiles` of the device, as `plan_knobs` has them.
"""
coalescing = _of("coalescing")
"""When a device interrupts: ``rx-usecs`` (us), ``rx-frames``, ``adaptive-rx`` and the others of ``ethtool -C``."""
pause_frames = _of("pause")
"""Flow control of a link: ``autoneg``, ``rx``, ``tx``."""


def _settings(text: str) -> dict[str, str]:
    return _labelled(text.partition(_SECTION)[2] if _SECTION in text else text)


def _maxima(text: str) -> dict[str, str]:
    return _labelled(text.partition(_SECTION)[0]) if _SECTION in text else {}


def _labelled(text: str) -> dict[str, str]:
    """Values behind the labels, by the names that ethtool takes for them, without what the driver lacks."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith(("Adaptive", "CQE mode")):
            # Two in a line: `Adaptive RX: off  TX: n/a`.
            first = line.partition(" RX:")[0].lower().replace(" ", "-")
            pairs = [(f"{first}-{side.lower()}", value) for side, value in re.findall(r"([RT]X): (\S+)", line)]
        else:
            pairs = [(_name(label), value) for label, value in re.findall(r"^([A-Za-z][\w -]*):\s+(\S+)$", line)]
        found |= {name: value for name, value in pairs if value != _ABSENT}
    return {name: value for name, value in found.items() if not name.endswith("-negotiated")}


def _name(label: str) -> str:
    name = label.lower().replace(" ", "-")
    # Shown as rx-frame-low and tx-push-buff-len, and set as rx-frames-low and tx-push-buf-len.
    name = {"autonegotiate": "autoneg", "tx-push-buff-len": "tx-push-buf-len"}.get(name, name)
    return re.sub(r"-frame-(low|high)$", r"-frames-\1", name)


def _reason(shown: Completed) -> str:
    lines = shown.stderr.strip().splitlines()
    return lines[-1].removeprefix("netlink error: ") if lines else f"ethtool ended with exit code {shown.exit_code}"

"""Offloads of a network device: ``ethtool -k`` and ``-K``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pdrgate.hosts.host import Host
from pdrgate.knobs.knob import DeviceKnob, on_off
from pdrgate.values.errors import TestbedError

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
class EthtoolFeatures(DeviceKnob):
    """Offloads of a device, as ``ethtool -K`` sets them; ``value`` is text such as ``gro=off tso=off``.

    What is read and restored is what was *requested* of each single feature: switching checksums off takes TSO with
    it, and switching them on again brings TSO back only when nobody touched that request.
    """

    kind = "ethtool-features"

    device: str
    value: str

    def describe(self) -> str:
        return f"offloads of {self.device}: {self.value}"

    def _lacking(self, host: Host) -> str | None:
        features = self._query(host)
        for name, on in _states(self.value).items():
            members = _members(name, features)
            if not members:
                near = difflib.get_close_matches(_SHORT_NAMES.get(name, name), [*features, *_GROUPS, *_SHORT_NAMES], 1)
                hint = f", did you mean {near[0]}?" if near else ""
                return f"{self.device} on {host.name} has no offload {name}{hint}"
            changeable = [member for member in members if not features[member].fixed]
            if not changeable and any(features[member].active for member in members) != on:
                return f"{name} of {self.device} on {host.name} is fixed at {on_off(not on)} by its driver"
        return None

    def read(self, host: Host) -> str:
        features = self._query(host)
        return " ".join(
            f"{name}={on_off(feature.requested)}{_FIXED if feature.fixed else ''}"
            for name, feature in sorted(features.items())
        )

    def apply(self, host: Host) -> None:
        self._set(host, self.value)
        features = self._query(host)
        for name, on in _states(self.value).items():
            wrong = [m for m in _members(name, features) if not features[m].fixed and features[m].active != on]
            if wrong:
                raise TestbedError(
                    f"set {name} of {self.device} on {host.name} to {on_off(on)}, but {wrong[0]} reads back "
                    f"{on_off(not on)}; it may need another offload that is off, see ethtool -k {self.device}"
                )

    def restore(self, host: Host, old: str) -> None:
        self._set(host, old)
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

    def _set(self, host: Host, wanted: str) -> None:
        features = self._query(host)
        words: list[str] = []
        for name, on in _states(wanted).items():
            for member in _members(name, features):
                if features[member].requested != on and not features[member].fixed:
                    words += (member, on_off(on))
        if words:
            host.run("ethtool", "-K", self.device, *words)

    def _query(self, host: Host) -> dict[str, _Feature]:
        answer: list[dict[str, Any]] = host.run_json("ethtool", "--json", "-k", self.device)
        features = {name: state for name, state in answer[0].items() if isinstance(state, dict)} if answer else {}
        # A group has no state of its own: its fields fixed and requested are null in ethtool's answer.
        return {
            name: _Feature(
                active=bool(state["active"]),
                requested=bool(state["active"] if state["fixed"] else state["requested"]),
                fixed=bool(state["fixed"]),
            )
            for name, state in features.items()
            if name not in _GROUPS and state.get("fixed") is not None
        }


def offloads(device: str, features: Mapping[str, bool]) -> EthtoolFeatures:
    """Offloads of a device by ethtool's short or long names: ``{"gro": False, "tx-nocache-copy": True}``."""
    return EthtoolFeatures(device, " ".join(f"{name}={on_off(on)}" for name, on in features.items()))


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

"""The queueing discipline at the root of a device: what packets wait in before the device takes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pdrgate.hosts.host import Host
from pdrgate.knobs.knob import DeviceKnob
from pdrgate.values.errors import TestbedError

_DEFAULT = "default"
_SIMPLE = frozenset({"noqueue", "mq", "pfifo_fast", "pfifo", "bfifo"})
"""Queueing disciplines that can be made again, exactly, from tc's output."""
_TAKEN = {
    "pfifo": ("limit",),
    "bfifo": ("limit",),
    "fq": ("limit", "flow_limit", "quantum", "initial_quantum"),
    "fq_codel": ("limit", "flows", "quantum", "target", "interval"),
}
"""Options by kind that tc shows as the same plain number that it takes (packets, bytes, microseconds)."""


@dataclass(frozen=True, slots=True)
class RootQdisc(DeviceKnob):
    """A kind and its options as tc takes them, in plain numbers: ``fq limit 1000``.

    The state ``default KIND`` is what the kernel gives by itself; it comes back when another one is deleted. A tree of
    classes that somebody has set up could not be put back, so it is not replaced.
    """

    kind = "qdisc"

    device: str
    value: str

    def describe(self) -> str:
        return f"qdisc of {self.device}: {self.value}"

    def _lacking(self, host: Host) -> str | None:
        tree = self._tree(host)
        root = _root(tree)
        if root["handle"] == "0:" or self.holds(_state(tree), self.value):
            return None
        if root["kind"] not in _SIMPLE or any(below["handle"] != "0:" for below in tree if not below.get("root")):
            raise TestbedError(
                f"the qdisc {root['kind']} {root['handle']} of {self.device} on {host.name} was set up by somebody and "
                "could not be put back; delete it by hand, or set no qdisc"
            )
        return None

    def read(self, host: Host) -> str:
        return _state(self._tree(host))

    def holds(self, actual: str, wanted: str) -> bool:
        if wanted.startswith(_DEFAULT):
            # Which one the kernel gives depends on the device being up.
            return actual.startswith(_DEFAULT)
        (kind, options), (other, asked) = _parts(actual), _parts(wanted)
        return kind == other and all(options.get(name, number) == number for name, number in asked.items())

    def _set(self, host: Host, wanted: str) -> None:
        now = self.read(host)
        if self.holds(now, wanted):
            return
        if not now.startswith(_DEFAULT):
            # First, for options that are not named would stay as they are with a qdisc of the same kind.
            host.run("tc", "qdisc", "delete", "dev", self.device, "root")
        if not wanted.startswith(_DEFAULT):
            host.run("tc", "qdisc", "replace", "dev", self.device, "root", *wanted.split())
        self._read_back(host, wanted, f"the qdisc of {self.device}", "look with tc qdisc show")

    def _tree(self, host: Host) -> list[dict[str, Any]]:
        tree: list[dict[str, Any]] = host.run_json("tc", "-j", "qdisc", "show", "dev", self.device)
        # At the side of incoming packets, and none of ours.
        return [one for one in tree if one["kind"] not in ("ingress", "clsact")]


def _root(tree: list[dict[str, Any]]) -> dict[str, Any]:
    # A device that is down may have none yet.
    return next((one for one in tree if one.get("root")), {"kind": "noop", "handle": "0:", "options": {}})


def _state(tree: list[dict[str, Any]]) -> str:
    root = _root(tree)
    if root["handle"] == "0:":
        return f"{_DEFAULT} {root['kind']}"
    options = root.get("options", {})
    words = [f"{name} {options[name]}" for name in _TAKEN.get(root["kind"], ()) if isinstance(options.get(name), int)]
    return " ".join((root["kind"], *words))


def _parts(text: str) -> tuple[str, dict[str, str]]:
    kind, _, rest = text.removeprefix(f"{_DEFAULT} ").partition(" ")
    return kind, dict(re.findall(r"(\S+) (\S+)", rest))

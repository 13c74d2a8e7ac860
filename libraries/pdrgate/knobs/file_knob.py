"""Settings that are one file each, below /proc/sys or /sys."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pdrgate.hosts.host import Host
from pdrgate.knobs.knob import Knob
from pdrgate.values.errors import TestbedError

NETWORK_FILES = ("/proc/sys/net/", "/sys/class/net/")
"""Folders whose files are a network namespace's own; all other files are the machine's."""


@dataclass(frozen=True, slots=True)
class FileKnob(Knob):
    """A file below /proc/sys or /sys. Numbers are compared as numbers."""

    kind = "file"

    path: str
    value: str

    def describe(self) -> str:
        return f"{setting_name(self.path)} = {self.value}"

    def lacking(self, host: Host) -> str | None:
        if host.exists(self.path):
            return None
        return (
            f"{host.name} has no {self.path}: the kernel lacks it, or the device is absent, or it is one for the whole "
            "machine and not of this namespace"
        )

    def gone(self, host: Host) -> bool:
        return not host.exists(self.path)

    def read(self, host: Host) -> str:
        return host.read(self.path).strip()

    def _set(self, host: Host, wanted: str) -> None:
        host.write(self.path, f"{wanted}\n")
        if not self.holds(back := self.read(host), wanted):
            raise TestbedError(
                f"wrote {wanted} to {self.path} on {host.name}, but it reads back {back}; does the kernel or the "
                "driver bound it, or does a service set it?"
            )

    def holds(self, actual: str, wanted: str) -> bool:
        return [_number_or_text(word) for word in actual.split()] == [_number_or_text(word) for word in wanted.split()]


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


def mtu(device: str, size: int) -> FileKnob:
    """The largest packet of a network device in bytes, without its Ethernet header."""
    return device_attribute(device, "mtu", size)


def threaded_napi(device: str, on: bool = True) -> FileKnob:
    """Whether a kernel thread per NAPI instance does the device's receive work, instead of softirqs.

    A veth has NAPI only while it is up and has GRO on or an XDP program: apply this after `offloads`.
    """
    return device_attribute(device, "threaded", int(on))


def setting_name(path: str) -> str:
    """A path as people know it: /proc/sys files by their sysctl name."""
    if not path.startswith("/proc/sys/"):
        return path
    return path.removeprefix("/proc/sys/").translate(str.maketrans("./", "/."))


def _number_or_text(word: str) -> int | str:
    try:
        return int(word, 16 if word.lower().startswith("0x") else 10)
    except ValueError:
        return word

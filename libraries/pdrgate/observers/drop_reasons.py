"""Why a kernel drops packets: its own reasons (``enum skb_drop_reason``, since Linux 5.17) and where in its code.

The tracepoint ``skb:kfree_skb`` tells both. Kernels with histogram triggers (Documentation/trace/histogram.rst) count
by themselves; elsewhere a BPF program counts, see `pdrgate.bpf.kernel_drops`. The reasons' numbers differ from kernel
to kernel; the tracepoint's format has their names.
"""

from __future__ import annotations

import bisect
import re
import secrets
from collections.abc import Mapping
from typing import Protocol

from pdrgate.errors import TestbedError
from pdrgate.hosts.host import Host
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.observers.watching import Observation

_TRACEFS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_EVENT = "events/skb/kfree_skb"
_INSTANCE = "pdrgate-drops-"
_TRIGGER = "hist:keys=reason,location.sym:size=512"
_ENTRY = re.compile(r"reason:\s*(\d+), location: \[[0-9a-f]+\] (\S+)\s*\} hitcount:\s*(\d+)")
_NAME = re.compile(r"\{ (\d+), \"(\w+)\" \}")
_KALLSYMS_TIMEOUT = 30.0


def tracefs(host: Host) -> str:
    """Where the host's tracefs is mounted; mounts it where it is not. Raises TestbedError when there is none."""
    for folder in _TRACEFS:
        if host.exists(f"{folder}/{_EVENT}"):
            return folder
    host.run("mount", "-t", "tracefs", "tracefs", _TRACEFS[0], check=False)
    if not host.exists(f"{_TRACEFS[0]}/{_EVENT}"):
        raise TestbedError(f"{host.name} does not tell why it drops packets: it has no tracepoint skb:kfree_skb")
    return _TRACEFS[0]


def reason_names(host: Host) -> dict[int, str]:
    """The kernel's reasons by their numbers. Raises TestbedError when it gives none."""
    names = parse_reasons(host.read(f"{tracefs(host)}/{_EVENT}/format"))
    if not names:
        raise TestbedError(f"{host.name} does not tell why it drops packets: kernels do since Linux 5.17")
    return names


def parse_reasons(text: str) -> dict[int, str]:
    """A tracepoint's format: ``{ 2, "NOT_SPECIFIED" }`` and so on."""
    return {int(number): name for number, name in _NAME.findall(text)}


def drop_counter(reason: str, function: str, node: str = "") -> Counter:
    """The counter of packets that were dropped for a reason in a function of the kernel."""
    return Counter(Place("drops", node=node), f"{reason} {function}")


class DropReasons(Protocol):
    """Counts from the time it is made until it is closed. Both methods raise TestbedError."""

    def read(self) -> Reading:
        """Packets so far, by reason and function; what has not come yet is left out."""

    def close(self) -> None: ...


class DropObserver:
    """Reads them before and after a trial."""

    def __init__(self, reasons: DropReasons) -> None:
        self._reasons = reasons
        self._before: Reading = {}

    def begin(self) -> None:
        self._before = self._reasons.read()

    def end(self) -> Observation:
        after = self._reasons.read()
        return Observation({counter: self._before.get(counter, 0) for counter in after}, after)


class Symbols:
    """The functions of a kernel's code, by address."""

    def __init__(self, text: str) -> None:
        found = sorted(
            (int(words[0], 16), words[2])
            for words in map(str.split, text.splitlines())
            if len(words) > 2 and words[1] in "tTwW"
        )
        self._addresses = [address for address, _ in found]
        self._names = [name for _, name in found]

    @classmethod
    def of(cls, host: Host) -> Symbols:
        """Those of a host's kernel, as far as it shows them."""
        return cls(host.run("cat", "/proc/kallsyms", timeout=_KALLSYMS_TIMEOUT).stdout)

    def function(self, address: int) -> str:
        """The function that an address is in."""
        at = bisect.bisect_right(self._addresses, address) - 1
        return self._names[at] if at >= 0 and self._addresses[at] else "?"


class DropHistogram:
    """Has a host's kernel count what it drops, from `__init__` to `close`, in an instance of its tracefs.

    Raises:
        TestbedError: the kernel has no histogram triggers, or gives no reasons.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._names = reason_names(host)
        folder = tracefs(host)
        # Whoever holds the machine is alone on it: what is there was left by a run that was killed.
        host.run("sh", "-c", f'for old in "$1"/{_INSTANCE}*; do rmdir "$old"; done', "sh", f"{folder}/instances",
                 check=False)  # fmt: skip
        self._instance = f"{folder}/instances/{_INSTANCE}{secrets.token_hex(3)}"
        host.run("mkdir", self._instance)
        try:
            host.write(f"{self._instance}/buffer_size_kb", "4")  # nothing is written into it
            host.write(f"{self._instance}/{_EVENT}/trigger", _TRIGGER)
        except TestbedError as error:
            self.close()
            raise TestbedError(
                f"{host.name} does not count why it drops packets: its kernel has no histogram triggers "
                "(CONFIG_HIST_TRIGGERS)"
            ) from error

    def read(self) -> dict[Counter, int]:
        """Packets so far."""
        return parse_histogram(self._host.read(f"{self._instance}/{_EVENT}/hist"), self._names)

    def close(self) -> None:
        """Have the kernel count no longer. Raises TestbedError when it goes on."""
        self._host.run("rmdir", self._instance)


def parse_histogram(text: str, names: Mapping[int, str]) -> dict[Counter, int]:
    """A histogram by reason and location: ``{ reason: 2, location: [ffff…] ip6_forward } hitcount: 12``."""
    return {
        drop_counter(names.get(int(reason), f"reason {reason}"), function.partition("+")[0]): int(count)
        for reason, function, count in _ENTRY.findall(text)
    }

"""Reasons for which a kernel drops packets (``enum skb_drop_reason``, since Linux 5.17), and where in its code.

The tracepoint ``skb:kfree_skb`` has both. A BPF program of ours counts (`traffic/native/drops.c`; by namespace that of
`pdrgate.bpf.kernel_drops`): it takes a dropped packet 115 instructions. A kernel that takes no such program may count
by itself, by a histogram trigger (Documentation/trace/histogram.rst), which takes 1 300. The reasons' numbers differ
from kernel to kernel; the tracepoint's format has their names.
"""

from __future__ import annotations

import bisect
import contextlib
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pdrgate.builds.image_symbols import CODE_TYPES, typed_symbols
from pdrgate.hosts.host import Host
from pdrgate.hosts.piped_program import PipedProgram
from pdrgate.observers.reading import Counter, Place
from pdrgate.observers.watching import Observation
from pdrgate.traffic import native
from pdrgate.values.errors import TestbedError

_Drop = TypeVar("_Drop")

_TRACEFS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_EVENT = "events/skb/kfree_skb"
_INSTANCE = "pdrgate-drops-"
_TRIGGER = "hist:keys=reason,location.sym:size=512"
_ENTRY = re.compile(r"reason:\s*(\d+), location: \[[0-9a-f]+\] (\S+)\s*\} hitcount:\s*(\d+)")
_NAME = re.compile(r"\{ (\d+), \"(\w+)\" \}")
_KALLSYMS_TIMEOUT = 30.0
_KIND_AT = 32
_OF_CPUMAPS = {1: "CPUMAP_FULL", 2: "CPUMAP_PROGRAM"}
_EXCEPTION = 4
_XDP_KINDS = {**_OF_CPUMAPS, 3: "REDIRECT_FAILED", _EXCEPTION: "XDP_INVALID", 5: "DEVMAP_UNSENT"}
"""Kinds of `traffic/native/drops.c`, with names in the style of the kernel's."""
_EXCEPTIONS = {0: "XDP_ABORTED", 3: "XDP_TX"}
"""Names by what the program returned (``enum xdp_action``): what it gave up, and what could not be sent back."""
NO_PORT = "xdp"
"""A place in the stead of a function or a port: XDP dropped there, and no more is known."""
_ACTION = 0xFF
_PROGRAMS = {0: "", 1: "CPUMAP_", 2: "DEVMAP_"}
"""Prefixes by whose program it was: a port's, a cpumap's, a devmap's."""


def tracefs(host: Host) -> str:
    """The folder of the host's tracefs, which is mounted if it is not. Raises TestbedError if there is none."""
    for folder in _TRACEFS:
        if host.exists(f"{folder}/{_EVENT}"):
            return folder
    host.run("mount", "-t", "tracefs", "tracefs", _TRACEFS[0], check=False)
    if not host.exists(f"{_TRACEFS[0]}/{_EVENT}"):
        raise TestbedError(
            f"{host.name} does not report why it drops packets: it has no tracepoint skb:kfree_skb; "
            "a kernel with CONFIG_TRACEPOINTS does"
        )
    return _TRACEFS[0]


def reason_names(host: Host) -> dict[int, str]:
    """The kernel's reasons by their numbers. Raises TestbedError when it gives none."""
    names = parse_reasons(host.read(f"{tracefs(host)}/{_EVENT}/format"))
    if not names:
        raise TestbedError(f"{host.name} does not report why it drops packets: kernels do since Linux 5.17")
    return names


def parse_reasons(text: str) -> dict[int, str]:
    """A tracepoint's format: ``{ 2, "NOT_SPECIFIED" }`` and so on."""
    return {int(number): name for number, name in _NAME.findall(text)}


def drop_counter(reason: str, function: str, node: str = "") -> Counter:
    """The counter of packets that were dropped for a reason in a function of the kernel."""
    return Counter(Place("drops", node=node), f"{reason} {function}")


class DropReasons(Protocol[_Drop]):
    """Counts from the time it is made until it is closed. All methods raise TestbedError."""

    def read(self) -> Mapping[_Drop, int]:
        """Packets so far, by the way to be dropped; what has not come yet is left out."""

    def counter(self, drop: _Drop) -> Counter:
        """Counter of a way to be dropped. The first call may take half a second, for the names of functions."""

    def close(self) -> None: ...


class DropObserver(Generic[_Drop]):
    """Reads them before and after a trial."""

    def __init__(self, reasons: DropReasons[_Drop]) -> None:
        self._reasons = reasons
        self._before: Mapping[_Drop, int] = {}

    def begin(self) -> None:
        self._before = self._reasons.read()

    def end(self) -> Observation:
        before: dict[Counter, int] = {}
        after: dict[Counter, int] = {}
        for drop, packets in self._reasons.read().items():
            if packets == (was := self._before.get(drop, 0)):
                continue  # so that nobody is asked for its name
            counter = self._reasons.counter(drop)  # of several, where a function drops at several places
            before[counter] = before.get(counter, 0) + was
            after[counter] = after.get(counter, 0) + packets
        return Observation(before, after)


class FunctionNames(Protocol):
    """The functions of a kernel's code."""

    def function(self, address: int) -> str:
        """The function that an address is in; ``?`` if nobody knows."""


class KallsymsNames:
    """The functions of a kernel's code, by address."""

    def __init__(self, text: str) -> None:
        found = sorted((one.address, one.name) for one in typed_symbols(text.splitlines()) if one.kind in CODE_TYPES)
        self._addresses = [address for address, _ in found]
        self._names = [name for _, name in found]

    @classmethod
    def of(cls, host: Host) -> KallsymsNames:
        """The reasons of a host's kernel, as far as it shows them."""
        return cls(host.run("cat", "/proc/kallsyms", timeout=_KALLSYMS_TIMEOUT).stdout)

    def function(self, address: int) -> str:
        """The function that an address is in."""
        at = bisect.bisect_right(self._addresses, address) - 1
        return self._names[at] if at >= 0 and self._addresses[at] else "?"


@dataclass(frozen=True, slots=True)
class KernelDrop:
    """A way to be dropped, as `DropProgram` counts it."""

    reason: int
    """``enum skb_drop_reason``; beyond it the kinds of XDP."""
    place: int
    """Place of the drop: an address. For cpumaps it is their id and, in the lower half, a CPU; else for XDP the port's
    network namespace."""
    port: str = ""
    """The port of XDP; empty if the kernel does not report it."""

    @property
    def of_xdp(self) -> bool:
        """Whether XDP dropped it."""
        return self.reason >> _KIND_AT in _XDP_KINDS

    @property
    def cpumap(self) -> int:
        """The id of the cpumap that it was in; 0: in none."""
        return self.place >> _KIND_AT if self.reason >> _KIND_AT in _OF_CPUMAPS else 0

    @property
    def netns(self) -> int:
        """Inode number of the network namespace of the port at which XDP dropped; 0 if it is not known."""
        return self.place if self.of_xdp and self.reason >> _KIND_AT not in _OF_CPUMAPS else 0

    @property
    def xdp_name(self) -> str:
        """Name of the way to be dropped by XDP."""
        kind, lower = self.reason >> _KIND_AT, self.reason & (1 << _KIND_AT) - 1
        name = _XDP_KINDS[kind]
        if kind == _EXCEPTION:
            name = _EXCEPTIONS.get(lower & _ACTION, name)
        return _PROGRAMS.get(lower >> 8, "") + name


class DropProgram:
    """BPF programs that count what a host's kernel drops, from `__init__` to `close`; they end with this run.

    Packets that XDP drops without a reason count too: in full queues of cpumaps, by their programs, by failed
    redirects, by ports that do not send what was redirected to them, and by exceptions: packets that a program gave up,
    could not send back, or gave no valid action for. Kernels with BTF report the port.

    Args:
        xdp: whether these are all that is counted.
        names: asks the host for the names of its functions, once there is a drop to be named; by default as
            `KallsymsNames.of` does.

    Raises:
        TestbedError: the kernel takes no such program, or gives no reasons.
    """

    def __init__(self, host: Host, names: Callable[[], FunctionNames] | None = None, *, xdp: bool = False) -> None:
        self._host = host
        self._arguments = ("xdp",) if xdp else ()
        self._reasons = {} if xdp else reason_names(host)
        self._ask_names = names or (lambda: KallsymsNames.of(host))
        self._names: FunctionNames | None = None
        self._program = self._started()

    def read(self) -> dict[KernelDrop, int]:
        try:
            answer = self._program.ask_at_once("read")
        except TestbedError:
            # It ends with the connection that it was started over: what it had counted is lost, and no more.
            with contextlib.suppress(TestbedError):
                self._program.close()
            self._program = self._started()
            answer = self._program.ask_at_once("read")
        return {KernelDrop(reason, place, *port): packets for reason, place, packets, *port in answer["drops"]}

    def counter(self, drop: KernelDrop, node: str = "") -> Counter:
        """A counter as `DropReasons` has it; for what XDP dropped at a port, the port's name stands for the
        function's.

        Args:
            node: whose port it is.
        """
        if drop.of_xdp:
            return drop_counter(drop.xdp_name, drop.port or NO_PORT, node)
        if self._names is None:
            self._names = self._ask_names()
        reason = self._reasons.get(drop.reason, f"reason {drop.reason}")
        return drop_counter(reason, self._names.function(drop.place))

    def close(self) -> None:
        """Count no longer. Calling it twice is harmless. Raises TestbedError when the host cannot be asked."""
        self._program.close()

    def _started(self) -> PipedProgram:
        what = "the counts of dropped packets"
        return PipedProgram(self._host, native.build().drops, *self._arguments, what=what)


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

    def counter(self, drop: Counter) -> Counter:
        return drop

    def close(self) -> None:
        """Stop the kernel's counting. Raises TestbedError when it goes on."""
        self._host.run("rmdir", self._instance)


def parse_histogram(text: str, names: Mapping[int, str]) -> dict[Counter, int]:
    """A histogram by reason and location: ``{ reason: 2, location: [ffff…] ip6_forward } hitcount: 12``."""
    return {
        drop_counter(names.get(int(reason), f"reason {reason}"), function.partition("+")[0]): int(count)
        for reason, function, count in _ENTRY.findall(text)
    }

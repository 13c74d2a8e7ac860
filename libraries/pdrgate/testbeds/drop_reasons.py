"""Who counts why the SUT's kernel drops packets: a BPF program of ours on this machine, elsewhere the kernel itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pdrgate.bpf.kernel_drops import KernelDrops
from pdrgate.errors import TestbedError
from pdrgate.hosts.host import Host
from pdrgate.observers.drop_reasons import DropHistogram, DropObserver, DropReasons, Symbols, drop_counter, reason_names
from pdrgate.observers.reading import Counter


class DropWatch:
    """A testbed's drop reasons: counted from the first time that a trial is watched, for that takes half a second."""

    def __init__(self, make: Callable[[], DropReasons]) -> None:
        self._make: Callable[[], DropReasons] | None = make
        self._reasons: DropReasons | None = None
        self.missing = ""
        """Why there are none, in a sentence; empty while there may be."""

    def observers(self) -> tuple[DropObserver, ...]:
        """What watches a trial; nothing where the SUT does not tell."""
        if self._make is not None:
            make, self._make = self._make, None
            try:
                self._reasons = make()
            except TestbedError as error:
                self.missing = f"{error}; lost packets are told by the other counters alone"
        return (DropObserver(self._reasons),) if self._reasons is not None else ()

    def close(self) -> None:
        """Count no longer; may be called twice. Raises TestbedError when the SUT goes on."""
        reasons, self._reasons = self._reasons, None
        if reasons is not None:
            reasons.close()


class NamespaceDrops:
    """What this machine's kernel drops of some network namespaces' packets.

    Args:
        machine: this machine.
        nodes: names of the namespaces by inode number; what is of others is not counted.

    Raises:
        TestbedError: this kernel gives no reasons, or takes no program that counts them.
    """

    def __init__(self, machine: Host, nodes: Mapping[int, str]) -> None:
        self._machine = machine
        self._nodes = nodes
        self._names = reason_names(machine)
        self._drops = KernelDrops(machine)
        self._symbols: Symbols | None = None

    def read(self) -> dict[Counter, int]:
        found: dict[Counter, int] = {}
        for drop, packets in self._drops.counts().items():
            if drop.netns not in self._nodes:
                continue
            if self._symbols is None:  # half a second, which a testbed that drops nothing need not spend
                self._symbols = Symbols.of(self._machine)
            counter = drop_counter(
                self._names.get(drop.reason, f"reason {drop.reason}"),
                self._symbols.function(drop.location),
                self._nodes[drop.netns],
            )
            found[counter] = found.get(counter, 0) + packets
        return found

    def close(self) -> None:
        self._drops.close()


def drop_reasons_here(machine: Host, nodes: Mapping[int, str]) -> DropReasons:
    """Of namespaces of this machine, by BPF; where that is not to be had, of the whole machine.

    Raises:
        TestbedError: neither is; the message says what is missing.
    """
    try:
        return NamespaceDrops(machine, nodes)
    except TestbedError as first:
        try:
            return DropHistogram(machine)
        except TestbedError as second:
            raise TestbedError(f"{second}; and by BPF: {first}") from second


def inode(namespace: str) -> int:
    """The number that the kernel knows a network namespace of this machine by; an empty name is our own."""
    return Path(f"/run/netns/{namespace}" if namespace else "/proc/self/ns/net").stat().st_ino

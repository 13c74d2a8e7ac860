"""The counting of why the SUT's kernel drops packets: a BPF program of ours does it, else the kernel itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pdrgate.bpf.kernel_drops import Drop, KernelDrops
from pdrgate.hosts.host import Host
from pdrgate.observers.drop_reasons import (
    DropHistogram,
    DropObserver,
    DropProgram,
    DropReasons,
    FunctionNames,
    KallsymsNames,
    KernelDrop,
    drop_counter,
    reason_names,
)
from pdrgate.observers.reading import Counter
from pdrgate.values.errors import TestbedError

AnyDropReasons = DropReasons[Any]


class DropWatch:
    """A testbed's drop reasons: counted from the first time that a trial is watched, for that takes half a second."""

    def __init__(self, make: Callable[[], AnyDropReasons]) -> None:
        self._make: Callable[[], AnyDropReasons] | None = make
        self._reasons: AnyDropReasons | None = None
        self.missing = ""
        """Why there are none, in a sentence; empty while there may be."""

    def observers(self) -> tuple[DropObserver[Any], ...]:
        """Observers of a trial's drops; empty if the SUT does not report them."""
        if self._make is not None:
            make, self._make = self._make, None
            try:
                self._reasons = make()
            except TestbedError as error:
                self.missing = f"{error}; lost packets are counted by the other counters alone"
        return (DropObserver(self._reasons),) if self._reasons is not None else ()

    def close(self) -> None:
        """Count no longer. Calling it twice is harmless. Raises TestbedError when the SUT goes on."""
        reasons, self._reasons = self._reasons, None
        if reasons is not None:
            reasons.close()


class NamespaceDrops:
    """Drops by this machine's kernel of some network namespaces' packets.

    Args:
        machine: this machine.
        nodes: names of the namespaces by inode number; packets of others are not counted.
        cpumaps: returns the ids of the SUT's cpumaps;
        None: all are the SUT's.
        generator: inode number of the namespace in which an embedded generator receives; 0 if there is none.

    Raises:
        TestbedError: this kernel gives no reasons, or takes no program that counts them.
    """

    def __init__(
        self,
        machine: Host,
        nodes: Mapping[int, str],
        cpumaps: Callable[[], Collection[int]] | None = None,
        generator: int = 0,
    ) -> None:
        self._machine = machine
        self._nodes = nodes
        self._cpumaps = cpumaps
        self._names = reason_names(machine)
        # A veth has no reason for what an XDP program drops, as the generator's does with all that it has counted.
        unspecified = next((number for number, name in self._names.items() if name == "NOT_SPECIFIED"), 0)
        self._drops = KernelDrops(machine, (generator, unspecified))
        self._symbols: KallsymsNames | None = None
        try:
            self._xdp = DropProgram(machine, xdp=True)
        except TestbedError:
            self._drops.close()
            raise

    def read(self) -> dict[Drop | KernelDrop, int]:
        ours = None if self._cpumaps is None else self._cpumaps()
        counted: Iterator[tuple[Drop | KernelDrop, int]] = chain(self._drops.counts().items(), self._xdp.read().items())

        def is_ours(drop: Drop | KernelDrop) -> bool:
            if drop.netns or isinstance(drop, Drop):
                return drop.netns in self._nodes
            return ours is None or not drop.cpumap or drop.cpumap in ours

        return {drop: packets for drop, packets in counted if is_ours(drop)}

    def counter(self, drop: Drop | KernelDrop) -> Counter:
        if isinstance(drop, KernelDrop):
            return self._xdp.counter(drop, self._nodes.get(drop.netns, ""))
        if self._symbols is None:
            self._symbols = KallsymsNames.of(self._machine)
        function = self._symbols.function(drop.location)
        return drop_counter(self._names.get(drop.reason, f"reason {drop.reason}"), function, self._nodes[drop.netns])

    def close(self) -> None:
        self._drops.close()
        self._xdp.close()


def drop_reasons_here(
    machine: Host,
    nodes: Mapping[int, str],
    cpumaps: Callable[[], Collection[int]] | None = None,
    generator: int = 0,
) -> AnyDropReasons:
    """Counts of why namespaces of this machine drop packets, see `NamespaceDrops`; else of why the whole machine does.

    Raises:
        TestbedError: neither can be counted; the message says what is missing.
    """
    try:
        return NamespaceDrops(machine, nodes, cpumaps, generator)
    except TestbedError as first:
        try:
            return drop_reasons_of(machine)
        except TestbedError as second:
            raise TestbedError(f"{second}; and by namespace: {first}") from second


def drop_reasons_of(machine: Host, names: Callable[[], FunctionNames] | None = None) -> AnyDropReasons:
    """Count why a whole machine drops packets, a guest or one that is reached by SSH.

    A program of ours counts; where the kernel takes none, it does so itself.

    Args:
        names: see `DropProgram`.

    Raises:
        TestbedError: neither can count; the message says what is missing.
    """
    try:
        return DropProgram(machine, names)
    except TestbedError as first:
        try:
            return DropHistogram(machine)
        except TestbedError as second:
            if str(first) == str(second):
                raise
            raise TestbedError(f"{second}; and by BPF: {first}") from second


def inode(namespace: str) -> int:
    """The number that the kernel knows a network namespace of this machine by; an empty name is our own."""
    return Path(f"/run/netns/{namespace}" if namespace else "/proc/self/ns/net").stat().st_ino

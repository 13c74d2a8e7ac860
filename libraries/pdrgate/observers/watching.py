"""Observers: what watches a trial from its begin to its end, each in its own way, also while traffic flows.

A cloud disturbs a trial beyond an instance's allowance: its hypervisor drops packets then, or holds them back.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pdrgate.hosts.answers import understood
from pdrgate.observers.driver_statistics import of_the_cloud
from pdrgate.observers.gains import port_name
from pdrgate.observers.reading import Counter, Place, Reading, gained, unwrapped
from pdrgate.record.cause import Cause, CauseKind
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Callers, Functions, MemorySeen, Stacks

_SUT = "the SUT"


@dataclass(frozen=True, slots=True)
class Observation:
    """Results of one or several observers of a trial."""

    before: Reading = field(default_factory=dict)
    after: Reading = field(default_factory=dict)
    functions: Functions = field(default_factory=dict)
    """Instructions of the SUT's kernel meanwhile, by function."""
    stacks: Stacks = field(default_factory=dict)
    """Instructions of the SUT's kernel meanwhile, by call stack."""
    memory: MemorySeen | None = None
    """Memory that functions touched."""
    callers: Callers = field(default_factory=dict)
    """Callers of functions, as far as code shows them."""
    disturbed: tuple[Cause, ...] = ()
    """Causes for which the trial says nothing about the SUT; empty if it is sound."""
    counted: float = 0.0
    """Seconds for which functions were counted; 0 if they were not."""
    later: tuple[Callable[[], Observation], ...] = ()
    """Functions that return the rest, and take time: they are called when nothing is watched any more."""

    def __or__(self, other: Observation) -> Observation:
        return Observation(
            {**self.before, **other.before},
            {**self.after, **other.after},
            {**self.functions, **other.functions},
            {**self.stacks, **other.stacks},
            self.memory or other.memory,
            {**self.callers, **other.callers},
            (*self.disturbed, *other.disturbed),
            self.counted or other.counted,
            (*self.later, *other.later),
        )

    def whole(self) -> Observation:
        """The observation with all that was left for later. Raises TestbedError if the SUT does not answer."""
        found = replace(self, later=())
        for rest in self.later:
            found |= rest()
        return found


class Observer(Protocol):
    """Watches one trial after the other. Both methods raise TestbedError when the SUT cannot be watched."""

    def begin(self) -> None:
        """Called when the trial is about to begin; nothing flows yet."""

    def end(self) -> Observation:
        """Called when the trial has ended, also one that failed: leaves nothing running."""


class Counting(ABC):
    """Counting of a SUT's kernel, and of who called whom in it, as far as a testbed is able to."""

    @abstractmethod
    def counting(self) -> tuple[Observer, ...]:
        """Observers that count it in the trials of a packet's cost; empty if they cannot."""

    def tracing(self) -> tuple[Observer, ...]:
        """Observers that follow calls in a trial of its own, once `counting` was asked; empty if calls cannot be
        followed."""
        return ()

    def memory(self) -> tuple[Observer, ...]:
        """Observers of each access to memory in a trial of its own, once `counting` was asked; empty if there are
        none."""
        return ()

    def in_lockstep(self) -> Mapping[Phase, tuple[Observer, ...]]:
        """Observers that have the SUT's CPUs execute in turn in a trial, by its phase, once `memory` was asked; empty
        if nothing can."""
        return {}

    def programs(self) -> tuple[Observer, ...]:
        """Observers that count BPF programs alone, with all that they call; empty if they cannot be separated."""
        return ()

    @property
    @abstractmethod
    def uncounted(self) -> str:
        """Why nothing is counted, in words, once `counting` was asked; empty when something is."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether equal packets cost equal numbers of instructions, but for a few of a thousand.

        An emulator sees one CPU and nothing else, a processor all that it is interrupted by.
        """

    @abstractmethod
    def busy(self) -> contextlib.AbstractContextManager[object]:
        """Make a program use the SUT's CPU all the time, so that only the kernel's own work comes between.

        An idle kernel stops its tick, one that forwards at saturation does not. Raises TestbedError.
        """

    @property
    def names_code(self) -> bool:
        """Whether all that the SUT's kernel executes can be named, also between trials."""
        return False

    def begin_naming(self) -> None:  # noqa: B027 - see `names_code`
        """Begin anew to name what is executed. Raises TestbedError."""

    def named(self) -> frozenset[str]:
        """The functions of the kernel and its modules that ran since then. Raises TestbedError."""
        return frozenset()

    def values(self, names: Collection[str]) -> Mapping[str, bytes]:
        """The content of static variables, and of per-CPU variables of the first CPU, as far as they are found without
        a word of the SUT."""
        return {}


class CounterObserver:
    """Reads counters before and after a trial, and disturbs nobody meanwhile.

    What a cloud withheld by its allowance is the cloud's limit and not the SUT's, so that the trial is disturbed.
    """

    def __init__(self, read: Callable[[], Reading]) -> None:
        self._read = read
        self._before: Reading = {}

    def begin(self) -> None:
        self._before = self._read()

    def end(self) -> Observation:
        after = unwrapped(self._before, self._read())
        return Observation(self._before, after, disturbed=withheld(gained(self._before, after)))


class Watch:
    """A trial that is being watched, or was."""

    def __init__(self) -> None:
        self.seen = Observation()
        """Observations so far."""

    @property
    def observation(self) -> Observation:
        """Observation of a trial that has ended. Raises TestbedError when the SUT cannot be asked."""
        with understood(_SUT):
            self.seen = self.seen.whole()
        return self.seen


@contextlib.contextmanager
def watching(observers: Iterable[Observer]) -> Iterator[Watch]:
    """Watch what is done within, by all observers: they begin in their order and end in the reverse.

    Every observer that was begun is ended, whatever happens. Raises TestbedError when one cannot watch; what went wrong
    within comes first.
    """
    watch = Watch()

    def end(observer: Observer) -> None:
        with understood(_SUT):
            watch.seen |= observer.end()

    with contextlib.ExitStack() as stack:
        for observer in observers:
            with understood(_SUT):
                observer.begin()
            stack.callback(end, observer)
        try:
            yield watch
        except BaseException as error:
            try:
                stack.close()
            except Exception as second:
                error.add_note(str(second))
            raise


_PART = 1e-3
"""Share of a port's packets below which a drop by the cloud says nothing about a kernel."""


def withheld(gained: Reading) -> tuple[Cause, ...]:
    """A cause for each port of which a trial had more than the cloud allows.

    Args:
        gained: what counters gained in the trial.
    """
    return tuple(
        cause
        for place in sorted({counter.place for counter in gained if counter.place.kind == "driver"})
        if (cause := _of_port(place, gained)) is not None
    )


def _of_port(driver: Place, gained: Reading) -> Cause | None:
    packets_by_counter = {
        counter.name: packets
        for counter, packets in gained.items()
        if counter.place == driver and of_the_cloud(counter.name)
    }
    if not packets_by_counter:
        return None
    name, packets = max(packets_by_counter.items(), key=lambda one: one[1])
    port = Place("interface", driver.name, driver.node)
    passed = max(gained.get(Counter(port, way), 0) for way in ("rx_packets", "tx_packets"))
    part = packets / (packets + passed)
    if part < _PART:
        return None
    words = f"the cloud dropped or held back {packets} packets beyond its allowance at {port_name(port)} ({name})"
    return Cause(CauseKind.ALLOWANCE, part, words)

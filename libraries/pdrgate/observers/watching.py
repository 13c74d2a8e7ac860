"""Observers: what watches a trial from its begin to its end, each in its own way, also while traffic flows.

A cloud disturbs a trial beyond an instance's allowance: its hypervisor drops packets then, or holds them back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from pdrgate.hosts.answers import understood
from pdrgate.observers.driver_statistics import of_the_cloud
from pdrgate.observers.gains import port_name
from pdrgate.observers.reading import Counter, Place, Reading, gained, unwrapped
from pdrgate.record.cause import Cause, CauseKind
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

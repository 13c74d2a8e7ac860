"""Observers: what watches a trial from its begin to its end, each in its own way, also while traffic flows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from pdrgate.hosts.answers import understood
from pdrgate.observers.allowance import withheld
from pdrgate.observers.reading import Reading, gained, unwrapped
from pdrgate.record.cause import Cause
from pdrgate.record.stretch import Callers, Functions, MemorySeen, Stacks

_SUT = "the SUT"


@dataclass(frozen=True, slots=True)
class Observation:
    """What one or several observers saw of a trial."""

    before: Reading = field(default_factory=dict)
    after: Reading = field(default_factory=dict)
    functions: Functions = field(default_factory=dict)
    """What the SUT's kernel executed meanwhile."""
    stacks: Stacks = field(default_factory=dict)
    """The same by who called whom."""
    memory: MemorySeen | None = None
    """What functions touched."""
    callers: Callers = field(default_factory=dict)
    """Who calls functions, as far as code tells."""
    disturbed: tuple[Cause, ...] = ()
    """Why the trial tells nothing of the SUT; empty when it does."""
    counted: float = 0.0
    """Seconds for which functions were counted; 0 where they were not."""
    later: tuple[Callable[[], Observation], ...] = ()
    """What tells the rest, and takes time: it is asked when nothing is watched any more."""

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
        """The same with all that was left for later. Raises TestbedError where the SUT does not answer."""
        found = replace(self, later=())
        for tell in self.later:
            found |= tell()
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
        """What observers have told so far."""

    @property
    def observation(self) -> Observation:
        """What was seen of a trial that has ended. Raises TestbedError when the SUT cannot be asked."""
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

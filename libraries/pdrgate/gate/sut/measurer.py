"""Measures stretches of traffic for a scenario: each is watched, and on disk before anything else happens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from pdrgate.gate.run.resumed_run import EarlierStretches
from pdrgate.observers.reading import nested, without_zeros
from pdrgate.observers.watching import Observation, Observer, Watch, watching
from pdrgate.record.stretch import AnyStretch, Belonging, Seen, Stretch
from pdrgate.values.errors import PdrGateError

_Kept = TypeVar("_Kept", bound=Stretch, contravariant=True)


class StretchFile(Protocol[_Kept]):
    """A file that keeps trials, or one that keeps transfers."""

    def append(self, stretch: _Kept, /) -> None:
        """Write it behind the others. Raises StorageError when the disk does not take it."""


class Measurer(Generic[AnyStretch]):
    """A scenario's way from what is asked for to a trial, or a transfer, that is on disk.

    Args:
        observers: what watches each of them.
        counting: what does besides, within these, where functions are to be counted.
        earlier: those of the run that is resumed. One that belongs to the same is taken as long as what is asked for
            next is what was measured next; no traffic is sent then.
        told: gets each, and whether it is an earlier one.
        check: called when a fresh one is on disk, or none came of it; raises when the SUT has died of it.
    """

    def __init__(
        self,
        observers: Sequence[Observer],
        file: StretchFile[AnyStretch],
        belonging: Belonging,
        *,
        counting: Sequence[Observer],
        earlier: EarlierStretches[AnyStretch] | None,
        told: Callable[[AnyStretch, bool], None],
        check: Callable[[], None],
    ) -> None:
        self._observers = tuple(observers)
        self._file = file
        self._belonging = belonging
        self._counting = tuple(counting)
        self._earlier = EarlierStretches[AnyStretch]() if earlier is None else earlier
        self._told = told
        self._check = check
        self.made: list[AnyStretch] = []
        """All of the scenario so far, earlier ones included."""

    def _taken(self, earlier: AnyStretch | None, fresh: Callable[[], AnyStretch]) -> AnyStretch:
        """The earlier one where there is one, else a fresh one."""
        made = earlier or fresh()
        self.made.append(made)
        self._told(made, earlier is not None)
        return made

    @contextlib.contextmanager
    def _blamed(self) -> Iterator[None]:
        """What fails within may have failed because the SUT has died, which takes its ports along: that says more."""
        try:
            yield
        except PdrGateError:
            self._check()
            raise

    def _watching(self, more: Sequence[Observer]) -> AbstractContextManager[Watch]:
        return watching((*self._observers, *more))

    def _keep(self, made: AnyStretch) -> AnyStretch:
        self._file.append(made)
        self._check()
        return made


def seen_by(observed: Observation) -> Seen:
    """What those who watched a fresh trial or transfer have seen of it."""
    before, after = without_zeros(observed.before, observed.after)
    return Seen(
        counters_before=nested(before),
        counters_after=nested(after),
        functions=observed.functions,
        disturbed=observed.disturbed,
    )

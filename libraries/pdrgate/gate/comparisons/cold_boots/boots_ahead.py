"""Boots that come up, and are set up, while others are measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from pdrgate.gate.comparisons.pairs.comparison_task import SIDES
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.results.model import Side
from pdrgate.values.errors import TestbedError

_MOST_AHEAD = 2
"""Pairs that are up, or on their way, beside the one that is measured: guests take memory."""


class BootsAhead:
    """The boots that are not measured yet, by their build and pair.

    Args:
        begin: begins a boot of a build for a pair; raises TestbedError.
    """

    def __init__(self, begin: Callable[[Side, int], PreparedSut]) -> None:
        self._begin = begin
        self._ahead: dict[tuple[Side, int], tuple[PreparedSut, Future[None]]] = {}
        """Each with whether it is set up already."""
        self._to_come: list[tuple[Sequence[Side], int]] = []
        """Boots that may be begun while others are measured: the sides, and the number of their pair."""
        self._meanwhile = ThreadPoolExecutor(len(SIDES), "boots-ahead")

    def of(self, side: Side, number: int) -> PreparedSut | None:
        """The boot of a build for a pair, where it was begun."""
        return self._ahead[side, number][0] if (side, number) in self._ahead else None

    def plan(self, group: Sequence[Side], number: int) -> None:
        """Let the boots of the pairs after that one be begun by `go_on`."""
        later = range(number + 1, number + 1 + _MOST_AHEAD)
        self._to_come = [(group, one) for one in later if (group[0], one) not in self._ahead]

    def go_on(self, wanted: Callable[[int], bool]) -> None:
        """Let the next boots come up and be set up while others are measured: that does not change a constant speed.

        One pair after the other: when a pair ends its next one is set up where the machine has time for it.
        """
        if not self._to_come or not all(future.done() for _, future in self._ahead.values()):
            return
        if not wanted(self._to_come[0][1]):
            self._to_come.clear()
            return
        group, number = self._to_come.pop(0)
        for side in group:
            try:
                sut = self._begin(side, number)
            except TestbedError:
                self._to_come.clear()
                return  # it is tried again, and an error is raised, when its turn comes
            self.set_up(sut)

    def set_up(self, sut: PreparedSut) -> None:
        """Set a boot up beside whatever else is done."""
        sut.testbed.stand_back()
        self._ahead[_which(sut)] = sut, self._meanwhile.submit(sut.set_up)

    def take(self, sut: PreparedSut) -> None:
        """Wait until a boot that was begun ahead is set up; it is none of these any more. Raises what that raised."""
        if (ahead := self._ahead.get(_which(sut))) is None:
            return
        ahead[1].result()
        del self._ahead[_which(sut)]
        sut.testbed.take_place()

    def give_up(self, suts: Sequence[PreparedSut]) -> Callable[[], None]:
        """Begin no further boots, and forget these.

        Returns:
            What abandons them when nothing sets them up any more: not for long once their testbeds are closed.
        """
        self._to_come.clear()
        given_up = [ahead for ahead in self._ahead.values() if ahead[0] in suts]
        self._ahead = {which: ahead for which, ahead in self._ahead.items() if ahead not in given_up}

        def abandon() -> None:
            for sut, future in given_up:
                wait((future,))
                sut.abandon()

        return abandon

    def close(self) -> None:
        """Wait until nothing is set up any more."""
        self._meanwhile.shutdown(cancel_futures=True)
        for sut, _ in self._ahead.values():
            sut.abandon()


def _which(sut: PreparedSut) -> tuple[Side, int]:
    assert sut.identity.side is not None
    return sut.identity.side, sut.identity.pair

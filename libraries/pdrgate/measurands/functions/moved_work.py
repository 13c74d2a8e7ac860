"""Work that two builds do in other functions: it was moved, inlined or renamed, and is no change of anything.

What one function lost and another gained would be shown as a loss and as a gain, and the gain be blamed. Taken for one
are functions of which one lost as much as others gained, and that are known to do the same: they were renamed, clear
pages, call each other or have a caller in common, or the one lost the lines that the others gained. They are compared
by their sums, so that the row that they have shows what remains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from pdrgate.measurands.functions.renamed import Neighbours, neighbours_of, renamed
from pdrgate.observers.function_names import OTHERS, is_thunk
from pdrgate.results.model import CostResult, Findings, MemoryFunction, MemoryResult

_Found = TypeVar("_Found")

_LEAST = 1.0
"""Instructions for a packet that a function must have lost or gained, for its work to have moved."""
_AS_MUCH = 0.7
"""Least ratio of what was gained to what was lost, or the reverse. It holds of instructions and of lines."""
_LEAST_LINES = 0.5
"""Lines for a packet that a function must have lost or gained, to be known by them."""
_MANY = 3
"""Functions that one function's work can have moved to, or come from."""
_OF_ALL = frozenset({"stacks"})
"""Lines that functions have in common whatever they do."""


@dataclass(frozen=True, slots=True)
class MovedWork:
    """A function with others that two builds do the same work in."""

    name: str
    """The one that it is shown by: what the candidate calls it, or does most of it in."""
    others: tuple[str, ...]
    renamed: bool = False
    """Whether it is one function by the other name."""

    @property
    def members(self) -> tuple[str, ...]:
        """All of them, the one that it is shown by first."""
        return (self.name, *self.others)


def moved_work(
    before: CostResult | None,
    after: CostResult | None,
    memory: tuple[MemoryResult | None, MemoryResult | None] = (None, None),
) -> tuple[MovedWork, ...]:
    """What moved from a baseline to a candidate, in no function twice; nothing where one of them was not counted.

    Args:
        memory: what packets do with memory in both builds, as far as that was seen.
    """
    if before is None or after is None:
        return ()
    names = renamed(before, after)
    found = [MovedWork(later, (earlier,), renamed=True) for earlier, later in names.items()]
    taken = {*names, *names.values()}
    costs = _Costs.of(before, after)
    fills = _fill_pages(memory) - taken
    if len(fills) > 1:
        found.append(costs.work_of(fills))
        taken |= fills
    found += _moved(costs.without(taken), _Relations.of(before, after, memory).related, costs)
    return tuple(found)


def moved_between(baseline: Findings, candidate: Findings) -> tuple[MovedWork, ...]:
    """The work of packets that moved between functions, by what was found of two builds.

    Each measurand of memory asks for it, and it takes 0.1 s where many functions changed: the last answers are kept.
    """
    return _of_the_same(
        _Itself(baseline.cost), _Itself(candidate.cost), _Itself(baseline.memory), _Itself(candidate.memory)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Itself(Generic[_Found]):
    """A value that equals itself and no other, so that nobody looks through all of it."""

    value: _Found

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value


@lru_cache(maxsize=4)
def _of_the_same(
    before: _Itself[CostResult | None], after: _Itself[CostResult | None],
    seen: _Itself[MemoryResult | None], seen_after: _Itself[MemoryResult | None],
) -> tuple[MovedWork, ...]:  # fmt: skip
    return moved_work(before.value, after.value, (seen.value, seen_after.value))


def shown_by(work: Iterable[MovedWork]) -> dict[str, str]:
    """Name under which moved work is shown, by each function that does it in either build."""
    return {member: one.name for one in work for member in one.members}


def _fill_pages(memory: Iterable[MemoryResult | None]) -> frozenset[str]:
    """What clears pages in either build: how many are cleared, a boot's free pages decide."""
    seen = (one for result in memory if result is not None for one in result.functions)
    return frozenset(one.name for one in seen if one.fills_pages)


@dataclass(frozen=True, slots=True)
class _Costs:
    """Instructions for a packet by function, in both builds."""

    before: Mapping[str, float]
    after: Mapping[str, float]

    @classmethod
    def of(cls, before: CostResult, after: CostResult) -> _Costs:
        return cls(*({one.name: one.instructions for one in cost.functions} for cost in (before, after)))

    def without(self, taken: Iterable[str]) -> dict[str, float]:
        """What functions gained, or lost; of those whose work can have moved."""
        left = (self.before.keys() | self.after.keys()) - set(taken) - {OTHERS}
        found = {name: self.after.get(name, 0.0) - self.before.get(name, 0.0) for name in left if not is_thunk(name)}
        return {name: by for name, by in found.items() if abs(by) >= _LEAST}

    def work_of(self, members: Iterable[str]) -> MovedWork:
        """Functions as one: shown by what the candidate does most of it in, the others by their size."""
        first, *others = sorted(members, key=lambda name: (-self.after.get(name, 0.0), name))
        others.sort(key=lambda name: (-max(self.before.get(name, 0.0), self.after.get(name, 0.0)), name))
        return MovedWork(first, tuple(others))


def _moved(differences: Mapping[str, float], related: Callable[[str, str], bool], costs: _Costs) -> Iterator[MovedWork]:
    """The functions with those that their work moved to or came from, what changed most first."""
    left = dict(differences)
    for name in sorted(differences, key=lambda one: (-abs(differences[one]), one)):
        if name not in left:
            continue
        partners = [
            one
            for one, by in left.items()
            if (by > 0) != (left[name] > 0) and (related(name, one) if left[name] < 0 else related(one, name))
        ]
        if chosen := _as_much(abs(left[name]), {one: abs(left[one]) for one in partners}):
            members = {name, *chosen}
            yield costs.work_of(members)
            left = {one: by for one, by in left.items() if one not in members}


def _as_much(amount: float, partners: Mapping[str, float]) -> tuple[str, ...]:
    """Functions among some that together have as much as ``amount``: the single one that has, or the largest few."""
    alone = max(partners, key=lambda one: (_ratio(amount, partners[one]), one), default="")
    if alone and _ratio(amount, partners[alone]) >= _AS_MUCH:
        return (alone,)
    few = sorted((one for one in partners if partners[one] <= amount), key=lambda one: (-partners[one], one))[:_MANY]
    return tuple(few) if _ratio(amount, sum(partners[one] for one in few)) >= _AS_MUCH else ()


def _ratio(one: float, other: float) -> float:
    return min(one, other) / max(one, other, _LEAST_LINES)


@dataclass(frozen=True, slots=True)
class _Relations:
    """What is known of two builds' functions by which those that do the same are found."""

    before: Mapping[str, Neighbours]
    after: Mapping[str, Neighbours]
    lost: Mapping[str, Mapping[str, float]]
    """Lines by kind that functions touch only in the baseline."""
    gained: Mapping[str, Mapping[str, float]]
    """Lines by kind that functions touch only in the candidate."""

    @classmethod
    def of(
        cls, before: CostResult, after: CostResult, memory: tuple[MemoryResult | None, MemoryResult | None]
    ) -> _Relations:
        """The relations by chains of callers, and by lines, as far as these were seen."""
        every = {one.name for cost in (before, after) for one in cost.functions}
        old, new = ({one.name: one for one in seen.functions} if seen is not None else {} for seen in memory)
        names = old.keys() | new.keys()
        return cls(
            neighbours_of(before, every), neighbours_of(after, every),
            {name: _more_of(new.get(name), old.get(name)) for name in names},
            {name: _more_of(old.get(name), new.get(name)) for name in names},
        )  # fmt: skip

    def related(self, loser: str, gainer: str) -> bool:
        """Whether what a function lost can be what another gained."""
        return self._by_calls(loser, gainer) or self._by_lines(loser, gainer)

    def _by_calls(self, loser: str, gainer: str) -> bool:
        for places in (self.before, self.after):
            one, other = places.get(loser), places.get(gainer)
            if (one and gainer in one.callers | one.callees) or (other and loser in other.callers | other.callees):
                return True
        earlier, later = self.before.get(loser), self.after.get(gainer)
        return earlier is not None and later is not None and bool(earlier.callers & later.callers)

    def _by_lines(self, loser: str, gainer: str) -> bool:
        lost, gained = self.lost.get(loser, {}), self.gained.get(gainer, {})
        both = sum(min(lost[kind], gained[kind]) for kind in lost.keys() & gained.keys())
        most = max(sum(lost.values()), sum(gained.values()))
        return most >= _LEAST_LINES and both >= _AS_MUCH * most


def _more_of(less: MemoryFunction | None, more: MemoryFunction | None) -> dict[str, float]:
    """Lines that a function has more of in one build, by kind; without those of stacks."""
    had: Mapping[str, float] = less.kinds if less is not None else {}
    has: Mapping[str, float] = more.kinds if more is not None else {}
    return {kind: by for kind in has.keys() - _OF_ALL if (by := has[kind] - had.get(kind, 0.0)) > 0}

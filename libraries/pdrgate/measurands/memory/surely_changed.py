"""What changed of memory between two builds: function by function, judged by what boots of one build differ by.

No statistics compare it: most functions' lines repeat from boot to boot to a few hundredths. A function has surely
changed where all trials of one build lie beyond all of the other's, by several times what either's lie apart. What
surely changed is summed, so that code that moved from one function to another is no change. Layout alone moves what a
small cache misses: the first level's misses are kept with the trials, and not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, NamedTuple

from pdrgate.measurands.functions.more_by_function import share_of
from pdrgate.measurands.functions.moved_work import MovedWork, shown_by
from pdrgate.measurands.measurand import Measurand
from pdrgate.results.model import ChangeResult, MemoryFunction, MemoryResult, PartChange
from pdrgate.results.verdict import Verdict

_RANGES, _RANGES_OF_FEW = 3.0, 10.0
"""Times what trials of one build lie apart that a function must have changed by; more times where these are fewer than
`_SEVERAL`, for two lie close together by chance."""
_SEVERAL = 4
SURE = 0.15
"""The least that a function must have changed by, for a packet."""
_NEEDED = 2
"""Trials of each build, for anything to be sure."""


class ByFunction(Measurand):
    """A measurand that each function has a part of."""

    least: ClassVar[float]
    """What a packet may have more of, whatever share of all that is."""
    of_lines: ClassVar[bool] = False
    """Whether it counts the lines whose kinds are known."""


def surely_changed(
    kind: type[ByFunction], before: MemoryResult | None, after: MemoryResult | None, work: Sequence[MovedWork] = ()
) -> ChangeResult | None:
    """What surely changed of a measurand; a growth beyond the tolerance is a REGRESSION. What fell makes it a PASS.

    Nothing is compared that was seen on SUTs of other numbers of CPUs.

    Args:
        work: the functions that are one, for work moved between them.
    """
    if before is None or after is None or min(before.trials, after.trials) < _NEEDED or before.cpus != after.cpus:
        return None
    if not all(kind.about.name in one.values for one in (before, after)):
        return None
    change = _change(kind, _Pair(before, after, _functions(before, after, work)))
    return change if change.parts else None


@dataclass(frozen=True, slots=True)
class _InBoth:
    """A function in both builds, with those that its work moved between; of one that is not there all is 0."""

    work: MovedWork
    before: MemoryFunction
    after: MemoryFunction

    @property
    def fills_pages(self) -> bool:
        """Whether it clears pages in either build, which nobody judges."""
        return self.before.fills_pages or self.after.fills_pages


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two builds, by all functions of either."""

    before: MemoryResult
    after: MemoryResult
    functions: Sequence[_InBoth]

    def judged(self, measurand: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """What packets have of a measurand in both builds, by trial, without what fills pages."""
        fill = [one for one in self.functions if one.fills_pages]
        return (
            _less(self.before.values[measurand], [one.before.values[measurand] for one in fill]),
            _less(self.after.values[measurand], [one.after.values[measurand] for one in fill]),
        )


def _less(whole: Sequence[float], parts: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(one - sum(part[trial] for part in parts) for trial, one in enumerate(whole))


def _functions(before: MemoryResult, after: MemoryResult, work: Sequence[MovedWork]) -> list[_InBoth]:
    old, new = ({one.name: one for one in build.functions} for build in (before, after))
    alone = [MovedWork(name, ()) for name in sorted((old.keys() | new.keys()) - shown_by(work).keys())]
    return [_InBoth(one, _together(one, old, before), _together(one, new, after)) for one in (*alone, *work)]


def _together(work: MovedWork, functions: Mapping[str, MemoryFunction], build: MemoryResult) -> MemoryFunction:
    """What functions do with memory together."""
    found = [functions[name] for name in work.members if name in functions]
    if len(found) == 1:
        return found[0]
    none = (0.0,) * build.trials
    return MemoryFunction(
        name=work.name,
        values={
            name: tuple(map(sum, zip(none, *(one.values[name] for one in found), strict=True)))
            for name in build.values
        },
        kinds=_sum(one.kinds for one in found),
        missed={name: _sum(one.missed.get(name, {}) for one in found) for name in build.values},
        fields={line: text for one in found for line, text in one.fields.items()},
        writer=next((one.writer for one in found if one.writer), ""),
        fills_pages=any(one.fills_pages for one in found),
    )  # fmt: skip


def _sum(each: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in each:
        for kind, by in one.items():
            found[kind] = found.get(kind, 0.0) + by
    return found


def _change(kind: type[ByFunction], pair: _Pair) -> ChangeResult:
    name = kind.about.name
    base, candidate = (median(one.values[name]) for one in (pair.before, pair.after))
    changed = [_of_function(kind, pair, one) for one in pair.functions]
    found = sorted(filter(None, changed), key=lambda one: (-abs(one.part.change), one.part.function))
    by = sum(one.part.change for one in found)
    whole = share_of(base)
    allowed = max(kind.about.tolerance.default, kind.least / whole)
    # Where the whole does not follow, it was somewhere else before, as far as the whole's scatter lets that be seen.
    earlier, now = pair.judged(name)
    room = max(kind.least / 2, *(max(one) - min(one) for one in (earlier, now)))
    more = sum(one.part.change for one in found if one.is_judged)
    # Chance decides how many pages are cleared, but not that nobody clears one: the rest may be more in place of that.
    still = sum(sum(one.after.values[name]) for one in pair.functions if one.fills_pages)
    cleared = 0.0 if still else sum(one.part.baseline for one in found if not one.is_judged)
    # A packet that touches fewer lines in all is not dearer, whatever became of the pages that are cleared.
    worse = by > 0.0 and min(more - cleared, median(now) - median(earlier) + room) / whole > allowed
    return ChangeResult(
        measurand=name, change=by / whole, lower=sum(one.least for one in found) / whole,
        upper=sum(one.most for one in found) / whole, confidence=1.0, tolerance=allowed, baseline=base,
        candidate=candidate, unit=kind.about.unit, better=kind.about.better, parts=tuple(one.part for one in found),
        verdict=Verdict.REGRESSION if worse else Verdict.PASS,
    )  # fmt: skip


class _Changed(NamedTuple):
    """A function that surely changed, with the least and the most by which trials of the two builds differ."""

    part: PartChange
    least: float
    most: float
    is_judged: bool


def _of_function(kind: type[ByFunction], pair: _Pair, one: _InBoth) -> _Changed | None:
    """How a function surely changed; None where trials of one build may be what those of the other are."""
    measurand = kind.about.name
    earlier, now = one.before.values[measurand], one.after.values[measurand]
    apart = max(min(now) - max(earlier), min(earlier) - max(now))
    scatter = max(max(each) - min(each) for each in (earlier, now))
    ranges = _RANGES if min(pair.before.trials, pair.after.trials) >= _SEVERAL else _RANGES_OF_FEW
    if apart < max(SURE, ranges * scatter):
        return None
    by = median(now) - median(earlier)
    more = _more_lines if kind.of_lines else _more_missed
    kinds = more(measurand, one.before, one.after)
    now_or_then = one.after if by > 0 else one.before
    part = PartChange(
        function=one.work.name, change=by, baseline=median(earlier), candidate=median(now), kinds=kinds,
        fields={line: text for line, text in now_or_then.fields.items() if line in kinds},
        writer=now_or_then.writer if kind.of_lines else "",
        moved_with=() if one.work.renamed else one.work.others,
    )  # fmt: skip
    return _Changed(part, min(now) - max(earlier), max(now) - min(earlier), not one.fills_pages)


def _more_lines(measurand: str, before: MemoryFunction, after: MemoryFunction) -> dict[str, float]:
    """How many more lines of each kind there are; empty where a build's are not known."""
    if any(max(one.values[measurand]) > 0 and not one.kinds for one in (before, after)):
        return {}
    return _differences(before.kinds, after.kinds)


def _more_missed(measurand: str, before: MemoryFunction, after: MemoryFunction) -> dict[str, float]:
    """How many more lines of each name a cache level misses."""
    return _differences(before.missed.get(measurand, {}), after.missed.get(measurand, {}))


def _differences(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {kind: after.get(kind, 0.0) - before.get(kind, 0.0) for kind in sorted(before.keys() | after.keys())}

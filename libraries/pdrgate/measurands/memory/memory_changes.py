"""What changed of memory between two builds: function by function, judged by what boots of one build differ by.

No statistics compare it: most functions' lines repeat from boot to boot to a few hundredths. A function has surely
changed where all trials of one build lie beyond all of the other's, by several times what either's lie apart. What
surely changed is summed, so that code that moved from one function to another is no change. Layout alone moves what a
small cache misses: the first level's misses are kept with the trials, and not judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Final, NamedTuple

from pdrgate.measurands.counted.estimated_cycles import priced_of
from pdrgate.measurands.functions.line_kinds import lines_by_kind, names_of
from pdrgate.measurands.functions.more_by_function import share_of
from pdrgate.measurands.memory.atomics import Atomics
from pdrgate.measurands.memory.cache_lines import CacheLines
from pdrgate.measurands.memory.cache_misses import LastLevelMisses, SecondLevelMisses
from pdrgate.measurands.memory.memory_trials import OfMemory
from pdrgate.results.model import ChangeResult, MemoryFunction, MemoryResult, PartChange
from pdrgate.results.verdict import Verdict
from pdrgate.stretch import MemorySeen

OF_MEMORY: Final[tuple[type[OfMemory], ...]] = (CacheLines, SecondLevelMisses, LastLevelMisses, Atomics)
"""What memory trials tell; the first asks for them."""
_RANGES, _RANGES_OF_FEW = 3.0, 10.0
"""Times what trials of one build lie apart that a function must have changed by; more times where these are fewer than
`_SEVERAL`, for two lie close together by chance."""
_SEVERAL = 4
SURE = 0.15
"""The least that a function must have changed by, for a packet."""
_NEEDED = 2
"""Trials of each build, for anything to be sure."""
CLEARS_PAGES = "clear_page"
"""What functions begin with that clear pages: how often one is needed, a boot's free pages decide, and how many packets
wait at once. Their lines are told, and judged by nobody."""
_LEAST = 0.02
"""Of any of these for a packet, for a function to be told of."""


def memory_result(seen: Sequence[MemorySeen], told: Sequence[type[OfMemory]] = OF_MEMORY) -> MemoryResult | None:
    """What a packet does with memory by all trials of a build; None where nobody saw it.

    Args:
        told: the measurands that these trials tell.
    """
    if not seen:
        return None
    functions = []
    for name in sorted({name for one in seen for name in one.functions}):
        found = {kind.about.name: [kind.by_function(one).get(name, 0.0) for one in seen] for kind in told}
        if max(map(max, found.values())) >= _LEAST:
            values = {key: tuple(value) for key, value in found.items()}
            writer = next((one.writers[name] for one in seen if name in one.writers), "")
            fields = {line: text for one in seen for line, text in one.fields.get(name, {}).items()}
            kinds = lines_by_kind(seen, name)
            missed = {
                kind.about.name: names
                for kind in told
                if not kind.of_lines and (names := names_of(seen, name, kind.counted))
            }
            functions.append(
                MemoryFunction(name=name, values=values, kinds=kinds, missed=missed, fields=fields, writer=writer)
            )
    whole = {kind.about.name: tuple(sum(kind.by_function(one).values()) for one in seen) for kind in told}
    return MemoryResult(
        trials=len(seen), values=whole, functions=tuple(functions), cpus=seen[0].cpus,
        priced=priced_of(seen)._asdict(), missing=tuple(dict.fromkeys(why for one in seen for why in one.missing)),
    )  # fmt: skip


def memory_changes(
    before: MemoryResult | None,
    after: MemoryResult | None,
    renamed: Mapping[str, str],
    judged: Sequence[type[OfMemory]] = OF_MEMORY,
) -> tuple[ChangeResult, ...]:
    """What surely changed beyond doubt; a growth beyond the tolerance is a REGRESSION. What fell makes it a PASS.

    Nothing is compared that was seen on SUTs of other numbers of CPUs.

    Args:
        renamed: functions by their earlier names, with what they are called now.
        judged: the measurands to be compared.
    """
    if before is None or after is None or min(before.trials, after.trials) < _NEEDED or before.cpus != after.cpus:
        return ()
    changes = (_change(kind, before, after, renamed) for kind in judged)
    return tuple(one for one in changes if one.parts)


def told_changes(
    before: MemoryResult | None, after: MemoryResult | None, renamed: Mapping[str, str], told: Sequence[type[OfMemory]]
) -> tuple[ChangeResult, ...]:
    """What surely changed, either way, by more than a packet may have more: told, and judged by nobody."""
    found = memory_changes(before, after, renamed, told)
    return tuple(replace(one, verdict=Verdict.NO_BASELINE) for one in found if abs(one.change) > one.tolerance)


def _change(
    kind: type[OfMemory], before: MemoryResult, after: MemoryResult, renamed: Mapping[str, str]
) -> ChangeResult:
    name = kind.about.name
    base, candidate = (median(one.values[name]) for one in (before, after))
    found = _surely_changed(kind, before, after, renamed)
    parts = tuple(one.part for one in found)
    by = sum(one.change for one in parts)
    whole = share_of(base)
    allowed = max(kind.about.tolerance.default, kind.least / whole)
    # Where the whole does not follow, it was somewhere else before, as far as the whole's scatter lets that be seen.
    room = max(kind.least / 2, *(max(one.values[name]) - min(one.values[name]) for one in (before, after)))
    cleared = sum(one.change for one in parts if one.function.startswith(CLEARS_PAGES))
    worse = (min(by, candidate - base + room) - cleared) / whole > allowed
    return ChangeResult(
        measurand=name, change=by / whole, lower=sum(one.least for one in found) / whole,
        upper=sum(one.most for one in found) / whole, confidence=1.0, tolerance=allowed, baseline=base,
        candidate=candidate, unit=kind.about.unit, better=kind.about.better, parts=parts,
        verdict=Verdict.REGRESSION if worse else Verdict.PASS,
    )  # fmt: skip


class _Changed(NamedTuple):
    """A function that surely changed, with the least and the most by which trials of the two builds differ."""

    part: PartChange
    least: float
    most: float


def _surely_changed(
    kind: type[OfMemory], before: MemoryResult, after: MemoryResult, renamed: Mapping[str, str]
) -> list[_Changed]:
    """The functions that surely changed, the largest change first."""
    measurand = kind.about.name
    none = MemoryFunction(name="", values={measurand: (0.0,)})
    old = {renamed.get(one.name, one.name): one for one in before.functions}
    new = {one.name: one for one in after.functions}
    found = []
    for name in old.keys() | new.keys():
        past, present = old.get(name, none), new.get(name, none)
        earlier, now = past.values[measurand], present.values[measurand]
        apart = max(min(now) - max(earlier), min(earlier) - max(now))
        scatter = max(max(each) - min(each) for each in (earlier, now))
        ranges = _RANGES if min(before.trials, after.trials) >= _SEVERAL else _RANGES_OF_FEW
        if apart >= max(SURE, ranges * scatter):
            by = median(now) - median(earlier)
            kinds = _more_lines(measurand, past, present) if kind.of_lines else _more_missed(measurand, past, present)
            now_or_then = present if by > 0 else past
            part = PartChange(
                function=name, change=by, baseline=median(earlier), candidate=median(now), kinds=kinds,
                fields={line: text for line, text in now_or_then.fields.items() if line in kinds},
                writer=now_or_then.writer if kind.of_lines else "",
            )  # fmt: skip
            found.append(_Changed(part, min(now) - max(earlier), max(now) - min(earlier)))
    return sorted(found, key=lambda one: (-abs(one.part.change), one.part.function))


def _more_lines(measurand: str, before: MemoryFunction, after: MemoryFunction) -> dict[str, float]:
    """By kind, how many more lines there are; empty where a build's are not known, as of earlier versions."""
    if any(max(one.values[measurand]) > 0 and not one.kinds for one in (before, after)):
        return {}
    return _differences(before.kinds, after.kinds)


def _more_missed(measurand: str, before: MemoryFunction, after: MemoryFunction) -> dict[str, float]:
    """By name, how many more of its lines a level misses."""
    return _differences(before.missed.get(measurand, {}), after.missed.get(measurand, {}))


def _differences(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {kind: after.get(kind, 0.0) - before.get(kind, 0.0) for kind in sorted(before.keys() | after.keys())}

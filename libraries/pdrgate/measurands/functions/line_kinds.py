"""What the cache lines are that a packet touches, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Final

from pdrgate.record.stretch import MemorySeen
from pdrgate.results.model import PartChange

LINE_KINDS: Final[Mapping[str, str]] = {
    "stack_lines": "stacks", "cpu_lines": "per-CPU areas", "symbol_lines": "symbols", "direct_lines": "the direct map",
    "vmalloc_lines": "vmalloc", "page_lines": "struct pages", "program_lines": "programs",
}  # fmt: skip
"""Fields of `MemoryCounts`, and what their lines are of."""
_TOLD = 0.1
"""Lines of a kind for a packet, for the kind to be listed."""


def lines_by_kind(seen: Sequence[MemorySeen], function: str) -> dict[str, float]:
    """A function's lines by what they are, for a packet: medians of the trials.

    Lines that have names of their own, as far as these are known, count under their name: a BPF map, a slab cache, a
    variable.
    """
    trials = [_of_trial(one, function) for one in seen]
    kinds = dict.fromkeys(kind for trial in trials for kind in trial)
    found = {kind: median(trial.get(kind, 0.0) for trial in trials) for kind in kinds}
    return {kind: lines for kind, lines in found.items() if lines > 0}


def names_of(seen: Sequence[MemorySeen], function: str, field: str) -> dict[str, float]:
    """How many lines of each name a field of `MemoryCounts` counts for a packet: medians of the trials.

    There are fewer than it counts, for not all lines have names.
    """
    trials = [(one.named.get(function, {}).get(field, {}), one.windows) for one in seen]
    names = dict.fromkeys(name for trial, _ in trials for name in trial)
    found = {name: median(trial.get(name, 0) / windows for trial, windows in trials) for name in names}
    return {name: count for name, count in found.items() if count > 0}


def _of_trial(seen: MemorySeen, function: str) -> dict[str, float]:
    counts, named = seen.functions.get(function), seen.named.get(function, {})
    if counts is None:
        return {}
    found = {
        kind: max(0, getattr(counts, field) - sum(named.get(field, {}).values())) for field, kind in LINE_KINDS.items()
    }
    for field in LINE_KINDS:
        found.update(named.get(field, {}))
    return {kind: lines / seen.windows for kind, lines in found.items()}


def kinds_changed(parts: Iterable[PartChange]) -> list[tuple[str, float]]:
    """What the changes of functions come to by kind, the largest first."""
    found: dict[str, float] = {}
    for part in parts:
        for kind, change in part.kinds.items():
            found[kind] = found.get(kind, 0.0) + change
    return sorted(((kind, by) for kind, by in found.items() if abs(by) >= _TOLD), key=lambda one: -abs(one[1]))

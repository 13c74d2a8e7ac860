"""What programs did with the packets of a capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pdrgate.reports.tree import Cell, Column, ReportPart, Table
from pdrgate.results.model import ScenarioResult
from pdrgate.results.vectors import VectorResult, VectorsResult

_SHOWN = 5
"""Packets of a brief table."""
_LISTED = 200
"""Packets that a page lists."""
_NEGLIGIBLE = 5e-4
"""A change that prints as 0.0 %."""
_HEAD = ("vector", "bytes", "copies", "returns", "cost", "baseline", "change", "most of it in")
_TIMED = ("vector", "bytes", "copies", "returns", "ns", "baseline", "change", "")


def vectors_part(scenario: ScenarioResult) -> ReportPart:
    """How many packets were run, what became of them, and a row for each, the worst first."""
    found = scenario.details.vectors
    if found is None:
        return ReportPart()
    remarks = [_sentence(found), *found.remarks]
    remarks += [
        f"vector {one.number}: {one.difference} ({one.packet})" for one in found.vectors[:_SHOWN] if one.difference
    ]
    brief = []
    if shown := [one for one in found.vectors if _told(one)][:_SHOWN]:
        timed = shown[0].cost is None
        caption = "Some packets, by the kernel's clock" if timed else "The worst packets"
        brief = [Table(caption, _columns(_TIMED if timed else _HEAD), [[*map(Cell, _cells(one))] for one in shown])]
    return ReportPart(title="Packets", remarks=remarks, brief=brief, whole=[_table(found)], on_screen=True)


def _table(found: VectorsResult) -> Table:
    head = _HEAD if any(one.cost is not None for one in found.vectors) else _TIMED
    rows = [
        [*(Cell(text, "fail" if one.difference or one.worse else "") for text in _cells(one)), Cell(one.packet)]
        for one in found.vectors[:_LISTED]
    ]
    return Table(_sentence(found), (*_columns(head), Column("packet")), rows)


def _columns(head: Sequence[str]) -> list[Column]:
    return [Column(name, numeric=at > 0, heads=not at) for at, name in enumerate(head)]


def loads_in_words(scenario: ScenarioResult) -> str:
    """``2 loads``: how often each build was loaded; empty where boots were compared."""
    return "" if scenario.details.vectors is None else f"{scenario.details.vectors.loads} loads"


def _sentence(found: VectorsResult) -> str:
    tally: Counter[str] = Counter()
    for one in found.vectors:
        tally[one.candidate] += one.copies
    returned = ", ".join(f"{name} {count}" for name, count in tally.most_common())
    return (
        f"{found.packets} packets of {found.capture}, {len(found.vectors)} unlike, run {found.runs} times in each of "
        f"{found.loads} loads; the candidate returns {returned}"
    )


def _told(one: VectorResult) -> bool:
    if one.cost is None:
        return one.nanoseconds is not None
    return bool(one.difference) or one.worse or abs(one.change or 0.0) >= _NEGLIGIBLE


def _cells(one: VectorResult) -> tuple[str, ...]:
    returns = one.candidate if one.candidate == one.baseline else f"{one.candidate}, was {one.baseline}"
    numbers = _numbers(one)
    return (str(one.number), str(one.length), str(one.copies), returns, *numbers)


def _numbers(one: VectorResult) -> Iterator[str]:
    """Cost or time, the baseline's, the change, and where it is."""
    pair = one.cost or one.nanoseconds
    if pair is None:
        yield from ("", "", "", "")
        return
    before, after = pair
    yield f"{after:.1f}"
    yield f"{before:.1f}"
    yield f"{100 * (after / before - 1):+z.1f} %" if before else ""
    same = [each for each in one.functions if (each.after > each.before) == (after > before)]
    yield f"{same[0].function} ({same[0].after - same[0].before:+z.0f})" if same else ""

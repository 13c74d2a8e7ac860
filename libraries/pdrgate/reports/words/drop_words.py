"""What a drop trace saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pdrgate.reports.markup.gfm import cut
from pdrgate.reports.tree import Block, Cell, Column, Paragraph, ReportPart, Table
from pdrgate.results.drops import DropsResult
from pdrgate.results.losses import thousands
from pdrgate.results.model import ScenarioResult

_ROWS = 20
_SHORT = 5
_STEPS = 4
"""Functions at the end of a way that are shown: they distinguish ways."""


def drops_part(scenario: ScenarioResult) -> ReportPart:
    """Who dropped how many packets for which reason and on which way, and a packet of the most; else why nobody
    knows."""
    found = scenario.details.drops
    if found is None:
        return ReportPart()
    sentence = found.sentence()
    if found.failure or not found.places:
        return ReportPart(remarks=(sentence,), whole=[Paragraph(sentence)])
    whole: list[Block] = [_places(found, f"{sentence} (by {found.collector}; events in {found.file})", _ROWS, _way)]
    if (one := found.example) is not None:
        steps = [[Cell(str(number)), Cell(function)] for number, function in enumerate(one.way, start=1)]
        caption = f"One of these packets, from {one.device or 'no device'}: {one.packet} ({one.reason})"
        whole.append(Table(caption, (Column("step", True), Column("function", heads=True)), steps))
    brief = _places(found, "Dropped packets, each seen", _SHORT, _ending)
    return ReportPart(title="Dropped packets", remarks=(sentence,), brief=[brief], whole=whole)


def _places(found: DropsResult, caption: str, most: int, way: Callable[[Sequence[str]], str]) -> Table:
    """A row for each place, ``most`` of them, and what all others dropped."""
    columns = (
        Column("dropped by", heads=True), Column("reason"), Column("packets", True), Column("on this way", True),
        Column("way of most", wraps=True),
    )  # fmt: skip
    cells = [
        [
            Cell(place.function, is_name=True) if place.function else Cell("not known"),
            Cell(place.reason, is_name=True), Cell(thousands(place.packets)),
            Cell(thousands(place.by_way)), Cell(way(place.way), is_name=True),
        ]
        for place in found.places[:most]
    ]  # fmt: skip
    if further := found.places[most:]:
        cells.append([Cell(f"{len(further)} others"), Cell(""), Cell(thousands(sum(one.packets for one in further)))])
    return Table(caption, columns, cells)


def _ending(functions: Sequence[str]) -> str:
    return ("… → " if len(functions) > _STEPS else "") + _way([cut(one, 40) for one in functions[-_STEPS:]])


def _way(functions: Sequence[str]) -> str:
    return " → ".join(functions)

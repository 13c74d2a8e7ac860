"""What a drop trace saw, in tables and lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from pdrgate.reports.markup.gfm import code, cut
from pdrgate.reports.markup.html import Cell, Column, Table
from pdrgate.results.drops import DropsResult
from pdrgate.results.losses import thousands
from pdrgate.results.model import ScenarioResult

_ROWS = 20
_SHORT = 5
_STEPS = 4
"""The last functions of a way: what tells ways apart."""


def drops_tables(found: DropsResult) -> Iterator[str]:
    """Tables of who dropped how many for which reason and on which way, and a packet of the most; else why there is
    nothing."""
    if found.failure or not found.places:
        yield Markup("<p>{}</p>").format(found.sentence())
        return
    columns = (
        Column("dropped by", heads=True), Column("reason"), Column("packets", True), Column("on this way", True),
        Column("way of most", wraps=True),
    )  # fmt: skip
    cells = [
        [
            Cell(place.function or "not known"), Cell(place.reason), Cell(thousands(place.packets)),
            Cell(thousands(place.by_way)), Cell(_way(place.way)),
        ]
        for place in found.places[:_ROWS]
    ]  # fmt: skip
    if further := found.places[_ROWS:]:
        cells.append([Cell(f"{len(further)} others"), Cell(""), Cell(thousands(sum(one.packets for one in further)))])
    yield Table(f"{found.sentence()} (by {found.collector}; events in {found.file})", columns, cells).html()
    if (one := found.example) is not None:
        steps = [[Cell(str(number)), Cell(function)] for number, function in enumerate(one.way, start=1)]
        caption = f"One of these packets, from {one.device or 'no device'}: {one.packet} ({one.reason})"
        yield Table(caption, (Column("step", True), Column("function", heads=True)), steps).html()


def drops_rows(found: DropsResult) -> tuple[tuple[str, ...], list[list[str]]]:
    """The head and rows of a short table in Markdown, without those of the least packets."""
    rows = [
        [
            code(cut(place.function)) or "not known", code(cut(place.reason)), thousands(place.packets),
            f"{thousands(place.by_way)}: {code(_ending(place.way))}" if place.way else "",
        ]
        for place in found.places[:_SHORT]
    ]  # fmt: skip
    if further := found.places[_SHORT:]:
        rows.append([f"{len(further)} others", "", thousands(sum(one.packets for one in further)), ""])
    return ("dropped by", "reason", "packets", "way of most"), rows


def drops_lines(scenario: ScenarioResult) -> list[str]:
    """What a console has room for."""
    return [] if scenario.details.drops is None else [scenario.details.drops.sentence()]


def _ending(functions: Sequence[str]) -> str:
    return ("… → " if len(functions) > _STEPS else "") + _way([cut(one, 40) for one in functions[-_STEPS:]])


def _way(functions: Sequence[str]) -> str:
    return " → ".join(functions)

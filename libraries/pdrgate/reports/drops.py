"""What Retis saw of dropped packets, in tables and lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdrgate.reports.html import Cell, Column, Table
from pdrgate.results.drops import DropsResult
from pdrgate.results.losses import thousands
from pdrgate.results.model import ScenarioResult

_ROWS = 20


def drops_tables(found: DropsResult) -> Iterator[str]:
    """Who dropped how many for which reason and on which way; and one packet of the most."""
    if found.failure or not found.places:
        return
    columns = (
        Column("dropped by", heads=True), Column("reason"), Column("packets", True), Column("on this way", True),
        Column("way", wraps=True),
    )  # fmt: skip
    cells = [
        [
            Cell(place.function or "not known"), Cell(place.reason), Cell(thousands(place.packets)),
            Cell(thousands(place.by_way)), Cell(_way(place.way)),
        ]
        for place in found.places[:_ROWS]
    ]  # fmt: skip
    yield Table(f"{found.sentence()} (Retis {found.collector}; events in {found.file})", columns, cells).html()
    if (one := found.example) is not None:
        steps = [[Cell(str(number)), Cell(function)] for number, function in enumerate(one.way, start=1)]
        caption = f"One of these packets, from {one.device or 'no device'}: {one.packet} ({one.reason})"
        yield Table(caption, (Column("step", True), Column("function", heads=True)), steps).html()


def drops_lines(scenario: ScenarioResult) -> list[str]:
    """What a console has room for."""
    return [] if scenario.drops is None else [scenario.drops.sentence()]


def _way(functions: Sequence[str]) -> str:
    return " → ".join(functions)

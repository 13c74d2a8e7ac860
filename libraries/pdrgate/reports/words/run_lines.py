"""What the history holds, as lines of text."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pdrgate.history.database.queries import ListedScenario
from pdrgate.reports.markup.columns import table_lines
from pdrgate.reports.tree import Cell, Column, Table
from pdrgate.values.units import Rate

_COLUMNS = (
    *map(Column, ("started", "run", "scenario", "build", "verdict")), Column("PDR, TCP or cost", True),
    Column("change", True),
)  # fmt: skip


def entries_table(entries: Sequence[ListedScenario]) -> list[str]:
    """A line for each scenario of a run."""
    return table_lines(Table("", _COLUMNS, [[*map(Cell, _cells(one))] for one in entries]), indent="")


def moment(seconds: float) -> str:
    """A moment in local time, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _cells(entry: ListedScenario) -> tuple[str, ...]:
    return (
        moment(entry.started), entry.run, entry.title or entry.scenario or "-", entry.build or "-",
        entry.verdict or "-", _main(entry), _change(entry),
    )  # fmt: skip


def _change(entry: ListedScenario) -> str:
    """The change, and that of another measurand where the verdict rests on it."""
    own = "-" if entry.change is None else f"{entry.change:+z.1%}"
    return own if entry.decided_change is None else f"{own}, {entry.decided_by} {entry.decided_change:+z.1%}"


def _main(entry: ListedScenario) -> str:
    if entry.throughput is not None:
        return f"{entry.throughput:.4g} Gbit/s"
    if entry.cost is not None:
        return f"{entry.cost:.0f} instr./packet"
    return "-" if entry.pdr is None else str(Rate(entry.pdr))

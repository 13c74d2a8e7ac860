"""What the history holds, as lines of text."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pdrgate.history.database.queries import ListedScenario
from pdrgate.reports.markup.columns import aligned
from pdrgate.values.units import Rate

_HEAD = ("STARTED", "RUN", "SCENARIO", "BUILD", "VERDICT", "PDR OR TCP", "CHANGE")
_NUMBERS = (5, 6)


def entries_table(entries: Sequence[ListedScenario]) -> list[str]:
    """A line for each scenario of a run."""
    return aligned([_HEAD, *map(_cells, entries)], numeric=_NUMBERS)


def moment(seconds: float) -> str:
    """A moment in local time, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _cells(entry: ListedScenario) -> tuple[str, ...]:
    return (
        moment(entry.started), entry.run, entry.scenario or "-", entry.build or "-", entry.verdict or "-",
        _main(entry), "-" if entry.change is None else f"{entry.change:+z.1%}",
    )  # fmt: skip


def _main(entry: ListedScenario) -> str:
    if entry.throughput is not None:
        return f"{entry.throughput:.4g} Gbit/s"
    return "-" if entry.pdr is None else str(Rate(entry.pdr))

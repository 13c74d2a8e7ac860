"""What was reported of a series of runs, and by which channel: so that a change is reported once."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, delete, insert, select

from pdrgate.history.database.tables import ReportedRow


def reported(connection: Connection, channel: str, of: str) -> dict[str, str]:
    """What was reported last, as JSON by scenario; empty where nothing stands.

    Args:
        channel: by which way people heard of it.
        of: the name of the series of runs.
    """
    table = ReportedRow.__table__
    rows = connection.execute(
        select(table.c.scenario, table.c.change).where(table.c.channel == channel, table.c.series == of)
    )
    return {row.scenario: row.change for row in rows}


def report(connection: Connection, channel: str, of: str, standing: Mapping[str, str]) -> None:
    """Keep what stands now in place of what was reported before."""
    table = ReportedRow.__table__
    connection.execute(delete(ReportedRow).where(table.c.channel == channel, table.c.series == of))
    rows = [{"channel": channel, "series": of, "scenario": name, "change": change} for name, change in standing.items()]
    if rows:
        connection.execute(insert(ReportedRow), rows)

"""What pairs of boots of one and the same build deviate by, as A/A comparisons showed."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from pdrgate.history.database.tables import Noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One A/A comparison of a measurand."""

    series: str
    """`pdrgate.results.fingerprint.series` of the scenario's fingerprint."""
    measurand: str
    measured: float
    """When, seconds of the epoch."""
    pairs: int
    deviation: float
    """Of the logs of the pairs' ratios."""


def add_deviation(connection: Connection, found: Deviation) -> None:
    """Keep it."""
    row = {
        "series": found.series, "measurand": found.measurand, "measured": found.measured, "pairs": found.pairs,
        "deviation": found.deviation,
    }  # fmt: skip
    connection.execute(insert(Noise).values(row))


def deviations(connection: Connection, series: str, measurand: str, limit: int = 100) -> tuple[Deviation, ...]:
    """What is known of a series, the newest first."""
    asked = (
        select(Noise.series, Noise.measurand, Noise.measured, Noise.pairs, Noise.deviation)
        .where(Noise.series == series, Noise.measurand == measurand)
        .order_by(Noise.measured.desc(), Noise.id.desc())
        .limit(limit)
    )
    return tuple(Deviation(**row) for row in connection.execute(asked).mappings())

"""The series that a trend is looked for in, as a history keeps them."""

from __future__ import annotations

from sqlalchemy import Connection

from pdrgate.history.database import queries
from pdrgate.results.model import CostResult
from pdrgate.trend import Point, Series


def kept_series(connection: Connection) -> tuple[Series, ...]:
    """All series of a history, each point one build as one run found it, the oldest first."""
    return tuple(_series(connection, one) for one in queries.all_series(connection))


def kept_cost(connection: Connection, series: Series, point: Point) -> CostResult | None:
    """What a packet cost at a point of such a series, by function; None where it was not counted."""
    return queries.point_cost(connection, series.fingerprint, point)


def _series(connection: Connection, known: queries.ListedSeries) -> Series:
    return Series(
        scenario=known.scenario, title=known.title, testbed=known.testbed, fingerprint=known.digest,
        measurand=known.measurand, unit=known.unit, better=known.better,
        points=queries.points(connection, known.digest, known.measurand),
    )  # fmt: skip

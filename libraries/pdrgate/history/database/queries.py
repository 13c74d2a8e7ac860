"""What is asked of the history: results by what they are, and the points of a trend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, null, or_, select
from sqlalchemy.orm import InstrumentedAttribute, aliased

from pdrgate.history.database.tables import ChangeRow, MeasurandRow, ResultRow, RunRow, SideRow
from pdrgate.measurands import Cost
from pdrgate.results.fingerprint import series
from pdrgate.results.model import CostResult
from pdrgate.results.verdict import Verdict
from pdrgate.trend import Point, Series
from pdrgate.values.errors import EXIT_FAULT

PDR, TCP = "PDR", "TCP throughput"
_MOST_TRIES = 3
"""Runs of a build, all with a fault of the testbed, after which it is not gated again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The results that a query asks for. What is empty or None asks for all. Texts may have ``*`` for anything."""

    scenario: str = ""
    """Its label, or the name that results have."""
    build: str = ""
    """What a person called a build, or a kernel's release."""
    verdict: Verdict | None = None
    since: float | None = None
    """Seconds of the epoch."""
    limit: int | None = None
    """The newest so many."""


EVERYTHING = Wanted()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedScenario:
    """A scenario of a run, in short. Of two builds the candidate's numbers."""

    run: str
    source: str
    """The file or address that the run was imported from."""
    started: float
    testbed: str
    scenario: str
    title: str
    """The scenario's label: what a person calls it."""
    build: str
    """What a person called it; else the kernel's release."""
    verdict: Verdict | None
    """The verdict; None where nobody judged the trials."""
    reason: str
    trials: int
    pdr: float | None
    """Packets/s."""
    throughput: float | None
    """The throughput of a closed loop, which has no PDR, in Gbit/s."""
    cost: float | None
    """The cost of a packet, in instructions, where neither was measured."""
    lower: float | None
    """The lower end of the 95 % interval of PDR or throughput, whichever there is."""
    upper: float | None
    change: float | None
    """The change of PDR, throughput or cost against the baseline, a fraction; None where none was compared with."""
    decided_by: str | None
    """Another measurand whose change made the verdict; None where it is the one above, or nothing was compared."""
    decided_change: float | None


def entries(connection: Connection, wanted: Wanted = EVERYTHING) -> list[ListedScenario]:
    """Results, the newest first."""
    change, cost_change, cost = aliased(ChangeRow), aliased(ChangeRow), aliased(MeasurandRow)
    alone = MeasurandRow.name.is_(None)
    decided, own = aliased(ChangeRow), func.coalesce(change.verdict, cost_change.verdict, ResultRow.verdict)
    deciding = (
        select(decided)
        .where(decided.result_id == ResultRow.id, decided.verdict == ResultRow.verdict, own != ResultRow.verdict)
        .order_by(func.abs(decided.change).desc())
        .limit(1)
    )
    asked = (
        select(
            RunRow.name.label("run"), RunRow.source, ResultRow.started, RunRow.testbed, ResultRow.scenario,
            ResultRow.title, build_label().label("build"), ResultRow.verdict, ResultRow.reason, ResultRow.trials,
            case((MeasurandRow.name == PDR, MeasurandRow.value)).label("pdr"),
            case((MeasurandRow.name == TCP, MeasurandRow.value)).label("throughput"),
            case((alone, cost.value)).label("cost"), MeasurandRow.lower, MeasurandRow.upper,
            case((alone, cost_change.change), else_=change.change).label("change"),
            deciding.with_only_columns(decided.measurand).scalar_subquery().label("decided_by"),
            deciding.with_only_columns(decided.change).scalar_subquery().label("decided_change"),
        )
        .join(RunRow, RunRow.id == ResultRow.run_id)
        .outerjoin(SideRow, and_(SideRow.result_id == ResultRow.id, SideRow.side != "baseline"))
        .outerjoin(MeasurandRow, and_(MeasurandRow.side_id == SideRow.id, MeasurandRow.name.in_((PDR, TCP))))
        .outerjoin(change, and_(change.result_id == ResultRow.id, change.measurand == MeasurandRow.name))
        .outerjoin(cost, and_(cost.side_id == SideRow.id, cost.name == Cost.name))
        .outerjoin(cost_change, and_(cost_change.result_id == ResultRow.id, cost_change.measurand == Cost.name))
        .where(*matching(wanted))
        .order_by(ResultRow.started.desc(), ResultRow.id.desc())
        .limit(wanted.limit)
    )  # fmt: skip
    rows = connection.execute(asked).mappings()
    return [ListedScenario(**{**row, "verdict": row["verdict"] and Verdict(row["verdict"])}) for row in rows]


def gated_builds(connection: Connection) -> frozenset[str]:
    """The builds that are not to be gated again: those with a verdict of their own, and those that were tried often.

    A fault of the testbed says nothing of a build, but who gates it for ever gates no other.
    """
    runs: dict[str, set[str]] = {}
    settled = set()
    for one in entries(connection):
        if one.verdict is not None:
            runs.setdefault(one.build, set()).add(one.run)
            if one.verdict.exit_code != EXIT_FAULT:
                settled.add(one.build)
    return frozenset(settled | {build for build, tries in runs.items() if len(tries) >= _MOST_TRIES})


def points(
    connection: Connection,
    fingerprint: Mapping[str, str] | str,
    measurand: str = PDR,
) -> tuple[Point, ...]:
    """The values of a measurand over builds and time, the oldest first.

    They are those of runs of one build, and of the candidates of comparisons; a comparison's baseline is measured
    again and again, and is no step of a trend.

    Args:
        fingerprint: of the scenario as it is measured now, or the digest of a series. What a build has a say in
            (its kernel, first of all) may differ; all else, testbed and profile included, is equal in all points.
        measurand: ``PDR``, ``saturation throughput``, ``cost``.
    """
    digest = fingerprint if isinstance(fingerprint, str) else series(fingerprint)
    asked = (
        select(
            build_label().label("build"), SideRow.build.label("digest"), SideRow.started.label("time"),
            MeasurandRow.value, MeasurandRow.lower, MeasurandRow.upper, ResultRow.verdict, RunRow.name.label("run"),
        )
        .join(MeasurandRow, MeasurandRow.side_id == SideRow.id)
        .join(ResultRow, ResultRow.id == SideRow.result_id)
        .join(RunRow, RunRow.id == ResultRow.run_id)
        .where(SideRow.series == digest, SideRow.side != "baseline", MeasurandRow.name == measurand)
        .where(ResultRow.verdict.is_not(None))
        .order_by(SideRow.started, SideRow.id)
    )  # fmt: skip
    rows = connection.execute(asked).mappings()
    return tuple(Point(**{**row, "verdict": Verdict(row["verdict"])}) for row in rows)


def point_cost(connection: Connection, one: Series, point: Point) -> CostResult | None:
    """What a packet cost where a point of a series was measured; None where it was not counted."""
    return _cost(
        connection,
        select(SideRow.cost)
        .join(ResultRow, ResultRow.id == SideRow.result_id)
        .join(RunRow, RunRow.id == ResultRow.run_id)
        .where(SideRow.cost.is_not(null()), SideRow.series == one.fingerprint, SideRow.side != "baseline")
        .where(SideRow.started == point.time, RunRow.name == point.run),
    )  # fmt: skip


def side_cost(connection: Connection, side: int) -> CostResult | None:
    """What a packet cost under a build, by the number of its side's row; None where it was not counted."""
    return _cost(connection, select(SideRow.cost).where(SideRow.id == side))


def _cost(connection: Connection, asked: Select[tuple[dict[str, Any] | None]]) -> CostResult | None:
    found = connection.execute(asked).scalars().first()
    return None if found is None else msgspec.convert(found, CostResult)


def all_series(connection: Connection, wanted: Wanted = EVERYTHING) -> tuple[Series, ...]:
    """Each scenario, testbed and measurand that there are points of, with these; ``limit`` has no meaning here."""
    asked = (
        select(
            SideRow.series.label("fingerprint"), ResultRow.scenario, func.max(ResultRow.title).label("title"),
            func.max(RunRow.testbed).label("testbed"), MeasurandRow.name.label("measurand"),
            func.max(MeasurandRow.unit).label("unit"), func.max(MeasurandRow.better).label("better"),
        )
        .join(MeasurandRow, MeasurandRow.side_id == SideRow.id)
        .join(ResultRow, ResultRow.id == SideRow.result_id)
        .join(RunRow, RunRow.id == ResultRow.run_id)
        .where(SideRow.series != "", SideRow.side != "baseline", ResultRow.verdict.is_not(None), *matching(wanted))
        .group_by(SideRow.series, ResultRow.scenario, MeasurandRow.name)
        .order_by(ResultRow.scenario, SideRow.series, MeasurandRow.name)
    )  # fmt: skip
    return tuple(
        Series(**row, points=points(connection, row["fingerprint"], row["measurand"]))
        for row in connection.execute(asked).mappings().all()
    )


def build_label() -> ColumnElement[str]:
    """A build as a person knows it."""
    return func.coalesce(func.nullif(SideRow.label, ""), SideRow.kernel, "")


def matching(wanted: Wanted) -> list[ColumnElement[bool]]:
    """The conditions of a query on results and their sides."""
    conditions: list[ColumnElement[bool]] = []
    if wanted.scenario:
        conditions.append(or_(_like(ResultRow.scenario, wanted.scenario), _like(ResultRow.title, wanted.scenario)))
    if wanted.build:
        conditions.append(or_(_like(SideRow.kernel, wanted.build), _like(SideRow.label, wanted.build)))
    if wanted.verdict is not None:
        conditions.append(ResultRow.verdict == wanted.verdict.value)
    if wanted.since is not None:
        conditions.append(ResultRow.started >= wanted.since)
    return conditions


def _like(column: InstrumentedAttribute[str], pattern: str) -> ColumnElement[bool]:
    """Equal, or where there are stars, like it, whatever the case: a label has capitals."""
    if "*" not in pattern:
        return column == pattern
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%")
    return column.ilike(escaped, escape="\\")


def seconds_a_path(connection: Connection, testbed: str, profile: str, runs: int = 3) -> list[float]:
    """How many seconds a path took in each of the newest runs of several paths, which came to their end.

    Args:
        runs: so many runs at most.
    """
    number = func.count(ResultRow.id)
    rows = connection.execute(
        select(RunRow.started, RunRow.finished, number)
        .join(ResultRow, ResultRow.run_id == RunRow.id)
        .where(RunRow.testbed == testbed, RunRow.profile == profile, RunRow.finished.is_not(None))
        .group_by(RunRow.id)
        .having(number > 1)
        .order_by(RunRow.started.desc())
        .limit(runs)
    )
    return [(finished - started) / count for started, finished, count in rows if finished is not None]

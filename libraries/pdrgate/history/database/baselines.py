"""Baselines: names for builds, and what all boots of a build come to."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from pdrgate.history.database.queries import build_label
from pdrgate.history.database.tables import (
    BootRow,
    FingerprintRow,
    MeasurandRow,
    PinRow,
    ResultRow,
    RunRow,
    SideRow,
)
from pdrgate.results.model import MeasurandResult
from pdrgate.results.verdict import STABLE, Verdict
from pdrgate.stats.intervals import mean, sample_deviation, t_interval
from pdrgate.stats.pooled import pooled_mean
from pdrgate.values.errors import DataError, UsageError

LATEST_GREEN = "latest-green"
"""A name that nobody can give: of the newest build that passed."""
_MOST = 200
"""Results, the newest ones, that baselines are made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A build that a name stands for."""

    name: str
    build: str
    label: str
    run: str
    pinned: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A build as one run measured it in one scenario."""

    run: str
    source: str
    build: str
    label: str
    series: str
    title: str
    """The scenario's label."""
    fingerprint: Mapping[str, str]
    green: bool
    measurands: tuple[MeasurandResult, ...]
    boots: tuple[Mapping[str, float], ...]
    """The values of each boot of a comparison, by measurand. A run of one build is one boot, and leaves this
    empty."""
    boot: str
    """The one of a run of one build, which other results of that run may be of too; empty where it is not known."""
    side: int
    """The number of the side's row: `pdrgate.history.database.queries.side_cost` asks for it."""


# --- Names ---


def pin(connection: Connection, run: str, name: str, side: str = "candidate") -> tuple[list[Pinned], list[Pinned]]:
    """Let ``name`` stand for the build that ``run`` measured, and for no other; what it stood for comes first.

    Args:
        run: its name, or its folder.
        side: which build of a comparison.

    Raises:
        DataError: there is no such run, or it holds no such build.
        UsageError: the name is taken by what it means.
    """
    if name == LATEST_GREEN or not name.strip():
        raise UsageError(f"{name!r} is no name for a baseline; choose another")
    found = _run(connection, run)
    asked = select(SideRow.build, build_label().label("label")).join(ResultRow, ResultRow.id == SideRow.result_id)
    builds = connection.execute(
        asked.where(ResultRow.run_id == found.id, SideRow.side.in_(("", side)), SideRow.build != "").order_by(
            SideRow.id
        )
    )
    rows = {
        row.build: {"name": name, "build": row.build, "label": row.label, "run": found.name, "pinned": time.time()}
        for row in builds
    }
    if not rows:
        raise DataError(f"the run {found.name} measured no build that can be told from others; name another run")
    before = [one for one in pins(connection) if one.name == name]
    connection.execute(delete(PinRow).where(PinRow.name == name))
    connection.execute(insert(PinRow), list(rows.values()))
    return before, [Pinned(**row) for row in rows.values()]


def unpin(connection: Connection, name: str) -> None:
    """Forget a name; what was measured stays. Raises DataError when it stands for nothing."""
    if not connection.execute(delete(PinRow).where(PinRow.name == name)).rowcount:
        raise DataError(_unknown(connection, name))


def pins(connection: Connection) -> list[Pinned]:
    """All names, and what they stand for."""
    asked = select(PinRow.name, PinRow.build, PinRow.label, PinRow.run, PinRow.pinned).order_by(
        PinRow.name, PinRow.label
    )
    return [Pinned(**row) for row in connection.execute(asked).mappings()]


def _run(connection: Connection, run: str) -> Row[int, str]:
    folder = str(Path(run).resolve())
    asked = select(RunRow.id, RunRow.name).order_by(RunRow.started)
    rows = connection.execute(asked.where(RunRow.source == folder)).all()
    rows = rows or connection.execute(asked.where(RunRow.name == Path(run).name)).all()
    if not rows:
        raise DataError(f"the history has no run {run}; put it in first: pdrgate history import {run}")
    if len(rows) > 1:
        raise DataError(f"the history has {len(rows)} runs called {run}; name its folder")
    return rows[0]


def _unknown(connection: Connection, name: str) -> str:
    known = ", ".join(sorted({one.name for one in pins(connection)})) or "none"
    return f"no build is pinned as {name}; there are: {known}; 'pdrgate history pin RUN --name {name}' makes one"


# --- What was measured of them ---


def measured(connection: Connection, name: str) -> list[Measured]:
    """All stable results of the builds that a name stands for, the newest first; of `LATEST_GREEN`, of all builds.

    Those that came to no number, such as an INCONCLUSIVE whose transfers were all disturbed, are none.

    Raises:
        DataError: the name stands for nothing.
    """
    builds = {one.build for one in pins(connection) if one.name == name}
    if not builds and name != LATEST_GREEN:
        raise DataError(_unknown(connection, name))
    asked = (
        select(
            SideRow.id, SideRow.build, build_label().label("label"), SideRow.series, SideRow.side, ResultRow.verdict,
            ResultRow.title, RunRow.name, RunRow.source, FingerprintRow.entries,
        )
        .join(ResultRow, ResultRow.id == SideRow.result_id)
        .join(RunRow, RunRow.id == ResultRow.run_id)
        .join(FingerprintRow, FingerprintRow.digest == SideRow.fingerprint)
        .order_by(ResultRow.started.desc(), SideRow.id.desc())
        .limit(_MOST)
    )  # fmt: skip
    # First which ones, by an index, then what they are: joined at once, SQLite would sort all there is.
    newest = select(ResultRow.id).order_by(ResultRow.started.desc()).limit(_MOST)
    found = connection.execute(asked.where(SideRow.build.in_(builds) if builds else ResultRow.id.in_(newest)))
    rows = [row for row in found if row.verdict in STABLE]
    sides = [row.id for row in rows]
    measurands = _by_side(connection, MeasurandRow, sides)
    boots = _by_side(connection, BootRow, sides)
    return [
        Measured(
            run=row.name, source=row.source, build=row.build, label=row.label, series=row.series,
            title=row.title, fingerprint=row.entries, side=row.id,
            green=Verdict(row.verdict).passes and row.side != "baseline",
            measurands=tuple(_measurand(one) for one in measurands.get(row.id, ())),
            boots=tuple(one["values"] for one in boots.get(row.id, ()) if one["pair"] and not one["failure"]),
            boot=next((one["boot"] for one in boots.get(row.id, ()) if not one["pair"]), ""),
        )
        for row in rows
        if row.id in measurands
    ]  # fmt: skip


def pooled_boots(found: Sequence[Measured]) -> tuple[tuple[MeasurandResult, ...], int]:
    """What all boots of a build come to, by measurand, and how many boots there are.

    With two boots or more, a measurand's samples are one a boot, so that what boots deviate by is part of every
    interval; their mean is the `pooled_mean`. A single boot has its repeats for samples, as a run of its own has. What
    a run measured twice in one boot is one boot, with the repeats of both.
    """
    names = {one.name: one for each in reversed(found) for one in each.measurands}
    groups = _of_one_boot(found)
    boots = sum(len(each[0].boots) or 1 for each in groups)
    return tuple(_pooled(groups, one) for one in names.values()), boots


def _of_one_boot(found: Sequence[Measured]) -> list[list[Measured]]:
    """Results by the boot that they are of; a comparison stands alone, whatever its boots."""
    groups: dict[tuple[str, str, str | int], list[Measured]] = {}
    for one in found:
        told = one.side if one.boots or not one.boot else one.boot
        groups.setdefault((one.source, one.run, told), []).append(one)
    return list(groups.values())


def _pooled(groups: Sequence[Sequence[Measured]], like: MeasurandResult) -> MeasurandResult:
    values: list[float] = []
    errors: list[float] = []
    samples: tuple[float, ...] = ()
    for group in groups:
        if group[0].boots:
            told = [boot[like.name] for boot in group[0].boots if like.name in boot]
            values += told
            errors += [0.0] * len(told)
        elif own := [one for each in group for one in each.measurands if one.name == like.name]:
            samples = tuple(sample for one in own for sample in one.samples)
            values.append(own[0].value if len(own) == 1 or not samples else mean(samples))
            few = len(samples) < 2
            errors.append(0.0 if few else sample_deviation(samples) / math.sqrt(len(samples)))
    if len(values) > 1:
        # What boots deviate by stays as it is; only their mean is the better known one.
        shift = pooled_mean(values, errors) - mean(values)
        samples = tuple(value + shift for value in values)
    elif not samples:
        samples = tuple(values)
    interval = t_interval(samples) if len(samples) > 1 else None
    return MeasurandResult(
        name=like.name, unit=like.unit, better=like.better, value=mean(samples), samples=samples,
        lower=interval.low if interval else None, upper=interval.high if interval else None,
    )  # fmt: skip


def _measurand(row: Mapping[str, Any]) -> MeasurandResult:
    told = {key: value for key, value in row.items() if key != "side_id"}
    return MeasurandResult(**told | {"samples": tuple(row["samples"])})


def _by_side(connection: Connection, table: type[Any], sides: Collection[int]) -> dict[int, list[Mapping[str, Any]]]:
    found: dict[int, list[Mapping[str, Any]]] = {}
    for row in connection.execute(select(table.__table__).where(table.side_id.in_(sides))).mappings():
        found.setdefault(row["side_id"], []).append(dict(row))
    return found

"""The history as flat tables, for other programs: CSV and Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TextIO

from sqlalchemy import Connection, and_, select

from pdrgate.errors import StorageError
from pdrgate.history.database.queries import Wanted, build_label, matching
from pdrgate.history.database.tables import Change, Measurand, Result, Run, Side, TrialRow

What = Literal["measurands", "trials"]
Row = dict[str, Any]
"""A row of a table: its values by column."""


def flat(connection: Connection, what: What, wanted: Wanted) -> Iterable[Row]:
    """A row for each measurand of each build in a scenario, or for each trial; the oldest run first."""
    if what == "trials":
        columns = [column for column in TrialRow.__table__.columns if column.name not in ("id", "run_id")]
        asked = (
            select(Run.name.label("run"), *columns)
            .join(TrialRow, TrialRow.run_id == Run.id)
            .where(
                TrialRow.run_id.in_(
                    select(Result.run_id).outerjoin(Side, Side.result_id == Result.id).where(*matching(wanted))
                )
            )
            .order_by(Run.started, Run.id, TrialRow.id)
        )
        return map(dict, connection.execute(asked).mappings())
    found = (
        select(
            Run.name.label("run"), Run.started, Run.pdrgate, Run.profile, Run.testbed, Result.scenario, Result.verdict,
            Result.reason, Side.side, build_label().label("build"), Side.kernel, Side.series, Side.fingerprint,
            Measurand.name.label("measurand"), Measurand.unit, Measurand.value, Measurand.lower, Measurand.upper,
            Change.change, Change.lower.label("change_lower"), Change.upper.label("change_upper"),
            Change.confidence, Change.tolerance, Change.pairs, Change.deviation, Change.resolves,
        )
        .select_from(Run)
        .join(Result, Result.run_id == Run.id)
        .join(Side, Side.result_id == Result.id)
        .join(Measurand, Measurand.side_id == Side.id)
        .outerjoin(
            Change,
            and_(Change.result_id == Result.id, Change.measurand == Measurand.name, Side.side != "baseline"),
        )
        .where(*matching(wanted))
        .order_by(Run.started, Result.id, Side.id, Measurand.name)
    )  # fmt: skip
    return map(dict, connection.execute(found).mappings())


def write_csv(rows: Iterable[Row], stream: TextIO) -> int:
    """Comma-separated with a head, and how many rows there were; what is not known is empty."""
    count = 0
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        count += 1
        if writer is None:
            writer = csv.DictWriter(stream, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return count


def write_parquet(rows: Iterable[Row], file: Path) -> int:
    """A Parquet file, and how many rows there were.

    Raises:
        StorageError: pyarrow is not installed, or the file cannot be written.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise StorageError("Parquet takes pyarrow; install it: pip install 'pdrgate[parquet]'") from error
    table = pyarrow.Table.from_pylist(list(rows))
    try:
        pyarrow.parquet.write_table(table, file)
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error.strerror or error}; choose another with --output") from error
    return int(table.num_rows)

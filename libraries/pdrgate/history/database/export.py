"""The history as flat tables, for other programs: CSV and Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TextIO

from sqlalchemy import Connection, and_, select

from pdrgate.history.database.queries import Wanted, build_label, matching
from pdrgate.history.database.tables import ChangeRow, MeasurandRow, ResultRow, RunRow, SideRow, TrialRow
from pdrgate.values.errors import StorageError
from pdrgate.values.printable import printable

_FORMULA = ("=", "+", "-", "@")
"""What programs for tables take a text for a formula by."""
What = Literal["measurands", "trials"]
Row = dict[str, Any]
"""A row of a table: its values by column."""


def flat(connection: Connection, what: What, wanted: Wanted) -> Iterable[Row]:
    """A row for each measurand of each build in a scenario, or for each trial; the oldest run first."""
    if what == "trials":
        columns = [column for column in TrialRow.__table__.columns if column.name not in ("id", "run_id")]
        asked = (
            select(RunRow.name.label("run"), *columns)
            .join(TrialRow, TrialRow.run_id == RunRow.id)
            .where(
                TrialRow.run_id.in_(
                    select(ResultRow.run_id)
                    .outerjoin(SideRow, SideRow.result_id == ResultRow.id)
                    .where(*matching(wanted))
                )
            )
            .order_by(RunRow.started, RunRow.id, TrialRow.id)
        )
        return map(dict, connection.execute(asked).mappings())
    found = (
        select(
            RunRow.name.label("run"), RunRow.started, RunRow.pdrgate, RunRow.profile, RunRow.testbed,
            ResultRow.scenario, ResultRow.title, ResultRow.verdict, ResultRow.reason, SideRow.side,
            build_label().label("build"), SideRow.kernel, SideRow.series, SideRow.fingerprint,
            MeasurandRow.name.label("measurand"), MeasurandRow.unit, MeasurandRow.value,
            MeasurandRow.lower, MeasurandRow.upper,
            ChangeRow.change, ChangeRow.lower.label("change_lower"), ChangeRow.upper.label("change_upper"),
            ChangeRow.confidence, ChangeRow.tolerance, ChangeRow.pairs, ChangeRow.deviation, ChangeRow.resolves,
        )
        .select_from(RunRow)
        .join(ResultRow, ResultRow.run_id == RunRow.id)
        .join(SideRow, SideRow.result_id == ResultRow.id)
        .join(MeasurandRow, MeasurandRow.side_id == SideRow.id)
        .outerjoin(
            ChangeRow,
            and_(
                ChangeRow.result_id == ResultRow.id,
                ChangeRow.measurand == MeasurandRow.name,
                SideRow.side != "baseline",
            ),
        )
        .where(*matching(wanted))
        .order_by(RunRow.started, ResultRow.id, SideRow.id, MeasurandRow.name)
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
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return count


def _cell(value: Any) -> Any:
    """A name as it may stand in a table: no program for tables takes it for a formula, and it controls no terminal."""
    if not isinstance(value, str):
        return value
    told = printable(value)
    return f"'{told}" if told.startswith(_FORMULA) else told


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

"""A history where SQLite or a server is not as on a local disk: network file systems, and what servers refuse."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pdrgate.history.database import connection as database
from pdrgate.values.errors import StorageError


class FakeNetworkDisk(sqlite3.Connection):
    """A file system that shares no memory between processes."""

    errorcode = sqlite3.SQLITE_PROTOCOL

    def execute(self, sql: str, *more: Any) -> sqlite3.Cursor:
        if "WAL" in sql:
            error = sqlite3.OperationalError("locking protocol")
            error.sqlite_errorcode = self.errorcode
            raise error
        return super().execute(sql, *more)


class FakeNetworkDiskOf9p(FakeNetworkDisk):
    """WSL's, which says so in another way."""

    errorcode = sqlite3.SQLITE_IOERR | 20 << 8


@pytest.mark.parametrize("disk", [FakeNetworkDisk, FakeNetworkDiskOf9p])
@pytest.mark.parametrize("had", ["DELETE", "WAL"])
def test_a_network_disk_has_a_rollback_journal(tmp_path: Path, disk: type[sqlite3.Connection], had: str) -> None:
    file = tmp_path / "history.sqlite"
    with sqlite3.connect(file) as before:
        before.execute(f"PRAGMA journal_mode = {had}")
        before.execute("CREATE TABLE kept (x)")
    before.close()
    for _ in range(2):
        opened = sqlite3.connect(file, factory=disk)
        database._prepare_sqlite(1.0, opened, None)
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("truncate",)
        opened.execute("BEGIN IMMEDIATE")
        opened.execute("INSERT INTO kept VALUES (1)")
        opened.execute("COMMIT")
        with sqlite3.connect(file) as other:  # nobody is locked out
            assert other.execute("SELECT count(*) FROM kept").fetchone()[0] >= 1
        other.close()
        opened.close()


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("locking protocol", "network file system"), ("disk I/O error", "PostgreSQL"),
        ("Stale file handle", "network file system"), ("Disk quota exceeded", "quota raised"),
        ("Read-only file system", "where it can be written"), ("Too many open files", "ulimit -n"),
        ('FATAL:  password authentication failed for user "ci"', "PGPASSWORD"),
        ("permission denied for table runs", "grants this user rights"),
        ("FATAL:  sorry, too many clients already", "max_connections"),
        ("cannot execute INSERT in a read-only transaction", "name the primary"),
        ("FATAL:  the database system is starting up", "in a moment"),
    ],
)  # fmt: skip
def test_each_reason_has_a_remedy(reason: str, remedy: str) -> None:
    kind, told = database._remedy(sqlite3.OperationalError(reason))
    assert kind is StorageError
    assert told.startswith(reason)
    assert remedy in told

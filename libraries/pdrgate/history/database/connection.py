"""Opens the database of the history, wherever it is, and says in one line what is wrong with it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import sqlalchemy
from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from pdrgate.history.address import Address
from pdrgate.history.database.version import make_or_check
from pdrgate.this_process.no_follow import folder_no_follow, open_no_follow
from pdrgate.values.errors import DataError, StorageError

LOCK_PATIENCE = 30.0
"""Seconds to wait for another program to end what it writes."""
_ANSWER = 10
"""Seconds for a server to take a connection."""
_WRITES = "pdrgate_writes"
_WITHOUT_SHARED_MEMORY = (sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
"""Errors of SQLite where a file system has no memory that processes share for a write-ahead log."""


@dataclass(frozen=True, slots=True)
class Database:
    """An open history. All its errors are a StorageError or a DataError of one line that begins with where it is."""

    address: Address
    engine: Engine

    @classmethod
    def open(cls, address: Address, *, create: bool = False, patience: float = LOCK_PATIENCE) -> Self:
        """Connect, and make the tables in a database that is empty.

        Args:
            create: whether a file that is not there is made; a server's database must be there.
            patience: seconds to wait for another program to end what it writes.

        Raises:
            StorageError: there is none, it cannot be reached, or it is locked.
            DataError: it is of another schema, another user's, or no history.
        """
        file = address.file
        if file is not None and not create and not file.exists():
            raise StorageError(
                f"there is no history at {file}; 'pdrgate history import --history {file} RESULTS' makes one of folders"
            )
        with _told(address):
            if file is not None:
                check_own(file, create=create)
                _choose_journal(file, patience)
            opened = cls(address, _engine(address, patience))
        try:
            with opened.writing() as connection:
                make_or_check(connection, str(address))
        except BaseException:
            opened.close()
            raise
        return opened

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open one transaction that writes: all of it or nothing."""
        writes = self.engine.execution_options(**{_WRITES: True})
        with _told(self.address), writes.connect() as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open one transaction that only reads."""
        with _told(self.address), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """SQLite's own connection, without a transaction: for what takes none."""
        with _told(self.address), contextlib.closing(self.engine.raw_connection()) as raw:
            connection = raw.driver_connection
            assert isinstance(connection, sqlite3.Connection)
            yield connection

    def close(self) -> None:
        """Let go of it; may be called twice."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _engine(address: Address, patience: float) -> Engine:
    if address.file is not None:
        url = URL.create("sqlite", database=str(address.file))
        engine = sqlalchemy.create_engine(url, connect_args={"timeout": patience})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    url = make_url(address.url).set(drivername="postgresql+psycopg")
    asked = {
        "connect_timeout": _ANSWER,
        # A server that is gone without a word, and one where somebody else holds what we need.
        "tcp_user_timeout": int(patience * 1000),
        "options": f"-c lock_timeout={int(patience * 1000)}",
        "application_name": "pdrgate",
    }
    own = {key: value for key, value in asked.items() if key not in url.query}
    return sqlalchemy.create_engine(url, connect_args=own)


def _choose_journal(file: Path, patience: float) -> None:
    """Let SQLite keep a write-ahead log, so that who reads does not wait for who writes.

    It takes memory that processes share, which a network file system has not. There the file keeps the journal that
    it has, or gets one that takes none: the attempt has left it in a mode that SQLite reads there only alone.
    """
    until = time.monotonic() + patience
    while True:
        try:
            with contextlib.closing(sqlite3.connect(file, timeout=patience)) as connection:
                mode, pages = (_first(connection, f"PRAGMA {name}") for name in ("journal_mode", "page_count"))
                if mode == "wal" or not pages:
                    _first(connection, "PRAGMA journal_mode = WAL")
                    _first(connection, "SELECT count(*) FROM sqlite_master")
                return
        except sqlite3.OperationalError as error:
            code = error.sqlite_errorcode & 0xFF
            if code in _WITHOUT_SHARED_MEMORY and os.access(file.parent, os.W_OK):  # not of a read-only disk
                break
            # For this statement alone SQLite does not wait: it has begun to read when it finds that another one writes.
            if code != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(0.01)
    with contextlib.closing(sqlite3.connect(file, timeout=patience)) as alone:
        _first(alone, "PRAGMA locking_mode = EXCLUSIVE")
        _first(alone, "PRAGMA journal_mode = TRUNCATE")


def _first(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]


def _prepare_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # we begin transactions ourselves: Python begins them too late
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    # Who is going to write takes the lock at once: one that has read before would not wait for it, but fail.
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextlib.contextmanager
def _told(address: Address) -> Iterator[None]:
    """Say what failed, where, and what to do about it."""
    try:
        yield
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise StorageError(
            f"the history {address}: a PostgreSQL server takes psycopg; install it: pip install 'pdrgate[postgresql]'"
        ) from error
    except (SQLAlchemyError, sqlite3.Error, OSError, OverflowError) as error:
        kind, remedy = _remedy(error)
        raise kind(f"the history {address}: {remedy}") from error


def _remedy(error: Exception) -> tuple[type[StorageError | DataError], str]:
    original = error.orig if isinstance(error, DBAPIError) else error
    lines = [line.strip() for line in str(original).splitlines() if line.strip()]
    reason = (getattr(original, "strerror", None) or (lines[0] if lines else type(error).__name__)).rstrip(".")
    for part, kind, remedy in _REMEDIES:
        if part in reason:
            return kind, f"{reason}; {remedy}"
    return StorageError, reason


_LOCAL = "does it lie on a network file system? take a file of a local disk, or a PostgreSQL server"
_REMEDIES: tuple[tuple[str, type[StorageError | DataError], str], ...] = (
    ("database is locked", StorageError, f"another program is writing to it: try again when that has ended; {_LOCAL}"),
    ("lock timeout", StorageError, "another program is writing to it: try again when that has ended"),
    ("locking protocol", StorageError, _LOCAL),
    ("disk I/O error", StorageError, _LOCAL),
    ("Input/output error", StorageError, _LOCAL),
    ("Stale file handle", StorageError, _LOCAL),
    ("disk is full", StorageError, "make room there"),
    ("quota exceeded", StorageError, "make room there"),
    ("No space left", StorageError, "make room there"),
    ("Permission denied", StorageError, "take another file, or mend its permissions"),
    ("permission denied for", StorageError, "let that user read and write the tables: GRANT"),
    ("read-only transaction", StorageError, "name the server that is written to, and no replica"),
    ("Read-only file system", StorageError, "it cannot be written to: take another file"),
    ("readonly database", StorageError, "it cannot be written to: take another file, or mend its permissions"),
    ("unable to open", StorageError, "it can be neither opened nor made: take another file, or mend its permissions"),
    ("not a database", DataError, "name a history that pdrgate has written, or a file that is not there yet"),
    ("malformed", DataError, "it is damaged: make a new one of the results with 'pdrgate history import'"),
    ("too large", DataError, "a number of it is beyond 63 bits"),
    ("out of range", DataError, "a number of it is beyond 63 bits"),
    ("password authentication", StorageError, "mend user or password, in the URL or in ~/.pgpass"),
    ("too many clients", StorageError, "the server has no connection left: try again later"),
    ('role "', StorageError, "make it on the server (createuser), or name another"),
    ('database "', StorageError, "make it on the server (createdb), or name another"),
    ("connection", StorageError, "see whether the server is up and the URL is right"),
)
"""Each entry has a part of the database's reason, the kind of error that it is, and what to do."""


_BESIDE = ("-wal", "-shm", "-journal")
"""SQLite keeps a part of the database in files with these endings while somebody has it open."""


def check_own(file: Path, *, create: bool) -> None:
    """Refuse what only looks like a history of this user, before SQLite opens it.

    Whoever may write in a folder that is not theirs alone can plant a link there, which makes root write elsewhere, or
    a database with tries and boots that nobody measured.

    Args:
        create: whether an empty file is made, with its folder, where there is none.

    Raises:
        DataError: it is no plain file, or another user's.
        OSError: it cannot be opened or made, or a link leads to it.
    """
    if create:
        with folder_no_follow(file.parent, make=True):
            pass
    fd = open_no_follow(file, os.O_RDONLY | os.O_NONBLOCK | (os.O_CREAT if create else 0))
    try:
        _refuse(file, os.fstat(fd))
    finally:
        os.close(fd)
    for beside in (file.with_name(f"{file.name}{ending}") for ending in _BESIDE):
        if os.path.lexists(beside):
            _refuse(beside, beside.lstat())


def _refuse(file: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"the history {file} is no plain file; name another with --history")
    us = {os.geteuid(), 0}
    if os.geteuid() == 0 and (caller := os.environ.get("SUDO_UID", "")).isdecimal():
        us.add(int(caller))
    if status.st_uid not in us:
        raise DataError(
            f"the history {file} belongs to another user (uid {status.st_uid}), who could write anything there; name "
            "another with --history"
        )

"""A history in a SQLite file: what it owes, and what it says when it cannot."""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from history_contract import HistoryContract, count, imported
from made_results import scenario, written
from sqlalchemy import create_engine

from pdrgate.cli import main
from pdrgate.gate.run.run_record import not_in_history
from pdrgate.history.address import Address
from pdrgate.history.database.connection import Database, _choose_journal, _told
from pdrgate.history.database.version import SCHEMA_TABLE, make_or_check
from pdrgate.values.errors import DataError, StorageError, UsageError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "of" / "runs.db"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with nothing in it: to copy it is faster than to make each."""
    file = tmp_path_factory.mktemp("empty") / "runs.db"
    Database.open(Address.parse(str(file)), create=True).close()
    return file


@pytest.fixture
def database(file: Path, empty: Path) -> Iterator[Database]:
    file.parent.mkdir()
    shutil.copy(empty, file)
    with opened(file) as made:
        yield made


def opened(file: Path) -> Database:
    """Open it again, and only if it is there."""
    return Database.open(Address.parse(str(file)), patience=0.2)


class TestSqlite(HistoryContract):
    pass


# --- Where it is ---


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("runs.db", "runs.db"),
        ("sqlite:////srv/runs.db", "/srv/runs.db"),
        ("sqlite:///runs.db", "runs.db"),
        (
            "postgresql://ci:secret@host:5432/runs?password=secret&sslmode=require",
            "postgresql://ci@host:5432/runs?sslmode=require",
        ),
        ("postgres://host/runs", "postgresql://host/runs"),
        ("postgresql+psycopg:///runs?host=/run/pg", "postgresql:///runs?host=/run/pg"),
    ],
)
def test_an_address_as_a_person_writes_it_and_nobodys_password(text: str, shown: str) -> None:
    assert str(Address.parse(text)) == shown
    assert str(Address.parse(shown)) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "mysql://host/runs",
        "sqlite://",
        "sqlite:///",
        "http://user:secret@host",
        "postgresql://u:secret@host:x/y",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="history") as error:
        Address.parse(text)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("url", ["postgresql://u:12#3@host/y", "postgresql://u:12?3@host/y", "postgresql://u:1/3@h/y"])
def test_a_password_that_ends_the_host_early_is_no_part_of_what_is_shown(url: str) -> None:
    with pytest.raises(UsageError) as error:
        Address.parse(url)
    assert "12" not in str(error.value)


WITH_PASSWORD = (
    "postgresql://ci:hunter2@nowhere.invalid/runs", "postgresql://nowhere.invalid/runs?password=hunter2",
    "postgresql://ci@nowhere.invalid/runs?SSLpassword=hunter2",
)  # fmt: skip


@pytest.mark.parametrize("url", WITH_PASSWORD)
@pytest.mark.parametrize(
    "words",
    [
        ("gate",), ("calibrate",), ("trend",), ("history", "list"), ("history", "import", "x"),
        ("history", "baselines"), ("history", "ungated", "x"),
    ],
)  # fmt: skip
def test_a_password_on_the_command_line_is_refused_and_not_told(
    capfd: pytest.CaptureFixture[str], words: Sequence[str], url: str
) -> None:
    assert main([*words, "--history", url]) == 64
    told = capfd.readouterr().err
    assert "hunter2" not in told
    assert "set PDRGATE_HISTORY to the URL" in told


@pytest.mark.parametrize("url", WITH_PASSWORD)
def test_the_environment_has_the_password_and_nobody_tells_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("PDRGATE_HISTORY", url)
    whole = Address.parse(url)
    assert Address.known(whole.text) == whole
    assert Address.known("postgresql://other/runs") == Address.parse("postgresql://other/runs")
    assert Address.known("runs.db").file == Path("runs.db")
    assert main(["history", "list"]) == 2
    told = capfd.readouterr().err
    assert "nowhere.invalid" in told
    assert "hunter2" not in told


# --- Its schema ---


@pytest.mark.parametrize(
    ("known", "change"),
    [
        ("5", f"UPDATE {SCHEMA_TABLE} SET schema = 5"),
        ("0004", f"DROP TABLE {SCHEMA_TABLE}; CREATE TABLE {SCHEMA_TABLE} AS SELECT '0004' AS version_num"),
    ],
)
def test_a_history_of_another_schema_is_refused_in_one_line(
    database: Database, file: Path, known: str, change: str
) -> None:
    with sqlite3.connect(file) as connection:
        connection.executescript(change)
    with pytest.raises(
        DataError,
        match=rf"runs\.db is of schema {known}, and this pdrgate reads schema 4; name a new one, and fill it from the "
        r"folders of runs with 'pdrgate history import'$",
    ):
        opened(file)


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "theirs.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE music (title)")
    with pytest.raises(
        DataError, match=r"theirs\.db is no history: it holds another program's table music; name another$"
    ):
        opened(file)
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("music",)]


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no database, but a page of text that somebody named by mistake\n" * 99)
    with pytest.raises(DataError, match=r"/x: file is not a database; name a history that pdrgate has written"):
        opened(tmp_path / "x")


def test_a_history_that_is_not_there_is_only_made_when_asked_for(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"^there is no history at .*/none\.db; 'pdrgate history import --history"):
        opened(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(StorageError, match=r"^the history /proc/no/runs\.db: "):
        Database.open(Address.parse("/proc/no/runs.db"), create=True)


def test_a_history_that_is_no_plain_file_of_ours_is_neither_read_nor_written(
    database: Database, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change may put anything there: a link makes root write elsewhere, a FIFO has it wait for ever."""
    database.close()
    victim = tmp_path / "victim"
    file.rename(victim)
    content = victim.read_bytes()
    file.symlink_to(victim)
    with pytest.raises(StorageError, match=r"of/runs\.db: it is a link; name the file itself$"):
        opened(file)
    file.unlink()
    file.symlink_to(tmp_path / "gone")
    with pytest.raises(StorageError, match="it is a link"):
        Database.open(Address(file=file), create=True)
    assert not (tmp_path / "gone").exists()
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DataError, match=r"runs\.db is no plain file; name another with --history$"):
        opened(file)
    file.unlink()
    victim.rename(file)
    for planted in (file, file.with_name("runs.db-wal")):
        planted.touch()
        if os.geteuid() == 0:
            os.chown(planted, 12345, -1)
            monkeypatch.delenv("SUDO_UID", raising=False)
            with pytest.raises(DataError, match=r"runs\.db\S* belongs to another user \(uid 12345\), who could write"):
                opened(file)
            monkeypatch.setenv("SUDO_UID", "12345")
            opened(file).close()
            os.chown(file, 0, -1)
    assert file.read_bytes() == content


# --- Several at once ---


def test_a_locked_history_is_told(database: Database, file: Path, tmp_path: Path) -> None:
    run = written(tmp_path / "run", scenario())
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        StorageError, match=r"runs\.db: database is locked; another program is writing to it: try again"
    ):
        imported(database, run)
    holder.execute("ROLLBACK")
    holder.close()
    imported(database, run)
    assert count(database)["runs"] == 1


def test_a_history_that_another_is_making_is_waited_for(file: Path) -> None:
    """SQLite turns a new file into one that many can use only when nobody writes, and does not wait for that itself."""
    file.parent.mkdir()
    maker = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    maker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match=r"runs\.db: database is locked; another program is writing to it"):
        Database.open(Address.parse(str(file)), create=True, patience=0.05)
    ends = threading.Timer(0.2, maker.execute, ("COMMIT",))
    ends.start()
    with Database.open(Address.parse(str(file)), create=True) as own:
        assert count(own) == {}
    ends.join()
    maker.close()


def test_many_write_at_once(file: Path, tmp_path: Path) -> None:
    """Each opens it anew, the first makes it; half of them bring the same run."""
    runs = [
        written(tmp_path / "runs" / str(number), scenario(), started=float(number), trials=5) for number in range(5)
    ]
    start = threading.Barrier(8)

    def bring(number: int) -> list[str]:
        start.wait()
        with Database.open(Address.parse(str(file)), create=True) as own:
            return [one.what for one in imported(own, runs[number // 2], runs[4])]

    with ThreadPoolExecutor(8) as pool:
        done = [what for each in pool.map(bring, range(8)) for what in each]
    assert (done.count("added"), done.count("known")) == (5, 11)
    with opened(file) as database:
        assert (count(database)["runs"], count(database)["trials"]) == (5, 25)


@contextlib.contextmanager
def without_shared_memory() -> Iterator[None]:
    """Let SQLite make no file as large as the memory that processes share for a write-ahead log (32 KiB)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30 << 10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_where_processes_share_no_memory_a_rollback_journal_is_kept(tmp_path: Path) -> None:
    """As on NFS, where the first statement ends with a disk I/O error."""
    file = tmp_path / "runs.db"
    with without_shared_memory():
        for number in (1, 2):
            _choose_journal(file, 0.2)
            with contextlib.closing(sqlite3.connect(file)) as one, contextlib.closing(sqlite3.connect(file)) as other:
                one.execute("CREATE TABLE IF NOT EXISTS one (name TEXT)")
                one.execute("INSERT INTO one VALUES ('x')")
                one.commit()
                assert other.execute("SELECT count(*) FROM one").fetchone() == (number,)


def test_a_write_ahead_log_that_came_to_where_it_cannot_be_is_left_behind(tmp_path: Path) -> None:
    """As a file that was copied to NFS."""
    file = tmp_path / "runs.db"
    with contextlib.closing(sqlite3.connect(file)) as one:
        one.execute("PRAGMA journal_mode = WAL")
        one.execute("CREATE TABLE one (name TEXT)")
    with without_shared_memory():
        _choose_journal(file, 0.2)
        with contextlib.closing(sqlite3.connect(file)) as one:
            assert one.execute("SELECT count(*) FROM one").fetchone() == (0,)


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("locking protocol", "does it lie on a network file system? take a file of a local disk, or a PostgreSQL"),
        ("disk I/O error", "does it lie on a network file system? take a file of a local disk, or a PostgreSQL"),
        ('FATAL: password authentication failed for user "ci"', "mend user or password"),
        ('FATAL: database "perf" does not exist', "make it on the server"),
        ("permission denied for table runs", "let that user read and write the tables: GRANT"),
    ],
)
def test_an_error_of_the_database_has_a_remedy(reason: str, remedy: str, tmp_path: Path) -> None:
    address = Address.parse(str(tmp_path / "runs.db"))
    with pytest.raises(StorageError) as caught, _told(address):
        raise sqlite3.OperationalError(reason)
    assert str(caught.value).startswith(f"the history {address}: {reason}; {remedy}")


def test_who_reads_does_not_wait_for_who_writes(database: Database, file: Path, tmp_path: Path) -> None:
    imported(database, written(tmp_path / "a", scenario()))
    with opened(file) as other, other.writing() as connection:
        make_or_check(connection, "")  # it holds the lock
        assert count(database)["runs"] == 1


def test_an_error_in_between_leaves_nothing(database: Database, tmp_path: Path) -> None:
    def fail() -> None:
        with database.writing() as connection:
            connection.exec_driver_sql("INSERT INTO environments VALUES ('x', '{}')")
            connection.exec_driver_sql("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(StorageError, match=r"runs\.db: no such table: nowhere$"):
        fail()
    assert count(database) == {}


def test_sqlite_checks_what_refers_to_what(file: Path, database: Database) -> None:
    with pytest.raises(StorageError, match="FOREIGN KEY"), database.writing() as connection:
        connection.exec_driver_sql("INSERT INTO results VALUES (1, 77, '', '', NULL, '', 0, 0)")
    assert create_engine(f"sqlite:///{file}").connect().exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


# --- When a run ends ---


class TestWhatARunIsTold:
    @pytest.fixture
    def run(self, tmp_path: Path) -> Path:
        return written(tmp_path / "my run", scenario())

    @staticmethod
    def told(where: Path | str, run: Path) -> str:
        """What stands in brackets."""
        address = Address.parse(str(where))
        line = not_in_history(address, run, patience=0.2)
        begin = (
            "the run is complete in its folder and not in the history; put it in later: "
            f"pdrgate history import '{run}' --history {shlex.quote(str(address))} ("
        )
        assert line.startswith(begin)
        assert line.count("\n") == 0
        return line.removeprefix(begin).removesuffix(")")

    def test_nothing_when_it_is_there(self, file: Path, run: Path) -> None:
        assert not_in_history(Address.parse(str(file)), run) == ""
        assert not_in_history(Address.parse(str(file)), run) == ""
        with opened(file) as database:
            assert count(database)["runs"] == 1

    def test_one_that_is_locked(self, database: Database, file: Path, run: Path) -> None:
        with database.writing():
            assert self.told(file, run).startswith(f"the history {file}: database is locked; another program is ")

    def test_one_that_is_gone_is_made_anew(self, database: Database, file: Path, run: Path) -> None:
        file.unlink()
        assert not_in_history(Address.parse(str(file)), run) == ""

    def test_a_server_that_does_not_answer(self, run: Path) -> None:
        said = self.told("postgresql://ci:secret@/runs?host=/nowhere", run)
        assert said.startswith("the history postgresql://ci@/runs?host=/nowhere: connection ")
        assert said.endswith("; see whether the server is up and the URL is right")

    def test_a_folder_that_cannot_be_made(self, run: Path) -> None:
        assert self.told("/proc/none/runs.db", run) == "the history /proc/none/runs.db: No such file or directory"

    def test_a_damaged_one(self, database: Database, file: Path, run: Path) -> None:
        imported(database, run)
        database.close()
        content = file.read_bytes()
        file.write_bytes(content[:4096] + b"\xaa" * (len(content) - 4096))
        assert "malformed; it is damaged: make a new one of the results" in self.told(file, run)

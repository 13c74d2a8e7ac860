"""A history on a real PostgreSQL: what it owes, many writers at once, a server that goes away."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from history_contract import HistoryContract, count, imported
from made_results import compared, scenario, written
from postgresql_server import PostgresqlServer, programs

from pdrgate.cli import main
from pdrgate.gate.run.run_record import not_in_history
from pdrgate.history.address import Address
from pdrgate.history.database.connection import Database
from pdrgate.history.database.experience import Experience
from pdrgate.history.database.importing import add
from pdrgate.history.database.version import SCHEMA_TABLE
from pdrgate.values.errors import DataError, StorageError

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    if programs() is None:
        pytest.skip("PostgreSQL is not installed; run ./ci/bootstrap --dev")
    server = PostgresqlServer()
    try:
        server.start()
        Database.open(Address.parse(server.url("postgres"))).close()  # what the others are copied from
        command(server, "CREATE DATABASE empty TEMPLATE postgres")
        yield server
    finally:
        server.remove()


def command(server: PostgresqlServer, text: str, database: str = "template1") -> None:
    with psycopg.connect(server.url(database), autocommit=True) as connection:
        connection.execute(text.encode())


@pytest.fixture
def url(server: PostgresqlServer) -> str:
    """Of a database without any table."""
    name = f"new{next(_NUMBERS)}"
    command(server, f"CREATE DATABASE {name}")
    return server.url(name)


@pytest.fixture
def database(server: PostgresqlServer) -> Iterator[Database]:
    name = f"copy{next(_NUMBERS)}"
    command(server, f"CREATE DATABASE {name} TEMPLATE empty")
    with Database.open(Address.parse(server.url(name)), patience=0.5) as opened:
        yield opened


class TestPostgresql(HistoryContract):
    pass


def test_many_write_at_once(url: str, tmp_path: Path) -> None:
    """Each opens it anew, the first makes the tables; half of them bring the same run, of the same fingerprints."""
    runs = [
        written(tmp_path / "runs" / str(number), compared(), started=float(number), trials=50) for number in range(5)
    ]
    start = threading.Barrier(8)

    def bring(number: int) -> list[str]:
        start.wait()
        with Database.open(Address.parse(url)) as own:
            return [one.what for one in imported(own, runs[number // 2], runs[4])]

    with ThreadPoolExecutor(8) as pool:
        done = [what for each in pool.map(bring, range(8)) for what in each]
    assert (done.count("added"), done.count("known")) == (5, 11)
    with Database.open(Address.parse(url)) as database:
        assert {name: count(database)[name] for name in ("runs", "results", "sides", "trials")} == {
            "runs": 5, "results": 5, "sides": 10, "trials": 250,
        }  # fmt: skip


def test_a_server_that_goes_away_in_the_middle(server: PostgresqlServer, url: str, tmp_path: Path) -> None:
    first = written(tmp_path / "a", scenario(), started=1.0, trials=5)
    second = written(tmp_path / "b", scenario(), started=2.0, trials=5)

    def gone_in_between(database: Database) -> None:
        with database.writing() as connection:
            add(connection, second)
            server.stop()

    with Database.open(Address.parse(url)) as database:
        imported(database, first)
        with pytest.raises(StorageError, match=r"^the history postgresql://pdrgate@/new\d+\?host=.*: .*connection.*"):
            gone_in_between(database)
        told = not_in_history(Address.parse(url), second)
        assert told.startswith("the run is complete in its folder and not in the history; put it in later: pdrgate ")
        assert told.count("\n") == 0
        with pytest.raises(StorageError):  # what a comparison is told, and goes on
            Experience(Address.parse(url)).tries("any")
        server.start()
        # Half a transaction is none, and the next one finds its way.
        assert (count(database)["runs"], count(database)["trials"]) == (1, 5)
        assert [one.what for one in imported(database, first, second)] == ["known", "added"]


def test_somebody_who_holds_the_tables(database: Database, tmp_path: Path) -> None:
    run = written(tmp_path / "a", scenario())
    with contextlib.closing(psycopg.connect(database.address.url)) as holder:
        holder.execute("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StorageError, match=r"lock timeout; another program is writing to it: try again"):
            imported(database, run)
    assert [one.what for one in imported(database, run)] == ["added"]


def test_a_history_of_another_schema_is_refused_in_one_line(database: Database) -> None:
    with psycopg.connect(database.address.url) as connection:
        connection.execute(f"UPDATE {SCHEMA_TABLE} SET schema = 5".encode())
    with pytest.raises(
        DataError, match=r" is of schema 5, and this pdrgate reads schema 4; name a new one, and fill it"
    ):
        Database.open(database.address)


def test_another_programs_tables_are_left_alone(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE music (title text)")
    Database.open(Address.parse(url)).close()  # beside them
    with psycopg.connect(url) as connection:
        connection.execute(f"DROP TABLE {SCHEMA_TABLE}".encode())
    with pytest.raises(DataError, match=r"is no history: it holds another program's table "):
        Database.open(Address.parse(url))


@pytest.mark.parametrize(
    ("name", "said"),
    [("none", 'database "none" does not exist'), ("postgres&user=x", 'role "x" does not exist')],
)
def test_what_is_not_there(server: PostgresqlServer, name: str, said: str) -> None:
    url = server.url("postgres") + name.removeprefix("postgres") if "&" in name else server.url(name)
    with pytest.raises(StorageError) as error:
        Database.open(Address.parse(url))
    assert said in str(error.value)


def test_the_commands_take_its_url(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = written(tmp_path / "a", scenario(), trials=3)
    assert main(["history", "import", str(run), "--history", url]) == 0
    assert capsys.readouterr().out == f"{run}: added (1 result, 3 trials)\n"
    assert main(["history", "list", "--history", url, "--build", "6.18.44"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2

"""How long the history takes to answer, with 1,000,000 trials and 100,000 results in it: SQLite and PostgreSQL.

    PYTHONPATH=libraries:tests/fakes .venv/bin/python tests/bench/history_queries.py

The rows are MADE UP, by numbers from a seed: they fill the tables as four testbeds with five scenarios each would in
years, and mean nothing. Both databases get the same. A server is started for this, on a socket of its own.

Prints the median and the longest of 20 askings, in milliseconds. What the gate itself asks is marked with a star.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from made_results import FINGERPRINT, compared, written
from postgresql_server import PostgresqlServer, programs
from sqlalchemy import Connection, text

from pdrgate.history.address import Address
from pdrgate.history.database.baselines import LATEST_GREEN, measured, pin, pins
from pdrgate.history.database.connection import Database
from pdrgate.history.database.experience import Experience
from pdrgate.history.database.importing import add
from pdrgate.history.database.queries import Wanted, all_series, entries, points, side_cost
from pdrgate.history.database.tables import (
    BootRow,
    ChangeRow,
    ExperienceRow,
    FingerprintRow,
    MeasurandRow,
    ResultRow,
    RunRow,
    SideRow,
    TrialRow,
)
from pdrgate.results.fingerprint import build_digest, conditions, digest, series
from pdrgate.results.verdict import Verdict

ASKED = 20
TESTBEDS, SCENARIOS, KERNELS, FUNCTIONS = 4, 5, 500, 10
CHUNK = 2_000
"""Runs to an insert."""
COMPARISONS = 1000
"""That have told what boots deviate by, on each testbed in each scenario."""
NAMES = ("PDR", "saturation throughput", "cost")
VERDICTS = ["PASS"] * 16 + ["NO_BASELINE", "REGRESSION", "UNSTABLE", "DISTURBED"]


def fingerprint_of(run: int, scenario: int) -> dict[str, str]:
    return FINGERPRINT | {
        "testbed": f"rack-{run % TESTBEDS}", "scenario": f"scenario-{scenario}",
        "kernel": f"6.{run // TESTBEDS % KERNELS}",
    }  # fmt: skip


@functools.cache
def digests(testbed: int, scenario: int, kernel: int) -> tuple[str, str, str]:
    """Of a fingerprint: its own, its build's and its series'."""
    own = fingerprint_of(kernel * TESTBEDS + testbed, scenario)
    return digest(own), build_digest(own), series(own)


def fill(database: Database, results: int, trials: int) -> None:
    """Runs of five scenarios of one build each, and the trials of all."""
    runs = results // SCENARIOS
    random = Random(10)
    for first in range(0, runs, CHUNK):
        made = made_rows(random, range(first, min(first + CHUNK, runs)), trials // runs)
        with database.writing() as connection:
            for table, rows in made.items():
                put(connection, table, rows)
    with database.writing() as connection:
        kept = [*made_noise(random), *made_tries()]
        put(connection, ExperienceRow, [{"id": number, **one} for number, one in enumerate(kept, 1)])
        if connection.dialect.name == "postgresql":
            for table in ("runs", "results", "sides", "boots", "trials", "experience"):
                connection.execute(text(f"SELECT setval('{table}_id_seq', (SELECT max(id) FROM {table}))"))
            connection.execute(text("ANALYZE"))  # as its own autovacuum would in a minute


def made_noise(random: Random) -> list[dict[str, Any]]:
    """Comparisons of four pairs on each testbed, in each scenario."""
    found = []
    for number in range(COMPARISONS * TESTBEDS * SCENARIOS):
        own = fingerprint_of(number, number // TESTBEDS % SCENARIOS)
        boots = [
            {
                "build": f"build-{boot % 2}", "boot": f"boot-{number}-{boot}", "pair": boot // 2 + 1,
                "values": {name: 1e6 * random.gauss(1, 0.01) for name in NAMES},
                "within": {"saturation throughput": {"deviation": 0.003, "count": 8}},
            }
            for boot in range(8)
        ]  # fmt: skip
        found.append({
            "key": f"noise-{number}", "kind": "noise", "subject": series(own), "moment": 1.7e9 + 600.0 * number,
            "content": json.dumps({
                "seen": {"when": 1.7e9 + 600.0 * number, "boots": boots}, "conditions": conditions(own)
            }),
        })  # fmt: skip
    return found


def made_tries() -> list[dict[str, Any]]:
    """As many as there are comparisons on all testbeds, three of each two builds."""
    pairs = {name: [[1e6, 1.01e6]] * 8 for name in NAMES}
    found = []
    for number in range(COMPARISONS * TESTBEDS * SCENARIOS):
        one = {"run": f"run-{number}", "when": 1.7e9 + 600.0 * number, "verdict": "REGRESSION", "pairs": pairs}
        found.append({
            "key": f"try-{number}", "kind": "try", "subject": f"compared-{number // 3}", "moment": one["when"],
            "content": json.dumps(one),
        })  # fmt: skip
    return found


def put(connection: Connection, table: type[Any], rows: list[dict[str, Any]]) -> None:
    """As fast as the database takes rows, without SQLAlchemy in between."""
    if not rows:
        return
    names = list(rows[0])
    columns = ", ".join(f'"{name}"' for name in names)
    content = [
        tuple(json.dumps(value) if isinstance(value, list | dict) else value for value in row.values()) for row in rows
    ]
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(names))
        driver.executemany(f"INSERT INTO {table.__tablename__} ({columns}) VALUES ({marks})", content)
        return
    with driver.cursor() as cursor, cursor.copy(f"COPY {table.__tablename__} ({columns}) FROM STDIN") as copy:
        for row in content:
            copy.write_row(row)


def made_rows(random: Random, runs: range, trials: int) -> dict[type[Any], list[dict[str, Any]]]:
    """By table, what these runs have there; each refers to tables before its own."""
    found: dict[type[Any], list[dict[str, Any]]] = {
        table: []
        for table in (
            RunRow,
            FingerprintRow,
            ResultRow,
            SideRow,
            MeasurandRow,
            BootRow,
            ChangeRow,
            TrialRow,
        )
    }
    for run in runs:
        started = 1.7e9 + 600.0 * run
        found[RunRow].append({
            "id": run + 1, "key": f"key-{run}", "content": "", "name": f"run-{run}", "source": f"/made/up/{run}",
            "started": started, "finished": started + 60, "pdrgate": "0", "profile": "quick",
            "testbed": f"rack-{run % TESTBEDS}", "testbed_kind": "rack", "verdict": "PASS", "reason": "made up",
            "command": "",
        })  # fmt: skip
        for scenario in range(SCENARIOS):
            own = fingerprint_of(run, scenario)
            key = run * SCENARIOS + scenario + 1
            value = 1e6 * random.gauss(1, 0.01)
            whole, of_build, of_series = digests(run % TESTBEDS, scenario, run // TESTBEDS % KERNELS)
            if run < TESTBEDS * KERNELS:
                found[FingerprintRow].append({"digest": whole, "entries": own})
            found[ResultRow].append({
                "id": key, "run_id": run + 1, "scenario": own["scenario"], "title": "made up",
                "verdict": random.choice(VERDICTS), "reason": "made up", "started": started, "trials": trials,
            })  # fmt: skip
            found[SideRow].append({
                "id": key, "result_id": key, "side": "", "label": "", "kernel": own["kernel"], "build": of_build,
                "series": of_series, "started": started, "fingerprint": whole, "cost": {
                    "instructions": 5000.0, "batch": None, "trials": 3, "functions": [
                        {"name": f"function_{number}", "instructions": 100.0, "calls": 1.0}
                        for number in range(FUNCTIONS)
                    ],
                },
            })  # fmt: skip
            found[MeasurandRow].extend(
                {
                    "side_id": key, "name": name, "unit": "packets/s", "better": "higher", "value": value,
                    "lower": 0.99 * value, "upper": 1.01 * value, "samples": [value] * 6,
                }
                for name in NAMES
            )  # fmt: skip
            found[BootRow].append({
                "id": key, "side_id": key, "pair": 0, "boot": f"boot-{run}", "kernel": own["kernel"],
                "values": {"PDR": value}, "failure": "", "complaints": [],
            })  # fmt: skip
            found[ChangeRow].append({
                "result_id": key, "measurand": "PDR", "against": "made up", "accepted": True, "verdict": "PASS",
                "change": 0.0, "lower": -0.01, "upper": 0.01, "confidence": 0.99, "tolerance": 0.02, "pairs": 0,
            })  # fmt: skip
        common = {
            "run_id": run + 1, "fingerprint": "", "side": "", "build": "", "boot": f"boot-{run}", "pair": 0,
            "goal": "", "phase": "repeat", "intended_duration": 1.0, "offered": 1000, "forwarded": 998, "drained": 0,
            "unsent": 0, "refused": 0, "stray": 0, "sending_time": 1.0, "under_way": [1, 2, 3], "counted": 0.0,
            "disturbed": "",
        }  # fmt: skip
        found[TrialRow].extend(
            common | {
                "scenario": f"scenario-{number % SCENARIOS}", "repeat": number, "started": started + number,
                "intended_load": 1000.0 * (number + 1),
            }
            for number in range(trials)
        )  # fmt: skip
    return found


def questions(folder: Path, experience: Experience) -> dict[str, Callable[[Connection], object]]:
    """What is asked, by what it is; those of the gate have a star."""
    asked = fingerprint_of(7, 2)
    noise = series(fingerprint_of(3, 0))
    runs = iter(
        [written(folder / f"run-{number}", compared(), started=2e9 + number, trials=100) for number in range(ASKED + 1)]
    )

    def baseline(connection: Connection) -> object:
        found = measured(connection, "release")
        return side_cost(connection, found[0].side)

    return {
        "* put a run of 100 trials in": lambda connection: add(connection, next(runs)),
        "* baseline by name, with its functions": baseline,
        "* baseline latest-green": lambda connection: measured(connection, LATEST_GREEN),
        "* what boots of a testbed came to, the newest 500": lambda _: experience.observations(noise),
        "* tries of two builds": lambda _: experience.tries("compared-77"),
        "* points of a trend, all 5,000": lambda connection: points(connection, asked),
        "names of baselines": pins,
        "list: the newest 50": lambda connection: entries(connection, Wanted(limit=50)),
        "list: 50 of a scenario and verdict": lambda connection: entries(
            connection, Wanted(scenario="scenario-3", verdict=Verdict.REGRESSION, limit=50)
        ),
        "list: 50 of a kernel": lambda connection: entries(connection, Wanted(build="6.77", limit=50)),
        "list: 50 of kernels like 6.4*": lambda connection: entries(connection, Wanted(build="6.4*", limit=50)),
        "list: of the last week": lambda connection: entries(connection, Wanted(since=1.7e9 + 600.0 * 19_000)),
        "every series there is": lambda connection: all_series(connection),
    }  # fmt: skip


def measure(database: Database, folder: Path, results: int, trials: int) -> dict[str, tuple[float, float]]:
    began = time.perf_counter()
    fill(database, results, trials)
    print(f"  filled in {time.perf_counter() - began:.0f} s", flush=True)
    with database.writing() as connection:
        pin(connection, "run-30", "release")
    found = {}
    for name, ask in questions(folder, Experience(database.address)).items():
        times = []
        for _ in range(ASKED + 1):
            began = time.perf_counter()
            with database.writing() if "put" in name else database.reading() as connection:
                ask(connection)
            times.append(1000 * (time.perf_counter() - began))
        found[name] = (statistics.median(times[1:]), max(times[1:]))  # the first asking fills caches
        print(f"  {name}: {found[name][0]:.1f} ms", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=100_000)
    parser.add_argument("--trials", type=int, default=1_000_000)
    asked = parser.parse_args()
    print(f"{asked.results:,} results and {asked.trials:,} trials, all made up")
    tables: dict[str, dict[str, tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        print("SQLite", flush=True)
        with Database.open(Address(file=Path(folder) / "runs.db"), create=True) as database:
            tables["SQLite"] = measure(database, Path(folder) / "a", asked.results, asked.trials)
            print(f"  {(Path(folder) / 'runs.db').stat().st_size / 1e6:.0f} MB")
        if programs() is not None:
            server = PostgresqlServer()
            try:
                server.start()
                print("PostgreSQL", flush=True)
                with Database.open(Address.parse(server.url("postgres"))) as database:
                    tables["PostgreSQL"] = measure(database, Path(folder) / "b", asked.results, asked.trials)
            finally:
                server.remove()
    print(f"\n{'median (longest) of 20, ms':42s}" + "".join(f"{name:>20s}" for name in tables))
    for question in tables["SQLite"]:
        cells = (f"{own[question][0]:.1f} ({own[question][1]:.1f})" for own in tables.values())
        print(f"{question:42s}" + "".join(f"{cell:>20s}" for cell in cells))


if __name__ == "__main__":
    main()

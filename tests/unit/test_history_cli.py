"""``pdrgate history`` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from flat_values import changed, flat_side
from made_results import compared, scenario, written

from pdrgate.cli import main
from pdrgate.history.database.export import write_csv
from pdrgate.results.model import MeasurandResult
from pdrgate.results.verdict import Verdict


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, utc: None) -> list[str]:
    """The options of a history with two runs, b the newer one."""
    written(tmp_path / "results" / "a", scenario(), started=1e9, trials=2)
    written(tmp_path / "results" / "b", compared("REGRESSION"), started=1e9 + 3600)
    monkeypatch.chdir(tmp_path)
    assert main(["history", "import", "results"]) == 0
    return ["--history", "results/history.db"]


def test_what_was_imported_is_told_run_by_run(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["history", "import", "results", "--history", "other.db"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "results/a: added (1 result, 2 trials)",
        "results/b: added (1 result)",
    ]
    assert main(["history", "import", "results/a", "results/b/result.json", *where]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "results/a: there already (1 result, 2 trials)",
        "results/b/result.json: there already (1 result)",
    ]


@pytest.mark.parametrize("name", ["IPv6 routing", "IPv6*", "ipv6-routing-1cpu-4096-64B"])
def test_a_scenario_is_listed_by_its_label_and_by_its_stored_name(
    name: str, where: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["history", "list", "--scenario", name]) == 0
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()[1:]] == ["b", "a"]


def test_a_table_of_the_newest_first(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["history", "list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "STARTED           RUN  SCENARIO      BUILD       VERDICT      PDR, TCP OR COST  CHANGE",
        "2001-09-09 02:46  b    IPv6 routing  linux-6.19  REGRESSION             1 Mpps   -1.0%",
        "2001-09-09 01:46  a    IPv6 routing  6.18.44     NO_BASELINE            1 Mpps       -",
    ]


def test_a_path_is_listed_with_what_a_packet_costs_there(
    where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = MeasurandResult(name="cost", unit="instructions/packet", better="lower", value=1030.4)
    paid = compared("REGRESSION").comparison
    assert paid is not None
    (change,) = paid.changes
    paid = replace(paid, changes=(replace(change, measurand="cost", change=0.03),))
    side = flat_side(side="candidate", build="new.deb", measurands=(cost,))
    path = changed(scenario("REGRESSION", per_run=None), test="NAT", comparison=paid, pdr=None, sides=(side,))
    written(tmp_path / "results" / "c", path, started=1e9 + 7200)
    assert main(["history", "import", "results/c", *where]) == 0
    capsys.readouterr()
    assert main(["history", "list", "--scenario", "NAT"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("  REGRESSION  1030 instr./packet   +3.0%")


def test_a_red_path_whose_pdr_did_not_change_is_listed_with_the_change_that_made_it_red(
    where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = (
        MeasurandResult(name="PDR", unit="packets/s", better="higher", value=3496.0),
        MeasurandResult(name="cost", unit="instructions/packet", better="lower", value=1030.4),
    )
    paid = compared("REGRESSION").comparison
    assert paid is not None
    (change,) = paid.changes
    paid = replace(paid, changes=(
        replace(change, measurand="PDR", change=0.001, verdict=Verdict.PASS),
        replace(change, measurand="cost", change=0.027, verdict=Verdict.REGRESSION),
    ))  # fmt: skip
    side = flat_side(side="candidate", build="new.o", measurands=values)
    path = changed(scenario("REGRESSION", per_run=None), test="Filter", comparison=paid, sides=(side,))
    written(tmp_path / "results" / "c", path, started=1e9 + 7200)
    assert main(["history", "import", "results/c", *where]) == 0
    capsys.readouterr()
    assert main(["history", "list", "--scenario", "Filter"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("  REGRESSION        3.496 kpps  +0.1%, cost +2.7%")


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        (["--verdict", "REGRESSION"], ["b"]),
        (["--build", "6.18*"], ["a"]),
        (["--scenario", "ipv4*"], []),
        (["--since", "2001-09-09"], ["b", "a"]),
        (["--since", "2001-09-10"], []),
        (["--since", "30d"], []),
        (["--limit", "1"], ["b"]),
    ],
)
def test_filters(where: list[str], options: list[str], runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["history", "list", "--format", "json", *options, *where]) == 0
    assert [one["run"] for one in json.loads(capsys.readouterr().out)["results"]] == runs
    assert main(["history", "list", *options]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) - 1 == len(runs)
    assert runs or told == ["nothing of that kind is in the history"]


def test_csv_has_a_row_for_each_measurand_of_each_build(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["history", "export", *where]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(one["run"], one["side"], one["build"], one["value"], one["change"]) for one in rows] == [
        ("a", "", "6.18.44", "1000000.0", ""),
        ("b", "baseline", "linux-6.18.44", "1000000.0", ""),
        ("b", "candidate", "linux-6.19", "1000000.0", "-0.01"),
    ]
    assert main(["history", "export", "--what", "trials", "--build", "6.18.44", "--output", "trials.csv", *where]) == 0
    assert capsys.readouterr().out == "trials.csv: 2 rows\n"
    with Path("trials.csv").open() as stream:
        trials = list(csv.DictReader(stream))
    assert [(one["run"], one["intended_load"], one["under_way"]) for one in trials] == [
        ("a", "1000.0", "[1, 2, 3]"), ("a", "2000.0", "[1, 2, 3]"),
    ]  # fmt: skip


def test_in_csv_a_name_is_no_formula_and_controls_no_terminal() -> None:
    stream = io.StringIO()
    assert (
        write_csv([{"build": name, "value": -1.5} for name in ("=1+1", "@x", "-x", "\x1b[31m\nx", "6.1")], stream) == 5
    )
    rows = csv.reader(io.StringIO(stream.getvalue()))
    assert [one[0] for one in rows][1:] == ["'=1+1", "'@x", "'-x", "\ufffd[31m x", "6.1"]
    assert stream.getvalue().count(",-1.5\n") == 5


def test_parquet_holds_the_same(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    capsys.readouterr()
    assert main(["history", "export", "--format", "parquet", "--output", "x.parquet", *where]) == 0
    assert capsys.readouterr().out == "x.parquet: 3 rows\n"
    rows = parquet.read_table("x.parquet").to_pylist()
    assert [(one["run"], one["value"], one["change"]) for one in rows] == [
        ("a", 1e6, None), ("b", 1e6, None), ("b", 1e6, -0.01),
    ]  # fmt: skip


def test_parquet_without_what_writes_it(
    where: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["history", "export", "--format", "parquet", "--output", "x.parquet", *where]) == 2
    assert capsys.readouterr().err == "pdrgate: Parquet takes pyarrow; install it: pip install 'pdrgate[parquet]'\n"
    assert main(["history", "export", "--format", "parquet", *where]) == 64


def test_prune(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "pin", "b", "--name", "release", *where]) == 0
    capsys.readouterr()
    assert main(["history", "prune", "--older-than", "1d", *where]) == 0
    assert capsys.readouterr().out == "1 runs are deleted; those of pinned builds are kept\n"
    assert main(["history", "prune", *where]) == 64


def test_what_cannot_be_read_keeps_nothing_else_out(
    where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "more" / "c", scenario(), started=1.0)
    spoilt = tmp_path / "more" / "b" / "result.json"
    spoilt.parent.mkdir()
    spoilt.write_text("{")
    capsys.readouterr()
    assert main(["history", "import", "more"]) == 2
    told = capsys.readouterr()
    assert told.out == "more/c: added (1 result)\n"
    assert told.err.startswith("pdrgate: left out: more/b/result.json is no JSON (")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["import", "nowhere"], 2, "nowhere: no such file or folder; name the folder of a run, or a file of trials"),
        (["import", "."], 2, ".: no run and no file of trials below this directory; name the folder of a run"),
        (["list"], 2, "there is no history at results/history.db; 'pdrgate history import --history"),
        (
            ["list", "--history", "mysql://x"],
            64,
            "Invalid value for '--history': a history is a SQLite file or",
        ),
        (["list", "--since", "yesterday"], 64, "Invalid value for '--since': 'yesterday'"),
        (["import"], 64, "Missing argument 'PATH...'"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], code: int, said: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["history", *arguments]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"pdrgate: {said}")
    assert told.err.count("\n") == 1

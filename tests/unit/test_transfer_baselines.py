"""What runs of a closed loop are compared with: a run, a folder of runs, a name in a history."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sqlite3
from pathlib import Path

import pytest
from history_contract import imported
from simulated_tcp import SimulatedLoop, transferred

from pdrgate.cli import main
from pdrgate.data_paths.catalogue import TcpStreams
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.verdicts.baseline import Baselines, HistoryBaselines
from pdrgate.history.address import Address
from pdrgate.history.database.baselines import pin
from pdrgate.history.database.connection import Database
from pdrgate.history.database.experience import Experience
from pdrgate.replication import NoiseObservation
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import DataError

MEASURANDS = ["TCP throughput", "round trip under load", "transmissions per segment"]
SMALL = Scenario("tcp-transfer", tcp=TcpStreams(window=64))
WORSE = {
    "equal": (SimulatedLoop(seed=9), Verdict.PASS, "not slower: TCP throughput"),
    "slower": (SimulatedLoop(speed=9e9, seed=9), Verdict.REGRESSION, "slower: TCP throughput "),
    "lossy": (SimulatedLoop(again=0.02, seed=9), Verdict.REGRESSION, "slower: transmissions per segment 1.02"),
    "inflated": (SimulatedLoop(waits=1e-3, seed=9), Verdict.REGRESSION, "slower: round trip under load 1.84 ms"),
}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with four runs of one build, which are compared with nothing, and what twelve days of it tell."""
    kept = Experience(Address.beside(tmp_path))
    for number in range(4):
        (one,) = transferred(tmp_path / "runs" / f"of-{number}", SimulatedLoop(seed=number), experience=kept)
        assert one.verdict is Verdict.NO_BASELINE
    with contextlib.closing(sqlite3.connect(tmp_path / "history.db", isolation_level=None)) as history:
        ((testbed,),) = history.execute("SELECT DISTINCT subject FROM experience WHERE kind = 'noise'")
    days = [seen for _ in range(3) for seen in kept.observations(testbed)]
    for number, seen in enumerate(days[1:], 1):
        (boot,) = seen.boots
        boots = (dataclasses.replace(boot, boot=f"{boot.boot}-{number}"),)
        kept.add_observation(testbed, {}, NoiseObservation(when=seen.when - 86400.0 * number, boots=boots))
    return tmp_path / "runs"


@pytest.mark.parametrize(("loop", "verdict", "telling"), WORSE.values(), ids=WORSE)
@pytest.mark.parametrize("named", ["of-0", ""], ids=["run", "folder"])
def test_stored_runs(
    runs: Path, tmp_path: Path, named: str, loop: SimulatedLoop, verdict: Verdict, telling: str
) -> None:
    kept = Experience(Address.beside(tmp_path))
    before = Baselines(runs / named, tmp_path)
    (told,) = transferred(tmp_path / "later", loop, baselines=before, kernel="6.19", experience=kept)
    assert (told.verdict, told.reason[: len(telling)]) == (verdict, telling)
    assert told.comparison is not None
    assert [one.measurand for one in told.comparison.changes] == MEASURANDS
    assert told.comparison.baseline == str(runs / (named or "of-3") / "result.json")


def test_a_folder_of_runs_does_not_ratchet(runs: Path, tmp_path: Path) -> None:
    """Each a little slower than the one before it; only what was compared with nothing is compared with."""
    kept = Experience(Address.beside(tmp_path))
    verdicts = []
    for step in range(1, 4):
        loop = SimulatedLoop(speed=10e9 * 0.985**step, seed=20 + step)
        own = runs / f"step-{step}"
        (told,) = transferred(own, loop, baselines=Baselines(runs, own), kernel=f"7.{step}", experience=kept)
        assert told.comparison is not None
        assert told.comparison.baseline == str(runs / "of-3" / "result.json")
        verdicts.append(told.verdict)
    assert verdicts[-1] is Verdict.REGRESSION, verdicts


def test_a_folder_without_this_window_is_no_baseline_and_says_why(runs: Path, tmp_path: Path) -> None:
    baselines = Baselines(runs, tmp_path)
    (told,) = transferred(tmp_path / "later", SimulatedLoop(), baselines=baselines, scenario=SMALL)
    assert told.verdict is Verdict.NO_BASELINE
    assert "has no result of this scenario (it has: TCP" in told.reason


def test_what_a_run_measured_twice_serves_by_what_was_stable(tmp_path: Path) -> None:
    """The suite of TCP measures one scenario by itself and after its window curve, which may have had no knee."""
    first, second = transferred(tmp_path / "runs" / "twice", SimulatedLoop(), SimulatedLoop(scatter=0.3))
    assert (first.verdict, second.verdict) == (Verdict.NO_BASELINE, Verdict.UNSTABLE)
    for path in (tmp_path / "runs", tmp_path / "runs" / "twice"):
        found, why = Baselines(path, tmp_path).find(first.findings.fingerprint)
        assert found is not None, why
        assert found.scenario.measurand("TCP throughput") == first.measurand("TCP throughput")


def test_what_is_told_beside_the_throughput_may_be_missing(tmp_path: Path) -> None:
    """A processor that counted in one repeat alone, or a rest that was told once, refused the whole baseline."""
    (one,) = transferred(tmp_path / "runs" / "first", SimulatedLoop())
    file = tmp_path / "runs" / "first" / "result.json"
    stored = json.loads(file.read_text())
    (inflation,) = (each for each in stored["scenarios"][0]["measurands"] if each["name"] == "round trip under load")
    inflation["samples"] = inflation["samples"][:1]
    file.write_text(json.dumps(stored))
    found, why = Baselines(file, tmp_path).find(one.findings.fingerprint)
    assert found is not None, why
    (told,) = transferred(tmp_path / "later", SimulatedLoop(seed=2), baselines=Baselines(file, tmp_path))
    assert told.comparison is not None
    assert [each.measurand for each in told.comparison.changes] == [MEASURANDS[0], MEASURANDS[2]]


def test_a_baseline_of_other_measurands_is_none_and_says_so(tmp_path: Path) -> None:
    transferred(tmp_path / "runs" / "first", SimulatedLoop())
    file = tmp_path / "runs" / "first" / "result.json"
    stored = json.loads(file.read_text())
    for each in stored["scenarios"][0]["measurands"]:
        each["name"] += ", as it once was"
    file.write_text(json.dumps(stored))
    (told,) = transferred(tmp_path / "later", SimulatedLoop(seed=2), baselines=Baselines(file, tmp_path))
    assert told.verdict is Verdict.NO_BASELINE
    assert f"; {file} has none of these measurands by two samples or more; " in told.reason


def in_history(file: Path, *paths: Path) -> Address:
    where = Address(file=file)
    with Database.open(where, create=True) as database:
        imported(database, *paths)
    return where


def pinned(where: Address, run: str, name: str) -> None:
    with Database.open(where) as database, database.writing() as connection:
        pin(connection, run, name)


def test_what_a_run_measured_twice_is_one_boot_of_a_history(tmp_path: Path) -> None:
    transferred(tmp_path / "runs" / "twice", SimulatedLoop(), SimulatedLoop(seed=2))
    where = in_history(tmp_path / "h.db", tmp_path / "runs")
    pinned(where, "twice", "release")
    (own,) = transferred(tmp_path / "own", SimulatedLoop())
    found, _ = HistoryBaselines(where, "release", tmp_path).find(own.findings.fingerprint)
    assert found is not None
    assert found.source == "history:release (6.18, 1 boot in 1 runs)"
    assert {name: len(samples) for name, samples in found.samples.items()} == dict.fromkeys(MEASURANDS, 12)


def test_two_boots_that_lie_apart_are_no_error(tmp_path: Path) -> None:
    """The interval of a ratio to two means that lie far apart has no end: an ERROR, until a third boot was there."""
    for number, speed in enumerate((8e9, 10e9)):
        transferred(tmp_path / "runs" / str(number), SimulatedLoop(speed=speed, seed=number))
    where = in_history(tmp_path / "h.db", tmp_path / "runs")
    pinned(where, "0", "release")
    baselines = HistoryBaselines(where, "release", tmp_path)
    (told,) = transferred(tmp_path / "own", SimulatedLoop(speed=9e9), baselines=baselines, kernel="6.19")
    assert told.verdict is Verdict.INCONCLUSIVE, told.reason
    assert told.reason.startswith("unpaired boots do not decide: TCP throughput") or "spans" in told.reason
    assert told.comparison is not None
    assert told.comparison.baseline == "history:release (6.18, 2 boots in 2 runs)"


def test_what_the_history_lacks(runs: Path, tmp_path: Path) -> None:
    where = in_history(tmp_path / "h.db", runs)
    pinned(where, "of-0", "release")
    with pytest.raises(DataError) as error:
        transferred(
            tmp_path / "later", SimulatedLoop(), scenario=SMALL,
            baselines=HistoryBaselines(where, "release", tmp_path),
        )  # fmt: skip
    assert str(error.value) == (
        "the baseline cannot serve: history:release has no stable result of this scenario (but of: "
        "TCP, 1 cpu, buffer 4096 packets, 1 stream to the SUT with a window of 1 MiB by cubic); "
        "measure it there first, or name another baseline"
    )
    newest = HistoryBaselines(where, "latest-green", tmp_path)
    (told,) = transferred(tmp_path / "newest", SimulatedLoop(), scenario=SMALL, baselines=newest)
    assert told.verdict is Verdict.NO_BASELINE
    assert "; no comparable result in the history has passed yet (history:latest-green); " in told.reason


def test_trends_show_what_is_measured_of_tcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(12):
        loop = SimulatedLoop(speed=9e9 if number > 5 else 10e9, again=0.03 if number > 5 else 0.0, seed=number)
        transferred(tmp_path / "runs" / f"{number:02}", loop, kernel=f"6.{number}")
    monkeypatch.chdir(tmp_path)
    in_history(tmp_path / "h.db", tmp_path / "runs")
    assert main(["history", "pin", "02", "--name", "release", "--history", "h.db"]) == 0
    capsys.readouterr()
    for source in (["runs"], ["--history", "h.db"]):
        assert main(["trend", *source, "--page", "trend.html"]) == 1
        lines = capsys.readouterr().out.splitlines()
        told = [line for line in lines if line.startswith("WORSE: ")]
        assert any(line.startswith("WORSE: TCP throughput went down by ") for line in told), lines
        assert any(line.startswith("WORSE: round trip under load went up by ") for line in told), lines
        assert any(line.startswith("WORSE: transmissions per segment went up by ") for line in told), lines
        page = (tmp_path / "trend.html").read_text()
        assert all(f"{name} of 12 runs, latest " in page for name in MEASURANDS)
    assert "release" in page  # the pinned baseline's mark

"""What a history owes on whatever database: a class of tests that the tests of each kind derive from.

A derived class has a fixture ``database``: an open history with nothing in it.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from pathlib import Path

import pytest
from known_noise import OF_TCP, KnownNoise, observed, spread
from made_results import FINGERPRINT, compared, pdr, result, scenario, trial, written
from simulated_tcp import SimulatedLoop, transferred
from sqlalchemy import func, select

from pdrgate.data_paths.catalogue import TcpStreams
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.verdicts.baseline import HistoryBaselines
from pdrgate.history.database.baselines import LATEST_GREEN, measured, pin, pins, pooled_boots, unpin
from pdrgate.history.database.connection import Database
from pdrgate.history.database.experience import Experience
from pdrgate.history.database.importing import Import, add, sources
from pdrgate.history.database.pruning import give_back, prune
from pdrgate.history.database.queries import Wanted, all_series, entries, points, side_cost
from pdrgate.history.database.tables import (
    Base,
    BootRow,
    ChangeRow,
    EnvironmentRow,
    FingerprintRow,
    MeasurandRow,
    RunRow,
    SideRow,
    TrialRow,
)
from pdrgate.history.results import write_result
from pdrgate.replication import NoiseFloor, Try
from pdrgate.replication.earlier_tries import LASTING
from pdrgate.results.fingerprint import build_digest, digest, series
from pdrgate.results.verdict import Verdict
from pdrgate.trend import Series
from pdrgate.values.errors import DataError, PdrGateError

STORED_RUNS = Path(__file__).parents[1] / "data" / "stored_runs"
PUBLISHED = "[[100000, 3], [1000000, 1000000, 0], [1000000, 999000, 5]]\n[[200000, 3], [2000000, 1800000, 0]]\n"


def imported(database: Database, *paths: Path) -> list[Import]:
    """What became of all that lies below the paths."""
    done = []
    for path in sources(paths):
        with database.writing() as connection:
            done.append(add(connection, path))
    return done


def count(database: Database) -> dict[str, int]:
    """Rows by table, of those that have any."""
    with database.reading() as connection:
        found = {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in Base.metadata.tables.items()
        }
    return {name: rows for name, rows in found.items() if rows}


def attempt(when: float, afresh: bool = False) -> Try:
    pairs = {"PDR": ((1e6, 0.1 + 0.2), (1.1e6, 1.1e6))}
    return Try(run=f"of {when}", when=when, verdict="REGRESSION", pairs=pairs, afresh=afresh)


_OF_THE_FILE_ALONE = (
    "counters_before", "counters_after", "functions", "stacks", "callers", "test", "returned", "left", "numbered",
    "twice", "overtaken", "fate", "looked_at", "frames", "memory",
)  # fmt: skip
"""What trials.jsonl has of a trial, and a history has not."""


class HistoryContract:
    # --- Runs ---

    def test_a_run_is_there_with_all_that_it_measured(self, database: Database, tmp_path: Path) -> None:
        run = written(tmp_path / "20261101-120000", compared("REGRESSION"), started=1e9, trials=2)
        (done,) = imported(database, run)
        assert (done.what, done.results, done.trials) == ("added", 1, 2)
        with database.reading() as connection:
            (found,) = connection.execute(select(RunRow.__table__)).mappings()
            assert found.items() >= {
                "name": "20261101-120000", "source": str(run), "started": 1e9, "finished": 1e9 + 1,
                "verdict": "REGRESSION", "profile": "quick", "testbed": "local-netns",
            }.items()  # fmt: skip
            sides = connection.execute(select(SideRow.__table__).order_by(SideRow.id)).mappings().all()
            assert [(one["side"], one["label"], one["kernel"]) for one in sides] == [
                ("baseline", "linux-6.18.44", "6.18.44"), ("candidate", "linux-6.19", "6.19"),
            ]  # fmt: skip
            newer = FINGERPRINT | {"kernel": "6.19"}
            assert (sides[1]["fingerprint"], sides[1]["build"]) == (digest(newer), build_digest(newer))
            assert {one["series"] for one in sides} == {series(FINGERPRINT)}
            assert (
                connection.execute(
                    select(FingerprintRow.entries).where(FingerprintRow.digest == sides[1]["fingerprint"])
                ).scalar_one()
                == newer
            )
            # What differs from boot to boot would make each environment one of its own.
            assert connection.execute(
                select(EnvironmentRow.entries).where(EnvironmentRow.digest == sides[1]["environment"])
            ).scalar_one() == {"kernel_release": "6.19"}
            measurand = (
                connection.execute(select(MeasurandRow.__table__).where(MeasurandRow.side_id == sides[0]["id"]))
                .mappings()
                .one()
            )
            assert {key: measurand[key] for key in ("name", "unit", "value", "lower", "upper", "samples")} == {
                "name": "PDR", "unit": "packets/s", "value": 1e6, "lower": 0.99e6, "upper": 1.01e6,
                "samples": [1.001e6, 0.999e6, 1.0e6],
            }  # fmt: skip
            boots = connection.execute(
                select(BootRow.__table__).where(BootRow.side_id == sides[0]["id"]).order_by(BootRow.pair)
            ).mappings()
            assert [(one["pair"], one["values"]) for one in boots] == [
                (1, {"PDR": 1.001e6}), (2, {"PDR": 0.999e6}), (3, {"PDR": 1.0e6}),
            ]  # fmt: skip
            change = connection.execute(select(ChangeRow.__table__)).mappings().one()
            assert (change["measurand"], change["change"], change["verdict"], change["deviation"], change["pairs"]) == (
                "PDR", -0.01, "PASS", 0.004, 3,
            )  # fmt: skip
            costs = [one for one in connection.execute(select(SideRow.cost)).scalars() if one is not None]
            assert [one["instructions"] for one in costs] == [5000.0, 5000.0]
            functions = [(each["name"], each["instructions"]) for one in costs for each in one["functions"]]
            assert functions == [("ip6_forward", 173.0)] * 2
            kept = connection.execute(select(TrialRow.__table__).order_by(TrialRow.id)).mappings().all()
            ours = json.loads(trial(2, started=1e9 + 2).to_json()) | {"disturbed": ""}  # there in words
            assert {key: kept[1][key] for key in kept[1] if key not in ("id", "run_id")} == {
                key: value for key, value in ours.items() if key not in _OF_THE_FILE_ALONE
            }

    def test_twice_is_once(self, database: Database, tmp_path: Path) -> None:
        run = written(tmp_path / "a", scenario(), compared(), trials=3)
        assert [one.what for one in imported(database, run)] == ["added"]
        before = count(database)
        # Also under another name, by its file, and when the folder was moved.
        moved = run.rename(tmp_path / "elsewhere")
        assert [one.what for one in imported(database, moved, moved / "result.json", tmp_path)] == ["known"] * 2
        assert count(database) == before

    def test_a_run_that_was_resumed_is_brought_up_to_date(self, database: Database, tmp_path: Path) -> None:
        run = written(tmp_path / "a", scenario("ERROR", per_run=None), started=1.0, trials=2)
        imported(database, run)
        with (run / "trials.jsonl").open("a") as file:
            file.write(f"{trial(3).to_json()}\n")
        write_result(run / "result.json", result(scenario("NO_BASELINE"), started=50.0, run="a"))
        assert [one.what for one in imported(database, run)] == ["replaced"]
        with database.reading() as connection:
            assert [(one.verdict, one.started, one.pdr) for one in entries(connection)] == [
                (Verdict.NO_BASELINE, 50.0, 1e6)
            ]
        assert {name: count(database)[name] for name in ("runs", "results", "trials")} == {
            "runs": 1,
            "results": 1,
            "trials": 3,
        }

    def test_a_result_without_its_trials_never_takes_them_away(self, database: Database, tmp_path: Path) -> None:
        run = written(tmp_path / "a", scenario(), trials=2)
        alone = written(tmp_path / "kept" / "a", scenario())
        assert [one.what for one in imported(database, alone)] == ["added"]
        assert [one.what for one in imported(database, run)] == ["replaced"]
        assert [one.what for one in imported(database, alone)] == ["known"]
        assert (count(database)["runs"], count(database)["trials"]) == (1, 2)

    def test_a_run_that_measured_nothing(self, database: Database, tmp_path: Path) -> None:
        imported(database, written(tmp_path / "a"), written(tmp_path / "b", started=2.0))
        assert count(database) == {"runs": 2}

    def test_stored_runs_of_one_build_and_of_two(self, database: Database) -> None:
        imported(database, STORED_RUNS)
        with database.reading() as connection:
            found = {one.run: (one.scenario, one.verdict, one.build) for one in entries(connection)}
        assert sorted(found.values()) == [
            ("ipv6-routing-1cpu-4096-64B", "NO_BASELINE", "6.2.0-simulated"),
            ("ipv6-routing-1cpu-4096-64B", "REGRESSION", "linux-b"),
        ]
        assert count(database)["trials"] == 34

    def test_text_that_no_database_takes(self, database: Database, tmp_path: Path) -> None:
        run = written(tmp_path / "a", dataclasses.replace(scenario(), reason="a NUL \0 here"))
        imported(database, run.rename(tmp_path / os.fsdecode(b"no UTF-8: \xff")))
        with database.reading() as connection:
            (found,) = entries(connection)
        assert found.reason == "a NUL \ufffd here"
        assert found.source.startswith(f"{tmp_path}/no UTF-8: \ufffd")

    # --- Files of trials ---

    def test_trials_of_a_killed_run_and_then_the_run(self, database: Database, tmp_path: Path) -> None:
        run = written(tmp_path / "a", scenario(), trials=2)
        (run / "result.json").rename(tmp_path / "result.json")
        assert [(one.what, one.trials) for one in imported(database, run)] == [("added", 2)]
        with database.reading() as connection:
            (found,) = entries(connection)
        assert (found.verdict, found.run, found.trials) == (None, "a", 2)
        (tmp_path / "result.json").rename(run / "result.json")
        assert [one.what for one in imported(database, run)] == ["replaced"]
        assert (count(database)["runs"], count(database)["trials"]) == (1, 2)

    def test_files_of_pastrami(self, database: Database, tmp_path: Path) -> None:
        file = tmp_path / "theirs" / "clab_tb1_raw_50_k6.8_intel_bare-metal_nic_buf_4096.txt"
        file.parent.mkdir()
        file.write_text(PUBLISHED)
        (tmp_path / "theirs" / "notes.txt").write_text("[see the paper]")
        for what in ("added", "known"):
            assert [(one.what, one.trials) for one in imported(database, tmp_path)] == [(what, 3)]
        with database.reading() as connection:
            (found,) = entries(connection)
            losses = (
                connection.execute(select(TrialRow.offered - TrialRow.forwarded).order_by(TrialRow.id)).scalars().all()
            )
        assert (found.scenario, found.build) == ("ipv6 bare-metal unpinned ring 4096", file.stem)
        assert losses == [0, 1000, 200_000]

    def test_what_cannot_be_read_leaves_nothing_behind(self, database: Database, tmp_path: Path) -> None:
        run = written(tmp_path / "a", scenario(), trials=2)
        (run / "trials.jsonl").write_text(f"{trial().to_json()}\n{{}}\n{trial().to_json()}\n")
        with pytest.raises(DataError, match=r"trials\.jsonl, line 2: "):
            imported(database, run)
        huge = tmp_path / "b" / "trials.jsonl"
        huge.parent.mkdir()
        huge.write_text(trial(offered=2**63, forwarded=0, drained=0).to_json() + "\n")
        with pytest.raises(DataError, match=r"a number of it is beyond 63 bits$"):
            imported(database, huge)
        assert count(database) == {}

    # --- What is asked ---

    @pytest.fixture
    def filled(self, database: Database, tmp_path: Path) -> Database:
        """Four runs: a of 6.18.44, b of 6.19 on another machine, c that compares both, d of another scenario."""
        written(tmp_path / "a", scenario(), started=1.0)
        written(tmp_path / "b", scenario("UNSTABLE", kernel="6.19", cpu_model="another"), started=2.0)
        written(tmp_path / "c", compared("REGRESSION"), started=3.0)
        written(tmp_path / "d", scenario(scenario="ipv4_routing-1cpu"), started=4.0)
        imported(database, tmp_path)
        return database

    def test_results_by_what_they_are(self, filled: Database) -> None:
        cases = [
            (Wanted(), "dcba"),
            (Wanted(limit=2), "dc"),
            (Wanted(scenario="ipv6-routing-1cpu-4096-64B"), "cba"),
            (Wanted(scenario="ipv4_*"), "d"),
            (Wanted(scenario="ipv4?*"), ""),
            (Wanted(scenario="ipv_*"), ""),
            (Wanted(build="6.19"), "cb"),
            (Wanted(build="linux-*"), "c"),
            (Wanted(verdict=Verdict.UNSTABLE), "b"),
            (Wanted(since=2.5), "dc"),
            (Wanted(since=2.5, verdict=Verdict.UNSTABLE), ""),
        ]
        with filled.reading() as connection:
            found = [(wanted, "".join(one.run for one in entries(connection, wanted))) for wanted, _ in cases]
        assert found == cases

    def test_an_entry_tells_the_candidate(self, filled: Database) -> None:
        with filled.reading() as connection:
            (found,) = entries(connection, Wanted(verdict=Verdict.REGRESSION))
        assert (found.build, found.pdr, found.lower, found.upper, found.change) == (
            "linux-6.19",
            1e6,
            0.99e6,
            1.01e6,
            -0.01,
        )

    def test_points_of_a_trend_are_of_one_testbed_and_one_scenario(self, filled: Database, tmp_path: Path) -> None:
        imported(
            filled, written(tmp_path / "e", scenario("DISTURBED", kernel="6.20", mitigations="others"), started=0.5)
        )
        with filled.reading() as connection:
            found = points(connection, FINGERPRINT | {"kernel": "7.0", "kernel_version": "any"})
            assert [(one.build, one.time, one.verdict, one.run) for one in found] == [
                ("6.20", 0.5, Verdict.DISTURBED, "e"), ("6.18.44", 1.0, Verdict.NO_BASELINE, "a"),
                ("linux-6.19", 3.0, Verdict.REGRESSION, "c"),
            ]  # fmt: skip
            assert (found[1].value, found[1].lower, found[1].upper) == (1e6, 0.99e6, 1.01e6)
            assert len({one.digest for one in found}) == 3
            assert points(connection, FINGERPRINT, "cost") == ()
            assert points(connection, FINGERPRINT | {"testbed": "rack"}) == ()
            listed = all_series(connection, Wanted(scenario="ipv6-*"))
            assert Series(
                fingerprint=series(FINGERPRINT), scenario=FINGERPRINT["scenario"], title="IPv6 routing",
                testbed="local-netns", measurand="PDR", unit=pdr().unit, better="higher", points=found,
            ) in listed  # fmt: skip
            assert sorted(len(one.points) for one in listed) == [1, 3]
            assert points(connection, series(FINGERPRINT)) == found

    # --- Baselines ---

    def test_a_name_stays_with_its_build_until_somebody_pins_another(self, filled: Database) -> None:
        with filled.writing() as connection:
            assert [one.label for one in pin(connection, "a", "release")[1]] == ["6.18.44"]
            before, now = pin(connection, "c", "release")
            assert ([one.label for one in before], [one.label for one in now]) == (["6.18.44"], ["linux-6.19"])
            pin(connection, "c", "main", side="baseline")
            assert [(one.name, one.label, one.run) for one in pins(connection)] == [
                ("main", "linux-6.18.44", "c"), ("release", "linux-6.19", "c"),
            ]  # fmt: skip
            unpin(connection, "release")
            assert [one.name for one in pins(connection)] == ["main"]

    @pytest.mark.parametrize(
        ("run", "name", "said"),
        [
            ("nope", "x", "the history has no run nope; put it in first: pdrgate history import nope"),
            ("a", LATEST_GREEN, "'latest-green' is no name for a baseline; choose another"),
            ("e", "x", "the history has 2 runs called e; name its folder"),
            ("f", "x", "the run f measured no build that can be told from others; name another run"),
        ],
    )
    def test_what_cannot_be_pinned(self, database: Database, tmp_path: Path, run: str, name: str, said: str) -> None:
        for folder, started in (("a", 1.0), ("e", 2.0), ("other/e", 3.0)):
            written(tmp_path / folder, scenario(), started=started)
        written(tmp_path / "f", started=4.0)
        imported(database, tmp_path)
        with pytest.raises(PdrGateError) as error, database.writing() as connection:
            pin(connection, run, name)
        assert str(error.value) == said
        with database.writing() as connection:
            pin(connection, str(tmp_path / "other" / "e"), "by its folder")

    def test_a_baseline_is_all_stable_boots_of_its_build(self, database: Database, tmp_path: Path) -> None:
        written(tmp_path / "a", scenario(per_run=(1.02e6, 1.0e6, 0.98e6)), started=1.0)
        written(tmp_path / "b", compared("REGRESSION", boots=(1.1e6, 0.9e6)), started=2.0)
        written(tmp_path / "c", scenario("UNSTABLE", per_run=(5e6, 6e6)), started=3.0)
        written(tmp_path / "d", scenario("PASS", kernel="6.19"), started=4.0)
        imported(database, tmp_path)
        with database.writing() as connection:
            pin(connection, "a", "release")
            found = measured(connection, "release")
            assert [(one.run, one.boots) for one in found] == [
                ("b", ({"PDR": 1.1e6}, {"PDR": 0.9e6})), ("a", ()),
            ]  # fmt: skip
            (only,), boots = pooled_boots(found)
            assert (boots, only.name, only.samples, only.value) == (3, "PDR", (1.1e6, 0.9e6, 1e6), 1e6)
            assert only.lower is not None
            assert only.lower < 0.9e6
            (single,), boots = pooled_boots(found[1:])
            assert (boots, single.samples) == (1, (1.02e6, 1.0e6, 0.98e6))
            costed = side_cost(connection, found[0].side)
            assert costed is not None
            assert (costed.instructions, costed.functions[0].name) == (5000.0, "ip6_forward")
            assert side_cost(connection, found[1].side) is None
            assert [one.run for one in measured(connection, LATEST_GREEN) if one.green] == ["d", "a"]
            with pytest.raises(DataError, match=r"^no build is pinned as 6; there are: release; 'pdrgate hist"):
                measured(connection, "6")

    def test_a_closed_loop_is_compared_with_all_boots_of_its_build(self, database: Database, tmp_path: Path) -> None:
        """Its window is part of what it is: one that is larger is another scenario."""
        for number in range(3):
            transferred(tmp_path / "runs" / f"of-{number}", SimulatedLoop(seed=number))
        other = Scenario("tcp-transfer", tcp=TcpStreams(window=4096))
        transferred(tmp_path / "runs" / "other", SimulatedLoop(speed=20e9), scenario=other)
        imported(database, tmp_path / "runs")
        with database.writing() as connection:
            pin(connection, "of-0", "release")
        for number, (loop, verdict, telling) in enumerate((
            (SimulatedLoop(seed=9), Verdict.PASS, "not slower: TCP throughput"),
            (SimulatedLoop(speed=9e9, seed=9), Verdict.REGRESSION, "slower: TCP throughput "),
            (SimulatedLoop(again=0.02, seed=9), Verdict.REGRESSION, "slower: transmissions per segment 1.02"),
            (SimulatedLoop(waits=1e-3, seed=9), Verdict.REGRESSION, "slower: round trip under load 1.84 ms"),
        )):  # fmt: skip
            folder = tmp_path / "later" / str(number)
            baselines = HistoryBaselines(database.address, "release", folder)
            known = KnownNoise(names=OF_TCP)
            (told,) = transferred(folder, loop, baselines=baselines, kernel="6.19", experience=known)
            assert (told.verdict, told.reason[: len(telling)]) == (verdict, telling)
            assert told.comparison is not None
            assert told.comparison.baseline == "history:release (6.18, 3 boots in 3 runs)"
            assert [one.measurand for one in told.comparison.changes] == [
                "TCP throughput", "round trip under load", "transmissions per segment",
            ]  # fmt: skip
            imported(database, folder)  # and the next is compared with the same: nothing ratchets

    def test_what_came_to_no_number_is_no_boot_of_a_build(self, database: Database, tmp_path: Path) -> None:
        written(tmp_path / "a", scenario(), started=1.0)
        written(tmp_path / "b", scenario("INCONCLUSIVE", per_run=None), started=2.0)
        imported(database, tmp_path)
        with database.writing() as connection:
            pin(connection, "a", "release")
            assert [one.run for one in measured(connection, "release")] == ["a"]

    # --- What boots deviate by ---

    def test_what_boots_came_to_is_kept_by_testbed(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        store = Experience(database.address)
        assert store.observations("a") == []
        known = [observed(spread(0.01, 4), when=float(number)) for number in (1, 2, 3)]
        for one in (known[1], known[0], known[2], known[0]):  # the last is there already
            store.add_observation("a", {"testbed": "rack"}, one)
        store.add_observation("b", {}, known[0])
        assert store.observations("a") == known
        assert store.observations("b") == known[:1]
        assert NoiseFloor.seen(store.observations("a"), 3.0) == NoiseFloor.seen(known, 3.0)
        monkeypatch.setattr("pdrgate.history.database.experience.NEWEST", 2)
        assert store.observations("a") == known[1:]
        assert count(database) == {"experience": 4}

    def test_what_no_database_takes_as_a_number_costs_the_observation_alone(self, database: Database) -> None:
        store = Experience(database.address)
        store.add_observation("a", {}, observed([math.nan, math.inf], when=1.0))
        store.add_observation("a", {}, sound := observed([0.0, 0.1], when=2.0))
        assert store.observations("a") == [sound]

    # --- Tries of builds ---

    def test_tries_are_kept_by_what_was_compared(self, database: Database) -> None:
        kept = Experience(database.address)
        assert kept.tries("a against b") == []
        ended = [attempt(3.0), attempt(1.0), attempt(2.0, afresh=True)]
        for one in (*ended, ended[0]):  # the last is there already
            kept.add_try("a against b", one)
        kept.add_try("a against c", ended[0])
        assert kept.tries("a against b") == sorted(ended, key=lambda one: one.when)
        assert kept.tries("a against c") == ended[:1]
        assert count(database) == {"experience": 4}

    def test_tries_that_count_are_not_pruned(self, database: Database) -> None:
        kept = Experience(database.address)
        for when in (1.0, 2.0):
            kept.add_try("a against b", attempt(when))
        for before, left in ((9.0, 2), (1.5, 2)):
            with database.writing() as connection:
                prune(connection, before, now=LASTING + 1.0)
            assert len(kept.tries("a against b")) == left
        with database.writing() as connection:
            prune(connection, 9.0, now=LASTING + 1.5)
        assert kept.tries("a against b") == [attempt(2.0)]

    # --- Pruning ---

    def test_what_is_old_goes_but_for_pinned_builds(self, filled: Database) -> None:
        Experience(filled.address).add_observation("a", {}, observed([0.0, 0.1], when=2.0))
        with filled.writing() as connection:
            pin(connection, "b", "kept")
        with filled.writing() as connection:
            assert prune(connection, 3.5, 9.0) == 1
            assert [one.run for one in entries(connection)] == ["d", "c", "b"]  # c measured the build as well
            assert prune(connection, 3.5, 9.0) == 0
            unpin(connection, "kept")
            assert prune(connection, 9.0, 9.0) == 3
        assert count(filled) == {}
        give_back(filled)
        with filled.reading() as connection:
            assert entries(connection) == []

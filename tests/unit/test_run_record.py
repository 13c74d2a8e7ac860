"""A run's folder: whose trials are in it, and what its result.json says."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flat_values import changed, flat_trial
from made_results import compared, scenario

from pdrgate.gate.run.pairs_file import PAIRS_FILE
from pdrgate.gate.run.run_record import FINGERPRINTS_FILE, GOES_ON_FROM, RunRecord
from pdrgate.history.results import read_result
from pdrgate.results.model import TestbedResult
from pdrgate.results.verdict import Verdict
from pdrgate.stability import read_trials
from pdrgate.values.errors import DataError, StorageError

TRIAL = flat_trial(1000.0, 1.0, 1000, 990, sending_time=1.0, scenario="s", boot="b")


def with_a_trial(folder: Path, *, resume: bool = False) -> RunRecord:
    record = RunRecord(folder, "quick", resume=resume)
    record.trials.append(TRIAL)
    record.close()
    return record


def test_trials_of_an_earlier_run_are_put_aside_and_stand_for_nothing(tmp_path: Path) -> None:
    """A second `robot` in the same output directory once told the numbers of the first as its own."""
    assert with_a_trial(tmp_path).put_aside is None
    second = with_a_trial(tmp_path)
    assert second.earlier.all == ()
    assert second.put_aside == tmp_path / "trials-1.jsonl"
    third = RunRecord(tmp_path, "quick")
    assert third.put_aside == tmp_path / "trials-2.jsonl"
    assert [len(read_trials(tmp_path / f"trials-{number}.jsonl")) for number in (1, 2)] == [1, 1]
    third.close()
    # An empty file is nobody's.
    fourth = RunRecord(tmp_path, "quick")
    assert fourth.put_aside is None
    fourth.close()


def test_all_that_an_earlier_run_measured_is_put_aside_with_one_number(tmp_path: Path) -> None:
    """Its pairs of boots once stayed, and stood in for those of the next run when that one was resumed."""
    for name in GOES_ON_FROM:
        (tmp_path / name).write_text("{}\n")
    (tmp_path / "pairs-1.jsonl").touch()
    record = RunRecord(tmp_path, "quick")
    record.close()
    left = {path.name for path in tmp_path.iterdir() if path.stat().st_size}
    assert left == {f"{Path(name).stem}-2{Path(name).suffix}" for name in GOES_ON_FROM}
    assert record.put_aside == tmp_path / "trials-2.jsonl"


def test_what_measures_nothing_but_pairs_is_put_aside_too(tmp_path: Path) -> None:
    (tmp_path / PAIRS_FILE).write_text("{}\n")
    record = RunRecord(tmp_path, "quick")
    record.close()
    assert record.put_aside == tmp_path / f"{Path(PAIRS_FILE).stem}-1.jsonl"
    assert record.pairs.take("", "s") == []


def test_a_run_is_told_from_those_that_lay_in_its_folder_also_when_it_is_resumed(tmp_path: Path) -> None:
    names = [with_a_trial(tmp_path, resume=resume).run for resume in (False, True, False, True, True)]
    assert names == [*[str(tmp_path)] * 2, *[f"{tmp_path} (2)"] * 3]


def test_a_run_that_is_resumed_has_its_trials_and_their_fingerprints(tmp_path: Path) -> None:
    first = RunRecord(tmp_path, "quick")
    first.note_fingerprint("abc", {"kernel": "6.1"})
    first.trials.append(TRIAL)
    first.close()
    resumed = RunRecord(tmp_path, "quick", resume=True)
    assert resumed.put_aside is None
    assert resumed.earlier.all == (TRIAL,)
    assert resumed.fingerprint("abc") == {"kernel": "6.1"}
    assert resumed.fingerprint("def") == {}
    resumed.note_fingerprint("def", {"kernel": "6.2"})
    assert json.loads((tmp_path / FINGERPRINTS_FILE).read_text()).keys() == {"abc", "def"}
    resumed.close()


def test_suts_that_are_set_up_side_by_side_note_their_fingerprints_at_once(tmp_path: Path) -> None:
    """One once failed by "dictionary changed size during iteration", and its path was an ERROR."""
    record = RunRecord(tmp_path, "quick")

    def note(sut: int) -> None:
        for number in range(40):
            record.note_fingerprint(f"{sut}-{number}", {f"entry {at}": "value" for at in range(40)})

    with ThreadPoolExecutor(4) as suts:
        list(suts.map(note, range(4)))
    record.close()
    assert len(json.loads((tmp_path / FINGERPRINTS_FILE).read_text())) == 160


def test_nothing_to_resume_is_no_fault(tmp_path: Path) -> None:
    record = RunRecord(tmp_path / "new", "quick", resume=True)
    assert record.earlier.all == ()
    record.close()


@pytest.mark.parametrize("content", ["{", "[]", '{"abc": 3}', "\x00"])
def test_fingerprints_that_cannot_be_read_are_told_in_one_line(tmp_path: Path, content: str) -> None:
    with_a_trial(tmp_path)
    (tmp_path / FINGERPRINTS_FILE).write_text(content)
    with pytest.raises(
        DataError, match=rf"^cannot go on from {tmp_path}: .*fingerprints\.json cannot be read .*a new run$"
    ):
        RunRecord(tmp_path, "quick", resume=True)


def test_two_tests_of_one_scenario_both_stay_and_the_gravest_verdict_is_the_runs(tmp_path: Path) -> None:
    record = RunRecord(tmp_path, "quick")
    record.add(scenario("REGRESSION"))
    record.add(scenario("PASS"))
    record.write(finished=True)
    record.close()
    result = read_result(tmp_path)
    assert [one.verdict for one in result.scenarios] == [Verdict.REGRESSION, Verdict.PASS]
    assert result.verdict is Verdict.REGRESSION
    assert result.finished is not None


def test_what_failed_before_a_scenario_is_an_error_unless_there_is_evidence(tmp_path: Path) -> None:
    record = RunRecord(tmp_path, "quick")
    assert record.result().reason == "nothing was measured"
    record.fail("no such testbed")
    record.add(scenario("PASS"))
    assert (record.result().verdict, record.result().reason) == (Verdict.ERROR, "no such testbed")
    record.add(scenario("REGRESSION"))
    assert record.result().verdict is Verdict.REGRESSION
    record.close()


def test_the_first_testbed_is_the_runs(tmp_path: Path) -> None:
    record = RunRecord(tmp_path, "quick")
    record.introduce(TestbedResult(name="a", kind="x"))
    record.introduce(TestbedResult(name="a", kind="x", sentence="a netns"))
    record.introduce(TestbedResult(name="b", kind="x", sentence="another"))
    assert record.result().testbed.sentence == "a netns"
    record.close()


def test_the_runs_environment_is_what_all_its_suts_have_in_common(tmp_path: Path) -> None:
    """Of two builds it once was the baseline's, as if both had its kernel."""
    machine = {"cpu_model": "one", "kernel_release": "6.18"}
    first = changed(scenario(), environment=machine | {"boot_id": "first"})
    builds = compared()
    sides = tuple(
        changed(one, environment=one.findings.environment | {"cpu_model": "one"}) for one in builds.builds.sides
    )
    builds = changed(builds, sides=sides, environment=sides[1].findings.environment)
    for scenarios, common in (
        ([], {}),
        ([first], machine | {"boot_id": "first"}),
        ([first, scenario()], machine | {"boot_id": "first"}),  # of the other one nothing is known
        ([first, changed(first, environment=machine | {"boot_id": "second"})], machine),
        ([builds], {"cpu_model": "one", "boot_id": "of its own"}),
        ([first, builds], {"cpu_model": "one"}),
    ):
        record = RunRecord(tmp_path / "run", "quick")
        for one in scenarios:
            record.add(one)
        assert record.result().environment == common
        record.close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError) as error:
        RunRecord(tmp_path / "file" / "run", "quick")
    assert "\n" not in str(error.value)

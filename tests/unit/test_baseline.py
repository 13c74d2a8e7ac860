"""Which result a scenario is compared with, and the reason when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_results import FINGERPRINT, PER_RUN, result, scenario, written

from pdrgate.errors import DataError
from pdrgate.gate.baseline import find_baseline
from pdrgate.history.results import write_result

NOWHERE = Path("/nowhere/own-run")


def test_a_file_and_the_folder_of_its_run_are_the_same(tmp_path: Path) -> None:
    run = written(tmp_path / "run", scenario())
    for path in (run, run / "result.json"):
        found, why = find_baseline(path, FINGERPRINT, NOWHERE)
        assert why == ""
        assert found is not None
        assert (found.source, found.per_run, found.fingerprint) == (str(run / "result.json"), PER_RUN, FINGERPRINT)


def test_a_result_may_have_any_name(tmp_path: Path) -> None:
    write_result(tmp_path / "v6.17.json", result(scenario()))
    found, _ = find_baseline(tmp_path / "v6.17.json", FINGERPRINT, NOWHERE)
    assert found is not None


def test_of_a_folder_of_runs_the_newest_that_fits(tmp_path: Path) -> None:
    written(tmp_path / "a-newest", scenario(cpu_model="another CPU"), started=9)
    written(tmp_path / "b-second", scenario(per_run=(5.0, 5.0)), started=8)
    written(tmp_path / "c-oldest", scenario(per_run=(4.0, 4.0)), started=7)
    (tmp_path / "d-killed").mkdir()
    (tmp_path / "e-spoilt").mkdir()
    (tmp_path / "e-spoilt" / "result.json").write_text("{")
    (tmp_path / "notes.txt").write_text("no run")
    found, _ = find_baseline(tmp_path, FINGERPRINT, NOWHERE)
    assert found is not None
    assert found.per_run == (5.0, 5.0)
    found, _ = find_baseline(tmp_path, FINGERPRINT, tmp_path / "b-second")  # the run that asks is not its own baseline
    assert found is not None
    assert found.per_run == (4.0, 4.0)


def test_another_kernel_is_compared_only_when_it_is_named(tmp_path: Path) -> None:
    run = written(tmp_path / "old", scenario(kernel="6.17.1", kernel_version="#9", config="abc"))
    found, _ = find_baseline(run, FINGERPRINT, NOWHERE)
    assert found is not None
    assert found.fingerprint["kernel"] == "6.17.1"
    found, why = find_baseline(tmp_path, FINGERPRINT, NOWHERE)
    assert found is None
    assert why == f"no result in {tmp_path} that passed has the same fingerprint"


def test_what_is_not_comparable_is_told_entry_by_entry(tmp_path: Path) -> None:
    run = written(tmp_path / "run", scenario(cpu_model="another CPU", profile="standard"))
    found, why = find_baseline(run, FINGERPRINT | {"testbed_hops": "3"}, NOWHERE)
    assert found is None
    assert why == (
        f"{run}/result.json is not comparable: cpu_model another CPU there, a CPU here; "
        "profile standard there, quick here; testbed_hops unknown there, 3 here"
    )


def test_a_scenario_that_the_result_lacks(tmp_path: Path) -> None:
    run = written(tmp_path / "run", scenario(), scenario(scenario="ipv4-routing-1cpu-4096-64B"))
    _, why = find_baseline(run, FINGERPRINT | {"scenario": "x"}, NOWHERE)
    assert why == (
        f"{run}/result.json has no scenario x (it has: ipv6-routing-1cpu-4096-64B, ipv4-routing-1cpu-4096-64B)"
    )
    _, why = find_baseline(written(tmp_path / "empty"), FINGERPRINT, NOWHERE)
    assert why.endswith("(it has: none)")


@pytest.mark.parametrize("verdict", ["UNSTABLE", "ERROR", "GENERATOR_LIMITED"])
def test_what_was_not_stable_is_no_baseline(tmp_path: Path, verdict: str) -> None:
    run = written(tmp_path / "run", scenario(verdict))
    found, why = find_baseline(run, FINGERPRINT, NOWHERE)
    assert (found, why) == (None, f"{run}/result.json holds no stable PDR of this scenario (it was {verdict})")


@pytest.mark.parametrize("verdict", ["REGRESSION", "INCONCLUSIVE"])
def test_a_run_that_failed_is_a_baseline_only_when_it_is_named(tmp_path: Path, verdict: str) -> None:
    # Else the second start of a red build would compare it with itself, and be green.
    written(tmp_path / "good", scenario("PASS", per_run=(2.0, 2.0)), started=1)
    failed = written(tmp_path / "failed", scenario(verdict, per_run=(1.0, 1.0)), started=2)
    found, _ = find_baseline(tmp_path, FINGERPRINT, NOWHERE)
    assert found is not None
    assert found.per_run == (2.0, 2.0)
    found, _ = find_baseline(failed, FINGERPRINT, NOWHERE)
    assert found is not None
    assert found.per_run == (1.0, 1.0)


@pytest.mark.parametrize(
    ("per_run", "why"),
    [(None, "holds no stable PDR of this scenario"), ((1e6,), "has 1 repeats; a comparison needs two or more")],
)
def test_without_repeats_there_is_nothing_to_compare(tmp_path: Path, per_run: tuple[float, ...], why: str) -> None:
    run = written(tmp_path / "run", scenario(per_run=per_run))
    found, reason = find_baseline(run, FINGERPRINT, NOWHERE)
    assert found is None
    assert why in reason


def test_a_baseline_that_is_not_there_or_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^the baseline /nope does not exist; name a result\.json, the folder of a"):
        find_baseline(Path("/nope"), FINGERPRINT, NOWHERE)
    (tmp_path / "result.json").write_text("[]")
    with pytest.raises(DataError, match="is no result of a run: it has no schema number"):
        find_baseline(tmp_path, FINGERPRINT, NOWHERE)

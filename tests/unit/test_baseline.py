"""Which result a scenario is compared with, and the reason when there is none."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from flat_values import changed
from made_results import FINGERPRINT, PER_RUN, pdr, result, scenario, written

from pdrgate.gate.verdicts.baseline import Baseline, Baselines, besides_the_kernel, differing_entries
from pdrgate.history.results import write_result
from pdrgate.results.model import LatencyResult
from pdrgate.values.errors import DataError

NOWHERE = Path("/nowhere/own-run")


def find(path: Path, fingerprint: dict[str, str] | None = None, own: Path = NOWHERE) -> tuple[Baseline | None, str]:
    return Baselines(path, own).find(fingerprint or FINGERPRINT)


def refused(path: Path, fingerprint: dict[str, str] | None = None) -> str:
    """Why the result that was named cannot serve."""
    with pytest.raises(DataError) as error:
        find(path, fingerprint)
    assert str(error.value).startswith("the baseline cannot serve: ")
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix("the baseline cannot serve: ")


# --- One that was named ---


def test_a_file_and_the_folder_of_its_run_are_the_same(tmp_path: Path) -> None:
    run = written(tmp_path / "run", scenario())
    for path in (run, run / "result.json"):
        found, why = find(path)
        assert why == ""
        assert found is not None
        assert (found.source, found.samples, found.scenario.findings.fingerprint) == (
            str(run / "result.json"), {"PDR": PER_RUN}, FINGERPRINT,
        )  # fmt: skip


def test_a_result_may_have_any_name(tmp_path: Path) -> None:
    write_result(tmp_path / "v6.17.json", result(scenario()))
    found, _ = find(tmp_path / "v6.17.json")
    assert found is not None


def test_a_baseline_that_was_replaced_meanwhile_is_the_one_of_the_begin(tmp_path: Path) -> None:
    run = written(tmp_path / "run", scenario())
    baselines = Baselines(run, NOWHERE)
    (run / "result.json").write_text("{")
    found, _ = baselines.find(FINGERPRINT)
    assert found is not None


def test_what_is_not_comparable_is_told_entry_by_entry(tmp_path: Path) -> None:
    """Such a baseline once was passed over, and the run was green with NO_BASELINE."""
    run = written(tmp_path / "run", scenario(cpu_model="another CPU", profile="standard"))
    assert refused(run, FINGERPRINT | {"testbed_hops": "3"}) == (
        f"{run}/result.json is not comparable: cpu_model another CPU there, a CPU here; "
        "profile standard there, quick here; testbed_hops unknown there, 3 here"
    )


def test_a_refusal_tells_the_parts_that_differ(tmp_path: Path) -> None:
    run = written(tmp_path / "run", scenario(cmdline="isolcpus=1; nohz_full=1; mitigations=off"))
    assert refused(run, FINGERPRINT | {"cmdline": "isolcpus=1; nohz_full=2"}) == (
        f"{run}/result.json is not comparable: cmdline nohz_full=1; mitigations=off there, nohz_full=2 here"
    )


@pytest.mark.parametrize("other", ["x", "ipv6-routing-1cpu-4096-64B-loss10", "ipv6-routing-1cpu-4096-64B-1flows"])
def test_a_scenario_that_the_result_lacks(tmp_path: Path, other: str) -> None:
    run = written(tmp_path / "run", scenario(), scenario(scenario="ipv4-routing-1cpu-4096-64B"))
    assert refused(run, FINGERPRINT | {"scenario": other}) == (
        f"{run}/result.json has no result of this scenario (it has: IPv6 routing)"
    )
    assert refused(written(tmp_path / "empty")).endswith("(it has: none)")


@pytest.mark.parametrize("verdict", ["UNSTABLE", "ERROR", "GENERATOR_LIMITED"])
def test_what_was_not_stable_is_no_baseline(tmp_path: Path, verdict: str) -> None:
    run = written(tmp_path / "run", scenario(verdict))
    assert refused(run) == f"{run}/result.json holds no stable PDR of this scenario (it was {verdict})"


@pytest.mark.parametrize("verdict", ["PASS", "IMPROVEMENT", "REGRESSION", "INCONCLUSIVE"])
def test_whoever_names_a_run_that_was_compared_itself_gets_it(tmp_path: Path, verdict: str) -> None:
    found, _ = find(written(tmp_path / "run", scenario(verdict)))
    assert found is not None


@pytest.mark.parametrize(
    ("per_run", "why"),
    [
        (None, "holds no PDR of this scenario (it was NO_BASELINE)"),
        ((1e6,), "has 1 repeats; a comparison needs two or more"),
    ],
)
def test_without_repeats_there_is_nothing_to_compare(
    tmp_path: Path, per_run: tuple[float, ...] | None, why: str
) -> None:
    run = written(tmp_path / "run", scenario(per_run=per_run))
    assert refused(run) == f"{run}/result.json {why}"


@pytest.mark.parametrize("wrong", [(0.0, 0.0), (-5e5, 2e6), (1e6, 1e308), (1e-320, 1e-320)])
def test_what_nobody_can_have_measured_is_refused_before_anything_is_measured(
    tmp_path: Path, wrong: tuple[float, ...]
) -> None:
    """It was found when all was measured: a mean that is not positive, a number that is too large."""
    told = r"result\.json has a PDR of (0|-500000|1e\+308), which nobody can have measured; measure it anew$"
    assert re.search(told, refused(written(tmp_path / "runs" / "wrong", scenario(per_run=wrong), started=2.0)))
    found, why = find(tmp_path / "runs")
    assert found is None
    assert re.search(told, why)
    written(tmp_path / "runs" / "right", scenario())
    found, _ = find(tmp_path / "runs")
    assert found is not None
    assert found.source == str(tmp_path / "runs" / "right" / "result.json")


@pytest.mark.parametrize("load", [0.0, -1.0, 1e300])
def test_loads_that_nobody_can_offer_are_refused(tmp_path: Path, load: float) -> None:
    """A baseline's latency is taken again at its loads."""
    latency = LatencyResult(share=0.5, load=load, trials=3, probes=9, p50=1e-4, p90=2e-4, p99=3e-4, longest=1e-3)
    run = written(tmp_path / "run", changed(scenario(), latency=(latency,)))
    assert refused(run).endswith(
        f"has a load at 50% of the PDR of {load:g}, which nobody can have measured; measure it anew"
    )


def test_what_is_not_compared_may_be_nothing(tmp_path: Path) -> None:
    """A SUT that livelocks under all there is forwards nothing, and holds its PDR."""
    nothing = dataclasses.replace(pdr((0.0, 0.0)), name="MRR", value=0.0)
    once = dataclasses.replace(pdr((0.0, 1e6)), name="overload throughput", value=5e5)
    one = scenario()
    run = written(tmp_path / "run", changed(one, measurands=(*one.findings.measurands, once, nothing)))
    assert find(run)[0] is not None


def test_a_result_that_counted_rates_otherwise_is_no_baseline(tmp_path: Path) -> None:
    """What a queue gave back after sending once was throughput: such a number is not comparable."""
    old = scenario(method="1")
    run = written(tmp_path / "run", old)
    assert refused(run).endswith("was measured by an older pdrgate, which counted rates otherwise; measure it anew")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff\x7fELF",
        b"[]",
        b"{}",
        b'{"schema": 99}',
        b'{"schema": 2, "verdict": "FINE"}',
        b'{"schema": "two"}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_result_is_told_when_the_run_begins(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "result.json").write_bytes(content)
    for path in (tmp_path, tmp_path / "result.json"):
        with pytest.raises(DataError) as error:
            Baselines(path, NOWHERE)
        assert "result.json is " in str(error.value)
        assert "\n" not in str(error.value)


def test_a_number_that_is_none_is_no_result(tmp_path: Path) -> None:
    run = written(tmp_path / "run", scenario())
    content: dict[str, Any] = json.loads((run / "result.json").read_text())
    content["scenarios"][0]["measurands"][0]["samples"][0] = float("nan")
    (run / "result.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match="is no JSON"):
        Baselines(run, NOWHERE)


def test_a_baseline_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^the baseline /nope does not exist; name a result\.json, the folder of a"):
        Baselines(Path("/nope"), NOWHERE)


# --- A folder of runs ---


def test_of_a_folder_of_runs_the_newest_that_fits(tmp_path: Path) -> None:
    written(tmp_path / "a-newest", scenario(cpu_model="another CPU"), started=9)
    written(tmp_path / "b-second", scenario(per_run=(5.0, 5.0)), started=8)
    written(tmp_path / "c-oldest", scenario(per_run=(4.0, 4.0)), started=7)
    (tmp_path / "d-killed").mkdir()
    (tmp_path / "e-spoilt").mkdir()
    (tmp_path / "e-spoilt" / "result.json").write_text("{")
    (tmp_path / "notes.txt").write_text("no run")
    found, _ = find(tmp_path)
    assert found is not None
    assert found.samples["PDR"] == (5.0, 5.0)
    found, _ = find(tmp_path, own=tmp_path / "b-second")  # the run that asks is not its own baseline
    assert found is not None
    assert found.samples["PDR"] == (4.0, 4.0)


def test_another_kernel_is_compared_also_from_a_folder_of_runs(tmp_path: Path) -> None:
    """Else a folder of runs of a branch under test would never have a baseline: each has a kernel of its own."""
    run = written(tmp_path / "old", scenario(kernel="6.17.1", kernel_version="#9", config="abc"))
    for path in (run, tmp_path):
        found, _ = find(path)
        assert found is not None
        assert found.scenario.findings.fingerprint["kernel"] == "6.17.1"


@pytest.mark.parametrize("verdict", ["PASS", "IMPROVEMENT", "REGRESSION", "INCONCLUSIVE"])
def test_of_a_folder_of_runs_only_one_that_was_compared_with_nothing_serves(tmp_path: Path, verdict: str) -> None:
    """Else each build could be a little slower than the one before it, and a red one green at its second start."""
    written(tmp_path / "first", scenario("NO_BASELINE", per_run=(2.0, 2.0)), started=1)
    written(tmp_path / "later", scenario(verdict, per_run=(1.0, 1.0)), started=2)
    found, _ = find(tmp_path)
    assert found is not None
    assert found.samples["PDR"] == (2.0, 2.0)


def test_of_runs_that_do_not_fit_the_nearest_tells_what_differs(tmp_path: Path) -> None:
    written(tmp_path / "far", scenario(cpu_model="x", profile="standard", cpus="64"), started=2)
    near = written(tmp_path / "near", scenario(cpu_model="another CPU"), started=1)
    assert find(tmp_path) == (
        None,
        f"no result in {tmp_path} can serve; the nearest, {near}/result.json is not comparable: "
        "cpu_model another CPU there, a CPU here",
    )


def test_a_folder_without_runs(tmp_path: Path) -> None:
    assert find(tmp_path) == (None, f"there is no result in {tmp_path} yet")


# --- What differs ---


def test_entries_that_differ_with_the_baselines_value_first() -> None:
    theirs, ours = {"kernel": "6.1", "cpu": "x", "old": "1"}, {"kernel": "6.2", "cpu": "x", "new": "2"}
    assert differing_entries(theirs, ours) == {"kernel": ("6.1", "6.2"), "old": ("1", None), "new": (None, "2")}


def test_a_comparison_tells_what_else_than_the_kernel_differs() -> None:
    theirs = FINGERPRINT | {"mitigations": "l1tf=Mitigation: PTE Inversion; mds=Vulnerable"}
    ours = FINGERPRINT | {"kernel": "6.19", "mitigations": "l1tf=Mitigation: PTE Inversion; mds=Mitigation: Clear"}
    assert besides_the_kernel(differing_entries(theirs, ours)) == (
        "besides the kernel these differ: mitigations mds=Vulnerable in the baseline, mds=Mitigation: Clear here"
    )
    assert besides_the_kernel(differing_entries(FINGERPRINT, FINGERPRINT | {"kernel": "7"})) == ""

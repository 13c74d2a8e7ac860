"""Results in others' formats, read by the tools' own readers or by their published grammar."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from flat_values import changed
from made_results import compared, pdr, result, scenario, written
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics_families
from prometheus_client.parser import text_string_to_metric_families as prometheus_families

from pdrgate.cli import main
from pdrgate.measurands import DESCRIPTIONS
from pdrgate.reports.ci.exports import EXPORTS, exported
from pdrgate.reports.ci.exports.benchstat import go_benchmarks
from pdrgate.reports.ci.exports.openmetrics import open_metrics
from pdrgate.results.model import LeftOutPath, MeasurandResult, RunResult
from pdrgate.results.verdict import Verdict

COST = MeasurandResult(
    name="cost", unit="instructions/packet", better="lower", value=5768.0, lower=5752.0, upper=5784.0, samples=(5770.0,)
)
HOSTILE = "<script>'\"{}\\n\\ a=b\x1b[31m\n\u202eÄ漢 -9" + 300 * "x"
BENCHMARK = re.compile(r"Benchmark[A-Z]\S* 1( [-+.\de]+ \S+)+")
CONFIGURATION = re.compile(r"[a-z][^\sA-Z:]*: \S.*")
UNIT = re.compile(r"Unit \S+ better=(higher|lower)")


def two_builds() -> RunResult:
    found = compared("REGRESSION")
    return result(changed(found, measurands=(*found.findings.measurands, COST)))


def hostile() -> RunResult:
    found = compared("UNSTABLE", candidate=HOSTILE)
    sides = tuple(dataclasses.replace(side, build=HOSTILE) for side in found.builds.sides)
    evil = changed(found, name=HOSTILE, title=HOSTILE, sides=sides)
    odd = changed(scenario(), measurands=(dataclasses.replace(pdr(), name=HOSTILE, unit=HOSTILE),), pdr=None)
    return result(evil, odd, run=HOSTILE, profile=HOSTILE)


RUNS = {
    "two builds": two_builds(),
    "one build": result(scenario()),
    "one name twice": result(scenario(), scenario()),
    "no result": result(scenario("ERROR", per_run=None)),
    "nothing": result(),
    "hostile": hostile(),
}


@pytest.mark.parametrize("name", RUNS)
def test_benchstat_takes_each_line(name: str) -> None:
    for line in go_benchmarks(RUNS[name]).splitlines():
        assert not line or any(kind.fullmatch(line) for kind in (BENCHMARK, CONFIGURATION, UNIT)), line


def test_benchstat_gets_each_boot_of_both_builds() -> None:
    lines = go_benchmarks(two_builds()).splitlines()
    assert lines[:5] == [
        "pkg: pdrgate/local-netns", "testbed: local-netns", "profile: quick", "Unit pdr-packets/s better=higher",
        "Unit cost-instructions/packet better=lower",
    ]  # fmt: skip
    at = lines.index("build: candidate linux-6.19")
    assert lines.index("build: baseline linux-6.18.44") < at
    name = "BenchmarkForwarding/scenario=IPv6_routing 1"
    assert lines[at + 1 :] == [
        f"{name} 990990 pdr-packets/s 5770 cost-instructions/packet", f"{name} 989010 pdr-packets/s",
        f"{name} 990000 pdr-packets/s",
    ]  # fmt: skip
    assert "build:" not in go_benchmarks(result(scenario()))  # else benchstat would keep two runs apart


@pytest.mark.parametrize("name", RUNS)
def test_prometheus_reads_it_as_open_metrics_and_as_its_older_format(name: str) -> None:
    told = open_metrics(RUNS[name])
    families = list(open_metrics_families(told))
    assert len(families) == len(list(prometheus_families(told)))
    assert {family.type for family in families} == {"gauge"}
    seen = [(one.name, tuple(sorted(one.labels.items()))) for family in families for one in family.samples]
    assert len(set(seen)) == len(seen)


def test_open_metrics_has_values_changes_and_the_verdict() -> None:
    families = {family.name: family for family in open_metrics_families(open_metrics(two_builds()))}
    values = families["pdrgate_pdr_packets_per_second"]
    assert values.unit == "packets_per_second"
    assert {one.labels["side"]: one.value for one in values.samples} == {"baseline": 1e6, "candidate": 990000.0}
    assert {one.labels["kernel"] for one in values.samples} == {"6.18.44", "6.19"}
    (lower,) = families["pdrgate_change_lower_ratio"].samples
    assert (lower.value, lower.labels["measurand"], lower.labels["verdict"]) == (-0.012, "PDR", "PASS")
    verdicts = {one.labels["verdict"]: one.value for one in families["pdrgate_verdict"].samples}
    assert (len(verdicts), verdicts.pop("REGRESSION"), sum(verdicts.values())) == (len(Verdict), 1.0, 0.0)
    assert "pdrgate_cost_instructions_per_packet" in families


@pytest.mark.parametrize("form", EXPORTS)
def test_the_command_prints_it_and_makes_no_file(form: str, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "run", compared())
    before = sorted(folder.rglob("*"))
    assert main(["report", str(folder), "--format", form]) == 0
    assert capsys.readouterr().out == exported(form, result(compared(), run="run"))
    assert sorted(folder.rglob("*")) == before


def test_each_metric_of_the_grafana_dashboard_is_one_that_is_exported() -> None:
    one = compared()
    measurands = tuple(
        MeasurandResult(name=each.name, unit=each.unit, better=each.better, value=1.0, lower=0.9, upper=1.1)
        for each in DESCRIPTIONS
    )
    told = open_metrics(result(changed(one, measurands=measurands)))
    exported = set(re.findall(r"^# TYPE (\w+) gauge$", told, re.MULTILINE))
    dashboard = json.loads((resources.files("pdrgate") / "resources/grafana/pdrgate.json").read_text(encoding="utf-8"))
    asked = [each["expr"] for panel in dashboard["panels"] for each in panel["targets"]]
    asked += [each["query"]["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    assert len(asked) >= 18
    for expression in asked:
        names = set(re.findall(r"\bpdrgate_\w+", expression))
        assert names and names <= exported, expression
    labels = set(re.findall(r"(\w+)=\"", told))
    used = {name for one in asked for name in re.findall(r"(\w+)=~", one)}
    used |= {name.strip() for one in asked for group in re.findall(r"by \(([^)]*)\)", one) for name in group.split(",")}
    assert used <= labels
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)


# --- KTAP ---

RESULT_LINE = re.compile(r"(ok|not ok) (\d+) [^#\n]+?( # SKIP [^#\n]+)?")


@pytest.mark.parametrize("made", [two_builds, hostile])
def test_ktap_has_its_version_its_plan_and_a_numbered_line_for_each_scenario(made) -> None:
    version, plan, *lines = exported("ktap", made()).splitlines()
    assert (version, plan) == ("KTAP version 1", f"1..{len(made().scenarios)}")
    results = [line for line in lines if not line.startswith("# ")]
    assert [int(RESULT_LINE.fullmatch(line)[2]) for line in results] == [*range(1, len(results) + 1)]
    assert len(results) == len(made().scenarios)


def test_ktap_says_what_failed_and_why_before_its_line() -> None:
    told = exported("ktap", two_builds()).splitlines()
    assert told[-1].startswith("not ok 1 IPv6 routing")
    assert told[-2].startswith("# REGRESSION: ")


def test_a_path_has_one_name_for_other_programs_whether_it_failed_before_or_after_it_was_measured() -> None:
    measured = changed(compared(), test="IPv4 Routing By XDP")
    failed = changed(measured, pdr=None, comparison=None, sides=(), title="IPv4 routing by XDP, 1 cpu")
    told = "\n".join(exported("ktap", result(one)) for one in (measured, failed))
    assert told.count("ok 1 IPv4 Routing By XDP\n") == 2
    paths = {json.loads(exported("kcidb", result(one)))["tests"][0]["path"] for one in (measured, failed)}
    assert paths == {"pdrgate.ipv4_routing_by_xdp"}


def test_a_path_that_was_left_out_is_skipped_with_its_reason() -> None:
    run = dataclasses.replace(
        result(compared()), left_out=(LeftOutPath(path="TCP With Loss", reason="no netem # here"),)
    )
    assert "ok 2 TCP With Loss # SKIP no netem here" in exported("ktap", run).splitlines()
    (passed, skipped) = json.loads(exported("kcidb", run))["tests"]
    assert (passed["status"], skipped["status"], skipped["path"]) == ("PASS", "SKIP", "pdrgate.tcp_with_loss")


def test_a_path_that_a_fault_kept_from_being_measured_is_an_error() -> None:
    run = dataclasses.replace(
        result(compared()), left_out=(LeftOutPath(path="NAT", reason="apt-get download failed", is_fault=True),)
    )
    told = exported("ktap", run).splitlines()
    assert told[told.index("not ok 2 NAT") - 1] == "# ERROR: apt-get download failed"
    assert json.loads(exported("kcidb", run))["tests"][1]["status"] == "ERROR"


def test_a_headline_that_is_the_only_path_s_stands_once() -> None:
    (said,) = [line for line in exported("ktap", two_builds()).splitlines() if line.startswith("# ")]
    assert said.startswith("# REGRESSION: ")


def test_kunit_s_parser_counts_each_path_as_its_verdict_says(tmp_path) -> None:
    """It is GPL-2.0, so it runs in a process of its own, from the source of a kernel: LINUX_SOURCE names its folder."""
    source = os.environ.get("LINUX_SOURCE", "/usr/src/linux")
    kunit = Path(source) / "tools/testing/kunit/kunit.py"
    if not kunit.exists():
        pytest.skip("needs LINUX_SOURCE, the folder of a kernel's source")
    left_out = (
        LeftOutPath(path="TCP With Loss", reason="no netem"),
        LeftOutPath(path="NAT", reason="apt-get download failed", is_fault=True),
    )
    run = dataclasses.replace(two_builds(), left_out=left_out)
    (tmp_path / "run.ktap").write_text(exported("ktap", run), encoding="utf-8")
    asked = (sys.executable, str(kunit), "parse", f"--json={tmp_path}/read.json", str(tmp_path / "run.ktap"))
    assert subprocess.run(asked, capture_output=True).returncode == 1  # as for any failed test
    read = json.loads((tmp_path / "read.json").read_text(encoding="utf-8"))
    cases = {one["name"]: one["status"] for one in read["test_cases"]}
    assert cases == {"IPv6 routing": "FAIL", "TCP With Loss": "SKIP", "NAT": "FAIL"}
    assert read["misc"] == {"tests": 3, "passed": 0, "failed": 2, "crashed": 0, "skipped": 1, "errors": 0}


# --- KCIDB ---

_CHECK = "import json, sys; from kcidb_io.schema import V5_3; V5_3.validate(json.load(sys.stdin))"


@pytest.mark.parametrize("made", [two_builds, hostile, lambda: result(scenario())])
def test_kernel_cis_own_library_takes_what_is_written_for_it(made) -> None:
    """It is GPL-2.0-or-later, so it runs in a process of its own."""
    told = exported("kcidb", made())
    subprocess.run((sys.executable, "-c", _CHECK), input=told, text=True, check=True, capture_output=True)


def test_kcidb_has_the_commit_the_status_and_what_a_packet_costs() -> None:
    told = json.loads(exported("kcidb", dataclasses.replace(two_builds(), commit="a" * 40)))
    (checkout,), (build,), (test,) = told["checkouts"], told["builds"], told["tests"]
    assert (checkout["git_commit_hash"], build["checkout_id"]) == ("a" * 40, checkout["id"])
    assert (test["build_id"], test["status"]) == (build["id"], "FAIL")
    assert test["number"] == {"value": 5768.0, "unit": "instructions/packet"}

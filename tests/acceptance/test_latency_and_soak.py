"""Latency, a soak and the MRR in the gate's own suites: asked for, told everywhere, and exported."""

from __future__ import annotations

import gzip
import html
import json
import os
import subprocess

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from retis_server import local_retis

from pdrgate.observers.retis.events import bindings_missing
from tests.acceptance.conftest import PDRGATE, ROOT, Ended, simulated

MEASURANDS = {
    "latency": ["PDR", "saturation throughput", "median latency at 50% PDR", "p99 latency at 90% PDR"],
    "soak": [],
    "mrr": ["MRR"],
}
"""By what is measured."""


ASKED = {
    "latency": ("--set", "latency=true"),
    "soak": ("--measure", "soak", "--set", "soak=20s"),
    "mrr": ("--measure", "mrr"),
}
"""What a run of each is asked for."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    return {
        name: simulated(tmp_path_factory.mktemp(name), "--profile", "smoke", *asked) for name, asked in ASKED.items()
    }


def told(ended: Ended) -> dict:
    """The only scenario of the result."""
    (entry,) = ended.result["scenarios"]
    return entry


@pytest.mark.parametrize("scenario", MEASURANDS)
def test_each_is_in_the_result(runs, scenario):
    ended = runs[scenario]
    assert ended.code == 0, ended.stdout + ended.stderr
    assert [one["name"] for one in told(ended)["measurands"]] == MEASURANDS[scenario]


def test_latency_is_told_at_three_shares_of_the_pdr(runs):
    ended = runs["latency"]
    entry = told(ended)
    assert [one["share"] for one in entry["latency"]] == [0.5, 0.9, 0.99]
    assert entry["name"].endswith("-latency")
    head, tail = "latency, median and 99 %: ", " at 90 % of the PDR ("
    (line,) = [line for line in ended.stdout.splitlines() if head in line]
    assert tail in line
    for report in ("summary.md", "summary.html", "output.xml"):  # log.html, made of the last, has it packed
        assert "90 % of the PDR" in (ended.folder / report).read_text(), report


def test_a_soak_says_what_it_confirms(runs):
    ended = runs["soak"]
    entry = told(ended)
    assert entry["verdict"] == "PASS"
    assert entry["soak"]["slices"] == 20
    assert entry["losses"]["offered"] == entry["losses"]["forwarded"] == entry["soak"]["offered"]
    sentence = entry["reason"].partition("; latency")[0]
    assert sentence.startswith("soak: 20 s at "), sentence
    assert sentence.endswith(" kpps is confirmed"), sentence
    assert ended.stdout.count(sentence) == 2  # when it ends, and as the reason of its scenario
    assert sentence in (ended.folder / "summary.html").read_text()


def test_the_mrr_is_told_where_no_verdict_goes_by_it(runs):
    entry = told(runs["mrr"])
    assert (entry["verdict"], entry["comparison"]) == ("NO_BASELINE", None)
    assert entry["reason"].startswith("MRR ")
    assert entry["losses"]["forwarded"] < entry["losses"]["offered"] / 3


_BINDINGS = pytest.mark.skipif(bool(bindings_missing()), reason="PyPI has wheels of retis for x86_64 only")


@pytest.fixture
def collector(tmp_path, monkeypatch):
    """Stands for the real one, and writes events of it; where they are."""
    events = tmp_path / "events"
    events.write_bytes(gzip.decompress((ROOT / "tests/data/retis-1.6.4.data.gz").read_bytes()))
    local_retis(tmp_path / "bin", events=events)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return events


@_BINDINGS
def test_retis_looks_in_one_trial_more(simulated_gate, collector):
    ended = simulated_gate("--set", "retis=true", "--profile", "smoke")
    assert ended.code == 0, ended.stdout + ended.stderr
    (entry,) = ended.result["scenarios"]
    trial = json.loads((ended.folder / "trials.jsonl").read_text().splitlines()[-1])
    assert (trial["phase"], trial["intended_load"]) == ("drops", entry["drops"]["load"])
    assert entry["drops"]["seen"] == 0  # they are a guest's, and of no namespace of ours
    assert (ended.folder / entry["drops"]["file"]).read_bytes() == collector.read_bytes()
    sentence = "The SUT's network stack was seen to drop no packet at "
    assert ended.stdout.count(sentence) == 2
    told = "<p>The SUT&#39;s network stack was seen to drop no packet at "
    assert told in (ended.folder / "summary.html").read_text()
    assert html.escape(told) in (ended.folder / "output.xml").read_text()  # log.html is made of it
    resumed = simulated_gate("--resume", str(ended.folder))
    assert resumed.stdout.count(sentence) == 2, resumed.stdout
    assert json.loads((ended.folder / "result.json").read_text())["scenarios"][0]["drops"]["failure"] == ""


_TWICE = """\
*** Settings ***
Resource          {root}/resources/gate.resource
Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     Is Searched
Test Tags         default


*** Test Cases ***
Once
    0.5%
Again
    0.5%


*** Keywords ***
Is Searched
    [Arguments]    ${{loss}}
    Given The SUT Routes IPv6
    When The Partial Drop Rate Is Searched    loss=${{loss}}    width=1%
    Then The Measurement Is Stable
"""


@_BINDINGS
def test_each_look_of_a_run_keeps_its_events(simulated_gate, collector, tmp_path):
    """Of a scenario that is measured twice."""
    (suite := tmp_path / "twice.robot").write_text(_TWICE.format(root=ROOT))
    ended = simulated_gate("--set", "retis=true", "--profile", "smoke", "--scenario", "all", "--suite", str(suite))
    scenarios = ended.result["scenarios"]
    assert [one["name"] for one in scenarios] == ["ipv6-routing-1cpu-4096-64B"] * 2, ended.stdout
    files = [one["drops"]["file"] for one in scenarios]
    name = "retis-ipv6-routing-1-cpu-buffer-4096-packets-64-byte-frames"
    assert files == [f"{name}.data", f"{name}-2.data"]
    assert [(ended.folder / file).read_bytes() for file in files] == [collector.read_bytes()] * 2


def test_a_sut_that_becomes_slower_is_found_by_a_soak(simulated_gate):
    ended = simulated_gate("--measure", "soak", "--set", "soak=100s", "--profile", "smoke", drift=-0.002)
    assert ended.code == 1, ended.stdout
    assert ended.result["verdict"] == "UNSTABLE"
    assert ", first loss after " in ended.result["reason"]
    assert ended.stdout.count(f"{ended.headline}\n") == 1


@pytest.mark.parametrize(
    ("name", "metric"),
    [("mrr", "pdrgate_mrr_packets_per_second"), ("latency", "pdrgate_p99_latency_at_90_pdr_seconds")],
)
def test_each_is_exported(runs, name, metric):
    done = subprocess.run(
        (PDRGATE, "report", str(runs[name].folder), "--format", "openmetrics"),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert metric in {family.name for family in text_string_to_metric_families(done.stdout)}


def test_latency_of_any_scenario(simulated_gate):
    """By an option of the run; it is another question than without."""
    ended = simulated_gate(
        "--set", "latency=true", "--set", "latency_tolerance=50%", "--profile", "smoke"
    )  # fmt: skip
    assert ended.result["scenarios"][0]["name"] == "ipv6-routing-1cpu-4096-64B-latency"
    assert "--set latency=true --set latency_tolerance=50%" in ended.result["command"]

"""Latency, a soak and the MRR in the gate's own suites: asked for, told everywhere, and exported."""

from __future__ import annotations

import gzip
import json
import os
import subprocess

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pdrgate.observers.retis import bindings_missing
from tests.acceptance.conftest import PDRGATE, ROOT, Ended, simulated

MEASURANDS = {
    "latency": ["PDR", "saturation throughput", "median latency at 50% PDR", "p99 latency at 90% PDR"],
    "soak": [],
    "mrr": ["MRR"],
}
"""By scenario."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    scenarios = [option for name in MEASURANDS for option in ("--scenario", f"{name}-ipv6" if name != "soak" else name)]
    return simulated(tmp_path_factory.mktemp("all"), "--soak", "20s", "--profile", "smoke", *scenarios)


def told(ended: Ended, scenario: str) -> dict:
    """A scenario's part of the result."""
    entries = dict(zip(("latency", "mrr", "soak"), ended.result["scenarios"], strict=True))
    return entries[scenario]


@pytest.mark.parametrize("scenario", MEASURANDS)
def test_each_is_in_the_result(ended, scenario):
    assert ended.code == 0, ended.stdout + ended.stderr
    assert [one["name"] for one in told(ended, scenario)["measurands"]] == MEASURANDS[scenario]


def test_latency_is_told_at_three_shares_of_the_pdr(ended):
    entry = told(ended, "latency")
    assert [one["share"] for one in entry["latency"]] == [0.5, 0.9, 0.99]
    assert entry["name"].endswith("-latency")
    head, tail = "latency, median and 99 %: ", " at 90 % of the PDR ("
    (line,) = [line for line in ended.stdout.splitlines() if head in line]
    assert tail in line
    for report in ("summary.md", "summary.html", "log.html"):
        assert "90 % of the PDR" in (ended.folder / report).read_text(), report


def test_a_soak_says_what_it_confirms(ended):
    entry = told(ended, "soak")
    assert entry["verdict"] == "PASS"
    assert entry["soak"]["slices"] == 20
    assert entry["losses"]["offered"] == entry["losses"]["forwarded"] == entry["soak"]["offered"]
    sentence = entry["reason"].partition("; latency")[0]
    assert sentence.startswith("soak: 20 s at "), sentence
    assert sentence.endswith(" kpps is confirmed"), sentence
    assert ended.stdout.count(sentence) == 2  # when it ends, and as the reason of its scenario
    assert sentence in (ended.folder / "summary.html").read_text()


def test_the_mrr_is_told_where_no_verdict_goes_by_it(ended):
    entry = told(ended, "mrr")
    assert (entry["verdict"], entry["comparison"]) == ("NO_BASELINE", None)
    assert entry["reason"].startswith("MRR ")
    assert entry["losses"]["forwarded"] < entry["losses"]["offered"] / 3


@pytest.mark.skipif(bool(bindings_missing()), reason="PyPI has wheels of retis for x86_64 only")
def test_retis_looks_in_one_trial_more(simulated_gate, tmp_path, monkeypatch):
    events = tmp_path / "events"
    events.write_bytes(gzip.decompress((ROOT / "tests/data/retis-1.6.4.data.gz").read_bytes()))
    monkeypatch.setenv("RETIS_EVENTS", str(events))
    monkeypatch.setenv("PATH", f"{ROOT / 'tests/fakes'}:{os.environ['PATH']}")
    ended = simulated_gate("--retis", "--profile", "smoke")
    assert ended.code == 0, ended.stdout + ended.stderr
    (entry,) = ended.result["scenarios"]
    trial = json.loads((ended.folder / "trials.jsonl").read_text().splitlines()[-1])
    assert (trial["phase"], trial["intended_load"]) == ("drops", entry["drops"]["load"])
    assert entry["drops"]["seen"] == 0  # they are a guest's, and of no namespace of ours
    assert (ended.folder / entry["drops"]["file"]).read_bytes() == events.read_bytes()
    assert ended.stdout.count("Retis saw the SUT's network stack drop no packet at ") == 2


def test_a_sut_that_becomes_slower_is_found_by_a_soak(simulated_gate):
    ended = simulated_gate("--soak", "100s", "--profile", "smoke", drift=-0.002)
    assert ended.code == 1, ended.stdout
    assert ended.result["verdict"] == "UNSTABLE"
    assert ", first loss after " in ended.result["reason"]
    assert ended.stdout.count(f"UNSTABLE: {ended.result['reason']}\n") == 1


def test_without_a_time_there_is_no_soak(simulated_gate):
    ended = simulated_gate("--scenario", "soak", "--profile", "smoke")
    assert "no test was run" in ended.stdout + ended.stderr or "no soak was asked for" in str(ended.robot_messages)


def test_all_are_exported(ended):
    done = subprocess.run(
        (PDRGATE, "report", str(ended.folder), "--format", "openmetrics"), capture_output=True, text=True, check=True
    )
    names = {family.name for family in text_string_to_metric_families(done.stdout)}
    assert {"pdrgate_mrr_packets_per_second", "pdrgate_p99_latency_at_90_pdr_seconds"} <= names


def test_latency_of_any_scenario(simulated_gate, ended):
    """By an option of the run; it is another question than without."""
    ended = simulated_gate("--latency", "--latency-tolerance", "50%", "--profile", "smoke")
    assert ended.result["scenarios"][0]["name"] == "ipv6-routing-1cpu-4096-64B-latency"
    assert "--latency --latency-tolerance 50%" in ended.result["command"]

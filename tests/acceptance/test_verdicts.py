"""What the gate says of SUTs whose curves are known, and that all its reports say the same."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from tests.acceptance.conftest import PDRGATE, Ended

DEFAULT_TEST = "One CPU, Large Buffers"


def assert_all_agree(ended: Ended, verdict: str, code: int) -> str:
    """Exit code, console, result.json, Robot, JUnit and Allure; returns the sentence."""
    assert ended.code == code, ended.stdout + ended.stderr
    assert ended.result["verdict"] == verdict, ended.stdout
    sentence = f"{verdict}: {ended.result['reason']}"
    assert sentence in ended.stdout
    status, message = ended.robot_messages[DEFAULT_TEST]
    if code == 0:
        assert status == "PASS"
        assert ended.xunit_failures == []
        assert [status for status, _ in ended.allure_statuses] == ["passed"]
    else:
        assert (status, message) == ("FAIL", sentence)
        assert ended.xunit_failures == [sentence]
        assert [(status, text) for status, text in ended.allure_statuses] == [("failed", sentence)]
    return sentence


def test_first_run_has_no_baseline_and_passes(simulated_gate):
    ended = simulated_gate()
    sentence = assert_all_agree(ended, "NO_BASELINE", 0)
    assert "--baseline" in sentence
    pdr = ended.result["scenarios"][0]["pdr"]
    assert pdr["lower"] <= 1e6 / 0.995 <= pdr["upper"]
    for name in ("log.html", "report.html", "xunit.xml", "trials.jsonl", "allure-results", "plots"):
        assert str(ended.folder / name) in ended.stdout
    assert len(list((ended.folder / "plots").glob("*.png"))) == 4
    assert "data:image/png" in (ended.folder / "log.html").read_text()


@pytest.mark.parametrize(
    ("saturation", "verdict", "code", "words"),
    [
        (1e6, "PASS", 0, "not slower: PDR"),
        (0.9e6, "REGRESSION", 1, "slower: PDR"),
        (1.1e6, "IMPROVEMENT", 0, "faster: PDR"),
        (0.98e6, "INCONCLUSIVE", 1, "the interval spans the tolerance"),
    ],
)
def test_against_a_baseline(simulated_gate, saturation, verdict, code, words):
    baseline = simulated_gate(output="baseline")
    ended = simulated_gate(
        "--baseline", str(baseline.folder), saturation=saturation, seed=2, noise=0.004, kernel="6.1.1-simulated"
    )
    sentence = assert_all_agree(ended, verdict, code)
    assert words in sentence
    assert "tolerance 2.0%" in sentence
    comparison = ended.result["scenarios"][0]["comparison"]
    assert comparison["differs"]["kernel"] == ["6.1.0-simulated", "6.1.1-simulated"]
    assert comparison["lower"] <= comparison["change"] <= comparison["upper"]


def test_two_modes_are_unstable(simulated_gate):
    sentence = assert_all_agree(simulated_gate(modes=[1.0, 0.8]), "UNSTABLE", 1)
    assert re.search(r"deviates by [\d.]+ % from repeat to repeat, needs <= 5 %|TIR [\d.]+ after PDR", sentence), (
        sentence
    )


def test_a_slow_generator_is_a_testbed_fault(simulated_gate):
    sentence = assert_all_agree(simulated_gate(ceiling=0.9e6), "GENERATOR_LIMITED", 2)
    assert "the generator ends at 900 kpps" in sentence


def test_a_generator_that_dies_is_an_error_and_keeps_its_trials(simulated_gate):
    ended = simulated_gate(fails_at=12)
    sentence = assert_all_agree(ended, "ERROR", 2)
    assert "the traffic generator has ended" in sentence
    assert len((ended.folder / "trials.jsonl").read_text().splitlines()) == 11


def test_a_run_that_died_is_resumed_without_repeating_trials(simulated_gate):
    died = simulated_gate(fails_at=12)
    before = (died.folder / "trials.jsonl").read_text().splitlines()
    resumed = simulated_gate("--resume", str(died.folder))
    assert resumed.code == 0, resumed.stdout + resumed.stderr
    after = (died.folder / "trials.jsonl").read_text().splitlines()
    assert after[: len(before)] == before
    assert resumed.result["scenarios"][0]["trials"] == len(after)
    assert "from the resumed run" in resumed.stdout


def test_a_folder_of_runs_is_a_baseline_only_for_the_same_fingerprint(simulated_gate, tmp_path):
    first = simulated_gate()
    assert first.result["verdict"] == "NO_BASELINE"
    same = simulated_gate("--baseline", str(tmp_path / "results"), seed=2)
    assert same.result["verdict"] == "PASS"
    other = simulated_gate("--baseline", str(tmp_path / "results"), seed=3, kernel="6.12.0-other")
    assert other.result["verdict"] == "NO_BASELINE"
    assert "has the same fingerprint" in other.result["reason"]


def test_scenarios_are_chosen_by_tag(simulated_gate):
    ended = simulated_gate("--scenario", "small-buffers", "--scenario", "ipv4ANDlarge-buffers")
    assert ended.code == 0, ended.stdout
    assert [entry["name"] for entry in ended.result["scenarios"]] == [
        "ipv4-routing-1cpu-4096-64B",
        "ipv4-routing-1cpu-512-64B",
        "ipv6-routing-1cpu-512-64B",
    ]


def test_trials_of_a_run_can_be_assessed_again(simulated_gate):
    ended = simulated_gate()
    done = subprocess.run(
        [PDRGATE, "assess", ended.folder / "trials.jsonl", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    experiment = json.loads(done.stdout)["experiments"][0]
    recorded = ended.result["scenarios"][0]["assessment"]
    assert experiment["labels"] == recorded["labels"]
    assert experiment["loads"] == recorded["loads"]
    assert done.returncode == 0


def test_it_runs_from_any_folder_and_finds_its_own_suites(simulated_gate, tmp_path):
    assert simulated_gate(cwd=tmp_path).code == 0

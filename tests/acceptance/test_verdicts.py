"""What the gate says of SUTs whose curves are known, and that all its reports say the same."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys

import pytest
from known_noise import DAY

from pdrgate.history.address import Address
from pdrgate.history.database.experience import Experience
from pdrgate.results.fingerprint import series
from pdrgate.values.units import Rate
from tests.acceptance.conftest import PDRGATE, ROOT, Ended


def assert_all_agree(ended: Ended, verdict: str, code: int) -> str:
    """Exit code, console, result.json, Robot, JUnit and Allure; returns the sentence."""
    assert ended.code == code, ended.stdout + ended.stderr
    assert ended.result["verdict"] == verdict, ended.stdout
    sentence, first = f"{verdict}: {ended.result['reason']}", ended.headline
    assert first.startswith(f"{verdict}: ")
    # The first line after the measurement; and no other says it again.
    assert f"\n\n{first}\n" in ended.stdout
    assert ended.stdout.count(first) == 1
    ((status, message),) = ended.robot_messages.values()
    if code == 0:
        assert status == "PASS"
        assert ended.xunit_failures == []
        assert [status for status, _ in ended.allure_statuses] == ["passed"]
        # Nor does a page that is shown before the verdict is known.
        assert "ERROR" not in (ended.folder / "output.xml").read_text(encoding="utf-8")
    else:
        assert (status, message.splitlines()[0]) == ("FAIL", first)
        assert message.count(first) == 1
        assert ended.xunit_failures == [first]
        ((status, text),) = ended.allure_statuses
        assert (status, text) == ("broken" if code == 2 else "failed", sentence)
        assert ended.xunit_tags == ["error" if code == 2 else "failure"]
    return sentence


def test_first_run_has_no_baseline_and_passes(first_run):
    ended = first_run
    sentence = assert_all_agree(ended, "NO_BASELINE", 0)
    assert "--baseline" in sentence
    pdr = ended.result["scenarios"][0]["pdr"]
    assert pdr["lower"] <= 1e6 / 0.995 <= pdr["upper"]
    told = ended.stdout.partition(f"\nresults: {ended.folder}\n")[2].split()
    assert {"log.html", "report.html", "xunit.xml", "trials.jsonl", "allure-results", "plots"} <= set(told)
    assert len(list((ended.folder / "plots").glob("*.png"))) == 5
    log = (ended.folder / "log.html").read_text()
    assert "data:image/png" in log
    assert log.count("@media (max-width: 50em)") == 1


@pytest.mark.parametrize(
    ("saturation", "verdict", "code", "words"),
    [
        (1e6, "PASS", 0, "not slower: "),
        (0.9e6, "REGRESSION", 1, "slower: "),
        (1.1e6, "IMPROVEMENT", 0, "faster: "),
        (0.98e6, "INCONCLUSIVE", 3, "the interval spans the tolerance"),
    ],
)
def test_against_a_baseline(simulated_gate, boots_are_known, first_run, saturation, verdict, code, words):
    boots_are_known(first_run)
    ended = simulated_gate(
        "--baseline", str(first_run.folder), saturation=saturation, seed=2, noise=0.004, kernel="6.1.1-simulated"
    )
    sentence = assert_all_agree(ended, verdict, code)
    assert words in sentence
    assert "tolerance 2.0%" in sentence
    comparison = ended.result["scenarios"][0]["comparison"]
    assert comparison["differs"]["kernel"] == ["6.1.0-simulated", "6.1.1-simulated"]
    assert comparison["lower"] <= comparison["change"] <= comparison["upper"]


def test_a_change_that_is_acknowledged_is_skipped_and_the_run_passes(
    simulated_gate, boots_are_known, first_run, tmp_path
):
    boots_are_known(first_run)
    path = first_run.result["scenarios"][0]["test"]
    project = tmp_path / "pdrgate.yaml"
    for tolerance, verdict, code, status in (("20%", "PASS", 0, "SKIP"), ("5%", "REGRESSION", 1, "FAIL")):
        project.write_text(
            f"acknowledged:\n- {{path: {path!r}, tolerance: {tolerance}, reason: a lock, until: 2100-01-31, by: Ann}}\n"
        )
        ended = simulated_gate(
            "--baseline", str(first_run.folder), "--project", str(project), saturation=0.9e6, seed=2, noise=0.004,
            kernel="6.1.1-simulated",
        )  # fmt: skip
        assert (ended.code, ended.result["verdict"]) == (code, verdict), ended.stdout + ended.stderr
        assert ended.result["scenarios"][0]["verdict"] == "REGRESSION"
        assert f'<status status="{status}"' in (ended.folder / "output.xml").read_text()
        assert ("1 of 1 acknowledged" in ended.stdout) is (code == 0)


def test_where_nobody_knows_what_boots_deviate_by_no_boot_is_called_slower(simulated_gate, first_run):
    """Every fifth unchanged build once was, where boots deviate by 2 %."""
    ended = simulated_gate("--baseline", str(first_run.folder), saturation=0.9e6, seed=2)
    sentence = assert_all_agree(ended, "INCONCLUSIVE", 3)
    assert sentence.endswith("on 3 days: pdrgate calibrate resources/testbeds/steady-guest.yaml")
    assert f"change {ended.result['scenarios'][0]['comparison']['change']:+.1%}" in sentence


def test_a_testbed_is_calibrated_and_later_runs_go_by_it(simulated_gate, tmp_path):
    """Of boots that deviate by 0.2 %, once several days are known: one boot of an equal build passes, one of a slower
    build is a regression.

    All on workers whose results folders need not have anything: what they know they have of the history.
    """
    where = Address(file=tmp_path / "runs.db")
    history = ("--history", str(where))
    calibrated = simulated_gate("--pairs", "8", *history, command="calibrate", boots=0.002)
    assert calibrated.code == 0, calibrated.stdout + calibrated.stderr
    assert re.search(r"\n  PDR +0\.[1-5]\d% +0\.[1-4]\d% ", calibrated.stdout), calibrated.stdout
    needs = "a tolerance of 2% of PDR needs 4 pairs; one boot against a stored one "
    assert f"{needs}is judged once 3 days were seen, 1 so far" in calibrated.stdout
    baseline = simulated_gate(*history, boots=0.002, seed=2)
    testbed = series(baseline.result["scenarios"][0]["fingerprint"])
    kept = Experience(where)
    seen = kept.observations(testbed)[0]
    for day in range(1, 16):  # that it was calibrated on other days as well is made up
        boots = tuple(dataclasses.replace(boot, boot=f"{boot.boot}-{day}") for boot in seen.boots)
        kept.add_observation(testbed, {}, dataclasses.replace(seen, when=seen.when - day * DAY, boots=boots))
    known = len(kept.observations(testbed))
    for seed, saturation, verdict, code in ((3, 1e6, "PASS", 0), (4, 0.95e6, "REGRESSION", 1)):
        ended = simulated_gate(
            "--baseline", str(baseline.folder), *history, boots=0.002, seed=seed, saturation=saturation
        )  # fmt: skip
        sentence = assert_all_agree(ended, verdict, code)
        assert "calibrate" not in sentence
        for change in ended.result["scenarios"][0]["comparison"]["changes"]:
            assert change["boots_deviate"] == pytest.approx(0.002, abs=0.0015)
    assert len(kept.observations(testbed)) == known + 2


def test_two_modes_are_unstable(simulated_gate):
    sentence = assert_all_agree(simulated_gate(modes=[1.0, 0.8]), "UNSTABLE", 1)
    assert re.search(
        r"past the PDR flips between|deviates by [\d.]+ % from repeat to repeat|TIR [\d.]+ after", sentence
    ), sentence


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


def test_json_has_the_result_and_people_read_beside_it(simulated_gate, tmp_path, first_run):
    ended = simulated_gate("--format", "json", "--baseline", str(first_run.folder.parent / "latest"), seed=2)
    assert json.loads(ended.stdout) == ended.result
    assert f"\n\n{ended.headline}\n" in ended.stderr
    assert " search " in ended.stderr
    assert ended.result["scenarios"][0]["comparison"]["baseline"] == str(first_run.folder / "result.json")
    assert str(first_run.folder) in ended.result["command"]
    assert (tmp_path / "results" / "latest").resolve() == ended.folder


def test_a_folder_of_runs_is_a_baseline_for_every_kernel_and_never_moves(simulated_gate, boots_are_known, tmp_path):
    first = simulated_gate()
    boots_are_known(first)
    assert first.result["verdict"] == "NO_BASELINE"
    for seed, kernel in ((2, "6.1.0-simulated"), (3, "6.12.0-other")):
        later = simulated_gate("--baseline", str(tmp_path / "results"), seed=seed, kernel=kernel)
        assert later.result["verdict"] == "PASS", later.stdout
        assert later.result["scenarios"][0]["comparison"]["baseline"] == str(first.folder / "result.json")


def test_a_baseline_that_was_named_and_cannot_serve_is_an_error_before_anything_is_measured(simulated_gate):
    """It once was passed over: NO_BASELINE, and a green build."""
    baseline = simulated_gate("--profile", "smoke", output="baseline")
    ended = simulated_gate("--baseline", str(baseline.folder))
    sentence = assert_all_agree(ended, "ERROR", 2)
    assert "the baseline cannot serve: " in sentence
    assert "profile smoke there, quick here" in sentence
    assert (ended.folder / "trials.jsonl").read_text() == ""


def test_what_is_no_result_is_told_before_a_run_is_made(simulated_gate, tmp_path):
    for name, content in (
        ("binary", b"\x00\xff"),
        ("nan", b'{"schema": 2, "started": NaN}'),
        ("new", b'{"schema": 99}'),
    ):
        (tmp_path / f"{name}.json").write_bytes(content)
        ended = simulated_gate("--baseline", str(tmp_path / f"{name}.json"))
        assert (ended.code, ended.folder) == (2, None)
        assert ended.stderr.startswith(f"pdrgate: {tmp_path / name}.json is ")
        assert ended.stderr.count("\n") == 1


def test_a_required_baseline_that_there_is_not(simulated_gate, tmp_path):
    (tmp_path / "runs").mkdir()
    ended = simulated_gate("--baseline", str(tmp_path / "runs"), "--require-baseline")
    sentence = assert_all_agree(ended, "ERROR", 2)
    assert sentence.endswith(f"a baseline is required, and there is none: there is no result in {tmp_path}/runs yet")
    assert simulated_gate("--require-baseline", output="none").code == 64


def test_what_is_required_of_a_test_that_compares_nothing(simulated_gate, first_run):
    """It once was measured, NO_BASELINE and green, whatever had been named."""
    ended = simulated_gate("--measure", "mrr", "--baseline", str(first_run.folder), "--require-baseline")
    sentence = assert_all_agree(ended, "ERROR", 2)
    assert sentence.endswith("/result.json: no verdict goes by an MRR")


def test_early_loss_is_not_green(simulated_gate, first_run):
    ended = simulated_gate("--baseline", str(first_run.folder), loses_from=0.8, seed=2)
    assert ended.code == 1
    comparison = ended.result["scenarios"][0]["comparison"]
    assert comparison["change"] == pytest.approx(-0.2, abs=0.03)
    assert f"change {comparison['change']:+.1%}" in ended.result["reason"]


def test_one_run_tells_one_pdr(simulated_gate, first_run):
    """Console, result.json, log and tables, also of a run that is not stable."""
    ended = simulated_gate("--baseline", str(first_run.folder), modes=[1.0, 0.8], seed=3)
    sentence = assert_all_agree(ended, "UNSTABLE", 1)
    (scenario,) = ended.result["scenarios"]
    (measurand,) = (one for one in scenario["measurands"] if one["name"] == "PDR")
    assert scenario["pdr"]["load"] == measurand["value"] == scenario["comparison"]["changes"][0]["candidate"]
    told = str(Rate(scenario["pdr"]["load"]))
    assert set(re.findall(r"PDR ([\d.]+ \w*pps)", sentence)) == {told}
    # Of the table's row it is the candidate's, which stands behind the baseline's.
    assert set(re.findall(r"^ *PDR .*?([\d.]+ \w*pps)(?!.*pps)", ended.stdout, re.MULTILINE)) == {told}


@pytest.mark.parametrize("merged", [False, True], ids=["output", "output and errors"])
def test_a_reader_that_leaves_early_changes_no_verdict(tmp_path, merged):
    command = [sys.executable, str(ROOT / "tests/acceptance/simulation.py"), "{}", "gate", "--output", str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if merged else subprocess.PIPE, text=True
    ) as gate:
        assert gate.stdout.readline().startswith("pdrgate run ")
        gate.stdout.close()
        errors = "" if merged else gate.stderr.read()
        assert (gate.wait(300), errors) == (0, "")
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink())
    assert json.loads((folder / "result.json").read_text())["verdict"] == "NO_BASELINE"


def test_scenarios_are_chosen_by_tag(simulated_gate):
    ended = simulated_gate("--scenario", "small-buffers", "--scenario", "ipv4ANDlarge-buffers")
    assert ended.code == 0, ended.stdout
    assert [entry["name"] for entry in ended.result["scenarios"]] == [
        "ipv4-routing-1cpu-4096-64B",
        "ipv4-routing-1cpu-512-64B",
        "ipv6-routing-1cpu-512-64B",
    ]


def test_trials_of_a_run_can_be_assessed_again(first_run):
    ended = first_run
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


def test_it_runs_from_any_folder_and_finds_its_own_suites_quietly(simulated_gate, tmp_path):
    ended = simulated_gate("--quiet", cwd=tmp_path)
    assert ended.code == 0
    assert ended.stdout.startswith("NO_BASELINE: ")
    assert "\n  PDR " in ended.stdout
    assert "search" not in ended.stdout and "results:" not in ended.stdout
    assert ended.stderr == ""

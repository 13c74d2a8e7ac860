"""Suites of a user's own on a simulated SUT: whose trial answers, whose fault a failure is, what tests leave."""

from __future__ import annotations

import json
import re

import pytest

from tests.acceptance.conftest import ROOT

HEAD = f"""\
*** Settings ***
Resource          {ROOT}/resources/gate.resource
Suite Setup       The Testbed Is Open


*** Test Cases ***
"""


@pytest.fixture
def suite(simulated_gate, tmp_path):
    """Call with tests by name, and gate options; each test is lines of Robot."""

    def start(tests, *options, **simulation):
        path = tmp_path / "mine.robot"
        steps = "".join(f"{name}\n" + "".join(f"    {line}\n" for line in lines) for name, lines in tests.items())
        path.write_text(HEAD + steps)
        return simulated_gate("--profile", "smoke", "--scenario", "all", "--suite", str(path), *options, **simulation)

    return start


def test_a_getter_never_answers_with_an_earlier_tests_trial(suite):
    ended = suite({
        "Measures": ["Measure Load    100 kpps    100 ms", "Get Loss Ratio    <=    1%"],
        "Does Not": ["Get Loss Ratio    <=    1%"],
        "Nor Does This": ["Get Latency    p99"],
    })  # fmt: skip
    status = ended.robot_messages
    assert status["Measures"][0] == "PASS"
    for name in ("Does Not", "Nor Does This"):
        assert status[name] == ("FAIL", "ERROR: there is no trial in this test; measure one first with Measure Load")
    assert ended.code == 2


SEARCHED = ["Search Partial Drop Rate", "Measurement Should Be Stable"]


def test_two_tests_of_one_scenario_both_stay_and_the_graver_one_is_the_runs(suite, boots_are_known):
    baseline = suite({"First": [*SEARCHED, "PDR Should Not Have Regressed"]})
    boots_are_known(baseline)
    assert baseline.code == 0, baseline.stdout
    ended = suite(
        {
            "Lenient": [*SEARCHED, "PDR Should Not Have Regressed    tolerance=50%"],
            "Strict": [*SEARCHED, "PDR Should Not Have Regressed    tolerance=1%"],
            "Lenient Again": [*SEARCHED, "PDR Should Not Have Regressed    tolerance=50%"],
        },
        "--baseline", str(baseline.folder), saturation=0.9e6, seed=2,
    )  # fmt: skip
    assert [entry["verdict"] for entry in ended.result["scenarios"]] == ["PASS", "REGRESSION", "PASS"]
    assert [entry["test"] for entry in ended.result["scenarios"]] == ["Lenient", "Strict", "Lenient Again"]
    assert ended.result["verdict"] == "REGRESSION"
    assert ended.code == 1
    assert "from the resumed run" not in ended.stdout
    trials = (ended.folder / "trials.jsonl").read_text().splitlines()
    assert sum(entry["trials"] for entry in ended.result["scenarios"]) == len(trials)


def test_a_run_that_is_resumed_tells_tests_of_one_name_apart(simulated_gate, tmp_path):
    """The second once told the trial of the first, of an equal scenario, and sent nothing."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.robot").write_text(f"{HEAD}Same Name\n    Measure Load    100 kpps    100 ms\n")
    suites = [word for name in ("one", "two") for word in ("--suite", str(tmp_path / f"{name}.robot"))]
    died = simulated_gate("--profile", "smoke", "--scenario", "all", *suites, fails_at=2)
    assert died.code == 2
    resumed = simulated_gate("--resume", str(died.folder), "--verbose")
    assert resumed.code == 0, resumed.stdout + resumed.stderr
    assert resumed.stdout.count("from the resumed run") == 1
    trials = [json.loads(line) for line in (died.folder / "trials.jsonl").read_text().splitlines()]
    assert [trial["test"] for trial in trials] == ["pdrgate.One.Same Name", "pdrgate.Two.Same Name"]
    assert [entry["test"] for entry in resumed.result["scenarios"]] == ["Same Name"] * 2


def test_a_second_question_of_a_test_has_its_own_tolerance(suite, boots_are_known):
    baseline = suite({"First": [*SEARCHED, "PDR Should Not Have Regressed"]})
    boots_are_known(baseline)
    ended = suite(
        {
            "Both": [
                *SEARCHED,
                "PDR Should Not Have Regressed    tolerance=50%",
                "PDR Should Not Have Regressed    tolerance=1%",
            ],
        },
        "--baseline", str(baseline.folder), saturation=0.9e6, seed=2,
    )  # fmt: skip
    status, message = ended.robot_messages["Both"]
    assert (status, ended.code, ended.result["verdict"]) == ("FAIL", 1, "REGRESSION")
    assert message.startswith("REGRESSION: slower: ")
    assert ended.result["scenarios"][0]["comparison"]["tolerance"] == 0.01


def test_a_test_that_goes_on_after_a_regression_is_one(suite, boots_are_known):
    baseline = suite({"First": [*SEARCHED, "PDR Should Not Have Regressed"]})
    boots_are_known(baseline)
    strict, lenient = (f"PDR Should Not Have Regressed    tolerance={each}%" for each in (1, 50))
    ended = suite(
        {"Goes On": [*SEARCHED, f"Run Keyword And Continue On Failure    {strict}", lenient]},
        "--baseline", str(baseline.folder), saturation=0.9e6, seed=2,
    )  # fmt: skip
    assert (ended.code, ended.result["verdict"]) == (1, "REGRESSION")
    (entry,) = ended.result["scenarios"]
    assert entry["comparison"]["tolerance"] == 0.01
    status, message = ended.robot_messages["Goes On"]
    assert (status, message.splitlines()[0]) == ("FAIL", ended.headline)


def test_a_test_that_names_no_tolerance_is_judged_by_the_runs(suite, boots_are_known):
    baseline = suite({"First": [*SEARCHED, "PDR Should Not Have Regressed"]})
    boots_are_known(baseline)
    ended = suite(
        {"Mine": [*SEARCHED, "PDR Should Not Have Regressed"]},
        "--baseline", str(baseline.folder), "--tolerance", "30%", saturation=0.9e6, seed=2,
    )  # fmt: skip
    assert (ended.code, ended.result["scenarios"][0]["comparison"]["tolerance"]) == (0, 0.3), ended.stdout


def test_what_an_unstable_run_tells_of_its_change_is_by_the_runs_tolerance(suite):
    """It once was by 2 %, whatever the run was asked for, and stored."""
    baseline = suite({"First": [*SEARCHED, "PDR Should Not Have Regressed"]})
    ended = suite(
        {"Mine": [*SEARCHED, "PDR Should Not Have Regressed    tolerance=1%"]},
        "--baseline", str(baseline.folder), "--tolerance", "30%", modes=[1.0, 0.8], seed=3,
    )  # fmt: skip
    (entry,) = ended.result["scenarios"]
    assert entry["verdict"] == "UNSTABLE"
    assert (entry["comparison"]["tolerance"], entry["comparison"]["accepted"]) == (0.3, False)


def test_a_bound_of_the_search_is_never_called_the_pdr(suite):
    """`Get PDR` once checked the lower bound as PDR, where no repeats had told that."""
    ended = suite({
        "Mine": [
            "${bound} =    Search Partial Drop Rate",
            "${same} =    Get Relevant Lower Bound    >=    900 kpps",
            "Should Be Equal    ${bound}    ${same}",
            "Measurement Should Be Stable",
            "${pdr} =    Get PDR    >=    900 kpps",
            "Log    PDR: ${pdr}",
        ],
    })  # fmt: skip
    assert ended.code == 0, ended.stdout


MISTAKES = {
    "Get Relevant Lower Bound    >=    1 Mbananas": "unknown rate unit 'Mbananas'",
    "Get PDR    >=    500 kpps": "there is no PDR; measure it first with Measurement Should Be Stable, after Search",
    "Measure Loud    100 kpps": "No keyword with name 'Measure Loud' found. Did you mean: PdrGate.Measure Load",
    "Measure Load    100 kpps    1 parsec": "unknown time unit",
    "Measure Load": "expected 1 to 2 arguments, got 0",
    "Evaluate    1 / 0": "ZeroDivisionError",
    "Evaluate    {}['nothing']": "KeyError",
    "Set Data Path    ipv4-routing": "the scenario is being measured and cannot change",
    "Log    ${NOWHERE}": "Variable '${NOWHERE}' not found",
    "Should Be True    ${NOWHERE} > 1": "Variable '${NOWHERE}' not found",
    "Should Be True    1 >": "Evaluating expression '1 >' failed",
    "Should Be True    nowhere > 1": "name 'nowhere' is not defined",
    "Should Be Equal    1": "expected 2 to",
    "Should Be Equal As Numbers    abc    1": "'abc' cannot be converted",
    "Should Contain    ${1}    a": "TypeError",
    "Run Keyword And Continue On Failure    Should Be Equal    a    b\n    Measure Loud": "1) a != b 2) No keyword",
    "Get Relevant Lower Bound    >=    2 Mpps\n    [Teardown]    Measure Loud": "Also teardown failed: No keyword",
    "TRY\n    Should Be Equal    a    b\n    EXCEPT\n    Measure Loud\n    END": "No keyword",
    "Run Keyword And Ignore Error    Should Be Equal    a    b\n    Evaluate    1 / 0": "ZeroDivisionError",
}
ASSERTIONS = {
    "Get Loss Ratio    <=    0%": "Loss ratio",
    "Get Relevant Lower Bound    >=    2 Mpps": "Relevant lower bound '",
    "Should Be True    1 > 2": "'1 > 2' should be true",
    "Should Be Equal    a    b": "a != b",
    "FOR    ${one}    IN    a\n    Should Be Equal    ${one}    b\n    END": "a != b",
    "Wait Until Keyword Succeeds    2x    0 s    Should Be Equal    a    b": "failed after retrying 2 times",
    "Run Keywords    Should Be True    1    AND    Get Loss Ratio    <=    0%": "Loss ratio",
    "Run Keyword And Ignore Error    Evaluate    1 / 0\n    Should Be Equal    a    b": "a != b",
    "Get Relevant Lower Bound    >=    2 Mpps\n    [Teardown]    Should Be Equal    a    b": "Also teardown failed: a",
}


def test_an_assertion_that_fails_beside_a_verdict_leaves_it_told(suite):
    ended = suite({"Asks More": [
        "Search Partial Drop Rate", "Measurement Should Be Stable", "PDR Should Not Have Regressed",
        "Get PDR    >=    9 Mpps",
    ]})  # fmt: skip
    assert (ended.code, ended.result["verdict"]) == (1, "ASSERTION_FAILED"), ended.stdout
    (entry,) = ended.result["scenarios"]
    assert re.fullmatch(r"PDR '.*' \(rate\) should be .*; the gate itself says NO_BASELINE", entry["reason"])


@pytest.mark.parametrize(
    ("steps", "verdict", "code", "tag", "status"),
    [(MISTAKES, "ERROR", 2, "error", "broken"), (ASSERTIONS, "ASSERTION_FAILED", 1, "failure", "failed")],
    ids=["mistakes", "asserts"],
)
def test_whose_fault_it_is_when_a_test_fails_after_its_first_trial(suite, steps, verdict, code, tag, status):
    """A mistyped unit once was INCONCLUSIVE with exit code 1: to a pipeline, the build's fault."""
    before = ["Search Partial Drop Rate", "Measure Load    1.5 Mpps    100 ms"]
    ended = suite({f"Step {number}": [*before, step] for number, step in enumerate(steps)})
    assert (ended.code, ended.result["verdict"]) == (code, verdict), ended.stdout
    assert set(ended.xunit_tags) == {tag}
    assert all(one.startswith(f"{verdict}: ") for one in ended.xunit_failures)
    assert {one for one, _ in ended.allure_statuses} == {status}
    told = list(ended.robot_messages.values())
    for (robot, message), scenario, says in zip(told, ended.result["scenarios"], steps.values(), strict=True):
        assert (robot, scenario["verdict"]) == ("FAIL", verdict)
        assert says in message
        # A clause that the headline has no room for stands below it.
        assert message.splitlines()[0].startswith(f"{verdict}: {scenario['reason']}"[:38])
        assert all(clause in message for clause in scenario["reason"].split("; "))
        assert scenario["trials"] > 3


def test_an_internal_exception_is_the_tools_fault(suite):
    ended = suite({"Mine": SEARCHED}, breaks_at=12)
    assert (ended.code, ended.result["verdict"]) == (2, "ERROR"), ended.stdout
    assert ended.result["reason"] == "something of ours is broken"


def test_a_goal_of_its_own_is_another_scenario(suite):
    ten = suite({"Ten": ["Search Partial Drop Rate    loss=10%", *SEARCHED[1:], "PDR Should Not Have Regressed"]})
    assert ten.result["scenarios"][0]["name"] == "ipv6-routing-1cpu-4096-64B-loss10"
    half = suite({"Half": [*SEARCHED, "PDR Should Not Have Regressed"]}, "--baseline", str(ten.folder))
    assert half.code == 2
    assert "has no result of this scenario (it has: IPv6 routing, " in half.stdout
    assert (half.folder / "trials.jsonl").read_text() == ""

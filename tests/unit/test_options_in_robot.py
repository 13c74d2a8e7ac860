"""What suites may say of the options of a run, executed by Robot up to where a testbed would be opened."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from robot.run import run  # type: ignore[import-untyped]

from pdrgate.gate.run.declaration import By, declarations
from pdrgate.gate.run.options import Options, RunOptions
from pdrgate.gate.run.run_settings import keys, read_settings
from pdrgate.history.address import Address
from pdrgate.keywords.library import PdrGate
from pdrgate.launch.variables import variable_file
from pdrgate.values.units import Duration, Ratio

ROOT = Path(__file__).parents[2]
SUITE = f"""\
*** Settings ***
Resource    {ROOT}/resources/gate.resource

*** Variables ***
${{TOLERANCE}}    5%

*** Test Cases ***
One
"""


def failed(folder: Path, *steps: str, **robot: object) -> str:
    """What a test of these steps says when it fails; empty when it passes."""
    suite = folder / "suite.robot"
    suite.write_text(SUITE + "".join(f"    {step}\n" for step in steps))
    told = io.StringIO()
    run(suite, output=None, log=None, report=None, outputdir=str(folder), stdout=told, stderr=told, **robot)
    return told.getvalue().partition("| FAIL |\n")[2].partition("\n----")[0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("tolerence=5%", "ERROR: tolerence: there is no such option; did you mean tolerance"),
        ("colour=red", "ERROR: colour: there is no such option; there are afresh, alike, "),
        ("boots=2", "ERROR: boots: '2' is no whole number from 3 to 500"),
        ("fate=lost", "ERROR: fate: 'lost' is none; choose one of forwarded, returned, "),
        ("changes=boots", "ERROR: boots: write KEY=VALUE, such as boots=12"),
        ("tolerance=lots", "ERROR: tolerance: 'lots' is not a ratio; write a number and a unit, such as 0.5% or"),
        ("latency=maybe", "ERROR: latency: 'maybe' is neither true nor false; write one of the two"),
        ("profile=slow", "ERROR: profile: 'slow' is none; choose one of smoke, quick, standard, pastrami"),
        ("history=postgresql://ci:secret@host/runs", "ERROR: history: the history's URL holds a password"),
        ("smoke", "Keyword 'PdrGate.Open Testbed' expected 1 non-named argument, got 2."),
    ],
)
def test_an_option_that_is_none_is_told_with_those_that_there_are(arguments: str, says: str, tmp_path: Path) -> None:
    told = failed(tmp_path, f"Open Testbed    {tmp_path}/none.yaml    {arguments}")
    assert told.startswith(says)
    assert "secret" not in told


def test_a_suite_that_says_a_value_is_heard_where_the_command_line_says_none(tmp_path: Path) -> None:
    assert failed(tmp_path, "Should Be Equal    ${TOLERANCE}    5%", "Should Be Equal    ${ATTACH}    auto") == ""
    assert failed(tmp_path, "Should Be Equal    ${TOLERANCE}    3%", variable=["TOLERANCE:3%"]) == ""
    RunOptions(testbed=Path("a.yaml"), tolerance=Ratio(0.07)).keep(tmp_path)
    steps = ("Should Be Equal    ${TOLERANCE.text}    7%", "Should Be Equal    ${{type($TOLERANCE).__name__}}    Ratio")
    assert failed(tmp_path, *steps, variablefile=[variable_file(tmp_path)]) == ""


def test_the_chosen_testbed_is_opened_with_the_variables_of_the_run(tmp_path: Path) -> None:
    for name, value, says in (
        ("TOLERANCE", "lots", "ERROR: tolerance: 'lots' is not a ratio"),
        ("WAIT", "5 parsec", "ERROR: wait: '5 parsec': unknown time unit 'parsec'"),
        ("RETIS", "perhaps", "ERROR: retis: 'perhaps' is neither true nor false"),
        ("TESTBED", f"{tmp_path}/none.yaml", f"ERROR: {tmp_path}/none.yaml: "),
    ):
        assert failed(tmp_path, "The Testbed Is Open", variable=[f"{name}:{value}"]).startswith(says)


def test_texts_of_a_suite_are_values_of_the_declared_types() -> None:
    texts = {
        "profile": "smoke", "tolerance": "7%", "cost_tolerance": "None", "latency": True, "spike_in": "no",
        "baseline": "", "history": "runs.db", "wait": "10 min", "retis": True,
    }  # fmt: skip
    assert Options(**read_settings(texts.items(), keys(~By.PIPELINE, Options))) == Options(
        profile="smoke", tolerance=Ratio(0.07), changes=("latency=True",), history=Address.parse("runs.db"),
        wait=Duration(600), retis=True,
    )  # fmt: skip


def test_each_option_of_a_testbed_is_documented_with_its_default() -> None:
    rows = PdrGate().get_keyword_documentation("open_testbed").splitlines()
    for one in declarations(Options).values():
        (row,) = (line for line in rows if line.startswith(f"| ``{one.name}`` |"))
        assert one.help in row
        assert one.default_text in row

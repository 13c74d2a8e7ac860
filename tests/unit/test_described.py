"""What --scenario names, read from the suites by Robot itself; and what the files of paths say of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pdrgate.cli import main
from pdrgate.gate.run.measures import MEASURES, measure_of
from pdrgate.gate.run.scenario import Scenario
from pdrgate.launch import path_files as module
from pdrgate.launch.described import SUITES, described_tests, scenario_named, tag_named
from pdrgate.launch.path_files import path_files
from pdrgate.values.errors import UsageError

MINE = """*** Settings ***
Resource    {root}/resources/gate.resource
Suite Setup    Fail    nobody opens a testbed to read what is described
Test Template    Is As Fast As Before

*** Test Cases ***
Small    [Tags]    mine    small
    64
Large    [Tags]    mine
    1518

*** Keywords ***
Is As Fast As Before
    [Arguments]    ${{size}}
    Given The SUT Routes IPv4
    And The Frames Have ${{size}} Bytes
    When The Partial Drop Rate Is Searched
    Then The Measurement Is Stable
"""
NAMED = "ip-routing-set_up_4fd54fdd71ce-1cpu-4096-64B"


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    suite = tmp_path_factory.mktemp("mine") / "mine.robot"
    suite.write_text(MINE.format(root=Path(__file__).parents[2]))
    return suite


def test_a_test_describes_its_scenario_and_measures_nothing(mine: Path) -> None:
    assert [(one.name, one.scenario.name) for one in described_tests((mine,))] == [
        ("Small", "ipv4-routing-1cpu-4096-64B"), ("Large", "ipv4-routing-1cpu-4096-1518B"),
    ]  # fmt: skip


def test_a_scenario_is_named_by_a_tag_by_its_name_in_results_or_by_a_file(mine: Path, tmp_path: Path) -> None:
    assert scenario_named("path-nat").name == NAMED
    assert scenario_named("small", (mine,)) == Scenario("ipv4-routing")
    assert scenario_named("ipv4-routing-1cpu-4096-1518B-latency", (mine,)) == Scenario(
        "ipv4-routing", frame_size=1518, latency=True
    )
    (tmp_path / "own.yaml").write_text("name: own\nset_up: ['true']\n")
    assert scenario_named(str(tmp_path / "own.yaml")).set_up is not None
    with pytest.raises(UsageError, match=r"^--scenario mine names 2 scenarios, ipv4-routing-1cpu-4096-1518B, ipv4-rou"):
        scenario_named("mine", (mine,))
    with pytest.raises(UsageError, match=r"^--scenario huge: no test has this tag or name, and none has a scenario "):
        scenario_named("huge", (mine,))


def test_a_path_is_named_by_its_test_as_reports_name_it(mine: Path) -> None:
    assert tag_named("Connection Tracking", SUITES) == "path-conntrack"
    assert scenario_named("Connection Tracking") == scenario_named("path-conntrack")


def test_a_gate_runs_the_test_whose_scenario_results_call_so(mine: Path) -> None:
    assert tag_named(NAMED, SUITES) == "path-nat"
    assert tag_named("path-nat", SUITES) == "path-nat"
    assert tag_named("ipv4-routing-1cpu-4096-64B", (mine,)) == "small"
    assert (
        tag_named("ipv4-routing-2cpus-9-64B", (mine,)) == "ipv4-routing-2cpus-9-64B"
    )  # the run says that there is none
    with pytest.raises(UsageError, match="its test Large has no tag of its own; give it one"):
        tag_named("ipv4-routing-1cpu-4096-1518B", (mine,))


def test_a_scenario_file_is_measured_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own.yaml"
    assert main(["gate", "--scenario", str(file), "--scenario", "path-nat"]) == 64
    assert "a scenario file is measured alone; leave the other ones out" in capsys.readouterr().err
    assert main(["gate", "--scenario", str(file)]) == 2
    assert f"cannot read the scenario {file}: No such file or directory" in capsys.readouterr().err


def test_what_a_path_has_none_of_is_left_out_with_what_to_ask_for() -> None:
    assert measure_of(None, Scenario()).name == "pdr"
    assert measure_of(None, Scenario("tcp-transfer")).name == "transfer"
    assert MEASURES["pdr"].misfit(Scenario("tcp-transfer")) == "a closed loop has no pdr: --measure transfer"
    assert MEASURES["windows"].misfit(Scenario()) == "a path that is offered a load has no windows: --measure pdr"
    assert MEASURES["pdr"].misfit(scenario_named("path-set-replaced")).endswith("--measure cost")
    assert not MEASURES["cost"].misfit(Scenario("tcp-transfer"))


def test_each_path_says_its_rank_and_why_it_is_there() -> None:
    paths = path_files()
    assert len(paths) > 70
    assert {one.rank for one in paths} == {"primary", "secondary"}
    assert len({one.why for one in paths}) == len({one.tag for one in paths}) == len(paths)
    for path in paths:
        assert re.fullmatch(r"[A-Za-z].*\.", path.why), path.file
        assert path.fault is None or re.compile(path.fault.seen_in), path.file


@pytest.mark.parametrize(
    ("settings", "tags", "says"),
    [
        ("Metadata    Rank    primary", "path-a", "a path says why it is there; add its metadata Why"),
        ("Metadata    Rank    tertiary\nMetadata    Why    So.", "path-a", "is primary or secondary, and not tertiary"),
        ("Metadata    Rank    primary\nMetadata    Why    So.", "a", "a tag path-NAME, and this file has 0"),
    ],
)  # fmt: skip
def test_a_file_that_lacks_what_a_path_says_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, tags: str, says: str
) -> None:
    (tmp_path / "a.robot").write_text(
        f"*** Settings ***\nDocumentation    A.\n{settings}\n\n*** Test Cases ***\n"
        f"A\n    [Tags]    {tags}\n    Log    a\n"
    )
    monkeypatch.setattr(module, "PATHS", tmp_path)
    with pytest.raises(UsageError, match=re.escape(says)):
        path_files()

"""What `pdrgate gate` tells before Robot starts, and what it takes from the run that it continues."""

from __future__ import annotations

import codecs
import dataclasses
import json
import os
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from made_results import compared, result, scenario, written
from robot.api import TestSuite as Suite
from robot.running import ResourceFile  # type: ignore[import-untyped]
from robot.utils import split_args_from_name_or_path  # type: ignore[import-untyped]
from robot.variables import Variables  # type: ignore[import-untyped]
from said_options import said

from pdrgate.cli import cli
from pdrgate.cli.gate import _asked, _of_testbed
from pdrgate.gate.run.declaration import By, declarations
from pdrgate.gate.run.options import RunOptions, kept_options
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.history.address import Address
from pdrgate.history.results import RESULT_FILE, read_result, results_below, write_result
from pdrgate.launch import check, default_testbed, followed, listed, run_gate, running
from pdrgate.launch.folders import mark_latest
from pdrgate.launch.shard import DrawnOrder
from pdrgate.launch.variables import variable_file
from pdrgate.results.verdict import INTERRUPTED, Verdict
from pdrgate.values.errors import DataError, UsageError
from pdrgate.values.units import Duration, Ratio

ROOT = Path(__file__).parents[2]
OPTIONS = RunOptions(
    suites=(Path("robot/gate"),),
    testbed=Path("resources/testbeds/local-netns.yaml"),
    scenarios=("default",),
    profile="quick",
    tolerance=Ratio(0.02),
)
ALL_SAID = RunOptions(
    suites=(Path("mine.robot"), Path("robot/gate")),
    testbed=Path("rack.yaml"),
    scenarios=("ipv4", "small-buffers"),
    profile="smoke",
    tolerance=Ratio(0.07),
    changes=("latency=true",),
    latency_tolerance=Ratio(0.5),
    baseline=Path("results"),
    require_baseline=True,
    wait=Duration(600),
    kernel="vmlinuz,modules=lib",
    bpf="a.o",
    against="b.o",
    boots=6,
    measure="pdr",
    soak=Duration(90),
    budget=Duration(0.1),
    below_noise=True,
    allow_config_differences=True,
    spike_in=True,
    afresh=True,
    bisect=True,
    history=Address.parse("runs.db"),
)


def test_the_options_of_a_run_are_read_back(tmp_path: Path) -> None:
    for options in (ALL_SAID, OPTIONS):
        options.keep(tmp_path)
        assert RunOptions.of_run(tmp_path) == options
    (tmp_path / "run.json").write_bytes(codecs.BOM_UTF8 + (tmp_path / "run.json").read_bytes())
    assert RunOptions.of_run(tmp_path) == OPTIONS


@pytest.mark.parametrize(
    ("spoilt", "fault"),
    [
        ({"boots": "a"}, ": boots takes no such value"),
        ({"boots": True}, ": boots takes no such value"),
        ({"testbed": 1}, ": testbed takes no such value"),
        ({"scenarios": ["default", [1]]}, ": scenarios takes no such value"),
        ({"tolerance": "lots"}, ": tolerance takes no such value"),
        ({"wait": "5 parsec"}, ": wait takes no such value"),
        ({"baseline": ["x"]}, ": baseline takes no such value"),
        ({"history": "mysql://x"}, ": history takes no such value"),
        ({"profile": "slow"}, ": profile takes no such value"),
        ({"bisect": "maybe"}, ": bisect takes no such value"),
        ({"colour": "red"}, " has 1 unknown keys"),
        (["boots"], " is missing or damaged ("),
        (None, " is missing or damaged ([Errno 2] No such file or directory: '{file}')"),
        ("[" * 100_000, " is missing or damaged (maximum recursion depth exceeded"),
    ],
)
def test_options_that_cannot_be_read_name_file_and_key(tmp_path: Path, spoilt: Any, fault: str) -> None:
    file = tmp_path / "run.json"
    if isinstance(spoilt, str):
        file.write_text(spoilt)
    elif spoilt is not None:
        made = OPTIONS.written() | spoilt if isinstance(spoilt, dict) else spoilt
        file.write_text(json.dumps(made))
    with pytest.raises(DataError) as error:
        RunOptions.of_run(tmp_path)
    assert str(error.value).startswith(f"cannot resume {tmp_path}: {file}{fault.format(file=file)}")
    assert str(error.value).endswith("; start a new run")


def test_options_are_read_as_a_person_types_them_and_may_be_absent(tmp_path: Path) -> None:
    typed = {
        "suites": ["robot/gate"], "testbed": "resources/testbeds/local-netns.yaml", "scenarios": ["default"],
        "profile": "quick", "tolerance": "0.02", "baseline": "results/old", "wait": "10 min",
        "kernel": "", "against": "", "budget": "9 min",
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(typed))
    assert RunOptions.of_run(tmp_path) == dataclasses.replace(
        OPTIONS, baseline=Path("results/old"), wait=Duration(600), budget=Duration(540)
    )


def robot_reads(file: str) -> dict[str, Any]:
    """What Robot makes of a variable file that it is handed."""
    name, arguments = split_args_from_name_or_path(file)
    variables = Variables()
    variables.set_from_file(name, arguments)
    return dict(variables.as_dict(decoration=False))


@pytest.mark.parametrize("name", ["run", "a: run; 50%", "r\u00fcn"])
def test_robot_gets_what_was_asked_typed_and_with_whole_paths(name: str, tmp_path: Path) -> None:
    ALL_SAID.keep(tmp_path / name)
    found = robot_reads(variable_file(tmp_path / name))
    asked = {
        one.variable: getattr(ALL_SAID, one.name)
        for one in declarations(RunOptions).values()
        if By.VARIABLE in one.said.by
    }
    assert {"SCENARIO", "SUITE", "BISECT", "COMMIT"}.isdisjoint(found)
    assert found == asked | {
        "TESTBED": Path.cwd() / "rack.yaml", "BASELINE": Path.cwd() / "results",
        "KERNEL": f"vmlinuz,modules={Path.cwd() / 'lib'}", "HISTORY": Address(file=Path.cwd() / "runs.db"),
    }  # fmt: skip


def test_a_password_goes_to_the_server_and_neither_into_the_folder_nor_to_robot(tmp_path: Path) -> None:
    """A run's folder is published, and Robot may log what keywords are given."""
    url = "postgresql://ci:secret@host/runs"
    options = dataclasses.replace(OPTIONS, history=Address.parse(url))
    options.keep(tmp_path)
    assert "secret" not in (tmp_path / "run.json").read_text()
    kept = RunOptions.of_run(tmp_path).history
    assert kept == Address.parse("postgresql://ci@host/runs")
    assert robot_reads(variable_file(tmp_path))["HISTORY"] == kept


def test_the_resource_brings_what_the_options_are_by_themselves() -> None:
    """A suite of one's own, and ``robot --variable``, find each option under its name."""
    resource = ResourceFile.from_file_system(ROOT / "resources" / "gate.resource")
    (imported,) = (one.name for one in resource.imports if one.type == "VARIABLES")
    found = robot_reads(imported)
    assert {name: found[name] for name in ("ATTACH", "SOAK", "KERNEL")} == {
        "ATTACH": "auto", "SOAK": Duration(3600), "KERNEL": "",
    }  # fmt: skip
    assert {"TOLERANCE", "PROFILE", "BOOTS", "BASELINE"}.isdisjoint(found)  # the testbed's file may say them
    assert found["TESTBED"].is_file()
    assert [one.name for one in resource.variables] == ["${RESUME}", "${IN}", "${OUT}"]


@pytest.mark.parametrize(
    "asked",
    [
        OPTIONS,
        dataclasses.replace(
            ALL_SAID, bpf="", baseline=None, require_baseline=False, kernel="a 'kernel' $(x).deb", soak=OPTIONS.soak
        ),
        dataclasses.replace(
            ALL_SAID,
            kernel="",
            bpf="",
            against="",
            bisect=False,
            spike_in=False,
            measure="soak",
            boots=48,
            below_noise=False,
        ),
    ],
)
def test_the_command_that_a_result_tells_asks_for_the_same_again(
    asked: RunOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.robot").write_text("*** Test Cases ***\nMine\n    [Tags]    mine\n    No Operation\n")
    asked.keep(tmp_path)
    kept = kept_options(tmp_path)
    assert kept is not None
    front, *words = shlex.split(kept.command)
    context = cli.commands["gate"].make_context("gate", words)
    assert front == "./ci/gate"
    assert _asked(**said(context)) == asked


def test_a_folder_without_options_keeps_none(tmp_path: Path) -> None:
    assert kept_options(tmp_path) is None


def test_a_result_tells_the_commit_that_it_judges(tmp_path: Path) -> None:
    """Merging takes no other's; what a folder does not tell is of none."""
    dataclasses.replace(OPTIONS, commit="a" * 40).keep(tmp_path)
    kept = kept_options(tmp_path)
    assert kept is not None
    assert f"--commit {kept.commit}" in kept.command
    record = RunRecord(tmp_path, "quick", command=kept.command, commit=kept.commit)
    record.fail("others have it", held=True)
    record.close()
    told = read_result(tmp_path)
    assert (told.commit, told.held) == ("a" * 40, True)


@pytest.mark.parametrize(
    "pattern",
    ["default", "all", "*", "ipv6ANDsmall-buffers", "ipv9ORipv6", "ipv6NOTdefault", "NOTipv6", "IPv4", "path-xdp-*"],
)
def test_patterns_of_robot_that_some_test_matches(pattern: str) -> None:
    check(dataclasses.replace(OPTIONS, scenarios=(pattern,)))


@pytest.mark.parametrize(
    ("patterns", "says"),
    [
        (("small-bufers",), "no test has the tag small-bufers; did you mean small-buffers"),
        (("NAT",), "no test has the tag NAT; did you mean path-nat? "),
        (("ipv6ANDipv4",), "no test has the tag ipv6ANDipv4; "),
        (("default", "colour"), "no test has the tag colour; --list-scenarios lists the "),
    ],
)
def test_a_pattern_that_no_test_matches_is_told_in_a_line(patterns: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError) as error:
        check(dataclasses.replace(OPTIONS, scenarios=patterns))
    assert str(error.value).startswith(says)
    assert re.search(r"--list-scenarios lists the \d+ that there are$", str(error.value))
    assert len(str(error.value)) < 160


def test_a_suite_without_tests_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "empty.robot").write_text("*** Settings ***\nDocumentation    Nothing yet\n")
    with pytest.raises(UsageError, match=r"empty\.robot: .* contains no tests"):
        check(dataclasses.replace(OPTIONS, suites=(tmp_path / "empty.robot",)))


# --- The newest run, and the scenarios there are ---


def test_latest_is_the_run_that_ended_last_and_a_baseline_is_the_run_it_stood_for(tmp_path: Path) -> None:
    for name in ("20261101-120000", "20261102-120000"):
        written(tmp_path / name, scenario(), started=float(name[:8]))
        mark_latest(tmp_path / name)
        assert followed(tmp_path / "latest") == tmp_path / name
        assert followed(tmp_path / "latest" / "result.json") == tmp_path / name / "result.json"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["20261101-120000", "20261102-120000", "latest"]
    # It is no further run.
    assert [file.parent.name for file, _ in results_below(tmp_path)] == ["20261102-120000", "20261101-120000"]
    assert read_result(tmp_path / "latest").run == "20261102-120000"


@pytest.mark.parametrize("own", ["file", "folder"])
def test_what_somebody_else_calls_latest_stays(own: str, tmp_path: Path) -> None:
    theirs = tmp_path / "latest"
    _ = theirs.mkdir() if own == "folder" else theirs.write_text("mine")
    mark_latest(tmp_path / "20261101-120000")
    assert not theirs.is_symlink()
    assert followed(theirs) == theirs
    assert list(tmp_path.iterdir()) == [theirs]


def test_a_folder_that_takes_no_link_costs_the_link_only(tmp_path: Path) -> None:
    mark_latest(tmp_path / "none" / "20261101-120000")
    assert not (tmp_path / "none").exists()


def test_scenarios_are_listed_with_the_tags_that_choose_them() -> None:
    by_default = listed((Path("robot/gate"),), ("default",))
    assert [(one.suite, one.test) for one in by_default] == [("Ipv6 Routing", "IPv6 Routing")]
    assert set(by_default[0].tags) == {"default", "ipv6", "large-buffers", "path-ipv6-routing", "portfolio"}
    every = listed((Path("robot/gate"),))
    assert len(every) > 12 and all(one.about and one.tags for one in every)
    assert len(listed((Path("robot/gate"),), ("ipv4", "srv6"))) == sum(
        bool({"ipv4", "srv6"} & set(one.tags)) for one in every
    )


def test_a_comparison_that_is_interrupted_and_tells_its_change_ends_as_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    reason = f"{INTERRUPTED}; not accepted therefore: PDR 990 kpps against 1 Mpps, change -1.0%"
    ended = dataclasses.replace(compared("ERROR"), reason=reason)

    def measured(options: RunOptions, folder: Path, resume: bool, *listeners: object) -> int:
        write_result(folder / RESULT_FILE, result(ended, verdict=Verdict.ERROR, reason=reason))
        return 1

    monkeypatch.setattr(running, "_measured", measured)
    assert run_gate(OPTIONS, tmp_path) == 130
    told = capfd.readouterr().out
    assert f"ERROR: {reason}" in told
    assert f"interrupted; continue with: --resume {tmp_path}" in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_outside_of_the_suites_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    """It may come as soon as the run has a folder, and as late as its reports are written."""
    monkeypatch.setattr(running, "_measured", lambda *_: os.kill(os.getpid(), number))
    assert run_gate(OPTIONS, tmp_path) == 128 + number
    assert f"interrupted; all trials are kept, continue with: --resume {tmp_path}" in capfd.readouterr().out


FAULT = "cannot write run/result.json: No space left on device; make room there and run again"
LATE = f"""
class late:
    ROBOT_LIBRARY_SCOPE = "GLOBAL"
    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self):
        self.ROBOT_LIBRARY_LISTENER = self

    def end_test(self, data, result):
        result.status, result.message = "FAIL", "{FAULT}"
"""


@pytest.mark.parametrize(
    ("settings", "first"),
    [
        ("", f"Fail    {FAULT}\\nmore of it"),
        (f"Suite Setup    Fail    {FAULT}", "Log    never"),
        ("Library    late.py", "Log    passes, and its result cannot be kept"),
    ],
    ids=["test", "setup", "library"],
)
def test_a_run_that_left_no_result_says_why_its_first_test_failed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], settings: str, first: str
) -> None:
    """A disk that gets full while result.json is written leaves room for Robot's own files again."""
    suite, fault = tmp_path / "mine.robot", FAULT
    (tmp_path / "late.py").write_text(LATE)
    suite.write_text(
        f"*** Settings ***\n{settings}\n*** Test Cases ***\n"
        f"One\n    [Tags]    default\n    {first}\n"
        "Two\n    [Tags]    default\n    Fail    something else\n"
    )
    folder = tmp_path / "run"
    folder.mkdir()
    assert run_gate(dataclasses.replace(OPTIONS, suites=(suite,)), folder) == 2
    told = f"ERROR: Robot ended without a result: {fault}; all trials are kept in {folder}"
    assert told in " ".join(capfd.readouterr().out.split())


def _in_order(order: int) -> list[str]:
    suite = Suite.from_file_system(str(ROOT / "robot/gate"))
    suite.visit(DrawnOrder(order))
    return [test.longname for test in suite.all_tests]


def test_paths_are_measured_in_an_order_that_can_be_repeated() -> None:
    usual = [test.longname for test in Suite.from_file_system(str(ROOT / "robot/gate")).all_tests]
    orders = [_in_order(order) for order in (1, 1, 2)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    for drawn in orders:
        assert sorted(drawn) == sorted(usual)
        moved = [one for one, other in zip(drawn, usual, strict=True) if one != other]
        assert moved
        assert all(".Portfolio." in one for one in moved)


def test_an_order_is_drawn_for_each_run_of_the_portfolio_and_kept() -> None:
    def drawn(**given: Any) -> RunOptions:
        return _of_testbed(_asked(kernel="a.deb", against="b.deb", testbed=testbed, **given), given)

    testbed = default_testbed(builds=True)[0]
    asked = [drawn() for _ in range(9)]
    assert {one.scenarios for one in asked} == {("portfolio",)}
    assert len({one.order for one in asked}) > 1
    assert f"--set order={asked[0].order}" in asked[0].command
    assert drawn(order=7).order == 7
    assert drawn(measure="pdr").order is None
    assert drawn(afresh=True).scenarios == ("portfolio",)


def test_no_path_adds_what_a_kernel_never_forgets() -> None:
    # A kernel that ever had a policy rule of IPv4 looks each packet up by rules from then on: +40 % on later paths.
    files = [*(ROOT / "robot/gate/portfolio").glob("*.robot"), *(ROOT / "resources").glob("*.resource")]
    assert len(files) > 40
    assert [file.name for file in files if re.search(r"\bip rule add\b", file.read_text())] == []

"""What `pdrgate gate` tells before Robot starts, and what it takes from the run that it continues."""

from __future__ import annotations

import codecs
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from pdrgate.errors import DataError, UsageError
from pdrgate.launch import GateOptions, check

OPTIONS = GateOptions(
    suites=("robot/gate",),
    testbed="resources/testbeds/local-netns.yaml",
    scenarios=("default",),
    profile="quick",
    tolerance="2%",
    baseline=None,
    reading="strict",
)


def test_the_options_of_a_run_are_read_back(tmp_path: Path) -> None:
    OPTIONS.keep(tmp_path)
    assert GateOptions.of_run(tmp_path) == OPTIONS
    (tmp_path / "run.json").write_bytes(codecs.BOM_UTF8 + (tmp_path / "run.json").read_bytes())
    assert GateOptions.of_run(tmp_path) == OPTIONS


@pytest.mark.parametrize(
    ("spoilt", "fault"),
    [
        ({"boots": "a"}, ": Expected `int`, got `str` at `boots`"),
        ({"boots": True}, ": Expected `int`, got `bool` at `boots`"),
        ({"testbed": 1}, ": Expected `str`, got `int` at `testbed`"),
        ({"suites": "robot/gate"}, ": Expected `array`, got `str` at `suites`"),
        ({"scenarios": ["default", 1]}, ": Expected `str`, got `int` at `scenarios[1]`"),
        ({"bisect": None}, ": Expected `bool`, got `null` at `bisect`"),
        ({"colour": "red"}, ": unknown key `colour`"),
        ([], ": Expected `object`, got `array`"),
        (None, " is missing or damaged ([Errno 2] No such file or directory: '{file}')"),
        ("[" * 100_000, " is missing or damaged (maximum recursion depth exceeded"),
    ],
)
def test_options_that_cannot_be_read_name_file_and_key(tmp_path: Path, spoilt: Any, fault: str) -> None:
    file = tmp_path / "run.json"
    if isinstance(spoilt, str):
        file.write_text(spoilt)
    elif spoilt is not None:
        made = dataclasses.asdict(OPTIONS) | spoilt if isinstance(spoilt, dict) else spoilt
        file.write_text(json.dumps(made))
    with pytest.raises(DataError) as error:
        GateOptions.of_run(tmp_path)
    assert str(error.value).startswith(f"cannot resume {tmp_path}: {file}{fault.format(file=file)}")
    assert str(error.value).endswith("; start a new run")


@pytest.mark.parametrize(
    "pattern",
    ["default", "all", "*", "ipv6ANDsmall-buffers", "ipv9ORipv6", "ipv6NOTdefault", "NOTipv6", "IPv4", "xdp-*"],
)
def test_patterns_of_robot_that_some_test_matches(pattern: str) -> None:
    check(dataclasses.replace(OPTIONS, scenarios=(pattern,)))


@pytest.mark.parametrize(
    ("patterns", "says"),
    [
        (("small-bufers",), "no test has the tag small-bufers; did you mean small-buffers? there are all-bpf-builds, "),
        (("ipv6ANDipv4",), "no test has the tag ipv6ANDipv4; "),
        (("default", "colour"), "no test has the tag colour; there are all-bpf-builds, "),
    ],
)
def test_a_pattern_that_no_test_matches_is_told_with_the_tags_there_are(patterns: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError) as error:
        check(dataclasses.replace(OPTIONS, scenarios=patterns))
    assert str(error.value).startswith(says)
    assert str(error.value).endswith(", xdp, xdp-ipv4, xdp-ipv6, and all")


def test_a_suite_without_tests_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "empty.robot").write_text("*** Settings ***\nDocumentation    Nothing yet\n")
    with pytest.raises(UsageError, match=r"empty\.robot: .* contains no tests"):
        check(dataclasses.replace(OPTIONS, suites=(str(tmp_path / "empty.robot"),)))

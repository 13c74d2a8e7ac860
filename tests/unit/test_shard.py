"""Several jobs measure the paths together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_results import compared, result
from robot.api import TestSuite

from pdrgate.launch.shard import OnlyTests, Shard
from pdrgate.launch.suites import Listed, listed
from pdrgate.results.merging import RunPart, merged
from pdrgate.results.selection import SelectedPath, Selection
from pdrgate.results.verdict import Verdict
from pdrgate.this_process.own_files import found
from pdrgate.values.errors import UsageError

GATE = Path("robot/gate")


@pytest.mark.parametrize("of", [1, 2, 3, 4, 7, 72])
def test_parts_have_each_path_once_and_are_of_one_size(of: int) -> None:
    paths = {
        one.longname for one in listed((GATE,), ("portfolio",)) if any(tag.startswith("path-") for tag in one.tags)
    }
    parts = [Shard(number, of).tests(listed((GATE,), ("portfolio",))) & paths for number in range(1, of + 1)]
    assert sum(map(len, parts)) == len(paths)
    assert frozenset().union(*parts) == paths
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_what_looks_at_the_paths_of_a_run_is_in_each_part() -> None:
    tests = [Listed("S", "", name[-1], name, ("portfolio",)) for name in ("g.Portfolio.A", "g.Last")]
    assert Shard(1, 1).tests(tests) == {"g.Portfolio.A", "g.Last"}
    with pytest.raises(UsageError, match="2/2: there are 1 paths to share; ask for fewer parts"):
        Shard(2, 2).tests(tests)


@pytest.mark.parametrize("words", ["", "0/2", "3/2", "1", "1/0", "a/b", "1/2/3", "-1/2", "1 / 2"])
def test_another_word_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match="name a part of how many, such as 2/4"):
        Shard.parse(words)


def test_robot_is_left_the_tests_of_a_part() -> None:
    whole = TestSuite.from_file_system(str(found(GATE)))
    mine = Shard(2, 4).tests(listed((GATE,), ("portfolio",)))
    whole.visit(OnlyTests(mine))
    whole.name = "pdrgate"
    assert {one.full_name for one in whole.all_tests} == mine
    assert all(suite.test_count for suite in whole.suites)


def part(number: int, *paths: SelectedPath, differ: tuple[str, ...] = ("ip_rcv",)) -> RunPart:
    scenarios = [replace(compared(), name=one.scenario, title=one.path) for one in paths if one.is_measured]
    run = result(*scenarios, verdict=max((one.verdict for one in scenarios), default=Verdict.PASS))
    return RunPart(f"runs/{number}", f"runs/{number}", replace(run, selection=Selection(differ, (), 10, 5, 2, paths)))


def test_merged_parts_have_the_selection_of_all() -> None:
    first, second = SelectedPath("NAT", "nat", "same"), SelectedPath("VLAN", "vlan", "affected", ("ip_rcv",))
    whole = merged("all", [part(1, first), part(2, second)])
    assert whole.selection is not None
    assert whole.selection.paths == (first, second)
    assert [one.name for one in whole.scenarios] == ["vlan"]


def test_parts_that_all_run_the_same_code_pass() -> None:
    whole = merged("all", [part(1, SelectedPath("NAT", "nat", "same")), part(2, SelectedPath("VLAN", "vlan", "same"))])
    assert whole.verdict is Verdict.PASS
    assert whole.scenarios == ()


def test_parts_of_other_builds_that_all_run_the_same_code_pass() -> None:
    other = part(2, SelectedPath("NAT", "nat", "same"), differ=("x",))
    assert merged("all", [part(1, SelectedPath("NAT", "nat", "same")), other]).verdict is Verdict.PASS


def test_a_path_that_two_testbeds_have_is_counted_once() -> None:
    whole = merged(
        "all", [part(1, SelectedPath("NAT", "nat", "same")), part(2, SelectedPath("NAT", "nat", "affected"))]
    )
    assert whole.selection is not None
    assert [one.reason for one in whole.selection.paths] == ["affected"]


def test_parts_of_other_builds_have_no_selection_in_common() -> None:
    whole = merged("all", [
        part(1, SelectedPath("NAT", "nat", "affected")),
        part(2, SelectedPath("VLAN", "vlan", "affected"), differ=("x",)),
    ])  # fmt: skip
    assert whole.selection is None

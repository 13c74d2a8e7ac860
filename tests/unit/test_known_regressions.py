"""Documented regressions as data: each file is read, its patch is small and applies, and runs come to a table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import made_results
import pytest
from flat_values import changed
from made_trees import Tree, made_tree

BENCH = Path(__file__).resolve().parents[1] / "bench/known_regressions"
sys.path.insert(0, str(BENCH))

from judging import judged, touched_paths  # noqa: E402
from known_change import KnownChange, known_change, known_changes  # noqa: E402
from outcome import HEAD, Kept, Outcome, kept_file, outcomes, table  # noqa: E402
from planting import BRANCHES, PlantingError, git, planted, release  # noqa: E402

from pdrgate.history.results import write_result  # noqa: E402
from pdrgate.results.model import ChangeResult, ComparisonResult, FunctionChange, ScenarioResult  # noqa: E402
from pdrgate.results.verdict import Verdict  # noqa: E402

CHANGES = known_changes()
KERNEL_TREE = "PDRGATE_KERNEL_TREE"
PATCH = """\
Regression: 4
Title: it is slower
Class: A
Kernels: 6.12
Expected: REGRESSION
Names: slow, slower
Change: one line more

--- a/net.c
+++ b/net.c
@@ -1 +1 @@
-int fast;
+int slow;
"""


def _file(folder: Path, text: str = PATCH) -> Path:
    file = folder / "04-slower.patch"
    file.write_text(text)
    return file


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = made_tree(tmp_path / "linux")
    made.commit("int fast;")
    return made


def test_each_change_is_a_few_lines_of_few_files() -> None:
    assert len({one.name for one in CHANGES}) == len(CHANGES) >= 15
    for one in CHANGES:
        assert one.name.startswith(f"{one.number:02}-"), one.name
        assert 1 <= len(one.files) <= 3, one.name
        assert 1 <= one.lines <= 10, one.name
        assert one.introduced or one.expected == "PASS", one.name


def test_what_is_expected_of_a_class_is_said() -> None:
    for one in CHANGES:
        assert one.expected == "REGRESSION" or one.class_ in ("F", "none"), one.name
        assert one.names or one.class_ != "A" or one.measurand != "cost", one.name


def test_a_file_says_what_its_head_and_its_patch_say(tmp_path: Path) -> None:
    one = known_change(_file(tmp_path))
    assert (one.number, one.title, one.kernels, one.names) == (4, "it is slower", ("6.12",), ("slow", "slower"))
    assert (one.side, one.files, one.lines) == ("candidate", ("net.c",), 2)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("Title: it is slower\n", "", "lacks Title"),
        ("Class: A", "Class A", "is no line of its head"),
        ("Class: A", "Class: A\nClass: B", "is no line of its head"),
        ("Class: A", "Klass: A", "is no line of its head"),
        ("Expected: REGRESSION", "Expected: CRASH", "expects CRASH"),
        ("Kernels: 6.12", "Kernels: 6.12\nSide: both", "planted in the both"),
        ("@@ -1 +1 @@", "", "has no patch"),
    ],
)
def test_a_file_that_is_wrong_is_told(tmp_path: Path, before: str, after: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        known_change(_file(tmp_path, PATCH.replace(before, after)))


def test_a_change_becomes_a_branch_and_nothing_is_checked_out(tmp_path: Path, tree: Tree) -> None:
    change = known_change(_file(tmp_path))
    commit = planted(tree.folder, "main", change)
    assert tree.git("show", f"{BRANCHES}/04-slower:net.c") == "int slow;"
    assert tree.git("rev-parse", f"{commit}^") == tree.git("rev-parse", "main")
    assert tree.git("status", "--porcelain") == ""
    assert tree.git("branch", "--show-current") == "main"
    assert planted(tree.folder, "main", change) == commit, "the same change is the same build"


def test_a_change_that_does_not_fit_is_told(tmp_path: Path, tree: Tree) -> None:
    tree.commit("int other;")
    with pytest.raises(PlantingError, match=r"04-slower: does not apply to main"):
        planted(tree.folder, "main", known_change(_file(tmp_path)))


def test_a_base_without_the_makefile_of_linux_is_refused(tree: Tree) -> None:
    (tree.folder / "Makefile").write_text("all:\n\ttrue\n")
    tree.commit("int fast;")
    with pytest.raises(PlantingError, match="the Makefile of HEAD names no release of Linux"):
        release(tree.folder, "HEAD")


def test_no_two_changes_of_one_number_are_written_for_one_release() -> None:
    written = [(one.number, line) for one in CHANGES for line in one.kernels]
    assert len(written) == len(set(written))


def test_each_patch_applies_to_the_kernels_that_it_names(tmp_path: Path) -> None:
    """Of a tree that the environment names, whose HEAD is of one of these lines of releases."""
    folder = os.environ.get(KERNEL_TREE, "")
    if not folder:
        pytest.skip(f"{KERNEL_TREE} names no git tree of a kernel")
    tree = tmp_path / "linux"
    git(tmp_path, "clone", "--quiet", "--shared", "--bare", folder, str(tree))
    line = release(tree, "HEAD")
    fitting = [one for one in CHANGES if line in one.kernels]
    assert fitting, f"no change is written for {line}"
    for one in fitting:
        planted(tree, "HEAD", one)


def _scenario(test: str, verdict: Verdict, change: float, function: FunctionChange, notice: str = "") -> ScenarioResult:
    told = ChangeResult(
        measurand="cost", change=change, lower=change - 0.001, upper=change + 0.001, confidence=0.95, tolerance=0.01,
        baseline=5000.0, candidate=5000.0 * (1 + change), unit="instructions/packet", better="lower", verdict=verdict,
    )  # fmt: skip
    comparison = ComparisonResult(
        baseline="old", tolerance=0.02, change=change, lower=change, upper=change, confidence=0.95, changes=(told,),
        pairs=4, functions=(function,), notice=notice,
    )  # fmt: skip
    return changed(made_results.scenario(str(verdict), per_run=None), test=test, reason="", comparison=comparison)


def _function(name: str, change: float) -> FunctionChange:
    return FunctionChange(function=name, before=0.0, after=change, change=change, sure=True)


def test_runs_that_are_kept_come_to_a_table(tmp_path: Path) -> None:
    slower = known_change(_file(tmp_path))
    equal = known_change(_file(tmp_path, PATCH.replace("REGRESSION", "PASS").replace("Class: A", "Class: F")))
    run = made_results.result(
        _scenario("IPv4 Routing", Verdict.REGRESSION, 0.05, _function("slower", 200.0)),
        _scenario("NAT", Verdict.REGRESSION, 0.02, _function("other", 90.0)),
        _scenario("A Bridge", Verdict.PASS, 0.0, _function("third", 1.0)),
    )
    found = Outcome(slower, run, 61.2)
    assert found.caught and found.as_expected and not Outcome(equal, run, 1.0).as_expected
    assert found.cells == (
        "4", "it is slower (one line more)", "A", "REGRESSION", "IPv4 Routing: cost +5.0%, and 1 other path",
        "**slower** +200", "", "3", "4", "61",
    )  # fmt: skip
    (tmp_path / slower.name / run.run).mkdir(parents=True)
    write_result(tmp_path / slower.name / run.run / "result.json", run)
    Kept("c", "b", 61.2, run.run).write(kept_file(tmp_path, slower))
    lines = table({"6.12": outcomes([slower], tmp_path)})
    assert (
        lines[0] == f"| {' | '.join(HEAD)} |" and lines[-1] == "6.12: 1 of 1 regressions caught, 0 of 0 others passed"
    )


def test_a_table_has_a_row_for_each_regression_and_a_column_for_each_further_base(tmp_path: Path) -> None:
    slower = known_change(_file(tmp_path))
    other = known_change(_file(tmp_path, PATCH.replace("Regression: 4", "Regression: 5")))
    run = made_results.result(_scenario("IPv4 Routing", Verdict.REGRESSION, 0.05, _function("slower", 200.0)))
    passes = made_results.result(_scenario("IPv4 Routing", Verdict.PASS, 0.0, _function("slower", 0.0)))
    newer = [Outcome(slower, run, 9.0, {"IPv4 Routing": ["slower"]}), Outcome(other, passes, 9.0)]
    lines = table({"7.3": newer, "6.12": [Outcome(slower, run, 61.2)]})
    assert lines[0] == f"| {' | '.join(HEAD)} | on 7.3 |"
    assert lines[2].endswith("| 61 | REGRESSION: IPv4 Routing: cost +5.0%; selected for slower |")
    assert lines[3].startswith("| 5 | it is slower (one line more) | A |  |") and lines[3].endswith("|  | PASS |")
    assert lines[-2:] == [
        "6.12: 1 of 1 regressions caught, 0 of 0 others passed",
        "7.3: 1 of 2 regressions caught, 0 of 0 others passed; the path that shows it is selected for 1 of 1",
    ]


def test_a_table_of_nothing_is_its_head() -> None:
    assert table({}) == [f"| {' | '.join(HEAD)} |", f"| {' | '.join('---' for _ in HEAD)} |", ""]


def test_what_passes_with_a_notice_says_so(tmp_path: Path) -> None:
    change: KnownChange = known_change(_file(tmp_path, PATCH.replace("REGRESSION", "PASS")))
    run = made_results.result(
        _scenario("IPv4 Routing", Verdict.PASS, 0.004, _function("lookup", 9.0), "lookup is called twice, was once")
    )
    found = Outcome(change, run, 5.0)
    assert found.as_expected and not found.caught
    assert (found.told, found.named) == ("PASS, noticed", "lookup +9")


@pytest.mark.parametrize(
    ("touched", "selected"),
    [
        ({"IPv4 Routing": ["ip_forward", "ip_rcv"], "NAT": []}, "ip_forward, ip_rcv"),
        ({"IPv4 Routing": []}, "**left out**"),
        ({"NAT": ["nf_nat"]}, "always"),
        (None, ""),
    ],
)
def test_the_table_says_for_what_the_path_that_shows_a_change_was_selected(
    tmp_path: Path, touched: dict[str, list[str]] | None, selected: str
) -> None:
    run = made_results.result(
        _scenario("IPv4 Routing", Verdict.REGRESSION, 0.05, _function("slower", 200.0)),
        _scenario("NAT", Verdict.PASS, 0.0, _function("third", 1.0)),
    )
    change = known_change(_file(tmp_path))
    (tmp_path / change.name / run.run).mkdir(parents=True)
    write_result(tmp_path / change.name / run.run / "result.json", run)
    Kept("c", "b", 1.0, run.run, touched).write(kept_file(tmp_path, change))
    (kept,) = outcomes([change], tmp_path)
    assert kept.cells[HEAD.index("selected for")] == selected


def test_what_was_kept_before_paths_were_asked_for_is_read(tmp_path: Path) -> None:
    file = tmp_path / "04-slower.json"
    file.write_text('{"candidate": "c", "baseline": "b", "seconds": 61.2, "run": "r"}')
    assert Kept.read(file) == Kept("c", "b", 61.2, "r")


def _program(folder: Path, code: int) -> Path:
    """Stands for pdrgate: its gate leaves a run and ends with that code, and it knows what one path runs."""
    paths = [
        {"path": "IPv4 Routing", "known": True, "functions": ["ip_forward"], "variables": ["ip_rt"]},
        {"path": "A Bridge", "known": False, "functions": [], "variables": []},
    ]
    (folder / "answer.json").write_text(json.dumps({"paths": paths}))
    program = folder / "program"
    program.write_text(
        f"#!/bin/sh\n[ $1 = affected ] && exec cat {folder}/answer.json\n"
        f"mkdir -p $6/run; echo {{}} > $6/run/result.json; echo 'INCONCLUSIVE: not yet'; exit {code}\n"
    )
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("code", [0, 1, 3])
def test_what_a_gate_answers_is_kept_also_where_nothing_was_decided(tmp_path: Path, tree: Tree, code: int) -> None:
    change = known_change(_file(tmp_path))
    told = judged(change, tree.folder, "main", tmp_path, (), again=False, program=_program(tmp_path, code))
    assert told.startswith("INCONCLUSIVE: not yet (")
    kept = Kept.read(kept_file(tmp_path, change))
    assert kept is not None and kept.run == "run" and kept.touched == {"IPv4 Routing": ["ip_forward", "ip_rt"]}
    assert judged(change, tree.folder, "main", tmp_path, (), again=False) == "is kept"


@pytest.mark.parametrize("code", [2, 64, 130])
def test_a_fault_of_the_machine_is_not_kept(tmp_path: Path, tree: Tree, code: int) -> None:
    change = known_change(_file(tmp_path))
    told = judged(change, tree.folder, "main", tmp_path, (), again=False, program=_program(tmp_path, code))
    assert told == f"exit {code}: INCONCLUSIVE: not yet"
    assert Kept.read(kept_file(tmp_path, change)) is None


def test_of_kernels_that_cannot_be_read_no_path_is_known(tmp_path: Path) -> None:
    assert touched_paths(str(tmp_path / "a.deb"), str(tmp_path / "b.deb"), tmp_path) is None


def test_the_bench_says_what_it_does() -> None:
    done = subprocess.run(
        (sys.executable, str(BENCH), "--help"), capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": "libraries"},
    )  # fmt: skip
    assert "pdrgate-known/NAME" in done.stdout

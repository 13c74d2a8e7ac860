"""The paths that a run measures because their code differs, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_results import compared, result

from pdrgate.differences.code_differences import CodeDifference, CodeDifferences
from pdrgate.gate.run.options import RunOptions
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.selection_file import SELECTION_FILE, code_key, read_selection, write_selection
from pdrgate.history.address import Address
from pdrgate.history.database.experience import Experience
from pdrgate.launch import selected_paths as module
from pdrgate.launch.described import DescribedTest
from pdrgate.launch.selected_paths import measured_first, selected_paths
from pdrgate.record.path_code import PathCode
from pdrgate.reports.words.headline import headline, lines_below
from pdrgate.reports.words.selection_words import selection_table
from pdrgate.results.selection import SelectedPath, Selection
from pdrgate.results.verdict import Verdict
from pdrgate.testbeds import LocalVm, load_testbed
from pdrgate.this_process.own_files import found
from pdrgate.values.errors import DataError

NAMES = [f"path-{number}" for number in range(20)]
FORWARD = CodeDifference("function", "", "ip_forward", "changed")


TESTBED = Path("resources/testbeds/local-vm.yaml")


def options(history: Path | None, paths: str = "affected") -> RunOptions:
    where = None if history is None else Address(file=history)
    return RunOptions(testbed=TESTBED, kernel="new", against="old", paths=paths, history=where)  # type: ignore[arg-type]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[CodeDifferences]:
    """Two kernels, and twenty paths; the list has what differs between the kernels."""
    differences = [CodeDifferences(100, 50, 3, (FORWARD,))]

    def described(*_: object) -> list[DescribedTest]:
        from pdrgate.gate.run.scenario import Scenario

        return [
            DescribedTest(
                f"Path {name}", f"Path {name}", (), replace(Scenario(), data_path="ip-routing", buffer=64 + at)
            )
            for at, name in enumerate(NAMES)
        ]

    monkeypatch.setattr(module, "named_build", lambda name, report: name)
    monkeypatch.setattr(module, "build_identity", lambda build: f"digest of {build}")
    monkeypatch.setattr(module, "code_differences", lambda before, after: differences[0])
    monkeypatch.setattr(module, "described_tests", described)
    monkeypatch.setattr(module, "shard_of", lambda options: frozenset(f"Path {name}" for name in NAMES))
    return differences


@pytest.fixture
def history(tmp_path: Path, kernels: list[CodeDifferences]) -> Path:
    """A history that knows what the baseline runs on all paths but the last; packets of the first are forwarded."""
    where = tmp_path / "history.db"
    names = [one.scenario.name for one in module.described_tests()]
    codes = {name: PathCode(frozenset(("ip_rcv",)), frozenset((f"set_up_{name}",))) for name in names[:-1]}
    codes[names[0]] = PathCode(frozenset(("ip_rcv", "ip_forward")))
    key = code_key("digest of old", load_testbed(found(TESTBED)))
    Experience(Address(file=where)).add_path_codes(key, codes, 1.0)
    return where


def first(some: Sequence[Any], number: int) -> Sequence[Any]:
    return some[:number]


def test_nothing_is_selected_where_all_paths_are_asked_for(kernels: list[CodeDifferences]) -> None:
    assert selected_paths(options(None, "all"), print) is None


def test_affected_unknown_and_two_drawn_paths_are_measured(history: Path) -> None:
    chosen = selected_paths(options(history), print, first)
    assert chosen is not None
    assert [one.path for one in chosen.because("affected")] == ["Path path-0"]
    assert chosen.because("affected")[0].functions == ("ip_forward",)
    assert [one.path for one in chosen.because("unknown")] == ["Path path-19"]
    assert [one.path for one in chosen.because("audit")] == ["Path path-1", "Path path-2"]
    assert len(chosen.because("same")) == 16


def test_paths_whose_set_up_differs_are_drawn_first(history: Path, kernels: list[CodeDifferences]) -> None:
    name = module.described_tests()[7].scenario.name
    kernels[0] = CodeDifferences(100, 50, 3, (CodeDifference("function", "", f"set_up_{name}", "changed"),))
    chosen = selected_paths(options(history), print, first)
    assert chosen is not None
    assert {one.path for one in chosen.because("audit")} == {"Path path-7", "Path path-0"}


def test_builds_without_a_difference_need_no_history_and_no_audit(kernels: list[CodeDifferences]) -> None:
    kernels[0] = CodeDifferences(100, 50, 3, (), identical=True)
    chosen = selected_paths(options(None), print)
    assert chosen is not None
    assert len(chosen.because("same")) == 20
    assert chosen.identical


def test_builds_in_which_no_difference_is_found_are_audited_all_the_same(
    history: Path, kernels: list[CodeDifferences]
) -> None:
    kernels[0] = CodeDifferences(100, 50, 3, ())
    chosen = selected_paths(options(history), print, first)
    assert chosen is not None
    assert len(chosen.because("audit")) == 2
    assert len(chosen.because("unknown")) == 1


def test_another_testbed_knows_nothing_of_it(history: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(found(TESTBED).read_text().replace("vcpus: 1", "vcpus: 2") + "\n# another\n")
    config = load_testbed(found(TESTBED))
    assert isinstance(config, LocalVm)
    assert code_key("a", config) != code_key("a", replace(config, memory=config.memory + 64))
    assert code_key("a", config) == code_key("a", replace(config, source=other))
    assert code_key("a", config) != code_key("b", config)


def test_of_few_paths_some_are_drawn_too(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "shard_of", lambda options: frozenset(f"Path {name}" for name in NAMES[2:7]))
    chosen = selected_paths(options(history), print, first)
    assert chosen is not None
    assert len(chosen.because("audit")) == 2
    assert len(chosen.because("same")) == 3


def test_two_tests_of_one_scenario_are_both_in_the_selection(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after --set, which may make scenarios of two tests one."""
    tests = module.described_tests()
    again = replace(tests[0], name="Path again", longname="Path again")
    monkeypatch.setattr(module, "described_tests", lambda *_: [*tests, again])
    monkeypatch.setattr(module, "shard_of", lambda _: frozenset(one.longname for one in (*tests, again)))
    chosen = selected_paths(options(history), print, first)
    assert chosen is not None
    assert [one.path for one in chosen.paths] == [one.name for one in (*tests, again)]
    assert [one.path for one in chosen.because("affected")] == ["Path path-0", "Path again"]


def test_all_paths_are_unknown_without_a_history(kernels: list[CodeDifferences]) -> None:
    chosen = selected_paths(options(None), print)
    assert chosen is not None
    assert len(chosen.because("unknown")) == 20


@pytest.mark.parametrize("differences", [
    CodeDifferences(1, 50, 3, (FORWARD,)), CodeDifferences(100, 50, 3, (FORWARD,), ("module tun: damaged",)),
], ids=["everywhere", "a module is damaged"])  # fmt: skip
def test_builds_that_were_not_compared_leave_no_path_out(
    history: Path, kernels: list[CodeDifferences], differences: CodeDifferences
) -> None:
    kernels[0] = differences
    chosen = selected_paths(options(history), print, first)
    assert chosen is not None
    assert chosen.because("same", "audit") == ()


def test_what_differs_most_is_measured_first_and_what_is_left_out_last(history: Path) -> None:
    chosen = selected_paths(options(history), print, first)
    assert chosen is not None
    places = measured_first(chosen)
    assert sorted(places, key=lambda one: places[one])[:4] == [
        "Path path-0",
        "Path path-19",
        "Path path-1",
        "Path path-2",
    ]


def selection(*paths: SelectedPath, differ: tuple[str, ...] = ("ip_forward",), identical: bool = False) -> Selection:
    return Selection(differ, ("init_net",), 100, 50, 3, paths, identical=identical)


SAME = SelectedPath("NAT", "nat", "same")
AUDIT = SelectedPath("VLAN", "ipv6-routing", "audit")
AFFECTED = SelectedPath("Routing", "routing", "affected", ("ip_forward",))


def test_a_run_keeps_its_selection(tmp_path: Path) -> None:
    assert read_selection(tmp_path) is None
    write_selection(tmp_path, selection(SAME, AUDIT, AFFECTED))
    assert read_selection(tmp_path) == selection(SAME, AUDIT, AFFECTED)
    (tmp_path / SELECTION_FILE).write_text("{")
    with pytest.raises(DataError, match="start a new run"):
        read_selection(tmp_path)


def test_a_path_of_the_same_code_is_left_out_until_an_audit_fails(tmp_path: Path) -> None:
    write_selection(tmp_path, selection(SAME, AUDIT))
    record = RunRecord(tmp_path, "quick")
    assert record.leaves_out("nat")
    assert not record.leaves_out("ipv6-routing")
    assert not record.leaves_out("another")
    drawn = compared()
    for verdict in (Verdict.PASS, Verdict.ERROR, Verdict.DISTURBED, Verdict.INCONCLUSIVE):
        record.add(replace(drawn, name="ipv6-routing", verdict=verdict))
        assert record.leaves_out("nat")
    record.add(replace(drawn, name="ipv6-routing", verdict=Verdict.REGRESSION))
    assert not record.leaves_out("nat")
    record.close()


def test_a_path_whose_variables_differ_after_boot_is_measured(tmp_path: Path) -> None:
    write_selection(tmp_path, selection(SAME))
    record = RunRecord(tmp_path, "quick")
    record.note_affected("nat", ("init_net",))
    assert not record.leaves_out("nat")
    assert record.selection is not None
    assert record.selection.because("affected")[0].variables == ("init_net",)
    assert read_selection(tmp_path) == record.selection
    record.close()


def test_a_run_that_has_nothing_to_measure_passes(tmp_path: Path) -> None:
    write_selection(tmp_path, selection(SAME, differ=(), identical=True))
    record = RunRecord(tmp_path, "quick")
    assert record.result().verdict is Verdict.ERROR
    ended = record.result(finished=True)
    assert ended.verdict is Verdict.PASS
    assert headline(ended) == "PASS: both builds are the same, byte by byte; 1 path runs the same code"
    record.fail("the disk is full")
    assert record.result(finished=True).verdict is Verdict.ERROR
    record.close()


def test_the_headline_says_how_many_paths_run_code_that_changed() -> None:
    run = replace(
        result(replace(compared(), verdict=Verdict.PASS), verdict=Verdict.PASS),
        selection=selection(SAME, AUDIT, AFFECTED),
    )
    assert headline(run) == "PASS: 1 of 3 paths runs code that changed, and costs what it did; 2 run the same code"
    assert lines_below(run)[0] == (
        "1 of 100 functions differ: ip_forward; 1 of 50 variables: init_net; in the image and 3 modules"
    )
    assert not any("to check" in line for line in lines_below(run))  # VLAN was not measured
    table = selection_table(run)
    assert table is not None
    assert [[cell.text for cell in row] for row in table.rows] == [["Routing", "ip_forward"]]


def test_an_audit_that_fails_is_said() -> None:
    drawn = replace(compared(), name="ipv6-routing", verdict=Verdict.REGRESSION)
    run = replace(result(drawn), selection=selection(SAME, AUDIT))
    told = "the selection was wrong: VLAN runs the same code and got worse, so that all others were measured but 1"
    assert told in lines_below(run)


def test_an_audit_that_passes_is_named() -> None:
    drawn = replace(compared(), name="ipv6-routing", verdict=Verdict.PASS)
    run = replace(result(drawn), selection=selection(SAME, AUDIT))
    assert "measured to check, though they run the same code: VLAN" in lines_below(run)


def test_builds_of_another_compiler_are_said_to_be_measured_on_every_path() -> None:
    run = replace(result(compared()), selection=replace(selection(AFFECTED), everywhere=True))
    assert "the builds have another compiler, configuration or layout: no path was left out" in lines_below(run)
    assert lines_below(result(compared())) == [
        line for line in lines_below(result(compared())) if "compiler" not in line
    ]

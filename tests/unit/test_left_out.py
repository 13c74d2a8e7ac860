"""What a run was to measure and could not stands in every report; where a tool is missing it is no pass at all."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from made_results import compared
from test_path_table import path_result

from pdrgate.gate.comparisons.living_boots.living_boots import LivingBoots
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.history.results import read_result
from pdrgate.hosts.host import CommandError, Completed, HostError
from pdrgate.reports.ci.junit import junit
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.console.ending import show_verdict
from pdrgate.reports.console.screen import Screen
from pdrgate.reports.pages.overview import overview
from pdrgate.reports.pages.summary import summary_page
from pdrgate.reports.words.headline import HEADLINE_LENGTH, headline
from pdrgate.results.merging import RunPart, merged
from pdrgate.results.model import LeftOutPath, RunResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import SutError, TestbedError, ToolError

NO_NETEM = "neither build can: the kernel has no netem"


def recorded(folder: Path, *left_out: str) -> RunResult:
    record = RunRecord(folder, "quick")
    for test in ("NAT", "A Bridge"):
        record.add(path_result(test, Verdict.PASS, 0.002))
    for reason in left_out:
        record.leave_out(f"TCP {len(record.result().left_out)}", reason)
    record.write(finished=True)
    record.close()
    return read_result(folder / "result.json")


def test_a_run_that_left_paths_out_says_so_in_every_report(tmp_path: Path) -> None:
    run = recorded(tmp_path, NO_NETEM, NO_NETEM)
    assert run.verdict is Verdict.PASS
    assert headline(run).startswith("PASS: none of 2 paths got slower")
    assert headline(run).endswith(f"; 2 paths left out: {NO_NETEM}")
    console = io.StringIO()
    show_verdict(run, Screen(console))
    told = f"left out: TCP 0, TCP 1: {NO_NETEM}"
    for text in (console.getvalue(), run_markdown(run), summary_page(run, {}), overview(run, None).documentation):
        assert "2 paths left out" in text
        assert told in text
    suite = ElementTree.fromstring(junit(run))
    assert suite.get("skipped") == "2"
    assert [one.get("message") for one in suite.iter("skipped")] == [NO_NETEM] * 2


def test_that_something_was_left_out_has_room_in_the_longest_headline(tmp_path: Path) -> None:
    run = replace(recorded(tmp_path, NO_NETEM, "another reason " * 20), reason="much to say " * 30)
    assert headline(run).endswith("; 2 paths left out")
    assert len(headline(run)) <= HEADLINE_LENGTH


def test_a_run_that_left_everything_out_does_not_pass(tmp_path: Path) -> None:
    record = RunRecord(tmp_path, "quick")
    record.leave_out("TCP", NO_NETEM)
    assert headline(record.result(finished=True)) == f"ERROR: nothing was measured; 1 path left out: {NO_NETEM}"
    record.close()


def faulty(folder: Path, *reasons: str, paths: tuple[str, ...] = ("NAT",)) -> RunResult:
    """A run of measured paths and of tests that failed before they measured, one for each reason."""
    record = RunRecord(folder, "quick")
    for test in paths:
        record.add(path_result(test, Verdict.REGRESSION, 0.05))
    for number, reason in enumerate(reasons):
        record.fail(reason, path=f"UDP {number}")
    record.write(finished=True)
    record.close()
    return read_result(folder / "result.json")


def test_a_red_run_with_tests_that_failed_says_so_in_every_report(tmp_path: Path) -> None:
    run = faulty(tmp_path, "apt-get download failed", "apt-get download failed", paths=("NAT", "A Bridge"))
    assert run.verdict is Verdict.REGRESSION
    assert headline(run).startswith("REGRESSION: ")
    assert headline(run).endswith("; 2 paths not measured: apt-get download failed")
    console = io.StringIO()
    show_verdict(run, Screen(console))
    for text in (console.getvalue(), run_markdown(run), summary_page(run, {}), overview(run, None).documentation):
        assert "2 paths not measured" in text
        assert "not measured: UDP 0, UDP 1: apt-get download failed" in text
    suite = ElementTree.fromstring(junit(run))
    assert suite.get("errors") == "2"
    assert [case.get("name") for case in suite.iter("testcase") if case.find("error") is not None] == ["UDP 0", "UDP 1"]


def test_a_run_whose_only_test_failed_has_its_reason_once(tmp_path: Path) -> None:
    run = faulty(tmp_path, "no such package", paths=())
    assert headline(run) == "ERROR: no such package"


def test_tests_that_all_failed_alike_are_counted_after_their_reason(tmp_path: Path) -> None:
    run = faulty(tmp_path, "no such package", "no such package", paths=())
    assert headline(run) == "ERROR: no such package; 2 paths not measured"


def test_merged_runs_say_what_each_left_out(tmp_path: Path) -> None:
    runs = [RunPart(name, name, recorded(tmp_path / name, why)) for name, why in (("a", NO_NETEM), ("b", "no MPTCP"))]
    whole = merged("both", runs)
    assert whole.left_out == (LeftOutPath(path="TCP 0", reason=NO_NETEM), LeftOutPath(path="TCP 0", reason="no MPTCP"))
    assert headline(whole).endswith("; 2 paths left out")


def test_a_run_that_measured_all_says_nothing_of_it(tmp_path: Path) -> None:
    assert "left out" not in headline(recorded(tmp_path))
    assert "left out" not in run_markdown(recorded(tmp_path / "again"))
    assert compared().verdict is Verdict.PASS


def refused(code: int) -> CommandError:
    return CommandError("guest", "`tc`", Completed(("tc",), code, "", "no netem"))


@pytest.mark.parametrize(
    ("error", "is_tools"),
    [
        (ToolError("sut has no iperf3; apt-get install iperf3"), True),
        (refused(127), True),
        (refused(2), False),
        (SutError("step 1 failed"), False),
        (HostError("gone"), False),
    ],
)
def test_what_a_missing_tool_keeps_from_both_builds_is_an_error_and_not_left_out(
    error: TestbedError, is_tools: bool
) -> None:
    class Boots(LivingBoots):
        def _failed(self, suts: Any, done: Any) -> Any:
            return [SimpleNamespace(side=side, error=error) for side, _ in suts]

    task = SimpleNamespace(session=None, scenario=None, builds={})
    suts = SimpleNamespace(codes=SimpleNamespace(set_up=None))
    boots = Boots(cast(Any, task), cast(Any, suts), cast(Any, SimpleNamespace(frames={})))
    boots._set_up(cast(Any, {("baseline", 1): None, ("candidate", 1): None}))
    assert boots.failure is not None
    assert boots.failure.verdict is Verdict.ERROR
    assert str(error) in boots.failure.reason
    assert bool(boots.unable) is not is_tools

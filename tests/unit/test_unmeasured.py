"""What was to be measured and was not stands beside the verdict, in each report."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import made_results
from test_path_table import path_result

from pdrgate.history.results import read_result, write_result
from pdrgate.reports.ci.junit import junit
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.console.ending import show_verdict
from pdrgate.reports.console.screen import Screen
from pdrgate.reports.pages.overview import overview
from pdrgate.reports.pages.summary import summary_page
from pdrgate.reports.words.path_remarks import said_of_paths, unmeasured
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict

LOST = "what several CPUs share was not measured: the guest has ended"


def lost(scenario: ScenarioResult, *sentences: str) -> ScenarioResult:
    return replace(scenario, details=replace(scenario.details, unmeasured=sentences))


def console(result: RunResult) -> str:
    screen = io.StringIO()
    show_verdict(result, Screen(screen, live=False))
    return " ".join(screen.getvalue().split())


def test_each_report_of_a_build_that_passes_has_it() -> None:
    result = made_results.result(lost(made_results.compared("PASS"), LOST))
    assert console(result).count(LOST) == 1
    assert run_markdown(result).count(LOST[1:]) == 1
    assert run_markdown(result).index(LOST[1:]) < run_markdown(result).index("<details>"), "it is not folded"
    assert LOST in overview(result, None).documentation
    assert LOST in junit(result).decode()
    assert LOST[1:] in summary_page(result, {})


def test_a_result_without_it_has_no_word_of_it() -> None:
    result = made_results.result(made_results.compared("PASS"))
    assert "not measured" not in console(result) + run_markdown(result) + junit(result).decode()


def test_of_several_paths_that_pass_it_is_said_once_with_their_names() -> None:
    paths = [lost(path_result("NAT", Verdict.PASS, 0.002), LOST), path_result("A Bridge", Verdict.PASS, 0.002)]
    twice = [*paths, replace(paths[0], origin=replace(paths[0].origin, test="IPv4 Routing"))]
    assert unmeasured(made_results.result(*paths)) == [f"on NAT, which passes: {LOST}"]
    assert unmeasured(made_results.result(*twice)) == [f"on NAT, and on 1 other path that passes: {LOST}"]


def test_below_the_table_of_paths_it_stands_first() -> None:
    nat, bridge = (
        path_result(name, Verdict.PASS, 0.002, __alloc_skb=80.0) for name in ("NAT", "A Bridge")
    )  # fmt: skip
    result = made_results.result(lost(nat, LOST), bridge)
    first = f"on NAT, which passes: {LOST}"
    assert said_of_paths(result)[0] == first
    assert first in console(result)
    assert run_markdown(result).count(LOST) == 1


def test_it_is_stored_with_the_scenario(tmp_path: Path) -> None:
    write_result(tmp_path / "result.json", made_results.result(lost(made_results.compared("PASS"), LOST)))
    assert read_result(tmp_path / "result.json").scenarios[0].details.unmeasured == (LOST,)

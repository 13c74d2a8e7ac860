"""What stands at the top of Robot's report and log, and in its log: evidence first, and no name that is more."""

from __future__ import annotations

import base64
import dataclasses
import re

import pytest
from causes import because
from flat_values import changed
from made_results import compared, result, scenario, trial
from robot.utils import html_format  # type: ignore[import-untyped]
from test_reports import EVIL, Page
from test_reports import compared as slower

from pdrgate.reports.markup.robot_text import bold, picture, robot_table, robot_text
from pdrgate.reports.pages.evidence import evidence_html, fold_html, scenario_html, trials_fold
from pdrgate.reports.pages.overview import overview
from pdrgate.reports.pages.scenario_pictures import Picture, main_picture, pictures
from pdrgate.reports.tree import Cell, Column, Table
from pdrgate.results.losses import LossResult, PlaceLoss
from pdrgate.results.model import FunctionChange, RunResult, SideResult
from pdrgate.results.verdict import Verdict

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (1100).to_bytes(4, "big") + (700).to_bytes(4, "big")
HOSTILE = [
    EVIL,
    "[javascript:alert(1)|click]",
    "http://evil.example/x.png",
    "*bold* _italic_ ``code``",
    "| a | b |",
    "- item",
    "= head =",
    "---",
    "a\n\n| b |\n- c",
    "\u202eÄ漢\x1b[31m\0",
    "x" * 300,
]


def html(documentation: str) -> str:
    """As Robot shows it."""
    found: str = html_format(documentation)
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_is_more_than_a_name_in_robots_documentation(name: str) -> None:
    told = html(robot_text(name))
    assert re.fullmatch(r"<p>[^<>]*</p>", told), told
    table = Table("", (Column("a"), Column("b")), [[Cell(name), Cell("c")]])
    assert len(Page(html(robot_table(table))).tags) == 7  # table, two rows of two cells
    shown = Page(html(picture("data:image/png;base64,AAAA", name)))
    assert [tag for tag in shown.tags if tag not in ("p", "img")] == []
    assert shown.links == ["data:image/png;base64,AAAA"]


def test_names_of_functions_stay_as_they_are() -> None:
    for name in ("__rcu_read_lock", "rt_spin_lock", "_raw_spin_lock_irqsave", "nf_hook_slow.constprop.0"):
        assert robot_text(name) == name
    assert html(bold("PASS")) == "<p><b>PASS</b></p>"


def told(run: RunResult, main: Picture | None = None) -> tuple[Page, dict[str, str]]:
    found = overview(run, main)
    return Page(html(found.documentation)), {name: Page(html(value)).text for name, value in found.metadata.items()}


def test_the_first_screen_has_verdict_numbers_picture_functions_losses_and_checks() -> None:
    found = slower(losses=None)
    assert found.comparison is not None
    grown = FunctionChange(function="__rcu_read_lock", before=38.3, after=70.3, change=32.0, sure=True)
    place = PlaceLoss(where="in the backlog", hint="knob", packets=100)
    losses = LossResult(offered=1000, forwarded=900, unexplained=0, places=(place,))
    sides = tuple(changed(side, losses=losses) for side in found.builds.sides)
    found = changed(found, sides=sides, comparison=dataclasses.replace(found.comparison, functions=(grown,)))
    run = result(found, verdict=Verdict.REGRESSION, reason="slower: numbers", command="./ci/gate --kernel 'a b'")
    page, metadata = told(run, Picture("p", "Pairs of boots", PNG))
    order = ["REGRESSION: slower: numbers", "saturation throughput", "__rcu_read_lock", "in the backlog", "✓ ok"]
    assert [page.text.index(words) for words in order] == sorted(page.text.index(words) for words in order)
    (address,) = page.links
    svg = base64.b64decode(address.removeprefix("data:image/svg+xml;base64,")).decode()
    assert 'width="660" height="420"' in svg and base64.b64encode(PNG).decode() in svg
    assert metadata["Change"].startswith("PDR -10.0% (-12.0% to -8.0%)")
    assert metadata["Kernel"] == "candidate linux-b against baseline linux-a"
    assert metadata["PDR"].startswith("1 Mpps (990 kpps")
    assert metadata["Testbed"] == "local-netns; profile quick"
    assert metadata["Again"] == "./ci/gate --kernel 'a b'"
    assert metadata["Verdict"] == "REGRESSION"


def test_a_check_that_failed_is_told_with_its_sentence() -> None:
    found = slower()
    assert found.findings.assessment is not None
    first, *others = found.findings.assessment.checks
    failed = dataclasses.replace(first, passed=False, sentence="TIR 0.46, needs < 0.10")
    curve = dataclasses.replace(found.findings.assessment, checks=(failed, *others))
    page, _ = told(result(changed(found, assessment=curve)))
    words = [line for line in page.text.splitlines() if line]
    assert words[words.index(first.name) :][1:3] == ["✗ failed", "TIR 0.46, needs < 0.10"]
    assert f"{sum(one.passed is True for one in others)} of {len(others) + 1} checks" in words


def test_of_several_scenarios_each_has_its_rows_and_the_gravest_its_evidence() -> None:
    page, metadata = told(result(scenario("PASS"), dataclasses.replace(compared("REGRESSION"), title="The worse")))
    assert "IPv6 routing" in page.text and "REGRESSION: because" in page.text
    assert metadata["Kernel"].startswith("candidate linux-6.19 against")


def test_a_run_that_measured_nothing_has_a_first_screen() -> None:
    page, metadata = told(result(reason="no QEMU"))
    assert page.text.split("The testbed")[0].strip() == "ERROR: no QEMU"
    assert set(metadata) == {"Verdict", "Testbed", "Whole run on one page"}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_harmless_on_robots_pages(name: str) -> None:
    evil = changed(
        compared("UNSTABLE"), title=name, reason=name, boots=(),  # nothing is drawn
        sides=(SideResult(side="baseline", build=name), SideResult(side="candidate", build=name)),
    )  # fmt: skip
    run = result(evil, reason=name, command=name, profile=name)
    found = overview(run, Picture(name, name, PNG))
    for documentation in (found.documentation, *found.metadata.values()):
        page = Page(html(documentation))
        assert set(page.tags) <= {"p", "b", "table", "tr", "th", "td", "img", "a", "ul", "li"}
        assert all(address.startswith("data:image/svg") or address == "summary.html" for address in page.links)
        assert page.handlers == []
    trials = [trial(disturbed=because(name), boot=name)]
    drawn = [Picture("p", name, PNG)]
    for fragment in (evidence_html(evil), scenario_html(evil, drawn, trials), fold_html(trials_fold(trials))):
        page = Page(fragment)
        assert "script" not in page.tags and page.handlers == []


def test_in_the_log_the_evidence_is_open_and_all_else_is_folded() -> None:
    found = slower()
    found = changed(found, sides=[changed(side, fingerprint={"cpus": "2"}) for side in found.builds.sides])
    drawn = list(pictures(found))
    trials = [trial(number, side="candidate", pair=1) for number in (1, 2)]
    fragment = scenario_html(found, drawn, trials)
    before, folded = fragment[: fragment.index("<details")], fragment[fragment.index("<details") :]
    assert "REGRESSION" in before and "-10.0% (-12.0% to -8.0%)" in before and "check" in before
    main = main_picture(found)
    assert main is not None and before.count("<img") == 1
    assert folded.count("<img") == len(drawn) - 1
    page = Page(fragment)
    for title in ("All pictures", "2 trials", "Knobs, environment", "Tables: cost by function"):
        assert title in page.text
    assert "1   1 candidate repeat" in page.text
    alone = evidence_html(found)
    assert alone.count("<details") == 1 and "What else was said" in alone

"""A run over several paths is told in one table, the worst first; one of other measurands is told as it was."""

from __future__ import annotations

import io
from dataclasses import replace
from xml.etree import ElementTree

import made_results
from flat_values import changed
from rule_changes import value_changes

from pdrgate.measurands.counted.load_cost import MapMemory
from pdrgate.measurands.slower_paths import decisive_scenario
from pdrgate.reports.ci.junit import junit, retold
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.console.ending import show_verdict
from pdrgate.reports.console.screen import Screen
from pdrgate.reports.pages.overview import overview
from pdrgate.reports.pages.summary import summary_page
from pdrgate.reports.words.headline import headline
from pdrgate.reports.words.path_remarks import noticed, said_of_paths, shared_changes
from pdrgate.reports.words.path_table import heading, is_portfolio, lines_that_tell, path_lines, paths_table
from pdrgate.results.model import ChangeResult, ComparisonResult, FunctionChange, PartChange, RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict


def path_result(test: str, verdict: Verdict, change: float, **functions: float) -> ScenarioResult:
    told = ChangeResult(
        measurand="cost", change=change, lower=change - 0.001, upper=change + 0.001, confidence=0.95, tolerance=0.01,
        baseline=5000.0, candidate=5000.0 * (1 + change), unit="instructions/packet", better="lower", verdict=verdict,
    )  # fmt: skip
    rises = tuple(
        FunctionChange(function=name, before=0.0, after=value, change=value, sure=True)
        for name, value in functions.items()
    )
    comparison = ComparisonResult(
        baseline="old", tolerance=0.02, change=change, lower=change, upper=change, confidence=0.95, changes=(told,),
        pairs=2, functions=rises,
    )  # fmt: skip
    scenario = made_results.scenario(str(verdict), per_run=None)
    return changed(scenario, test=test, reason=f"of {test}", comparison=comparison)


RUN = made_results.result(
    path_result("NAT", Verdict.PASS, 0.002),
    path_result("A Bridge", Verdict.PASS, 0.004, __alloc_skb=80.0),
    path_result("IPv6 Routing", Verdict.REGRESSION, 0.03, __alloc_skb=91.0, br_input=5.0),
    path_result("Redirection By tc", Verdict.INCONCLUSIVE, 0.009, __alloc_skb=92.0),
)


def texts(result: RunResult) -> list[list[str]]:
    """The cells of the table of paths."""
    return [[cell.text for cell in row] for row in paths_table(path_lines(result), result).rows]


def test_the_worst_path_is_first() -> None:
    assert is_portfolio(RUN)
    assert [one.path for one in path_lines(RUN)] == ["IPv6 Routing", "Redirection By tc", "A Bridge", "NAT"]
    assert texts(RUN)[0] == ["IPv6 Routing", "5000", "5150", "+3.0% (+2.9% to +3.1%)"]


def test_numbers_of_a_path_differ_by_the_change_beside_them() -> None:
    part = PartChange(function="page_counter_uncharge", change=1.6, baseline=0.0, candidate=1.6)
    atomics = ChangeResult(
        measurand="atomics", change=1.6 / 24, lower=1.5 / 24, upper=1.7 / 24, confidence=1.0, tolerance=0.05,
        baseline=24.0, candidate=24.8, unit="atomics/packet", better="lower", verdict=Verdict.REGRESSION, parts=(part,),
    )  # fmt: skip
    path = path_result("UDP Sockets", Verdict.REGRESSION, 0.002)
    assert path.comparison is not None
    cost = replace(path.comparison.changes[0], verdict=Verdict.PASS)
    red = changed(path, comparison=replace(path.comparison, changes=(cost, atomics)))
    assert texts(made_results.result(red, *RUN.scenarios[:1]))[0][1:] == [
        "24 atomics/packet",
        "24.8 atomics/packet",
        "+0.8, by function +1.6 (+1.5 to +1.7)",
    ]


def test_functions_that_changed_on_several_paths_are_told_once() -> None:
    assert shared_changes(RUN) == ["in 3 of 4 paths, instructions per packet (median): __alloc_skb +91"]


def test_what_surely_changed_on_paths_that_pass_is_noticed() -> None:
    notice = "dst_release is called twice for each packet, was once"
    nat, bridge, slower, tc = RUN.scenarios
    result = made_results.result(_noticed(nat, notice), _noticed(bridge, notice), _noticed(slower, "told already"), tc)
    assert noticed(RUN) == []
    assert noticed(result) == [f"notice on NAT, and on 1 other path that passes: {notice}"]
    assert noticed(made_results.result(_noticed(nat, notice))) == [f"notice on NAT, which passes: {notice}"]
    assert noticed(result)[0] in said_of_paths(result)


def _noticed(scenario: ScenarioResult, notice: str) -> ScenarioResult:
    assert scenario.comparison is not None
    return changed(scenario, comparison=replace(scenario.comparison, notice=notice))


def test_every_report_has_the_table_and_what_is_shared() -> None:
    screen = io.StringIO()
    show_verdict(RUN, Screen(screen, live=False))
    console = screen.getvalue()
    assert console.index("IPv6 Routing ") < console.index("2 other paths: PASS") < console.index(": __alloc_skb +91")
    assert "of IPv6 Routing" in console, "what fails is told in full"
    assert "NAT" not in console, "what passes is counted where something does not"
    assert "| A Bridge | 5000 | 5020 |" in run_markdown(RUN)
    robots = overview(RUN, None).documentation
    assert "2 other paths: PASS" in robots and "NAT" not in robots
    page = summary_page(RUN, {})
    assert page.index("Redirection By tc") < page.index("NAT")
    assert "alloc_skb" in page and "alloc_skb" in robots


def test_of_a_run_that_passes_all_paths_are_shown() -> None:
    result = made_results.result(
        path_result("NAT", Verdict.PASS, 0.0005), path_result("WireGuard", Verdict.IMPROVEMENT, -0.068),
        path_result("A Bridge", Verdict.PASS, 0.004),
    )  # fmt: skip
    assert lines_that_tell(result) == (path_lines(result), "")
    told = "none of 3 paths got slower; the most, A Bridge: +0.4% (+0.3% to +0.5%), tolerance 1 %; WireGuard got faster"
    decisive = decisive_scenario(result.scenarios)
    assert decisive is not None
    assert headline(replace(result, verdict=Verdict.PASS, reason=decisive.reason)) == f"PASS: {told}"


def decided(run: RunResult) -> RunResult:
    """The same with the reason of the scenario that decides."""
    decisive = decisive_scenario(run.scenarios)
    assert decisive is not None
    return replace(run, reason=decisive.reason)


def test_a_cause_that_slower_paths_share_is_the_headline() -> None:
    slower = [
        path_result(name, Verdict.REGRESSION, 0.01 * many, sum_of_header=160.0 + many, other=many)
        for many, name in enumerate(("NAT", "A Bridge", "WireGuard"), 2)
    ]
    run = made_results.result(*slower, path_result("IPv6 Routing", Verdict.PASS, 0.0))
    told = "REGRESSION: 3 of 4 paths got slower: sum_of_header +163 on 3 paths; most WireGuard: a packet costs "
    assert headline(decided(run)).startswith(told)
    alone = made_results.result(slower[0], path_result("VXLAN", Verdict.REGRESSION, 0.09, other=9.0))
    assert headline(decided(alone)).startswith("REGRESSION: both paths got slower, VXLAN most: ")


def test_ci_servers_have_the_table_as_what_the_suite_printed() -> None:
    told = ElementTree.fromstring(junit(RUN)).findtext("system-out")
    assert told is not None
    lines = told.strip().splitlines()
    assert [line.split("  ")[0] for line in lines[:3]] == ["PATH", "IPv6 Routing", "Redirection By tc"]
    assert lines[1].endswith("REGRESSION")
    assert shared_changes(RUN)[0] in lines
    robots = b"<testsuite name='r'><testcase name='NAT' classname='x'/></testsuite>"
    assert ElementTree.fromstring(retold(robots, RUN)).findtext("system-out") == told
    assert ElementTree.fromstring(junit(made_results.result(made_results.scenario()))).find("system-out") is None


def test_a_portfolio_may_judge_what_loads_cost_besides() -> None:
    name = MapMemory.about.name
    (loads,) = value_changes({name: (1.0,)}, {name: (1.0,)}, 0.1)
    scenarios = [
        replace(one, comparison=replace(one.comparison, changes=(*one.comparison.changes, loads)))
        for one in RUN.scenarios
        if one.comparison is not None
    ]
    assert is_portfolio(replace(RUN, scenarios=tuple(scenarios)))


def test_one_path_or_another_measurand_is_no_portfolio() -> None:
    assert not is_portfolio(replace(RUN, scenarios=RUN.scenarios[:1]))
    assert not is_portfolio(made_results.result(made_results.scenario(), made_results.scenario()))


def test_whatever_boots_that_stay_up_tell_is_told_in_the_table() -> None:
    told = replace(path_result("Rules Replaced", Verdict.PASS, 0.001), name="rules-replaced")
    assert told.comparison is not None
    changes = tuple(replace(one, measurand="time of a replacement", unit="s") for one in told.comparison.changes)
    result = made_results.result(*RUN.scenarios, replace(told, comparison=replace(told.comparison, changes=changes)))
    assert is_portfolio(result)
    assert "Rules Replaced" in [one.path for one in path_lines(result)]


def test_a_path_is_headed_by_its_name_in_every_report() -> None:
    """Of many paths the data path beneath is IP routing, whatever their sockets or tunnels do."""
    slower = replace(RUN.scenarios[2], title="steps of its own on IP routing, unpinned")
    run = made_results.result(slower, *RUN.scenarios[:2])
    screen = io.StringIO()
    show_verdict(run, Screen(screen, live=False))
    assert "\nIPv6 Routing: REGRESSION\n" in screen.getvalue()
    assert "(IPv6 Routing)" in run_markdown(run)
    assert "<h2>IPv6 Routing: " in summary_page(run, {})
    assert heading(made_results.scenario("PASS")) == made_results.scenario("PASS").title

"""A run over several paths is told in one table, the worst first; one of other measurands is told as it was."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import made_results
from flat_values import changed, flat_side
from rule_changes import value_changes

from pdrgate.gate.verdicts.change_verdict import judged
from pdrgate.measurands.counted.load_cost import MapMemory
from pdrgate.measurands.slower_paths import decisive_scenario
from pdrgate.reports.ci.junit import junit, retold
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.reports.console.ending import show_verdict
from pdrgate.reports.console.screen import Screen
from pdrgate.reports.pages.overview import overview
from pdrgate.reports.pages.scenario_pictures import Picture
from pdrgate.reports.pages.summary import path_pages, summary_page
from pdrgate.reports.words.headline import headline
from pdrgate.reports.words.path_remarks import noticed, said_of_paths, shared_changes
from pdrgate.reports.words.path_table import is_portfolio, lines_that_tell, path_lines, paths_table
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
        "atomics +0.8, by function +1.6 (+1.5 to +1.7)",
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


def test_a_run_without_a_change_names_no_path_and_no_function() -> None:
    """A green page once began with the function that 0.0 % of a change lay in."""
    run = made_results.result(path_result("NAT", Verdict.PASS, 0.0005), path_result("A Bridge", Verdict.PASS, 0.0))
    assert headline(decided(run)) == "PASS: no change on 2 paths; at most +0.1% (-0.1% to +0.1%)"


def test_a_path_that_failed_before_a_boot_is_called_as_when_it_passes() -> None:
    """It once was called by its data path, so a report by path lost it on the day of its failure."""
    sides = (flat_side(side="baseline", build="old"), flat_side(side="candidate", build="new"))
    red = changed(path_result("Loss Over 10 ms", Verdict.ERROR, 0.0), comparison=None, sides=sides)
    run = decided(made_results.result(path_result("NAT", Verdict.PASS, 0.0), red))
    assert [line.path for line in path_lines(run)] == ["Loss Over 10 ms", "NAT"]
    assert headline(replace(run, verdict=Verdict.ERROR)).startswith("ERROR: 1 of 2 paths, Loss Over 10 ms: ")


def test_a_pass_alone_names_no_function() -> None:
    scenario = path_result("NAT", Verdict.PASS, 0.0005, dequeue=-1.0)
    assert scenario.comparison is not None
    found = judged(scenario.comparison.changes, scenario.comparison.functions)
    assert found.reason == "no change of the cost (-0.1 to +0.1 %), tolerance 1.0%"


def red(*changes: dict[str, float]) -> RunResult:
    worse = [path_result(f"Path {n}", Verdict.REGRESSION, 0.034 + n / 1e4, **each) for n, each in enumerate(changes)]
    return decided(made_results.result(*worse, path_result("NAT", Verdict.PASS, 0.002)))


def decided(run: RunResult) -> RunResult:
    """The run with the reason of the scenario that decides."""
    decisive = decisive_scenario(run.scenarios)
    assert decisive is not None
    return replace(run, reason=decisive.reason)


def test_a_cause_that_slower_paths_have_in_common_is_first() -> None:
    one, two = {"sum_of_header": 168.0, "br_input": 3.0}, {"sum_of_header": 172.0, "ip_rcv": -2.0}
    assert headline(red(one, two)).startswith(
        "REGRESSION: sum_of_header +170 on 2 of 3 paths, Path 1 most: a packet costs 3.4 % more instructions"
    )
    assert headline(red(one, two, {"ip_rcv": 170.0})).startswith(
        "REGRESSION: 3 of 4 paths got slower, 2 of them by sum_of_header +170, Path 2 most: "
    )


def test_paths_of_different_causes_have_none_in_common() -> None:
    for run in (red({"a": 170.0}, {"b": 170.0}), red({"a": 20.0, "b": 150.0}, {"a": 20.0, "c": 150.0})):
        assert headline(run).startswith("REGRESSION: 2 of 3 paths got slower, Path 1 most: ")


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


def test_a_path_of_a_tolerance_of_its_own_that_passes_shows_it_beside_its_wide_interval() -> None:
    wide = path_result("A Slow Egress", Verdict.PASS, 0.005)
    assert wide.comparison is not None
    told = replace(wide.comparison.changes[0], lower=-0.099, upper=0.122, tolerance=0.1)
    paths = (
        path_result("NAT", Verdict.PASS, 0.0005),
        changed(wide, comparison=replace(wide.comparison, changes=(told,))),
    )
    (first, _), _ = lines_that_tell(made_results.result(*paths))
    assert first.change == "+0.5% (-9.9% to +12.2%), tolerance 10 %"


def test_each_path_of_a_portfolio_has_a_page_and_the_summary_leads_to_it() -> None:
    page = summary_page(RUN, {0: [Picture("nat-pairs", "Pairs of boots", b"PNG")]})
    pages = dict(path_pages(RUN, {0: [Picture("nat-pairs", "Pairs of boots", b"PNG")]}))
    assert set(pages) == {f"paths/{name}.html" for name in ("nat", "a-bridge", "ipv6-routing", "redirection-by-tc")}
    assert all(f'<a href="{address}">' in page for address in pages)
    assert 'src="../plots/nat-pairs.png"' in pages["paths/nat.html"]
    assert "<figure>" not in page, "pictures stand on the pages of paths"
    assert all('<a href="../summary.html">' in one for one in pages.values())
    assert not dict(path_pages(made_results.result(made_results.scenario()), {}))


def test_a_path_of_any_name_has_a_page_in_its_folder() -> None:
    hostile = [
        replace(RUN.scenarios[0], origin=replace(RUN.scenarios[0].origin, test=name))
        for name in ("../../etc/passwd", "A/../B", "\N{SNOWMAN}", "x" * 300, "x" * 299)
    ]
    addresses = [address for address, _ in path_pages(made_results.result(*hostile), {})]
    assert len(set(addresses)) == 5
    assert all(re.fullmatch(r"paths/[a-z0-9][a-z0-9-]*\.html", one) and len(one) < 90 for one in addresses)


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
    assert made_results.scenario("PASS").label == made_results.scenario("PASS").title

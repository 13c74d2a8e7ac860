"""The page summary.html: a run on one page that needs nothing else, no network and no script."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup

from pdrgate.reports.markup.html import rendered
from pdrgate.reports.pages.blocks import block_html, further_html, measurands_html, whole_html
from pdrgate.reports.pages.scenario_pictures import Picture
from pdrgate.reports.pages.trial_chart import HEAD, TrialChart, shapes
from pdrgate.reports.words.build_words import lines_beside
from pdrgate.reports.words.builds import kernel_release
from pdrgate.reports.words.headline import builds_compared, headline, left_out, lines_below, scenario_headline
from pdrgate.reports.words.measurand_tables import evidence_tables
from pdrgate.reports.words.path_remarks import said_of_paths
from pdrgate.reports.words.path_table import heading, is_portfolio, path_lines, paths_table
from pdrgate.reports.words.scenario_tree import else_seen, facts_table, facts_tables, scenario_parts
from pdrgate.reports.words.selection_words import selection_table
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import by_gravity
from pdrgate.values.printable import printable

SUMMARY_FILE = "summary.html"


@dataclass(frozen=True, slots=True)
class _Section:
    """A scenario as the page has it."""

    scenario: ScenarioResult
    title: str
    """Name of a path, or title of another scenario. What a path is set up with stands below it."""
    kernel: str
    beside: Sequence[str]
    """What must be known beside the verdict."""
    left_out: Sequence[str]
    """What its headline does not say of its reason."""
    else_seen: Sequence[str]
    told: str
    """The headline, where there are several scenarios."""
    measurands: Markup
    details: Sequence[Markup]
    facts: Sequence[Markup]
    link: str
    """A link to the folder of its run, where runs were merged into the result."""
    pictures: Sequence[tuple[str, str]]
    """Title and data of each."""
    chart: TrialChart | None


def summary_page(
    result: RunResult, pictures: Mapping[int, Sequence[Picture]], charts: Sequence[TrialChart | None] = ()
) -> str:
    """The page; ``pictures`` by the number of their scenario, from 0, and ``charts`` of the trials of each, if any."""
    sections = [
        _section(scenario, pictures.get(number, ()), charts[number] if charts else None)
        for number, scenario in sorted(enumerate(result.scenarios), key=lambda one: by_gravity(one[1].verdict))
    ]
    environment = block_html(facts_table("", result.environment)) if result.environment else None
    touched = selection_table(result)
    told_all = result.selection is not None and result.verdict.passes
    return rendered(
        "summary.html.j2",
        run=result,
        tone=_tone(result.verdict.exit_code),
        headline=headline(result).removeprefix(f"{result.verdict}: "),
        below=[printable(line) for line in lines_below(result)],
        touched=None if touched is None else block_html(touched),
        left_out=() if result.scenarios or told_all else left_out(headline(result), result.reason),
        builds=" against ".join(builds_compared(result)),
        sections=sections,
        paths=[_paths(result, passing=one) for one in (False, True)] if is_portfolio(result) else (),
        shared=[printable(told) for told in said_of_paths(result)],
        shapes=shapes(),
        trial_head=HEAD,
        environment=environment,
        began=_moment(result.started),
        ended=_moment(result.finished),
    )


def _section(scenario: ScenarioResult, pictures: Sequence[Picture], chart: TrialChart | None) -> _Section:
    parts = list(scenario_parts(scenario))
    return _Section(
        scenario=scenario,
        title=heading(scenario),
        kernel=kernel_release(scenario),
        left_out=left_out(scenario_headline(scenario), scenario.reason),
        told=scenario_headline(scenario).removeprefix(f"{scenario.verdict}: "),
        beside=[printable(line) for line in lines_beside(scenario)],
        else_seen=[f"{one.text} {one.code}" if one.code else f"{one.text}." for one in else_seen(scenario)],
        measurands=measurands_html(scenario),
        details=[*map(block_html, evidence_tables(scenario)), *whole_html(parts), *further_html(parts)],
        facts=[*map(block_html, facts_tables(scenario))],
        link=quote(f"./{scenario.origin.run}"),
        pictures=[(one.title, base64.b64encode(one.png).decode()) for one in pictures],
        chart=chart,
    )


def _paths(result: RunResult, *, passing: bool) -> Markup:
    table = paths_table([one for one in path_lines(result) if one.verdict.passes is passing], result)
    return block_html(table) if table.rows else Markup()


def _tone(exit_code: int) -> str:
    return {0: "pass", 1: "fail"}.get(exit_code, "fault")


def _moment(seconds: float | None) -> str:
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(seconds))

"""The page summary.html: a run on one page that needs no network and no script.

The paths of a portfolio have a page each.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup

from pdrgate.reports.markup.html import rendered
from pdrgate.reports.pages.blocks import block_html, further_html, measurands_html, whole_html
from pdrgate.reports.pages.scenario_pictures import Picture
from pdrgate.reports.pages.trial_chart import HEAD, TrialChart, shapes
from pdrgate.reports.tree import Figure
from pdrgate.reports.words.architecture_words import architectures_table
from pdrgate.reports.words.build_words import kernel_release, lines_beside
from pdrgate.reports.words.headline import builds_compared, headline, left_out, lines_below, scenario_headline
from pdrgate.reports.words.measurand_tables import evidence_tables
from pdrgate.reports.words.packet_way import folded_stacks
from pdrgate.reports.words.path_remarks import said_of_paths
from pdrgate.reports.words.path_table import acknowledged_until, is_path, is_portfolio, path_lines, paths_table
from pdrgate.reports.words.scenario_tree import else_seen, facts_table, facts_tables, scenario_parts
from pdrgate.reports.words.selection_words import selection_table
from pdrgate.results.file_name import distinct_names
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import by_gravity
from pdrgate.values.printable import printable

SUMMARY_FILE = "summary.html"
PATHS_FOLDER, PLOTS_FOLDER = "paths", "plots"
"""Folders beside the page: of the pages of paths, and of pictures."""
_IN_FULL = 3
"""Paths of a portfolio whose evidence stands on the page itself: the worst ones."""
_FILES = ("log.html", "report.html", "result.json", "trials.jsonl", "summary.md", "xunit.xml")


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
    shown: Sequence[Markup]
    """What the verdict rests on: the flame graph of what is worse, functions, tables."""
    details: Sequence[Markup]
    """Checks, loads, search: folded."""
    stacks: Sequence[tuple[str, str]]
    """Files of call stacks: the build of each, and its address."""
    facts: Sequence[Markup]
    link: str
    """A link to the folder of its run, where runs were merged into the result."""
    pictures: Sequence[tuple[str, str]]
    """Title and address of each."""
    chart: TrialChart | None
    page: str
    """Address of a page with all of it; empty where all of it stands here."""
    acknowledged: str
    """The last day of what is acknowledged of it; empty where that does not cover it."""


def summary_page(
    result: RunResult, pictures: Mapping[int, Sequence[Picture]], charts: Sequence[TrialChart | None] = ()
) -> str:
    """The page; ``pictures`` by the number of their scenario, from 0, and ``charts`` of the trials of each, if any."""
    order = sorted(enumerate(result.scenarios), key=lambda one: by_gravity(one[1].verdict))
    pages = _pages(result)
    names = distinct_names(one.label for one in result.scenarios)
    if pages:
        worst = [line.number for line in path_lines(result) if not line.verdict.passes][:_IN_FULL]
        sections = [_section(result.scenarios[number], None, (), page=pages[number]) for number in worst]
    else:
        sections = [
            _section(
                scenario, charts[number] if charts and not is_path(scenario) else None,
                [(one.title, _data(one.png)) for one in pictures.get(number, ())],
                stacks=[(side, quote(address)) for side, address, _ in _stacks(scenario, names[number])],
            )
            for number, scenario in order
        ]  # fmt: skip
    environment = block_html(facts_table("", result.environment)) if result.environment else None
    above = [block_html(one) for one in (architectures_table(result), selection_table(result)) if one is not None]
    told_all = result.selection is not None and result.verdict.passes
    return rendered(
        "summary.html.j2",
        run=result,
        tone=_tone(result.verdict.exit_code),
        headline=headline(result).removeprefix(f"{result.verdict}: "),
        below=[printable(line) for line in lines_below(result)],
        above=above,
        left_out=() if result.scenarios or told_all else left_out(headline(result), result.reason),
        builds=" against ".join(builds_compared(result)),
        sections=sections,
        paths=[_paths(result, pages, passing=one) for one in (False, True)] if is_portfolio(result) else (),
        shared=[printable(told) for told in said_of_paths(result)],
        shapes=shapes(),
        trial_head=HEAD,
        environment=environment,
        files=() if any(one.origin.run for one in result.scenarios) else _FILES,
        began=_moment(result.started),
        ended=_moment(result.finished),
    )


def path_pages(
    result: RunResult, pictures: Mapping[int, Sequence[Picture]], charts: Sequence[TrialChart | None] = ()
) -> Iterator[tuple[str, str]]:
    """Pages of the paths of a portfolio: the address of each from the run's folder, and its HTML; else none.

    Args:
        pictures: by the number of their scenario, from 0; the pages show them from `PLOTS_FOLDER`.
        charts: of the trials of each scenario, if any.
    """
    builds = " against ".join(builds_compared(result))
    names = distinct_names(one.label for one in result.scenarios)
    for number, page in _pages(result).items():
        shown = [(one.title, quote(f"../{PLOTS_FOLDER}/{one.name}.png")) for one in pictures.get(number, ())]
        scenario = result.scenarios[number]
        # Packets of counted trials come at once: neither their loads nor their losses say anything.
        chart = charts[number] if charts and not is_path(scenario) else None
        stacks = [(side, quote(f"../{address}")) for side, address, _ in _stacks(scenario, names[number])]
        section = _section(scenario, chart, shown, above="../", stacks=stacks)
        yield page, rendered(
            "path.html.j2", run=result, section=section, sections=[section], builds=builds, shapes=shapes(),
            trial_head=HEAD, number=1,
        )  # fmt: skip


def stack_files(result: RunResult) -> Iterator[tuple[str, str]]:
    """Call stacks of each build on the paths that do not pass: the address from the run's folder, and the text."""
    for number, name in enumerate(distinct_names(one.label for one in result.scenarios)):
        for _, address, text in _stacks(result.scenarios[number], name):
            yield address, text


def _stacks(scenario: ScenarioResult, name: str) -> Iterator[tuple[str, str, str]]:
    """Side, address and text of the stacks of each build; none of a path that passes."""
    for side in () if scenario.verdict.passes else scenario.builds.sides:
        cost = side.findings.cost
        if cost is not None and (text := folded_stacks(cost)):
            yield side.side, f"{PATHS_FOLDER}/{name}-{side.side}.folded", text


def _pages(result: RunResult) -> dict[int, str]:
    """Addresses of the pages of paths by the number of their scenario; empty for a run that is no portfolio."""
    if not is_portfolio(result):
        return {}
    names = distinct_names(one.label for one in result.scenarios)
    return {number: f"{PATHS_FOLDER}/{name}.html" for number, name in enumerate(names)}


def _section(
    scenario: ScenarioResult, chart: TrialChart | None, pictures: Sequence[tuple[str, str]], *, above: str = "./",
    page: str = "", stacks: Sequence[tuple[str, str]] = (),
) -> _Section:  # fmt: skip
    """All of a scenario; of one that has a page of its own, what its verdict rests on."""
    parts = list(scenario_parts(scenario))
    if page:
        blocks, details = [block for part in parts for block in part.brief], []
    else:
        blocks = [block for part in parts if not part.is_check for block in part.whole]
        checks = whole_html(part for part in parts if part.is_check)
        details = [*map(block_html, evidence_tables(scenario)), *checks, *further_html(parts)]
    blocks.sort(key=lambda one: not isinstance(one, Figure))  # what is worse, as a picture, first
    return _Section(
        scenario=scenario,
        title=scenario.label,
        kernel=kernel_release(scenario),
        left_out=left_out(scenario_headline(scenario), scenario.reason),
        told=scenario_headline(scenario).removeprefix(f"{scenario.verdict}: "),
        beside=[printable(line) for line in lines_beside(scenario)],
        else_seen=[f"{one.text} {one.code}" if one.code else f"{one.text}." for one in else_seen(scenario)],
        measurands=measurands_html(scenario),
        shown=[*map(block_html, blocks)],
        details=details,
        stacks=stacks,
        facts=() if page else [*map(block_html, facts_tables(scenario))],
        link=quote(f"{above}{scenario.origin.run}"),
        pictures=pictures,
        chart=chart,
        page=page,
        acknowledged=acknowledged_until(scenario),
    )


def _data(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _paths(result: RunResult, pages: Mapping[int, str], *, passing: bool) -> Markup:
    table = paths_table([one for one in path_lines(result) if one.verdict.passes is passing], result, pages)
    return block_html(table) if table.rows else Markup()


def _tone(exit_code: int) -> str:
    return {0: "pass", 1: "fail", 3: "warn"}.get(exit_code, "fault")


def _moment(seconds: float | None) -> str:
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(seconds))

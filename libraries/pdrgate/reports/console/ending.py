"""The end of a run: its verdict, and for each scenario the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from pdrgate.reports.console.screen import Screen, verdict_text
from pdrgate.reports.markup.columns import reasons_lines, table_lines
from pdrgate.reports.tree import ReportPart, Table
from pdrgate.reports.words.architecture_words import architectures_table
from pdrgate.reports.words.build_words import lines_beside
from pdrgate.reports.words.headline import headline, left_out, lines_below, rests_on_a_change, scenario_headline
from pdrgate.reports.words.measurand_tables import measurands_table
from pdrgate.reports.words.path_remarks import said_of_paths
from pdrgate.reports.words.path_table import is_portfolio, lines_that_tell, paths_table
from pdrgate.reports.words.scenario_tree import scenario_parts
from pdrgate.reports.words.selection_words import selection_table
from pdrgate.reports.words.vector_words import loads_in_words
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.values.printable import printable

_FILES = (
    "summary.html", "summary.md", "log.html", "report.html", "xunit.xml", "output.xml", "result.json", "merged.json",
    "trials.jsonl", "allure-results", "plots", "paths",
)  # fmt: skip


def show_verdict(result: RunResult, screen: Screen) -> None:
    """The headline, then the evidence: each thing once."""
    told = headline(result)
    screen.line(Text.assemble(verdict_text(result.verdict), told.removeprefix(str(result.verdict))))
    more = () if result.scenarios or _left_nothing(result) else left_out(told, result.reason)
    for sentence in (*lines_below(result), *more):
        screen.line(f"  {sentence}")
    for table in (architectures_table(result), selection_table(result)):
        if table is not None:
            screen.line("")
            _show_table(table, screen)
    shown = result.scenarios
    if is_portfolio(result):
        _show_paths(result, screen)
        shown = tuple(one for one in result.scenarios if not one.verdict.passes)
    for scenario in shown:
        screen.line("")
        title = Text(printable(scenario.label), style="bold")
        if len(result.scenarios) > 1:
            title = Text.assemble(title, ": ", verdict_text(scenario.verdict))
        screen.line(title)
        for told in _builds(scenario):
            screen.line(f"  {told}")
        _show_table(measurands_table(scenario, every=True), screen)
        for told in _told(scenario, result):
            screen.line(f"  {told}")
        for part in scenario_parts(scenario):
            for line in part_lines(part, screen.width):
                screen.line(f"  {line}", cut=line.startswith(" "))  # what is set in further is a table


def _left_nothing(result: RunResult) -> bool:
    """Whether the headline and what stands below it say all of a run that measured nothing."""
    return result.selection is not None and result.verdict.passes


def part_lines(part: ReportPart, width: int | None = None) -> Iterator[str]:
    """What a console shows of a part: its sentences, and its brief tables where they belong there.

    Args:
        width: columns of the screen; None for any number.
    """
    yield from (*part.lines, *part.remarks)
    for block in part.brief if part.on_screen else ():
        if isinstance(block, Table):
            yield f"{block.caption}:"
            yield from table_lines(block, width)


def _show_paths(result: RunResult, screen: Screen) -> None:
    """The paths in one table; below it stands the evidence of those that do not pass."""
    screen.line("")
    shown, others = lines_that_tell(result)
    _show_table(replace(paths_table(shown, result), note=""), screen)
    for told in (*filter(None, (others,)), *said_of_paths(result)):
        screen.line(f"  {printable(told)}")


def show_files(folder: Path, screen: Screen) -> None:
    """Show where the files of a run lie, those that exist."""
    screen.line(f"results: {folder}")
    screen.line(f"  {'  '.join(name for name in _FILES if (folder / name).exists())}")


def _show_table(table: Table, screen: Screen) -> None:
    """The table, its columns cut off where the screen ends, and below it what has no room in them."""
    for line in table_lines(table, screen.width):
        screen.line(line, cut=True)
    for told in (*reasons_lines(table), *filter(None, (table.note,))):
        screen.line(f"  {told}")


def _builds(scenario: ScenarioResult) -> Iterator[str]:
    """What was compared, and on how many boots."""
    if scenario.builds.sides:
        boots = [
            sum(not boot.failure for boot in scenario.builds.boots if boot.side == one.side)
            for one in scenario.builds.sides
        ]
        loads = loads_in_words(scenario)
        names = [
            f"{one.side} {one.build}, {loads or f'{number} boots'}"
            for one, number in zip(scenario.builds.sides, boots, strict=True)
        ]
        yield "; ".join(reversed(names))  # the candidate is what the run is about
    yield from lines_beside(scenario)


def _told(scenario: ScenarioResult, result: RunResult) -> Iterator[str]:
    """What is said of a scenario in words, and not in the run's headline."""
    if len(result.scenarios) == 1 or rests_on_a_change(scenario):
        yield from left_out(scenario_headline(scenario), scenario.reason)
    else:
        yield scenario.reason
    comparison = scenario.comparison
    if comparison is not None and not comparison.accepted:
        # The reason begins with it, where it is what the verdict rests on.
        against = "" if scenario.reason.startswith(comparison.why_not) else f": {comparison.why_not}"
        yield f"the verdict does not rest on the change{against}"

"""The end of a run: its verdict, and for each scenario the evidence."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from pdrgate.reports.console.screen import Screen, verdict_text
from pdrgate.reports.markup.columns import aligned, in_line, widths_of
from pdrgate.reports.words.arrival_words import arrivals_lines, starved_lines
from pdrgate.reports.words.build_words import lines_beside
from pdrgate.reports.words.costs import cost_lines
from pdrgate.reports.words.drop_words import drops_lines
from pdrgate.reports.words.frame_words import frames_lines
from pdrgate.reports.words.headline import fault_in_words, headline, left_out, rests_on_a_change, scenario_headline
from pdrgate.reports.words.latencies import latency_lines
from pdrgate.reports.words.loss_words import loss_lines
from pdrgate.reports.words.measurands import MeasurandLine, intervals_in_words, measurand_rows
from pdrgate.reports.words.memory_words import memory_lines
from pdrgate.reports.words.path_remarks import said_of_paths
from pdrgate.reports.words.path_table import NUMBERS, PATH_HEAD, heading, is_portfolio, lines_that_tell
from pdrgate.reports.words.soak_words import soak_lines
from pdrgate.reports.words.spike_in_words import spike_in_lines
from pdrgate.reports.words.vector_words import loads_in_words, vectors_lines
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.values.printable import printable

_FILES = (
    "summary.html", "summary.md", "log.html", "report.html", "xunit.xml", "output.xml", "result.json", "merged.json",
    "trials.jsonl", "allure-results", "plots",
)  # fmt: skip
_MEASURED = ("MEASURAND", "VALUE", "95 % INTERVAL")
_COMPARED = ("MEASURAND", "BASE", "CANDIDATE", "CHANGE", "VERDICT")
_MARGIN, _GAP = 2, 2


def show_verdict(result: RunResult, screen: Screen) -> None:
    """The headline, then the evidence: each thing once."""
    told = headline(result)
    screen.line(Text.assemble(verdict_text(result.verdict), told.removeprefix(str(result.verdict))))
    for sentence in filter(
        None, (fault_in_words(result), *(() if result.scenarios else left_out(told, result.reason)))
    ):
        screen.line(f"  {sentence}")
    shown = result.scenarios
    if is_portfolio(result):
        _show_paths(result, screen)
        shown = tuple(one for one in result.scenarios if not one.verdict.passes)
    rows = [row for scenario in shown for row in measurand_rows(scenario)]
    columns = _Columns.fitting(rows, screen.width)
    for scenario in shown:
        screen.line("")
        title = Text(printable(heading(scenario)), style="bold")
        if len(result.scenarios) > 1:
            title = Text.assemble(title, ": ", verdict_text(scenario.verdict))
        screen.line(title)
        for told in _builds(scenario):
            screen.line(f"  {told}")
        rows = measurand_rows(scenario)
        for line in columns.lines(rows):
            screen.line(line, cut=True)
        for row in rows:
            if row.why:
                screen.line(f"  {row.name} is not judged: {row.why}")
        if in_brackets := intervals_in_words(scenario.comparison):
            screen.line(f"  {in_brackets}")
        for told in _told(scenario, result):
            screen.line(f"  {told}")
        lines = (
            frames_lines(scenario), vectors_lines(scenario), cost_lines(scenario), memory_lines(scenario),
            latency_lines(scenario),
            arrivals_lines(scenario), starved_lines(scenario), loss_lines(scenario), drops_lines(scenario),
            soak_lines(scenario),
        )  # fmt: skip
        for told in itertools.chain(*lines, spike_in_lines(scenario)):
            screen.line(f"  {told}", cut=told.startswith(" "))  # what is set in further is a table


def _show_paths(result: RunResult, screen: Screen) -> None:
    """The paths in one table; below it stands the evidence of those that do not pass."""
    screen.line("")
    shown, others = lines_that_tell(result)
    rows = [tuple(name.upper() for name in PATH_HEAD), *(one.cells for one in shown)]
    for line in aligned([[printable(cell) for cell in row] for row in rows], NUMBERS, indent=" " * _MARGIN):
        screen.line(line, cut=True)
    for told in (*filter(None, (others,)), *said_of_paths(result)):
        screen.line(f"  {printable(told)}")


def show_files(folder: Path, screen: Screen) -> None:
    """Show where the files of a run lie, those that exist."""
    screen.line(f"results: {folder}")
    screen.line(f"  {'  '.join(name for name in _FILES if (folder / name).exists())}")


class _Columns:
    """A table of measurands of which all scenarios' rows are in line."""

    def __init__(self, names: Sequence[str], rows: Sequence[MeasurandLine], *, units: bool) -> None:
        self._names = names
        self._units = units
        self._widths = widths_of([names, *(self._cells(row) for row in rows)])
        self._numeric = frozenset(at for at, name in enumerate(names) if name not in ("MEASURAND", "VERDICT"))

    @classmethod
    def fitting(cls, rows: Sequence[MeasurandLine], width: int | None) -> _Columns:
        """The columns that fit: all, else without units, else without the base."""
        names = list(_COMPARED if any(row.change for row in rows) else _MEASURED)
        columns = cls(names, rows, units=True)
        for dropped in ("", "BASE"):
            if width is None or columns.width <= width:
                break
            names = [name for name in names if name != dropped]
            columns = cls(names, rows, units=False)
        return columns

    @property
    def width(self) -> int:
        return _MARGIN + sum(self._widths) + _GAP * (len(self._widths) - 1)

    def lines(self, rows: Sequence[MeasurandLine]) -> Iterator[str]:
        """The head, and a line per row; nothing without rows."""
        for cells in (self._names, *map(self._cells, rows)) if rows else ():
            yield in_line(cells, self._widths, self._numeric, indent=" " * _MARGIN)

    def _cells(self, row: MeasurandLine) -> list[str]:
        value = row.value if self._units else row.number
        known = {
            "MEASURAND": row.name, "VALUE": value, "95 % INTERVAL": row.interval, "BASE": row.baseline,
            "CANDIDATE": value, "CHANGE": row.change, "VERDICT": row.word,
        }  # fmt: skip
        return [printable(known[name]) or "-" for name in self._names]


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

"""All reports of a run made again from what it stored: result.json, trials.jsonl and, for Robot's own, output.xml."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot.api import SuiteVisitor

from pdrgate.errors import DataError
from pdrgate.gate.run.slower_paths import decisive_scenario
from pdrgate.history.results import read_result
from pdrgate.history.trials import TRIALS_FILE
from pdrgate.reports.ci.allure import tell_allure
from pdrgate.reports.ci.junit import XUNIT_FILE, junit, retold
from pdrgate.reports.ci.markdown import MARKDOWN_FILE, run_markdown
from pdrgate.reports.ci.pipeline import pipeline
from pdrgate.reports.markup.files import written
from pdrgate.reports.pages.overview import STATISTICS, Overview, overview
from pdrgate.reports.pages.scenario_parts import Picture, main_picture, pictures
from pdrgate.reports.pages.summary import SUMMARY_FILE, summary_page
from pdrgate.reports.pages.trial_chart import trial_chart
from pdrgate.results.model import RunResult
from pdrgate.stability import read_trials
from pdrgate.trial import Trial

PLOTS_FOLDER = "plots"
_OUTPUT, _LOG, _REPORT, _XUNIT = "output.xml", "log.html", "report.html", XUNIT_FILE


@dataclass(frozen=True, slots=True)
class UnmadeReport:
    """A sentence on what could not be made, and why."""

    sentence: str


def remake(folder: Path) -> Iterator[Path | UnmadeReport]:
    """Make the reports of the run in ``folder`` anew: each file's path when it is there, or what could not be made.

    Raises:
        DataError: the folder holds no result.
        StorageError: a file cannot be written.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder; name the folder of a run, such as results/20260131-120000")
    result = read_result(folder)
    yield from make_page(folder, result)
    if (folder / _OUTPUT).exists():
        yield from _robots_own(folder, result)
    else:
        yield written(folder / _XUNIT, junit(result))
        yield UnmadeReport(
            f"{_LOG} and {_REPORT} are not made: they are Robot's, of {_OUTPUT}, and there is none in {folder}"
        )


def retell_xunit(folder: Path, result: RunResult) -> None:
    """Put faults and numbers into the xunit.xml that Robot wrote; nothing where it wrote none."""
    path = folder / _XUNIT
    with contextlib.suppress(FileNotFoundError, ValueError):  # a torn one stays as it is
        written(path, retold(path.read_bytes(), result))


def make_page(folder: Path, result: RunResult) -> Iterator[Path | UnmadeReport]:
    """Make ``summary.html``, the pictures of a run, and ``summary.md``."""
    trials: Sequence[Trial] = ()
    try:
        trials = own_trials(folder, result)
    except DataError as error:
        yield UnmadeReport(f"trials are not drawn: {error}")
    drawn = yield from make_summaries(folder, result, {"": trials})
    tell_allure(folder, result, drawn, trials)


def own_trials(folder: Path, result: RunResult) -> Sequence[Trial]:
    """The trials of the run in ``folder``; none where it measured none. Raises DataError."""
    path = folder / TRIALS_FILE
    searched = any(
        one.findings.search or any(side.findings.search for side in one.builds.sides) for one in result.scenarios
    )
    return read_trials(path) if searched or (path.is_file() and path.stat().st_size) else ()


def make_summaries(
    folder: Path, result: RunResult, trials: Mapping[str, Sequence[Trial]]
) -> Generator[Path, None, Mapping[int, Sequence[Picture]]]:
    """Write the pictures, the page and the Markdown of a result; in the end the pictures by number of their scenario.

    Args:
        trials: by the run that a scenario is of (`ScenarioResult.run`).

    Raises:
        DataError: the result contradicts itself.
        StorageError: a file cannot be written.
    """
    drawn = _drawn(folder, result, trials)
    for found in drawn.values():
        for picture in found:
            yield written(folder / PLOTS_FOLDER / f"{picture.name}.png", picture.png)
    charts = [trial_chart(one, trials.get(one.origin.run, ())) for one in result.scenarios]
    yield written(folder / SUMMARY_FILE, summary_page(result, drawn, charts).encode())
    yield written(folder / MARKDOWN_FILE, run_markdown(result, pipeline().pages).encode())
    return drawn


def _drawn(folder: Path, result: RunResult, trials: Mapping[str, Sequence[Trial]]) -> Mapping[int, Sequence[Picture]]:
    try:
        return {
            number: list(pictures(scenario, trials.get(scenario.origin.run, ()), result.scenarios[:number]))
            for number, scenario in enumerate(result.scenarios)
        }
    except (ValueError, LookupError, ArithmeticError) as error:
        raise DataError(f"the result in {folder} contradicts itself and cannot be drawn ({error!r})") from error


class _Headed(SuiteVisitor):  # type: ignore[misc]  # it ships no types
    """Puts an overview at the top of Robot's pages."""

    def __init__(self, told: Overview) -> None:
        self._told = told

    def start_suite(self, suite: Any) -> bool:
        suite.doc = self._told.documentation
        suite.metadata.update(self._told.metadata)
        return False


def _robots_own(folder: Path, result: RunResult) -> Iterator[Path | UnmadeReport]:
    from robot.rebot import rebot  # type: ignore[import-untyped]  # only robot.api is typed

    wrong = io.StringIO()
    decisive = decisive_scenario(result.scenarios)
    head = overview(result, main_picture(decisive) if decisive is not None else None)
    rebot(
        str(folder / _OUTPUT), outputdir=str(folder), log=_LOG, report=_REPORT, xunit=_XUNIT, stdout=io.StringIO(),
        stderr=wrong, prerebotmodifier=_Headed(head), **STATISTICS,
    )  # fmt: skip
    made = [folder / name for name in (_LOG, _REPORT, _XUNIT)]
    told = wrong.getvalue().strip()
    if told:
        yield UnmadeReport(
            f"{_LOG}, {_REPORT} and {_XUNIT} are not made again: {' '.join(told.splitlines()[0].split())}"
        )
        return
    retell_xunit(folder, result)
    yield from made

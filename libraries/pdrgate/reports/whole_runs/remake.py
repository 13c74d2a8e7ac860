"""All reports of a run made again from what it stored: result.json, trials.jsonl and, for Robot's own, output.xml."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot.api import SuiteVisitor

from pdrgate.history.results import read_result
from pdrgate.history.trials import TRIALS_FILE
from pdrgate.history.whole_file import write_whole
from pdrgate.measurands.slower_paths import decisive_scenario
from pdrgate.record.trial import Trial
from pdrgate.reports.ci.allure import tell_allure
from pdrgate.reports.ci.junit import LARGEST_XUNIT, XUNIT_FILE, junit, retold
from pdrgate.reports.ci.markdown import MARKDOWN_FILE, run_markdown
from pdrgate.reports.ci.pipeline import pipeline
from pdrgate.reports.markup.html import rendered
from pdrgate.reports.pages.overview import STATISTICS, Overview, overview
from pdrgate.reports.pages.scenario_pictures import Picture, main_picture, pictures
from pdrgate.reports.pages.summary import PLOTS_FOLDER, SUMMARY_FILE, path_pages, stack_files, summary_page
from pdrgate.reports.pages.trial_chart import trial_chart
from pdrgate.reports.whole_runs.robots_output import disarm
from pdrgate.results.model import RunResult
from pdrgate.stability import read_trials
from pdrgate.this_process.no_follow import read_no_follow
from pdrgate.values.errors import DataError

_LARGEST_OUTPUT = 512 << 20
"""Bytes of Robot's output.xml."""
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
        yield write_whole(folder / _XUNIT, junit(result), durable=False)
        yield UnmadeReport(
            f"{_LOG} and {_REPORT} are not made: they are Robot's, of {_OUTPUT}, and there is none in {folder}"
        )


def retell_robots_own(folder: Path, result: RunResult) -> None:
    """Put faults and numbers into the xunit.xml that Robot wrote, and a style into its pages; nothing where it wrote
    none."""
    path = folder / _XUNIT
    with contextlib.suppress(FileNotFoundError, ValueError):  # a torn one stays as it is
        write_whole(path, retold(read_no_follow(path, LARGEST_XUNIT), result), durable=False)
    for page in (folder / _LOG, folder / _REPORT):
        with contextlib.suppress(OSError):
            write_whole(page, _narrow(read_no_follow(page, _LARGEST_OUTPUT)), durable=False)


def _narrow(page: bytes) -> bytes:
    return page.replace(b"</head>", rendered("robots_head.html.j2").encode(), 1)


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
            yield write_whole(folder / PLOTS_FOLDER / f"{picture.name}.png", picture.png, durable=False)
    charts = [trial_chart(one, trials.get(one.origin.run, ())) for one in result.scenarios]
    for name, page in path_pages(result, drawn, charts):
        yield write_whole(folder / name, page.encode(), durable=False)
    for name, text in stack_files(result):
        yield write_whole(folder / name, text.encode(), durable=False)
    yield write_whole(folder / SUMMARY_FILE, summary_page(result, drawn, charts).encode(), durable=False)
    yield write_whole(folder / MARKDOWN_FILE, run_markdown(result, pipeline().pages).encode(), durable=False)
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
    # Robot follows links: it reads and writes in a folder that nobody else knows.
    with tempfile.TemporaryDirectory(prefix="pdrgate-report-") as name:
        apart = Path(name)
        try:
            (apart / _OUTPUT).write_bytes(read_no_follow(folder / _OUTPUT, _LARGEST_OUTPUT))
        except OSError as error:
            yield _unmade(f"{folder / _OUTPUT}: {error.strerror}")
            return
        disarm(apart / _OUTPUT)
        rebot(
            str(apart / _OUTPUT), outputdir=name, log=_LOG, report=_REPORT, xunit=_XUNIT, stdout=io.StringIO(),
            stderr=wrong, prerebotmodifier=_Headed(head), **STATISTICS,
        )  # fmt: skip
        if told := wrong.getvalue().strip():
            yield _unmade(" ".join(told.splitlines()[0].replace(name, str(folder)).split()))
            return
        for one in (_LOG, _REPORT):
            yield write_whole(folder / one, _narrow((apart / one).read_bytes()), durable=False)
        content = (apart / _XUNIT).read_bytes()
        with contextlib.suppress(ValueError):
            content = retold(content, result)
        yield write_whole(folder / _XUNIT, content, durable=False)


def _unmade(why: str) -> UnmadeReport:
    return UnmadeReport(f"{_LOG}, {_REPORT} and {_XUNIT} are not made again: {why}")

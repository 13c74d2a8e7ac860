"""All reports of a run made again from what it stored: result.json, trials.jsonl and, for Robot's own, output.xml."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot.api import SuiteVisitor

from pdrgate.errors import DataError
from pdrgate.history.results import read_result
from pdrgate.history.trials import TRIALS_FILE
from pdrgate.reports.allure import tell_allure
from pdrgate.reports.files import written
from pdrgate.reports.junit import XUNIT_FILE, junit, retold
from pdrgate.reports.markdown import MARKDOWN_FILE, run_markdown
from pdrgate.reports.overview import Overview, gravest_scenario, overview
from pdrgate.reports.scenario import Picture, main_picture, pictures
from pdrgate.reports.summary import SUMMARY_FILE, summary
from pdrgate.results.model import RunResult
from pdrgate.stability import read_trials
from pdrgate.trial import Trial

PLOTS_FOLDER = "plots"
_OUTPUT, _LOG, _REPORT, _XUNIT = "output.xml", "log.html", "report.html", XUNIT_FILE


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence on what could not be made, and why."""

    sentence: str


def remake(folder: Path) -> Iterator[Path | Told]:
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
        yield Told(f"{_LOG} and {_REPORT} are not made: they are Robot's, of {_OUTPUT}, and there is none in {folder}")


def retell_xunit(folder: Path, result: RunResult) -> None:
    """Put faults and numbers into the xunit.xml that Robot wrote; nothing where it wrote none."""
    path = folder / _XUNIT
    with contextlib.suppress(FileNotFoundError, ValueError):  # a torn one stays as it is
        written(path, retold(path.read_bytes(), result))


def make_page(folder: Path, result: RunResult) -> Iterator[Path | Told]:
    """Make ``summary.html``, the pictures of a run, and ``summary.md``."""
    trials: Sequence[Trial] = ()
    if draws_search(result):
        try:
            trials = read_trials(folder / TRIALS_FILE)
        except DataError as error:
            yield Told(f"the search is not drawn: {error}")
    drawn = all_pictures(folder, result, {"": trials})
    yield from make_summaries(folder, result, drawn)
    tell_allure(folder, result, drawn, trials)


def make_summaries(folder: Path, result: RunResult, drawn: Mapping[int, Sequence[Picture]]) -> Iterator[Path]:
    """Write the pictures, the page and the Markdown of a result. Raises StorageError."""
    for found in drawn.values():
        for picture in found:
            yield written(folder / PLOTS_FOLDER / f"{picture.name}.png", picture.png)
    yield written(folder / SUMMARY_FILE, summary(result, drawn).encode())
    yield written(folder / MARKDOWN_FILE, run_markdown(result).encode())


def draws_search(result: RunResult) -> bool:
    """Whether its pictures need the trials."""
    return any(one.search or any(side.search for side in one.sides) for one in result.scenarios)


def all_pictures(
    folder: Path, result: RunResult, trials: Mapping[str, Sequence[Trial]]
) -> Mapping[int, Sequence[Picture]]:
    """Those of each scenario, by its number; ``trials`` by the run that a scenario is of.

    Raises:
        DataError: the result contradicts itself.
    """
    try:
        return {
            number: list(pictures(scenario, trials.get(scenario.run, ()), result.scenarios[:number]))
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


def _robots_own(folder: Path, result: RunResult) -> Iterator[Path | Told]:
    from robot.rebot import rebot  # type: ignore[import-untyped]  # only robot.api is typed

    wrong = io.StringIO()
    decisive = gravest_scenario(result)
    head = overview(result, main_picture(decisive) if decisive is not None else None)
    rebot(
        str(folder / _OUTPUT), outputdir=str(folder), log=_LOG, report=_REPORT, xunit=_XUNIT, stdout=io.StringIO(),
        stderr=wrong, prerebotmodifier=_Headed(head),
    )  # fmt: skip
    made = [folder / name for name in (_LOG, _REPORT, _XUNIT)]
    told = wrong.getvalue().strip()
    if told:
        yield Told(f"{_LOG}, {_REPORT} and {_XUNIT} are not made again: {' '.join(told.splitlines()[0].split())}")
        return
    retell_xunit(folder, result)
    yield from made

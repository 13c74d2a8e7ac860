"""What a run shows in Robot's log, on its console and in Allure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from robot.api import logger

from pdrgate.gate.run.progress import Estimate, Progress, RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.gate.verdicts.against_baseline import so_far
from pdrgate.history.whole_file import write_whole
from pdrgate.keywords.state import AnyMeasurement
from pdrgate.measurands import Ask
from pdrgate.measurands.slower_paths import decisive_scenario
from pdrgate.observers.accounting import losses
from pdrgate.record.trial import Trial
from pdrgate.reports.console.screen import Screen
from pdrgate.reports.console.trial_lines import status_line, trial_line
from pdrgate.reports.pages.evidence import Fold, evidence_html, fold_html, picture_html, scenario_html, trials_fold
from pdrgate.reports.pages.overview import overview
from pdrgate.reports.pages.scenario_pictures import Picture, main_picture, pictures, search_pictures
from pdrgate.reports.pages.summary import PLOTS_FOLDER
from pdrgate.results.model import RunResult, ScenarioResult, Side


class RobotObserver(RunObserver):
    """Writes to the console, where people wait, and to the log, where they look things up.

    Args:
        brief: whether the console has a line for each path alone: what is between goes to its last line, which changes.
    """

    def __init__(self, screen: Screen, brief: Callable[[], bool] = lambda: False) -> None:
        self._screen = screen
        self._brief = brief
        self._left: Estimate | None = None

    def said(self, sentence: str) -> None:
        logger.info(sentence)
        if self._brief():
            self._screen.status(f"  {sentence}")
        else:
            self._screen.line(f"  {sentence}")

    def warned(self, sentence: str) -> None:
        logger.info(sentence)
        self._screen.line(f"  {sentence}")

    def measuring(self, ask: Ask, side: Side | None, pair: int) -> None:
        self._screen.status(status_line(ask, self._left, side, pair))

    def measured(self, progress: Progress) -> None:
        trial = progress.trial
        stolen = [
            f"{place}.{name} +{gain}"
            for place, gained in trial.seen.counter_changes.items()
            for name, gain in gained.items()
            if "steal" in name
        ]
        found = losses(trial) if trial.seen.counters_after else None
        told = [found.sentence(), found.fault] if found is not None and found.lost else []
        # Dozens of them before the first picture helped nobody: they are in the log once more, folded.
        logger.debug("  ".join(filter(None, [trial_line(progress).plain, *told, *stolen])))
        self._left = progress.left
        self._screen.status(status_line(None, self._left))
        if not self._brief():
            self._screen.line(trial_line(progress, self._screen.width), cut=True)


def show_scenario(measurement: AnyMeasurement, trials: Sequence[Trial], *, searched: bool = True) -> None:
    """Put a scenario into the log, as far as it came, and its pictures into the results folder.

    Args:
        trials: those to show.
        searched: whether the search is to be drawn; where `show_search` has drawn it, it is not.
    """
    scenario = _standing(measurement)
    earlier = measurement.session.record.scenarios
    shown = _kept(pictures(scenario, trials if searched else (), earlier), measurement.session.record)
    logger.info(scenario_html(scenario, shown, trials), html=True)


def show_search(measurement: ScenarioRun) -> None:
    """Put the search alone into the log, folded."""
    record = measurement.session.record
    shown = _kept(search_pictures(measurement.result(), measurement.trials, record.scenarios), record)
    told = [picture_html(picture) for picture in shown]
    logger.info(fold_html(Fold("The search, trial by trial", told)), html=True)


def show_evidence(scenario: ScenarioResult) -> None:
    """Put what a verdict rests on into the log, where a keyword fails by it."""
    logger.info(evidence_html(scenario), html=True)


def show_trials(trials: Sequence[Trial]) -> None:
    """Put the trials into the log of what came to no result."""
    if trials:
        logger.info(fold_html(trials_fold(trials)), html=True)


def show_run(result: RunResult, suite: Any) -> None:
    """Put what the run came to so far at the top of Robot's report and log: on the topmost suite above ``suite``.

    Robot writes a suite's documentation and metadata when the suite ends, so that they may come last. Its keywords for
    this would log all of it once more.
    """
    decisive = decisive_scenario(result.scenarios)
    told = overview(result, main_picture(decisive) if decisive is not None else None)
    while suite.parent is not None:
        suite = suite.parent
    suite.doc = told.documentation
    suite.metadata.update(told.metadata)


def _standing(measurement: AnyMeasurement) -> ScenarioResult:
    """What a measurement came to so far: one that nothing speaks against has no verdict before it is judged."""
    found = measurement.result()
    return found if measurement.judgement is not None else measurement.result(so_far(found.findings.measurands))


def _kept(drawn: Iterable[Picture], record: RunRecord) -> Sequence[Picture]:
    folder = record.folder / PLOTS_FOLDER
    shown = list(drawn)
    for picture in shown:
        write_whole(folder / f"{picture.name}.png", picture.png, durable=False)
    return shown

"""What a run shows in Robot's log, on its console and in Allure."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import allure
from allure_commons.types import AttachmentType
from robot.api import logger

from pdrgate.gate.progress import Estimate, Progress, Upcoming
from pdrgate.gate.record import RunRecord
from pdrgate.observers.accounting import losses
from pdrgate.reports.console.screen import Screen
from pdrgate.reports.console.trials import status_line, trial_line
from pdrgate.reports.scenario import fragments, pictures
from pdrgate.results.model import ScenarioResult
from pdrgate.trial import Trial


class RobotObserver:
    """An `Observer` that writes to the console, where people wait, and to the log, where they look things up."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._left: Estimate | None = None

    def said(self, sentence: str) -> None:
        logger.info(sentence)
        self._screen.line(f"  {sentence}")

    def measuring(self, upcoming: Upcoming) -> None:
        self._screen.status(status_line(upcoming, self._left))

    def measured(self, progress: Progress) -> None:
        trial = progress.trial
        stolen = [
            f"{place}.{name} +{gain}"
            for place, gained in trial.counter_changes.items()
            for name, gain in gained.items()
            if "steal" in name
        ]
        found = losses(trial) if trial.counters_after else None
        told = [found.sentence(), found.fault] if found is not None and found.lost else []
        logger.info("  ".join(filter(None, [trial_line(progress).plain, *told, *stolen])))
        logger.debug(trial.to_json())
        self._left = progress.left
        self._screen.status(status_line(None, self._left))
        self._screen.line(trial_line(progress, self._screen.width), cut=True)


def show_scenario(
    scenario: ScenarioResult,
    trials: Sequence[Trial],
    record: RunRecord,
    only: Literal["search", "curve"] | None = None,
) -> None:
    """Put a scenario's pictures into the log, the results folder and Allure, and its tables into the log.

    Args:
        only: the picture of the search, without tables; or all others, with them.
    """
    for picture in pictures(scenario, () if only == "curve" else trials, record.scenarios):
        if only != "search" or picture.name.endswith("-search"):
            _show(picture.png, picture.name, record.folder / "plots")
    if only != "search":
        for fragment in fragments(scenario):
            logger.info(fragment, html=True)


def _show(png: bytes, name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.png").write_bytes(png)
    data = base64.b64encode(png).decode()
    logger.info(f'<img alt="{name}" style="max-width:100%" src="data:image/png;base64,{data}">', html=True)
    allure.attach(png, name=name, attachment_type=AttachmentType.PNG)

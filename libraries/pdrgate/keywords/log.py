"""What a run shows in Robot's log, on its console and in Allure."""

from __future__ import annotations

import base64
from pathlib import Path

import allure
from allure_commons.types import AttachmentType
from robot.api import logger

from pdrgate.gate.progress import Progress
from pdrgate.reports.console import trial_line


class RobotObserver:
    """An `Observer` that writes to the console, where people wait, and to the log, where they look things up."""

    def said(self, sentence: str) -> None:
        logger.info(sentence)
        logger.console(f"  {sentence}")

    def measured(self, progress: Progress) -> None:
        line = trial_line(progress)
        changes = progress.trial.counter_changes
        # Where packets were lost, and whether the hypervisor took the CPU meanwhile.
        telling = [
            f"{place}.{name} +{gain}"
            for place, gained in changes.items()
            for name, gain in gained.items()
            if "drop" in name or "steal" in name
        ]
        logger.info("  ".join([line, *telling]))
        logger.debug(progress.trial.to_json())
        logger.console(line)


def show_picture(png: bytes, name: str, folder: Path) -> None:
    """Put a PNG into the log, the results folder and Allure."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.png").write_bytes(png)
    data = base64.b64encode(png).decode()
    logger.info(f'<img alt="{name}" style="max-width:100%" src="data:image/png;base64,{data}">', html=True)
    allure.attach(png, name=name, attachment_type=AttachmentType.PNG)


def show_html(fragment: str) -> None:
    """Put a piece of HTML into the log."""
    logger.info(fragment, html=True)

"""Robot's output.xml that a stranger may have written, before Robot makes pages of it.

A message, and what a test or a keyword has failed with, can be HTML there, which Robot puts into its pages as it is.
"""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import Any

from robot.api import ExecutionResult, SuiteVisitor
from robot.errors import DataError  # type: ignore[import-untyped]
from robot.utils import html_format  # type: ignore[import-untyped]

from pdrgate.reports.markup.harmless_html import is_harmless
from pdrgate.reports.markup.robot_text import robot_text

_HTML = "*HTML*"
"""Begin of what something has failed with, where that is HTML."""


def disarm(output: Path) -> None:
    """Have HTML in an output.xml that could harm its reader be text. What Robot cannot read stays as it is."""
    with contextlib.suppress(DataError):
        result = ExecutionResult(str(output))
        disarming = _Disarming()
        result.suite.visit(disarming)
        for message in result.errors.messages:
            disarming.visit_message(message)
        if disarming.found:
            result.save(str(output))


class _Disarming(SuiteVisitor):  # type: ignore[misc]  # it ships no types
    """Makes text of all HTML that is not harmless."""

    def __init__(self) -> None:
        self.found = False

    def start_suite(self, suite: Any) -> None:
        self._documented(suite)
        for name, value in suite.metadata.items():
            suite.metadata[name] = self._formatted(value)

    def start_test(self, test: Any) -> None:
        self._documented(test)
        self.start_body_item(test)

    def start_keyword(self, keyword: Any) -> None:
        self._documented(keyword)
        self.start_body_item(keyword)

    def start_body_item(self, item: Any) -> None:
        told = item.message
        while told.startswith(_HTML) and not is_harmless(told.removeprefix(_HTML)):
            told = told.removeprefix(_HTML).lstrip()
            item.message, self.found = told, True

    def visit_message(self, message: Any) -> None:
        if message.html and not is_harmless(message.message):
            message.html, self.found = False, True

    def _documented(self, item: Any) -> None:
        if item.doc:
            item.doc = self._formatted(item.doc)

    def _formatted(self, text: str) -> str:
        """A text in Robot's own format, or without any format."""
        if _is_harmless(text):
            return text
        self.found = True
        return robot_text(text)


@functools.lru_cache
def _is_harmless(text: str) -> bool:
    return is_harmless(html_format(text))

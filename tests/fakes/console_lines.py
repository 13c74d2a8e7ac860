"""The end of a run as the log of a CI has it."""

from __future__ import annotations

import io

from pdrgate.reports.console.ending import show_verdict
from pdrgate.reports.console.screen import Screen
from pdrgate.results.model import RunResult


def verdict_lines(result: RunResult) -> list[str]:
    """All lines, the verdict's first."""
    stream = io.StringIO()
    show_verdict(result, Screen(stream))
    return stream.getvalue().splitlines()

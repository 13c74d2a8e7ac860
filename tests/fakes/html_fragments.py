"""A scenario's tables as pages have them."""

from __future__ import annotations

from collections.abc import Iterator

from pdrgate.reports.pages.blocks import further_html, measurands_html, whole_html
from pdrgate.reports.words.scenario_tree import scenario_parts
from pdrgate.results.model import ScenarioResult


def fragments(scenario: ScenarioResult) -> Iterator[str]:
    """All tables: measurands with their changes, what they rest on, and of each build its loads and search bounds."""
    parts = list(scenario_parts(scenario))
    yield from (measurands_html(scenario), *whole_html(parts), *further_html(parts))

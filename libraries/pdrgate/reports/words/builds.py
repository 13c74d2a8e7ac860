"""What a scenario has of each build."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from pdrgate.results.model import ScenarioResult, SideResult

_Part = TypeVar("_Part")


def of_builds(
    scenario: ScenarioResult, part: Callable[[ScenarioResult | SideResult], _Part | None]
) -> Iterator[tuple[str, _Part]]:
    """A part of each build that was compared, the baseline's first; that of the only one has no name. Empty parts are
    left out.

    Args:
        part: of a build that was compared, or of a scenario of one.
    """
    told: list[tuple[str, ScenarioResult | SideResult]] = [(side.side, side) for side in scenario.sides]
    for label, one in told or [("", scenario)]:
        if found := part(one):
            yield label, found

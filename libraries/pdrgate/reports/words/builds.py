"""What a scenario has of each build."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from pdrgate.results.model import ScenarioResult, SideResult

_Part = TypeVar("_Part")


def lines_by_build(
    scenario: ScenarioResult,
    part: Callable[[ScenarioResult | SideResult], _Part | None],
    told: Callable[[_Part], Iterable[str]],
) -> list[str]:
    """Lines on a part of each build, behind the build's name where two were compared."""
    return [f"{label}: {line}" if label else line for label, found in of_builds(scenario, part) for line in told(found)]


def kernel_release(build: ScenarioResult | SideResult) -> str:
    """The release of a build's kernel; empty where nobody knows."""
    known = build.findings
    return str(known.environment.get("kernel_release") or known.fingerprint.get("kernel") or "")


def of_builds(
    scenario: ScenarioResult, part: Callable[[ScenarioResult | SideResult], _Part | None]
) -> Iterator[tuple[str, _Part]]:
    """A part of each build that was compared, the baseline's first; that of the only one has no name. Empty parts are
    left out.

    Args:
        part: of a build that was compared, or of a scenario of one.
    """
    told: list[tuple[str, ScenarioResult | SideResult]] = [(side.side, side) for side in scenario.builds.sides]
    for label, one in told or [("", scenario)]:
        if found := part(one):
            yield label, found

"""What SUTs were, of several at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pdrgate.results.model import ScenarioResult


def in_common(scenarios: Iterable[ScenarioResult]) -> dict[str, Any]:
    """The entries in which all SUTs of these scenarios are equal; of none that is not known.

    Two builds are two SUTs: the kernel of one is not in it.
    """
    found = [one for scenario in scenarios for one in _environments(scenario) if one]
    first = found[0] if found else {}
    return {name: value for name, value in first.items() if all(one.get(name) == value for one in found)}


def _environments(scenario: ScenarioResult) -> list[Mapping[str, Any]]:
    """Environments of both builds where two were compared: that of the scenario is the candidate's then."""
    return (
        [side.findings.environment for side in scenario.builds.sides]
        if scenario.builds.sides
        else [scenario.findings.environment]
    )

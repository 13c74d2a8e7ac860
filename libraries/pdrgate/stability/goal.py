"""The loss ratio that a PDR was measured for, parsed from the name of its scenario."""

from __future__ import annotations

import re

from pdrgate.stability.throughput_increase import DEFAULT_PLR_THRESHOLD

_WORD = re.compile(r"-loss(\d[\d.]*(?:e-\d+)?)(?=-|$)")


def goal_of(scenario: str) -> float:
    """The goal of a scenario by its name, which `pdrgate.gate.run.scenario` makes: the usual one is not in it."""
    found = _WORD.search(scenario)
    return float(found[1]) / 100 if found else DEFAULT_PLR_THRESHOLD


def without_goal(scenario: str) -> str:
    """The rest of the name: what was measured, whatever was asked of it."""
    return _WORD.sub("", scenario)

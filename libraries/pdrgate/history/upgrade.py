"""Results of older schema versions as this one has them, before anything is checked.

What an older version did not write stays out: its results have no losses of single repeats, and no changes of
measurands but the PDR's. Numbers keep the names under which that version told them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pdrgate.results.model import SCHEMA

OLDEST = 1
"""The oldest schema version that is read."""


def upgraded_result(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The decoded result.json of any known schema version as one of this version.

    Raises:
        KeyError, TypeError, AttributeError, ValueError, IndexError: it is not shaped as its own version says.
    """
    if content["schema"] == 1:
        scenarios = [_scenario(entry, content["environment"]) for entry in content["scenarios"]]
        return {**content, "schema": SCHEMA, "scenarios": scenarios}
    return content


def _scenario(entry: Mapping[str, Any], environment: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario of schema 1: one PDR (by the throughput in saturation, per repeat or per boot), and no measurands.

    Args:
        environment: of the run, which is that of its first SUT: of two builds the baseline.
    """
    found = {key: value for key, value in entry.items() if key not in ("pdr", "baseline_pdr", "builds", "boots")}
    pdr = _pdr(entry.get("pdr"))
    found["pdr"] = pdr and {"load": pdr["value"], "lower": pdr["lower"], "upper": pdr["upper"]}
    found["measurands"] = [pdr] if pdr else []
    comparison = entry.get("comparison")
    found["comparison"] = comparison and {"confidence": 0.95} | comparison
    boots = entry.get("boots", [])
    if comparison and boots:
        found["comparison"]["pairs"] = max((boot["pair"] for boot in boots if boot["pdr"] is not None), default=0)
    found["boots"] = [
        {**boot, "values": {} if boot["pdr"] is None else {"PDR": boot["pdr"]}}
        for boot in boots
    ]  # fmt: skip
    found["sides"] = _sides(entry, pdr)
    if not found["sides"]:
        found["environment"] = environment
    return found


def _sides(entry: Mapping[str, Any], pdr: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The sides of a scenario of schema 1. It kept the PDR of the baseline; all that stands in the scenario is the
    candidate's."""
    builds = entry.get("builds")
    if not builds:
        return []
    base = _pdr(entry.get("baseline_pdr"))
    return [
        {"side": "baseline", "build": builds["baseline"], "measurands": [base] if base else []},
        {
            "side": "candidate",
            "build": builds["candidate"],
            "fingerprint": entry["fingerprint"],
            "measurands": [pdr] if pdr else [],
        },
    ]


def _pdr(told: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The measurand that schema 1 called the PDR."""
    if not told or told["load"] is None:
        return None
    return {
        "name": "PDR",
        "unit": "pps",
        "better": "higher",
        "value": told["load"],
        "lower": told["lower"],
        "upper": told["upper"],
        "samples": told.get("per_run", []),
    }

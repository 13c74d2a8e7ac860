"""Keys of a scenario's file that are fields of `Scenario`, and what one run changes of a path by them (``--set``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pdrgate.data_paths.catalogue import DATA_PATHS
from pdrgate.gate.run.scenario import SCENARIO_KEYS, Scenario
from pdrgate.traffic.chosen.traffic_words import chosen_traffic
from pdrgate.values.errors import UsageError

_TRAFFIC = "traffic"


def scenario_values(content: Mapping[str, Any], beside: Path = Path()) -> dict[str, Any]:
    """The fields that keys give a scenario; capture files lie in the folder ``beside``. Raises UsageError."""
    words = content.get(_TRAFFIC)
    found = {
        name: one.value("" if content[name] is None else content[name])
        for name, one in SCENARIO_KEYS.items()
        if name in content.keys() - {_TRAFFIC}
    }
    if words:
        found[_TRAFFIC] = chosen_traffic([words] if isinstance(words, str) else map(str, words), beside)
    return found


def with_changes(scenario: Scenario, changes: Sequence[str]) -> tuple[Scenario, dict[str, UsageError]]:
    """The scenario with those of the changes (``KEY=VALUE``) that it can have, and why it cannot have the others."""
    misfits: dict[str, UsageError] = {}
    for change in changes:
        key, _, text = change.partition("=")
        try:
            scenario = replace(scenario, **scenario_values({key: text}))
        except UsageError as error:
            misfits[change] = UsageError(f"{key}: {str(error).removeprefix(f'{key}: ')}")
    return scenario, misfits


def changed(scenarios: Sequence[Scenario], changes: Sequence[str]) -> list[Scenario]:
    """The scenarios, each with the changes that it can have. Raises UsageError for a change that none can have."""
    found = [with_changes(one, changes) for one in scenarios]
    for change in changes:
        if found and all(change in misfits for _, misfits in found):
            raise found[-1][1][change]
    return [scenario for scenario, _ in found]


def check_changes(changes: Sequence[str]) -> None:
    """Raises UsageError where neither a path that is routed nor one that ends at the SUT can have a change."""
    ends_at_sut = next(name for name, one in DATA_PATHS.items() if one.delivers)
    changed((Scenario(), Scenario(data_path=ends_at_sut)), changes)

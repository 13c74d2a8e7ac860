"""One reader of what a run is asked for by name: ``--set``, testbed files, scenario files, and `Open Testbed`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pdrgate.gate.run.declaration import KEYS, By, Declaration, declarations
from pdrgate.gate.run.options import Options, RunOptions
from pdrgate.gate.run.scenario import SCENARIO_KEYS
from pdrgate.gate.run.scenario_keys import check_changes
from pdrgate.testbeds import TestbedConfig
from pdrgate.values.errors import UsageError


def keys(by: By = KEYS, options: type[Options] = RunOptions) -> Mapping[str, Declaration]:
    """What may stand in one of these places, by its name; an option hides a scenario's key of the same name."""
    known = {name: one for name, one in declarations(options).items() if one.said.by & by}
    return (dict(SCENARIO_KEYS) if By.PATH in by else {}) | known


def read_settings(
    given: Iterable[tuple[str, Any]], known: Mapping[str, Declaration], what: str = "key"
) -> dict[str, Any]:
    """The values of options by the names of their fields, typed; what paths are changed by is in ``changes``.

    Args:
        given: names with values. One that may be repeated gets all of its values, any other its last one.
        what: the word for a name that there is not.

    Raises:
        UsageError: a name is unknown, or a value is none of its type; the sentence names those that there are.
    """
    found, changes = dict[str, Any](), list[str]()
    for given_name, value in given:
        name = given_name.replace("-", "_")
        if name not in known:
            near = difflib.get_close_matches(name.lower(), known, 2, 0.7)
            meant = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
            raise UsageError(f"{given_name}: there is no such {what}; {meant}")
        if name == "changes":
            found |= read_settings(named_values([value] if isinstance(value, str) else value), known)
            changes += found.pop(name, ())
        elif known[name] is SCENARIO_KEYS.get(name):
            changes.append(f"{name}={value}")
        elif known[name].many:
            found[name] = found.get(name, ()) + known[name].value(value)
        else:
            found[name] = known[name].value(value)
    if changes:
        check_changes(changes)
        found["changes"] = tuple(changes)
    return found


def named_values(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The names and values of ``--set``. Raises UsageError for a text without both."""
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise UsageError(f"{text}: write KEY=VALUE, such as boots=12")
        yield name, value


def settings_of_testbed(config: TestbedConfig, options: type[Options] = RunOptions) -> dict[str, Any]:
    """What a testbed's file says of its runs. Raises UsageError, which names the file, for what is no such key."""
    try:
        found = read_settings(config.run.items(), keys(By.TESTBED))
    except UsageError as error:
        raise UsageError(f"{config.source}: run: {error}") from error
    return {name: value for name, value in found.items() if name in declarations(options)}

"""The paths of the portfolio: what their files say, by the gate's own keywords, without a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from robot.running import Keyword, ResourceFile, TestSuite, UserKeyword

from pdrgate.gate.run.scenario import Scenario
from pdrgate.keywords.describing import ScenarioKeywords
from pdrgate.keywords.state import State
from pdrgate.values.units import Duration, Ratio

ROOT = Path(__file__).parents[2]
RESOURCE = ResourceFile.from_file_system(ROOT / "resources/gate.resource")
FILES = {file.stem: file for file in sorted((ROOT / "robot/gate/portfolio").glob("*.robot")) if file.stem != "__init__"}
"""The file of each path, by its name."""
_BEGIN = ("Given ", "When ", "Then ", "And ", "But ")
_READ: Mapping[str, Callable[[str], Any]] = {"delay": Duration.parse, "loss": Ratio.parse, "anew": "True".__eq__}
"""What Robot makes of arguments that are no plain numbers or words."""
_PORTS = {"${IN}": "$IN", "${OUT}": "$OUT"}


def scenario_of_path(name: str) -> Scenario:
    """What a path's test describes, up to where it measures."""
    (test,) = TestSuite.from_file_system(FILES[name]).all_tests
    own = list(test.parent.resource.keywords)
    values: dict[str, str] = {}
    for one in test.parent.resource.variables:
        values[one.name] = _told(one.value[0], values)
    state = State()
    keywords = ScenarioKeywords(state)
    for call in test.body:
        _describe(call.name, tuple(_told(str(one), values) for one in call.args), own, keywords)
    return state.test.scenario


def _describe(name: str, arguments: tuple[str, ...], own: list[UserKeyword], keywords: ScenarioKeywords) -> None:
    name = next((name.removeprefix(word) for word in _BEGIN if name.startswith(word)), name)
    known = [one for one in (*own, *RESOURCE.keywords) if one.name == name or one.matches(name)]
    found = max(known, key=lambda one: len(one.name), default=None)
    if found is not None:
        variables = dict(_variables(found, name, arguments)) | _PORTS
        for call in found.body:
            if isinstance(call, Keyword):
                _describe(_told(call.name, variables), tuple(_several(call.args, variables)), own, keywords)
        return
    if (method := _methods(keywords).get(name)) is not None:
        asked = signature(method).parameters
        named = [one for one in arguments if one.partition("=")[0] in asked]
        more = {key: _READ.get(key, _value)(value) for key, _, value in (one.partition("=") for one in named)}
        method(*(_value(one) for one in arguments if one not in named), **more)


def _methods(keywords: ScenarioKeywords) -> Mapping[str, Callable[..., None]]:
    """Keywords that describe, by their names."""
    found = {name: getattr(keywords, name) for name in dir(keywords) if not name.startswith("_")}
    return {
        one.robot_name or name.replace("_", " ").title(): one
        for name, one in found.items()
        if hasattr(one, "robot_name")
    }


def _value(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _variables(keyword: UserKeyword, name: str, arguments: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    asked, embedded = keyword.args, keyword.embedded
    given = dict(one.split("=", 1) for one in arguments if one.partition("=")[0] in asked.positional)
    rest = [one for one in arguments if one.partition("=")[0] not in asked.positional]
    within = dict(zip(embedded.args, embedded.parse_args(name), strict=True)) if embedded else {}
    for one, value in {**asked.defaults, **dict(zip(asked.positional, rest, strict=False)), **given, **within}.items():
        yield f"${{{one}}}", str(value)
    yield f"@{{{asked.var_positional}}}", rest[len(asked.positional) :]


def _told(text: str, variables: Mapping[str, Any]) -> str:
    for name, value in variables.items():
        if isinstance(value, str):
            text = text.replace(name, value).replace(name.replace("}", ".lower()}"), value.lower())
    return text


def _several(arguments: tuple[Any, ...], variables: Mapping[str, Any]) -> Iterator[str]:
    for one in map(str, arguments):
        if isinstance(variables.get(one), list):
            yield from variables[one]
        else:
            yield _told(one, variables)

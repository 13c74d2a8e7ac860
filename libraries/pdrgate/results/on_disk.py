"""A result as result.json has it: its scenarios and their sides are flat there, and in parts in the program.

`FileOfRun` is `RunResult` with flat scenarios. The file is checked against it, and its schema generated from it, so
that a message names a place as the file has it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import msgspec

from pdrgate.record.parts import parts_of
from pdrgate.results.model import RunResult, ScenarioResult, SideResult

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Kind = TypeVar("_Kind", bound="DataclassInstance")
_OF_A_SCENARIO = (
    "name", "title", "verdict", "reason", "test", "carried", "testbed", "boot", "fingerprint", "environment", "trials",
    "calibration", "search", "pdr", "measurands", "assessment", "comparison", "spike_in", "interference", "complaints",
    "sides", "boots", "cost", "memory", "several_cpus", "uncounted", "unmeasured", "latency", "soak", "losses", "drops",
    "arrivals", "frames", "transfers", "vectors", "acknowledged", "set_up", "run",
)  # fmt: skip
"""The order in which a scenario stands in the file, whatever part of it has a field."""


def _fields(kind: type[DataclassInstance]) -> dict[str, tuple[Any, dataclasses.Field[Any]]]:
    """The fields on disk, with their types: those of the parts in place of the parts."""
    hints, parts = get_type_hints(kind), parts_of(kind)
    found: dict[str, tuple[Any, dataclasses.Field[Any]]] = {}
    for one in dataclasses.fields(kind):
        found |= _fields(parts[one.name]) if one.name in parts else {one.name: (hints[one.name], one)}
    return found


def _flat(kind: type[DataclassInstance], order: tuple[str, ...] = (), **types: Any) -> Any:
    """The class of the same name, with all fields in itself.

    Args:
        order: of its fields; as they are found where there is none.
        types: of fields that hold what is flat as well.
    """
    found = _fields(kind)
    assert not order or found.keys() == set(order)
    fields = [
        (name, types.get(name, found[name][0]), dataclasses.field(
            default=found[name][1].default, default_factory=found[name][1].default_factory
        ))
        for name in order or found
    ]  # fmt: skip
    return dataclasses.make_dataclass(
        kind.__name__, fields, namespace={"__doc__": kind.__doc__}, frozen=True, slots=True, kw_only=True
    )


def _several(kind: Any) -> Any:
    return tuple[kind, ...]


FileOfRun = _flat(
    RunResult,
    scenarios=_several(_flat(ScenarioResult, _OF_A_SCENARIO, sides=_several(_flat(SideResult)))),
)


def from_disk(content: Mapping[str, Any]) -> RunResult:
    """The result in a decoded file. Raises msgspec.ValidationError, with a place in the file."""
    run = msgspec.convert(content, FileOfRun)
    return _made(RunResult, run, scenarios=tuple(_scenario(one) for one in run.scenarios))


def to_disk(result: RunResult, plain: Callable[[Any], Any]) -> dict[str, Any]:
    """The inverse of `from_disk`, in what JSON has; ``plain`` makes that of other values."""
    found: dict[str, Any] = msgspec.to_builtins(result, enc_hook=plain)
    found["scenarios"] = [_scenario_to_disk(one) for one in found["scenarios"]]
    return found


def _scenario(flat: Any) -> ScenarioResult:
    return _made(ScenarioResult, flat, sides=tuple(_made(SideResult, one) for one in flat.sides))


def _made(kind: type[_Kind], flat: Any, **instead: Any) -> _Kind:
    """A value in parts of one that is flat."""
    parts = parts_of(kind)
    return kind(
        **{
            one.name: _made(parts[one.name], flat, **instead)
            if one.name in parts
            else instead.get(one.name, getattr(flat, one.name))
            for one in dataclasses.fields(kind)
        }
    )


def _scenario_to_disk(record: Mapping[str, Any]) -> dict[str, Any]:
    flat = _without_parts(record, ScenarioResult)
    flat["sides"] = [_without_parts(one, SideResult) for one in flat["sides"]]
    return {name: flat[name] for name in _OF_A_SCENARIO}


def _without_parts(record: Mapping[str, Any], kind: type[DataclassInstance]) -> dict[str, Any]:
    parts, found = parts_of(kind), dict[str, Any]()
    for name, value in record.items():
        found |= value if name in parts else {name: value}
    return found

"""Values in parts: what belongs together is a value of its own in the program, and stands flat on disk."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class FlatPart:
    """A part of a value, whose fields stand beside the value's own on disk."""

    __slots__ = ()


def flattened(value: Any) -> dict[str, Any]:
    """A value by the names that it has on disk."""
    found: dict[str, Any] = {}
    for one in dataclasses.fields(value):
        inner: Any = getattr(value, one.name)
        found |= flattened(inner) if isinstance(inner, FlatPart) else {one.name: inner}
    return found


@cache
def parts_of(kind: type[DataclassInstance]) -> dict[str, type[Any]]:
    """The parts of a kind of value, by the names of its fields."""
    hints = get_type_hints(kind)
    named = {one.name: hints[one.name] for one in dataclasses.fields(kind)}
    return {name: hint for name, hint in named.items() if isinstance(hint, type) and issubclass(hint, FlatPart)}

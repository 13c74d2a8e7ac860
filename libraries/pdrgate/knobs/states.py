"""Text of settings with several parts: words such as ``rx=512 tx=512``."""

from __future__ import annotations

from collections.abc import Mapping


def parse_state(text: str) -> dict[str, str]:
    """The parts of a state, by name. Raises ValueError when a word is none."""
    parts = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise ValueError(f"{word!r} is no part of a state; it must read name=value")
        parts[name] = value
    return parts


def state_text(parts: Mapping[str, str]) -> str:
    """The words for some parts, in their order."""
    return " ".join(f"{name}={value}" for name, value in parts.items())


def includes(actual: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether every part that is wanted is there, and is so."""
    return all(actual.get(name) == value for name, value in wanted.items())


def mixture(actual: Mapping[str, str], old: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether each part is as it was or as wanted: what is left when a change was stopped in its middle."""
    return all(value in (old.get(name), wanted.get(name)) for name, value in actual.items())

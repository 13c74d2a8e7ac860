"""Differences of two builds beside their change: what results store of them, and the words for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

_NAMED = 4
"""Differences of a kind that a line beside the verdict names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildDifference:
    """An option, mitigation or property of the CPU in which two builds differ."""

    kind: str
    """``hardening``, ``mitigations``, ``debugging``, ``scheduling`` and so on."""
    name: str
    baseline: str
    """``n`` of an option that is not set."""
    candidate: str
    why: str
    """What a packet pays for it."""
    weighty: bool
    """Whether it is no property of the change, and alone can make a build faster: no IMPROVEMENT is claimed then."""


def differences_in_words(found: Iterable[BuildDifference], named: int = _NAMED) -> str:
    """``hardening (INIT_ON_ALLOC_DEFAULT_ON n, was y), scheduling (HZ 1000, was 250)``; ``named`` of each kind."""
    clauses = []
    for kind, group in groupby(found, key=lambda one: one.kind):
        each = [f"{one.name} {one.candidate}, was {one.baseline}" for one in group]
        more = [f"{len(each) - named} more"] if len(each) > named else []
        clauses.append(f"{kind} ({'; '.join([*each[:named], *more])})")
    return ", ".join(clauses)


def unknown_in_words(sides: Sequence[str]) -> str:
    """``the baseline's configuration is not known``; empty where both are."""
    if not sides:
        return ""
    whose = "the configuration of neither build" if len(sides) > 1 else f"the {sides[0]}'s configuration"
    return f"{whose} is {'' if len(sides) > 1 else 'not '}known, and whether hardening differs is not known"

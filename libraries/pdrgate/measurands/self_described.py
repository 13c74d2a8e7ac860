"""The base of measurands: the names of their description, and no rule but the test of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from pdrgate.measurands.description import Description, TolerancesAsked
from pdrgate.results.model import Better, ChangeResult, Findings

Values = Mapping[str, Sequence[float]]
"""Values of each boot, by measurand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSeen:
    """What is known of one build of two."""

    values: Values = field(default_factory=dict)
    """Values of its boots; 0 for a boot that has none."""
    findings: Findings = field(default_factory=Findings)


class SelfDescribed:
    """Gives a class of measurands what its description says, under the names that results ask for."""

    about: ClassVar[Description]
    name: ClassVar[str]
    unit: ClassVar[str]
    better: ClassVar[Better]

    def __init_subclass__(cls) -> None:
        if "about" in vars(cls):
            cls.name, cls.unit, cls.better = cls.about.name, cls.about.unit, cls.about.better

    @classmethod
    def of(cls, setting: Any) -> Self | None:
        """The measurand of a setting; None where it is not measured in it. One without fields is measured in each."""
        return cls()

    @classmethod
    def changed(cls, baseline: BuildSeen, candidate: BuildSeen, asked: TolerancesAsked) -> ChangeResult | None:
        """The change by a rule of its own; None where there is none, and where a test of pairs judges it."""
        return None


class AsksNothing(SelfDescribed):
    """A measurand of trials that other measurands ask for."""

    def next(self, measured: Sequence[object]) -> None:
        return None


class OnRequest(AsksNothing):
    """A measurand that no setting has: who makes its trials asks for it."""

    @classmethod
    def of(cls, setting: Any) -> None:
        return None

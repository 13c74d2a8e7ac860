"""The contract of a measurand, which is a pure function of trials.

A *replicate* is what gives one sample of each measurand: a repeat within a boot, or a boot. Measurands look at the
trials of a replicate so far and say which one they want next; so two SUTs can be measured in turn, and a run that was
killed goes on where it stood.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

from pdrgate.measurands.description import Description, TolerancesAsked
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import Better, ChangeResult, Findings

LATENCY = (Phase.LATENCY_50, Phase.LATENCY_90, Phase.LATENCY_99)
"""The phases of trials with latency probes, by percent of the PDR."""

REPORT_ONLY_IN = 2
"""Replicates, from the first on, in which report-only measurands are measured."""
PAST_TRIALS = 3, 3
"""Trials of a replicate at each load where receivers surely starve, where they do, and at each beyond."""
_COUNTED = frozenset((Phase.SATURATION, Phase.COST, Phase.IDLE, Phase.REPLACEMENT))

_OF_REPLICATES = _COUNTED | {Phase.REPEAT, Phase.REST, Phase.PDR, Phase.PAST, Phase.OVERLOAD, Phase.MEMORY, *LATENCY}


@dataclass(frozen=True, slots=True)
class Ask:
    """A trial that is wanted: packets/s, or of a closed loop a window, seconds, and why."""

    load: float
    duration: float
    phase: Phase
    window: int = 0
    """Bytes that a receiver of a closed loop advertises to each stream."""
    rate: float = 0.0
    """Bits/s that a sender of a closed loop holds itself back to; 0: as fast as it goes."""

    @classmethod
    def of_window(cls, window: int, duration: float, phase: Phase, rate: float = 0.0) -> Self:
        """A trial of a closed loop."""
        return cls(0.0, duration, phase, window, rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the replicates of a scenario have in common, from which each measurand chooses its trials."""

    loads: tuple[float, ...]
    """Loads of the load-loss curve, packets/s."""
    duration: float
    """Seconds of a trial."""
    loss_ratio: float
    """The loss ratio that a load may have and still hold."""
    width: float
    """Relative, of the interval that a PDR is enclosed in."""
    top_trials: int
    """Trials at the highest load of the curve."""
    expected: float = 0.0
    """The PDR that other replicates came to, packets/s; 0: none is known."""
    past: tuple[float, ...] = ()
    """Loads between the PDR and the highest of the curve, where programs of the SUT receive the packets."""
    past_trials: tuple[int, int] = PAST_TRIALS
    """Trials at each of the two lowest of these loads, and at each of the others."""
    overloads: tuple[float, ...] = ()
    """Loads far beyond saturation, rising, where they are asked for."""
    latency: bool = False
    """Whether latency is asked for."""
    paths: bool = False
    """Whether trials can follow calls, and so record who calls whom."""
    memory: bool = False
    """Whether memory trials can be made: what functions of the kernel touch is recorded."""


class ReplicateStep(Protocol):
    """Part of a replicate."""

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        """What to measure next, given the replicate's trials so far; None when nothing more is needed."""


Values = Mapping[str, Sequence[float]]
"""Values of each boot, by measurand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSeen:
    """What is known of one build of two."""

    values: Values = field(default_factory=dict)
    """Values of its boots; 0 for a boot that has none."""
    findings: Findings = field(default_factory=Findings)


class Measurand:
    """A step that comes to a number, and says everything of itself, for all of its class.

    It asks for no trial, is measured in each setting and has no rule but the test of pairs, unless it says otherwise.
    """

    about: ClassVar[Description]
    name: ClassVar[str]
    """Its name in results, reports and options, by its description; as are the two below."""
    unit: ClassVar[str]
    better: ClassVar[Better]

    def __init_subclass__(cls) -> None:
        if "about" in vars(cls):
            cls.name, cls.unit, cls.better = cls.about.name, cls.about.unit, cls.about.better

    @classmethod
    def of(cls, setting: Any) -> Self | None:
        """The measurand of a setting; None where it is not measured in it."""
        return cls()

    @classmethod
    def changed(cls, baseline: BuildSeen, candidate: BuildSeen, asked: TolerancesAsked) -> ChangeResult | None:
        """The change by a rule of its own; None where there is none, and where a test of pairs judges it.

        Args:
            asked: the tolerances that a run asks for.
        """
        return None

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        """What to measure next, as of any step; None where other measurands ask for its trials."""
        return None

    def value(self, trials: Sequence[Trial]) -> float | None:
        """The sample that a replicate's trials come to, in `unit`; None when they come to none."""
        raise NotImplementedError


class OnRequest(Measurand):
    """A measurand that no setting has: who makes its trials asks for it."""

    @classmethod
    def of(cls, setting: Any) -> None:
        return None


def values_of(measurands: Iterable[Measurand], trials: Sequence[Trial]) -> dict[str, float]:
    """The samples that a replicate's trials come to, by measurand, of those that it has."""
    values = ((one.name, one.value(trials)) for one in measurands)
    return {name: value for name, value in values if value is not None}


def is_counted(phase: Phase, replicate: int) -> bool:
    """Whether a trial keeps what each function of the SUT's kernel executed, where that is counted: ten times as much
    as all else of it."""
    return phase in _COUNTED or (phase in LATENCY and replicate <= REPORT_ONLY_IN)


def replicate_of(trials: Iterable[Trial]) -> dict[tuple[str, int, int], list[Trial]]:
    """The trials of replicates, by boot, pair and repeat, in measured order; what belongs to none is left out."""
    found: dict[tuple[str, int, int], list[Trial]] = {}
    for trial in trials:
        if trial.occasion.phase in _OF_REPLICATES and (trial.belonging.pair or trial.occasion.repeat):
            found.setdefault((trial.belonging.boot, trial.belonging.pair, trial.occasion.repeat), []).append(trial)
    return found


def rounded(load: float) -> float:
    """A load in four digits: what people can read, and what is equal when it is asked for again."""
    return float(f"{load:.4g}")

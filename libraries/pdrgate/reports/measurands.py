"""The measurands of a scenario in words: what was measured, and how it changed, a row each for all reports."""

from __future__ import annotations

from dataclasses import dataclass

from pdrgate.results.model import ChangeResult, MeasurandResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.units import Rate

PDR = "PDR"


@dataclass(frozen=True, slots=True)
class MeasurandRow:
    """One measurand, all in words; what is not known is empty."""

    name: str
    value: str
    interval: str
    baseline: str
    change: str
    """With its interval."""
    confidence: str
    """Of the change's interval."""
    verdict: Verdict | None
    """Of this measurand alone."""


def measurand_rows(scenario: ScenarioResult) -> list[MeasurandRow]:
    """A row per measurand, the PDR first; what is the candidate's where builds were compared."""
    changes = {change.measurand: change for change in _changes(scenario)}
    base = scenario.side("baseline")
    bases = {one.name: _number(one.value, one.unit) for one in (base.measurands if base else ())}
    bases |= {name: _number(change.baseline, change.unit) for name, change in changes.items()}
    measured = {one.name: one for one in _measurands(scenario)}
    names = sorted({**measured, **bases, **changes}, key=lambda name: name != PDR)  # else as they were measured
    return [_row(name, measured.get(name), bases.get(name, ""), changes.get(name), scenario) for name in names]


def in_words(value: float, unit: str) -> str:
    """A value with its unit, packets/s as 1.2 Mpps."""
    return str(Rate(value)) if unit in ("packets/s", "pps") else f"{value:.4g} {unit}".rstrip()


def _number(value: float, unit: str) -> str:
    """Beside a value that has its unit: a rate's prefix is part of the number, a longer unit is not said again."""
    return in_words(value, unit if unit in ("packets/s", "pps") else "")


def _measurands(scenario: ScenarioResult) -> list[MeasurandResult]:
    pdr, others = scenario.pdr, [one for one in scenario.measurands if one.name != PDR]
    if pdr is None:
        return others
    return [
        MeasurandResult(name=PDR, unit="pps", better="higher", value=pdr.load, lower=pdr.lower, upper=pdr.upper),
        *others,
    ]


def _changes(scenario: ScenarioResult) -> tuple[ChangeResult, ...]:
    return scenario.comparison.changes if scenario.comparison else ()


def _row(
    name: str, one: MeasurandResult | None, baseline: str, change: ChangeResult | None, scenario: ScenarioResult
) -> MeasurandRow:
    comparison = scenario.comparison
    # Results of older versions tell the PDR's change only.
    told = change or (comparison if name == PDR else None)
    value = interval = ""
    if one is not None:
        value = in_words(one.value, one.unit)
        if one.lower is not None and one.upper is not None:
            interval = f"{_number(one.lower, one.unit)} .. {_number(one.upper, one.unit)}"
    elif change is not None:
        value = in_words(change.candidate, change.unit)
    return MeasurandRow(
        name=name,
        value=value,
        interval=interval,
        baseline=baseline,
        change=f"{told.change:+.1%} ({told.lower:+.1%} to {told.upper:+.1%})" if told else "",
        confidence=f"{100 * told.confidence:.4g} %" if told else "",
        verdict=change.verdict if change else None,
    )

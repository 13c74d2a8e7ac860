"""The measurands of a scenario in words: what was measured, and how it changed, a row each for all reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pdrgate.gate.verdicts.change_verdict import CHANGE_CONFIDENCE as _TOGETHER
from pdrgate.gate.verdicts.change_verdict import odds
from pdrgate.measurands import (
    AT_THE_KNEE,
    PartialDropRate,
    SaturationThroughput,
    agree_at_the_knee,
    described,
    unit_of,
)
from pdrgate.measurands.functions.more_by_function import adds_up, limits_in_words, more_of, share_of, surely_more
from pdrgate.results.model import ChangeResult, ComparisonResult, MeasurandResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.units import Ratio, change_in_words

PDR_ABOUT = PartialDropRate.about
EVIDENCE = (
    "Evidence: how much likelier the pairs are of a build that is worse (better) by twice the tolerance than of one "
    "that is unchanged, or the reverse. Resolvable change: the least tolerance that as many such pairs decide"
)
_COUNTED = (
    "of what is counted by function, the least and the most by which trials of the two builds differ, summed over the "
    "functions that surely changed"
)
_FEWEST_SAMPLES = 2
"""Samples that show how a number scatters."""
_MARKS = {Verdict.PASS: "✓", Verdict.IMPROVEMENT: "✓", Verdict.INCONCLUSIVE: "?"}


@dataclass(frozen=True, slots=True)
class MeasurandLine:
    """A measurand in words; what is not known is empty."""

    name: str
    interval: str
    baseline: str
    change: str
    """The change with its interval."""
    confidence: str
    """The confidence of the change's interval."""
    verdict: Verdict | None
    """The verdict on this measurand alone."""
    evidence: str = ""
    """What pairs say of the change: ``over 1000 : 1 worse``."""
    resolves: str = ""
    """The least tolerance that as many such pairs decide."""
    number: str = ""
    """The value without its unit; that of a rate is part of it."""
    unit: str = ""
    """The unit of both numbers, where it is no part of them."""
    where: str = ""
    """The functions that the change is in, and its tolerance, where they are known."""
    why: str = ""
    """Why the change has no verdict, in a short clause."""
    scatter: str = ""
    """The least and the most of its samples; empty of a single one."""
    base_scatter: str = ""
    """The least and the most of the baseline's samples; empty of a single one."""

    @property
    def word(self) -> str:
        """The verdict as a mark and a word; empty where nothing was compared."""
        return verdict_in_words(self.verdict) if self.verdict is not None else ""

    @property
    def title(self) -> str:
        """The name with its unit, without what both have: *shared lines (per packet)*."""
        rest = self.unit.removeprefix(self.name)
        unit = f"per {rest[1:]}" if rest.startswith("/") else self.unit
        return f"{self.name} ({unit})" if unit else self.name


def measurand_rows(scenario: ScenarioResult) -> list[MeasurandLine]:
    """A row per measurand, the PDR first; what is the candidate's where builds were compared."""
    comparison = scenario.comparison
    changes = {change.measurand: change for change in (comparison.changes if comparison else ())}
    base = scenario.builds.side("baseline")
    bases = {one.name: _number(one.value, one.unit) for one in (base.findings.measurands if base else ())}
    bases |= {name: _number(change.baseline, change.unit) for name, change in changes.items()}
    measured = {one.name: one for one in measurands_of(scenario)}
    scatters = [
        {one.name: _scatter(one) for one in found}
        for found in (measured.values(), base.findings.measurands if base else ())
    ]
    names = sorted(
        {**measured, **bases, **changes}, key=lambda name: name != PDR_ABOUT.name
    )  # else as they were measured
    return _told_once(
        [
            replace(
                _row(name, measured.get(name), bases.get(name, ""), changes.get(name)),
                scatter=scatters[0].get(name, ""),
                base_scatter=scatters[1].get(name, ""),
            )
            for name in names
        ],
        changes.values(),
    )


def change_rows(comparison: ComparisonResult) -> list[MeasurandLine]:
    """Rows of the changes of a comparison that no scenario holds."""
    rows = [_row(one.measurand, None, _number(one.baseline, one.unit), one) for one in comparison.changes]
    return _told_once(rows, comparison.changes)


def judged_first(rows: Sequence[MeasurandLine]) -> tuple[list[MeasurandLine], list[MeasurandLine]]:
    """The rows with a change, and the report-only rows; all are the former where nothing was compared.

    A report-only number is shown with its scatter, and not at all where that is unknown: of two equal builds it may be
    in one of two states in each.
    """
    changed = [row for row in rows if row.change]
    besides = [
        replace(row, number=row.scatter, baseline=row.base_scatter)
        for row in rows
        if not row.change and row.scatter and row.base_scatter
    ]
    return (changed, besides) if changed else (list(rows), [])


def verdict_in_words(verdict: Verdict) -> str:
    """``✗ REGRESSION``: what a reader without colours sees at once."""
    return f"{_MARKS.get(verdict, '✗')} {verdict}" if verdict is not Verdict.NO_BASELINE else "not judged"


def intervals_in_words(*comparisons: ComparisonResult | None) -> str:
    """What stands in brackets beside each change, in a sentence; empty where nothing does.

    Args:
        comparisons: those of a table; the first one's confidence is named.
    """
    each = [one.changes for one in comparisons if one is not None]
    by_statistics = _statistics_in_words(each[0]) if each else ""
    counted = any(one.parts and one.lower < one.upper for changes in each for one in changes)
    told = "; ".join(filter(None, (by_statistics, _COUNTED if counted else "")))
    return f"In brackets: {told}." if told else ""


def _statistics_in_words(changes: Sequence[ChangeResult]) -> str:
    found = {one.confidence for one in changes if one.confidence < 1.0}
    if not found:
        return ""
    each = min(found)
    if math.isclose(each, _TOGETHER):
        return "the 95 % interval of the change"
    together = round((1 - _TOGETHER) / (1 - each))
    all_ = "both" if together == 2 else f"all {together}"
    return f"the interval of the change, 95 % for {all_} comparisons together"


def _told_once(rows: Sequence[MeasurandLine], changes: Iterable[ChangeResult]) -> list[MeasurandLine]:
    """One row for PDR and saturation throughput where they agree."""
    if not agree_at_the_knee(changes):
        return list(rows)
    left = [one for one in rows if one.name != SaturationThroughput.name]
    return [replace(one, name=AT_THE_KNEE) if one.name == PDR_ABOUT.name else one for one in left]


def value_in_words(value: float, unit: str) -> str:
    """A value with its unit, packets/s as 1.2 Mpps."""
    return unit_of(unit).said(value)


def measurands_of(scenario: ScenarioResult) -> list[MeasurandResult]:
    """The measurands of a scenario, first the PDR with the scenario's own value."""
    others = [one for one in scenario.findings.measurands if one.name != PDR_ABOUT.name]
    if (pdr := scenario.pdr) is None:
        return others
    samples = next((one.samples for one in scenario.findings.measurands if one.name == PDR_ABOUT.name), ())
    first = MeasurandResult(
        name=PDR_ABOUT.name, unit=PDR_ABOUT.unit, better=PDR_ABOUT.better, value=pdr.load, lower=pdr.lower,
        upper=pdr.upper, samples=samples,
    )  # fmt: skip
    return [first, *others]


def _scatter(one: MeasurandResult) -> str:
    """``8.55 to 9.05``: the least and the most of the samples, one number where all read the same; empty of fewer than
    two."""
    if len(one.samples) < _FEWEST_SAMPLES:
        return ""
    return " to ".join(dict.fromkeys(_number(value, one.unit) for value in (min(one.samples), max(one.samples))))


def _number(value: float, unit: str) -> str:
    """A number beside a value that has its unit: a rate's prefix is part of it, a longer unit is not said again."""
    return unit_of(unit).number(value)


def _row(
    name: str,
    one: MeasurandResult | None,
    baseline: str,
    change: ChangeResult | None,
) -> MeasurandLine:
    number = interval = ""
    unit = unit_of(one.unit if one is not None else change.unit if change is not None else "")
    if one is not None and not (change and change.parts):
        number = _number(one.value, one.unit)
        if one.lower is not None and one.upper is not None:
            interval = f"{_number(one.lower, one.unit)} .. {_number(one.upper, one.unit)}"
    elif change is not None:
        number = _number(change.candidate, change.unit)
    return MeasurandLine(
        name=name,
        interval=interval,
        baseline=baseline,
        change=change_told(change) if change else "",
        where=_where(change),
        confidence=_confidence(change) if change else "",
        verdict=change.verdict if change else None,
        why=described(name, change.unit, change.better).not_judged(change) if change else "",
        evidence=_evidence(change),
        resolves=f"{change.evidence.resolves:.1%}" if change and change.evidence else "",
        number=number,
        unit="" if unit.quantity is not None else unit.name,
    )


def change_told(change: ChangeResult) -> str:
    """``-3.1% (-3.9% to -2.2%)``; ``+1.0 (+0.9 to +1.1)`` of what is counted by function: a packet may have had none
    of it, and no share of none is known. ``+2.2, by function +4.0 (+3.9 to +4.1)`` where these come to another number.
    """
    if change.parts:
        limits = limits_in_words(change)
        sure = "" if adds_up(change) else f", by function {surely_more(change):+z.1f}"
        return f"{more_told(change)}{sure}" + (f" ({limits})" if limits else "")
    return change_in_words(change.change, change.lower, change.upper)


def more_told(change: ChangeResult) -> str:
    """``+1.0``: how much more a packet has of what is counted by function."""
    return f"{more_of(change):+z.1f}"


def _confidence(change: ChangeResult) -> str:
    if change.parts:
        return "all trials"
    return f"{100 * change.confidence:.4g} %"


def _where(change: ChangeResult | None) -> str:
    """The functions that a change of what is counted by function is in, and its tolerance; empty for all else."""
    if change is None or not change.parts:
        return ""
    return f"{in_functions(change)}, tolerance {tolerance_told(change)}"


def in_functions(change: ChangeResult) -> str:
    """``in lookup and 1 more``: the functions that a change of what is counted by function is in; it has parts."""
    first = max(change.parts, key=lambda one: abs(one.change))
    return f"in {first.label}" + (f" and {len(change.parts) - 1} more" if len(change.parts) > 1 else "")


def tolerance_told(change: ChangeResult) -> str:
    """The tolerance in the words of the change. Counts of memory trials have a number, ``0.7 more``."""
    if not change.parts:
        return str(Ratio(change.tolerance))
    return f"{float(f'{change.tolerance * share_of(change.baseline):.2g}'):g} more"


def _evidence(change: ChangeResult | None) -> str:
    """Whether the pairs are likelier of a build that is unchanged, or of one worse (better) by twice the tolerance."""
    if change is None or change.evidence is None:
        return ""
    word, log_odds = "worse", change.evidence.slower
    if change.verdict is Verdict.IMPROVEMENT:
        word, log_odds = "better", change.evidence.faster
    return f"{odds(log_odds)} : 1 {word if log_odds > 0 else 'unchanged'}"

"""What stands after a run, and what of it is new: a change is news when it appears, when it goes and when its reason
changes, and on no other day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pdrgate.measurands import Cost, told_once
from pdrgate.replication.samples import gravest_change
from pdrgate.reports.words.headline import headline, scenario_headline
from pdrgate.results.model import ChangeResult, ComparisonResult, RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import EXIT_FAULT

FAULTY_TESTBED = ""
"""The name under which a fault of the testbed stands."""
_MOST = 0.5
"""A share of a change: a function with as much is its reason."""
_SAYS_NOTHING = (Verdict.INCONCLUSIVE,)
"""Verdicts that leave what stands as it is."""
_CLEAR = (Verdict.PASS, Verdict.NO_BASELINE)

NewsKind = Literal["new", "changed", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingChange:
    """A change that stands: on which path, what it is, and since when."""

    scenario: str
    """The scenario's name in results; `FAULTY_TESTBED` where the testbed is at fault."""
    path: str
    """Its name for people."""
    verdict: Verdict
    reason: str = ""
    """The measurand and the functions that it lies in; equal from run to run while the reason is the same."""
    size: float = 0.0
    """The relative change; 0 of what is no change of a number."""
    tolerance: float = 0.0
    """Difference of the size from which on it is another change."""
    sentence: str
    since: float
    """When the run began that it was first seen in, in seconds of the epoch."""

    def is_like(self, other: StandingChange) -> bool:
        """Whether both are the same change, seen twice."""
        same = (self.verdict, self.reason) == (other.verdict, other.reason)
        return same and abs(self.size - other.size) <= max(self.tolerance, other.tolerance)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewsItem:
    """One thing that has not been reported yet."""

    kind: NewsKind
    path: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What a run has that nobody knows yet, and all that stands after it."""

    headline: str
    run: str
    items: tuple[NewsItem, ...]
    standing: Mapping[str, StandingChange]
    """All that stands, by the name of the scenario."""


def news_of(result: RunResult, known: Mapping[str, StandingChange]) -> News:
    """What is new in a run.

    Args:
        known: what was reported last, by scenario.
    """
    each = (_standing(scenario, result.started) for scenario in result.scenarios)
    found = {one.scenario: one for one in each if one is not None}
    cleared = {one.name: one for one in result.scenarios if one.counts_as in _CLEAR}
    fault = _fault(result)
    if fault is not None:
        found[FAULTY_TESTBED] = fault
    standing, items = dict(known), list[NewsItem]()
    for name, one in found.items():
        was = known.get(name)
        if was is not None and one.is_like(was):
            continue  # the size that was reported stays the one to compare with, so that no creep goes unseen
        standing[name] = one
        kind: NewsKind = "new" if was is None else "changed"
        items.append(NewsItem(kind=kind, path=one.path, sentence=one.sentence))
    for name, was in known.items():
        if name in cleared:
            del standing[name]
            known_of = cleared[name].details.acknowledged
            why = f"acknowledged until {known_of[0].until}" if known_of else "as fast as before again"
            items.append(NewsItem(kind="gone", path=was.path, sentence=f"{why}; it was {was.sentence}"))
        elif name == FAULTY_TESTBED and fault is None and result.finished is not None:
            del standing[name]
            items.append(NewsItem(kind="gone", path=was.path, sentence=f"it measures again; it was {was.sentence}"))
    return News(headline=headline(result), run=result.run, items=tuple(items), standing=standing)


def _standing(scenario: ScenarioResult, since: float) -> StandingChange | None:
    verdict = scenario.counts_as
    if verdict in (*_CLEAR, *_SAYS_NOTHING) or verdict.exit_code == EXIT_FAULT:
        return None
    change = _change(scenario)
    return StandingChange(
        scenario=scenario.name,
        path=scenario.label,
        verdict=verdict,
        reason=_reason(scenario, change),
        size=change.change if change is not None else 0.0,
        tolerance=change.tolerance if change is not None else 0.0,
        sentence=scenario_headline(scenario),
        since=since,
    )


def _fault(result: RunResult) -> StandingChange | None:
    """A fault of testbed or tool, where there is one: that of the run, else the first of its paths."""
    if result.verdict.exit_code == EXIT_FAULT:
        verdict, sentence = result.verdict, headline(result)
    else:
        scenarios = (one for one in result.scenarios if one.verdict.exit_code == EXIT_FAULT)
        paths = (one for one in result.left_out if one.is_fault)
        faulty = [(one.verdict, scenario_headline(one)) for one in scenarios]
        faulty += [(Verdict.ERROR, f"{one.path} was not measured: {one.reason}") for one in paths]
        if not faulty:
            return None
        verdict, sentence = faulty[0]
    path = f"the testbed {result.testbed.name}".strip()
    return StandingChange(scenario=FAULTY_TESTBED, path=path, verdict=verdict, sentence=sentence, since=result.started)


def _change(scenario: ScenarioResult) -> ChangeResult | None:
    """The change that the verdict rests on."""
    changes = told_once(scenario.comparison.changes) if scenario.comparison is not None else ()
    own = [one for one in changes if one.verdict is scenario.verdict]
    return gravest_change(own) if own else None


def _reason(scenario: ScenarioResult, change: ChangeResult | None) -> str:
    if change is None or scenario.comparison is None:
        crash = next((boot.crash for boot in scenario.builds.boots if boot.crash is not None), None)
        return crash.fingerprint if crash is not None else ""
    whole = abs(change.candidate - change.baseline)
    functions = sorted(name for name, value in _parts(scenario.comparison, change) if value >= _MOST * whole > 0)
    return " ".join((change.measurand, *functions))


def _parts(comparison: ComparisonResult, change: ChangeResult) -> list[tuple[str, float]]:
    if change.parts:
        return [(one.label, abs(one.change)) for one in change.parts]
    if change.measurand != Cost.name:
        return []
    return [(one.label, abs(one.change)) for one in comparison.functions if one.sure]

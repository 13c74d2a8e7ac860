"""Which scenarios of a run are worse by no more than somebody has acknowledged.

An acknowledgement never hides a worse change than it names: what it covers is looked at by the far end of the interval,
and each change that the verdict rests on must be covered. Nothing but a change can be acknowledged, no crash and no
measurement that does not repeat.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pdrgate.results.acknowledgement import AcknowledgedPath, Acknowledgement, AcknowledgementState
from pdrgate.results.model import ChangeResult, ScenarioResult
from pdrgate.results.verdict import Verdict

_CAN_BE_ACKNOWLEDGED = (Verdict.REGRESSION, Verdict.INCONCLUSIVE)


def acknowledged(scenario: ScenarioResult, known: Iterable[Acknowledgement], day: datetime.date) -> ScenarioResult:
    """The scenario with the acknowledgements that cover it on this day; with none where they do not cover all of it."""
    holding = tuple(one for one in known if names(one, scenario) and not one.has_ended(day))
    return replace(scenario, details=replace(scenario.details, acknowledged=_covering(scenario, holding)))


def is_covered(scenario: ScenarioResult, day: datetime.date) -> bool:
    """Whether the acknowledgements that a stored scenario names cover it, by its own numbers."""
    own = scenario.details.acknowledged
    return bool(own) and acknowledged(scenario, own, day).details.acknowledged == own


def states(
    known: Iterable[Acknowledgement], scenarios: Sequence[ScenarioResult], day: datetime.date
) -> tuple[AcknowledgedPath, ...]:
    """What became of each acknowledgement, in their order."""
    return tuple(AcknowledgedPath(acknowledgement=one, state=_state(one, scenarios, day)) for one in known)


def names(one: Acknowledgement, scenario: ScenarioResult) -> bool:
    """Whether it is of this scenario."""
    return one.path in (scenario.origin.test, scenario.name, scenario.title)


def _state(one: Acknowledgement, scenarios: Sequence[ScenarioResult], day: datetime.date) -> AcknowledgementState:
    own = [scenario for scenario in scenarios if names(one, scenario)]
    if not own:
        return "not measured"
    worse = [scenario for scenario in own if not scenario.verdict.passes]
    if one.has_ended(day):
        return "ended" if worse else "not needed"
    if not worse:
        return "not needed"
    return "holds" if all(one in scenario.details.acknowledged for scenario in worse) else "exceeded"


def _covering(scenario: ScenarioResult, holding: Sequence[Acknowledgement]) -> tuple[Acknowledgement, ...]:
    comparison = scenario.comparison
    if comparison is None or not comparison.accepted or scenario.verdict not in _CAN_BE_ACKNOWLEDGED:
        return ()
    worse = [one for one in comparison.changes if one.verdict in _CAN_BE_ACKNOWLEDGED]
    found = {change.measurand: [one for one in holding if _covers(one, change)] for change in worse}
    if not worse or not all(found.values()):
        return ()
    return tuple(one for one in holding if any(one in covering for covering in found.values()))


def _covers(one: Acknowledgement, change: ChangeResult) -> bool:
    if one.measurand not in ("", change.measurand):
        return False
    loss = max((-change.change, -change.lower) if change.better == "higher" else (change.change, change.upper))
    return loss <= one.tolerance  # not so where it is no number

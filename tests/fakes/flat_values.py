"""Trials, transfers, scenarios and sides made and changed by the names that their fields have on disk."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from pdrgate.record.parts import FlatPart
from pdrgate.record.transfer import EndsCpu, Senders, Transfer
from pdrgate.record.trial import Trial
from pdrgate.results.model import ScenarioResult, Side, SideResult
from pdrgate.results.verdict import Verdict

AValue = TypeVar("AValue", Trial, ScenarioResult, SideResult)


def flat_trial(intended_load: float, intended_duration: float, offered: int, forwarded: int, **more: Any) -> Trial:
    return changed(Trial(intended_load, intended_duration, offered, forwarded), **more)


def flat_transfer(window: int, streams: int, congestion: str, intended_duration: float, **more: Any) -> Trial:
    """A trial of a closed loop, whose fields may be those of its senders and CPUs, too."""

    def taken(kind: type[Any]) -> dict[str, Any]:
        return {one.name: more.pop(one.name) for one in dataclasses.fields(kind) if one.name in more}

    senders, cpu = Senders(**taken(Senders)), EndsCpu(**taken(EndsCpu))
    moved = Transfer(window, streams, congestion, senders=senders, cpu=cpu, **taken(Transfer))
    return changed(Trial.of_transfer(moved, intended_duration), **more)


def flat_scenario(name: str, title: str, verdict: Verdict, reason: str, **more: Any) -> ScenarioResult:
    return changed(ScenarioResult(name=name, title=title, verdict=verdict, reason=reason), **more)


def flat_side(side: Side, build: str, **more: Any) -> SideResult:
    return changed(SideResult(side=side, build=build), **more)


def changed(value: AValue, **fields: Any) -> AValue:
    """The same with other fields, whatever part has them; a name that it does not have is an error."""
    for name in [one.name for one in dataclasses.fields(value)]:
        part: Any = fields.get(name, getattr(value, name))
        if isinstance(part, FlatPart):
            names = [one.name for one in dataclasses.fields(part)]  # type: ignore[arg-type]
            fields[name] = dataclasses.replace(part, **{own: fields.pop(own) for own in names if own in fields})  # type: ignore[type-var]
    return dataclasses.replace(value, **fields)

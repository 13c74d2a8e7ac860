"""Trials and transfers made and changed by the names of their fields on disk, whatever part of them has these."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from pdrgate.stretch import Belonging, FlatPart, Occasion, Seen
from pdrgate.transfer import EndsCpu, Senders, Transfer
from pdrgate.trial import Aside, Trial

_PARTS: dict[str, type[Any]] = {
    "aside": Aside, "senders": Senders, "cpu": EndsCpu, "seen": Seen, "belonging": Belonging, "occasion": Occasion,
}  # fmt: skip
AStretch = TypeVar("AStretch", Trial, Transfer)


def flat_trial(intended_load: float, intended_duration: float, offered: int, forwarded: int, **more: Any) -> Trial:
    return changed(Trial(intended_load, intended_duration, offered, forwarded), **more)


def flat_transfer(window: int, streams: int, congestion: str, intended_duration: float, **more: Any) -> Transfer:
    return changed(Transfer(window, streams, congestion, intended_duration), **more)


def changed(stretch: AStretch, **fields: Any) -> AStretch:
    """The same with other fields; a name that it does not have is an error."""
    for name in [one.name for one in dataclasses.fields(stretch)]:
        part = getattr(stretch, name)
        if isinstance(part, FlatPart):
            own = {one.name: fields.pop(one.name) for one in dataclasses.fields(_PARTS[name]) if one.name in fields}
            fields[name] = dataclasses.replace(fields.get(name, part), **own)
    return dataclasses.replace(stretch, **fields)

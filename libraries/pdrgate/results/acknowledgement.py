"""Changes for the worse that people know of and live with: how much of which path, why, until when, and who said so."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Literal

AcknowledgementState = Literal["holds", "exceeded", "ended", "not needed", "not measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A change for the worse of one path that does not fail a run, up to a size and a day."""

    path: str
    """The name of its test, or that of its scenario in results."""
    tolerance: float
    """The largest change that it names, relative; a change whose interval reaches further is not covered."""
    reason: str
    until: str
    """Its last day in UTC, such as 2027-01-31."""
    by: str
    """Who acknowledged the change."""
    measurand: str = ""
    """The only measurand that it covers; empty: each."""

    def has_ended(self, day: datetime.date) -> bool:
        """Whether its last day is before ``day``. A day that is none has ended."""
        try:
            return datetime.date.fromisoformat(self.until) < day
        except ValueError:
            return True


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgedPath:
    """What became of an acknowledgement in one run."""

    acknowledgement: Acknowledgement
    state: AcknowledgementState
    """``exceeded`` where the path is worse than it names; ``not needed`` where the path passes by itself."""


def day_of(moment: float) -> datetime.date:
    """The day in UTC of a moment in seconds of the epoch."""
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).date()

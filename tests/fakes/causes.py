"""What disturbed a trial, where a test says it."""

from __future__ import annotations

from pdrgate.record.cause import Cause, CauseKind


def because(words: str, kind: CauseKind = CauseKind.STOOD_STILL, part: float = 0.1) -> tuple[Cause, ...]:
    """That one cause; none where there are no words."""
    return (Cause(kind, part, words),) if words else ()

"""Patience with a machine that disturbs now and then: a trial that is not sound tells nothing of the SUT."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pdrgate.trial import Trial

Measure = Callable[[float, float], Trial]
"""Measures one trial, given a load in packets/s and a duration in seconds."""

RETRIES = 2
"""Times that a trial is measured again that was generator-limited or disturbed."""


def attempts(measure: Measure, load: float, duration: float) -> Iterator[Trial]:
    """The trials made for one load: one, or, while they are not sound, up to two more."""
    for _ in range(1 + RETRIES):
        trial = measure(load, duration)
        yield trial
        if trial.sound:
            return

"""The pairs of a run that is continued: which of its steps are taken over, with what was measured in their boots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pdrgate.gate.comparisons.pairs.comparison_task import Build
from pdrgate.gate.run.pairs_file import StoredStep
from pdrgate.gate.sut.fingerprinting import fingerprint_differences
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial, by_boot
from pdrgate.results.model import Side
from pdrgate.values.errors import DataError


def resumed_pairs(
    folder: Path,
    test: str,
    scenario: str,
    builds: Mapping[Side, Build],
    steps: Sequence[StoredStep],
    known: Sequence[Trial],
) -> list[Trial]:
    """What was measured in the boots of the whole pairs, which the comparison takes over.

    Args:
        folder: the run's, for the message.
        test: long name of the test that compares.
        steps: those of the run that is continued.
        known: all that was measured in that run.

    Raises:
        DataError: the steps are of other builds, or what a pair rests on is not there any more.
    """
    ours = _in_words(
        {side: build.label for side, build in builds.items()}, {side: build.identity for side, build in builds.items()}
    )
    for step in steps:
        # The builds' names need not show a difference.
        told = fingerprint_differences(_in_words(step.builds, step.identities), ours)
        if told:
            raise DataError(
                f"cannot resume {folder}: its pairs of {scenario} were measured otherwise ({'; '.join(told)}); start a "
                "new run"
            )
    # A boot that stays up answers several tests. Its idle trial belongs to the first of them, and counts for all.
    ours_of_all = [one for one in known if one.belonging.test == test or one.occasion.phase == Phase.IDLE]
    measured, boots = by_boot(ours_of_all), [boot for step in steps if not step.failed for boot in step.boots]
    for boot in boots:
        if all(one.occasion.phase == Phase.IDLE for one in measured.get(boot.boot, ())):
            raise DataError(
                f"cannot resume {folder}: what was measured in boot {boot.pair} of the "
                f"{boot.side} ({boot.boot}) is not there any more; start a new run"
            )
    return [one for boot in boots for one in measured[boot.boot]]


def _in_words(labels: Mapping[str, str], identities: Mapping[str, str]) -> dict[str, str]:
    """Builds by side, in words that hold their name and their content."""
    return {
        side: f"{label} with content {identities.get(side, '')[:12] or 'unknown'}" for side, label in labels.items()
    }

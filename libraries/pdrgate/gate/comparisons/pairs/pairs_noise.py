"""What a comparison takes from what is known of its testbed's noise, and what it leaves there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.verdicts.noise_floor import as_observed, check_resolvable, noise_floor, remember, resolvable_in_words
from pdrgate.record.trial import Trial, by_boot
from pdrgate.results.model import BootResult, Side, SideResult
from pdrgate.results.verdict import Verdict

_INFORMATIVE = frozenset({
    Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.ASSERTION_FAILED
})  # fmt: skip
"""Verdicts after which a comparison's pairs count as observations of how boots of its testbed deviate."""


def tell_resolvable(task: ComparisonTask, fingerprint: Mapping[str, str], tolerances: Mapping[str, float]) -> None:
    """Report the tolerance that the testbed resolves, and refuse a smaller one.

    Args:
        tolerances: by measurand.

    Raises:
        UsageError: a tolerance is below what so many pairs resolve at the testbed's noise.
    """
    session = task.session
    floor = noise_floor(session.experience, fingerprint, session.observer)
    if session.experience is not None:
        session.say_once(resolvable_in_words(floor, tolerances))
    if not session.options.below_noise:
        check_resolvable(floor, tolerances, task.plan.pairs)


def tells_of_noise(task: ComparisonTask, verdict: Verdict) -> bool:
    """Whether a comparison that ended in this verdict shows how boots of its testbed deviate.

    One that was disturbed does not. A build that flips shows its own scatter, unless it is the same on both sides.
    """
    one_build = len(set(task.labels.values())) == 1
    return verdict in _INFORMATIVE or (verdict is Verdict.UNSTABLE and one_build)


def remember_boots(
    task: ComparisonTask, boots: Sequence[BootResult], sides: Mapping[Side, SideResult], trials: Sequence[Trial]
) -> None:
    """Keep the values of all whole pairs as an observation of the testbed's noise.

    What their ratios deviate by does not depend on a true change, so each comparison is one.
    """
    whole = sorted((boot for boot in boots if not boot.failure), key=lambda boot: (boot.pair, boot.side))
    curves = by_boot(trials)
    seen = [
        as_observed(
            sides[boot.side].findings.fingerprint, boot.boot, boot.values, curves.get(boot.boot, ()),
            label=task.builds[boot.side].label, pair=boot.pair,
        )
        for boot in whole
    ]  # fmt: skip
    remember(task.session.experience, sides["candidate"].findings.fingerprint, seen, task.session.observer)

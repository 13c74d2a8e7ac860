"""Whether one pair is enough of a path, because what it shows was known before.

Two things vouch for a pair: what the base came to in earlier runs, and what the change costs on the paths of this run
that are judged by two pairs or more. A verdict needs the odds that it needs of two pairs, see
`pdrgate.replication.rule.PairsRule`. So nothing here makes a verdict: it keeps one pair from ending a comparison where
it shows something new.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.run.selection_file import code_key
from pdrgate.measurands import Cost
from pdrgate.measurands.functions.foretold_change import KnownCalls, foretold_change, known_calls
from pdrgate.measurands.functions.function_changes import function_changes
from pdrgate.replication import NoiseObservation
from pdrgate.results.fingerprint import build_digest, series
from pdrgate.results.model import CostResult, FunctionChange, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.stats.pooled import Deviation
from pdrgate.values.errors import PdrGateError

_FIRST = 3
"""Paths of a run that have two pairs, before one may be enough of a further one."""
_BOOTS = 2
"""Boots of a base in earlier runs, for its numbers to be known."""
_NOISE = 2.0
"""Deviations of pairs by which a pair may miss what is known beforehand."""
_SMALL = 0.001
"""The share of a packet's cost by which a function differs from boot to boot, though its trials hardly do; unless it is
called more or less often by:"""
_CALLS = 0.4
_INFORMATIVE = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)
UNCHANGED = frozenset((Verdict.PASS,))
FORETOLD = frozenset(_INFORMATIVE)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What is known of a path before its first pair."""

    calls: KnownCalls | None = None
    """What calls take on the paths of the run that are judged; None: too few are."""
    base: tuple[float, ...] = ()
    """What a packet cost in earlier boots of the base."""

    @property
    def possible(self) -> bool:
        """Whether one pair may be enough."""
        return self.calls is not None or len(self.base) >= _BOOTS

    def vouched(
        self, costs: tuple[CostResult | None, CostResult | None], values: tuple[float, float], known: Deviation
    ) -> frozenset[Verdict]:
        """The verdicts that a single pair may end the comparison with.

        What other paths foretell vouches for each verdict, where this path shows what is foretold of it. A base whose
        numbers hold vouches for a PASS, where no function surely changed.

        Args:
            costs: of a packet, by function, in the pair's boots of the baseline and of the candidate.
            values: the samples of the same boots, instructions for a packet.
            known: what pairs deviate by, as logs.
        """
        before, after = costs
        if before is None or after is None or not before.functions or min(before.instructions, *values) <= 0:
            return frozenset()
        functions = [one for one in function_changes(before, after) if one.sure and _matters(one, before.instructions)]
        noise = _NOISE * known.value
        if self.calls is not None:
            found = foretold_change(functions, self.calls)
            if found is None:
                return frozenset()
            low, high = (one / before.instructions for one in found)
            return FORETOLD if low - noise <= values[1] / values[0] - 1 <= high + noise else frozenset()
        holds = len(self.base) >= _BOOTS and abs(math.log(values[0] / median(self.base))) <= noise
        return UNCHANGED if holds and not functions else frozenset()


def _matters(one: FunctionChange, instructions: float) -> bool:
    """Whether a function changed by more than boots of one build do, which has one boot of each build to show it."""
    calls = abs((one.calls_after or 0.0) - (one.calls_before or 0.0))
    return abs(one.change) > _SMALL * instructions or calls > _CALLS


def foreseen(scenarios: Iterable[ScenarioResult], base: Sequence[float]) -> Foreseen:
    """What the paths of a run that are judged, and earlier runs, make known of a further path.

    Args:
        scenarios: of the run so far.
        base: see `Foreseen.base`.
    """
    judged = [
        one.comparison.functions
        for one in scenarios
        if one.comparison is not None
        and one.comparison.pairs > 1
        and one.verdict in _INFORMATIVE
        and any(change.measurand == Cost.about.name for change in one.comparison.changes)
    ]
    return Foreseen(known_calls(judged) if len(judged) >= _FIRST else None, tuple(base))


def base_costs(observations: Iterable[NoiseObservation], build: str) -> tuple[float, ...]:
    """What a packet cost in each boot of a build, by what boots of its testbed came to.

    Args:
        build: its digest, see `pdrgate.results.fingerprint.build_digest`.
    """
    return tuple(
        boot.values[Cost.about.name]
        for one in observations
        for boot in one.boots
        if boot.build == build and boot.values.get(Cost.about.name, 0.0) > 0
    )


class PairAlone:
    """Asks of a comparison whether its first pair may be enough: before it is measured, and then by what it shows."""

    def __init__(self, task: ComparisonTask, known: Deviation) -> None:
        self._task = task
        self._known = known
        self._may_be = foreseen(task.session.record.scenarios, ()).possible or self._base_was_measured()

    @property
    def hoped(self) -> frozenset[Verdict]:
        """The verdicts that one pair may end it with, as far as is known before it."""
        return FORETOLD if self._may_be else frozenset()

    def vouched(
        self, costs: tuple[CostResult | None, CostResult | None], values: tuple[float, float],
        fingerprint: Mapping[str, str],
    ) -> frozenset[Verdict]:  # fmt: skip
        """The verdicts that the pair that was measured may end it with, see `Foreseen.vouched`.

        Args:
            fingerprint: the baseline's.
        """
        if not self._may_be:
            return frozenset()
        found = foreseen(self._task.session.record.scenarios, ())
        if found.calls is None:
            found = Foreseen(base=self._base(fingerprint))
        return found.vouched(costs, values, self._known)

    def _base_was_measured(self) -> bool:
        """Whether this path was measured on the baseline, on this testbed and by this pdrgate."""
        session, digest = self._task.session, self._task.builds["baseline"].identity
        if session.experience is None or session.options.afresh or not digest:
            return False
        try:
            return self._task.scenario.name in session.experience.path_codes(code_key(digest, session.config))
        except PdrGateError:
            return False  # the comparison itself reports that the history cannot be read

    def _base(self, fingerprint: Mapping[str, str]) -> tuple[float, ...]:
        session = self._task.session
        if session.experience is None or session.options.afresh:
            return ()
        try:
            return base_costs(session.experience.observations(series(fingerprint)), build_digest(fingerprint))
        except PdrGateError:
            return ()

"""When a comparison in pairs ends, and what it says then: one rule for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.replication.samples import Samples, gravest_change
from pdrgate.results.model import ChangeResult
from pdrgate.results.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a comparison stands after some pairs."""

    changes: tuple[ChangeResult, ...]
    """Of each measurand; empty below two pairs."""
    verdict: Verdict | None
    """What the pairs so far say; None while another pair is wanted."""

    @property
    def decisive(self) -> ChangeResult | None:
        """The change that the verdict rests on, or would; None below two pairs."""
        return gravest_change(self.changes) if self.changes else None


@dataclass(frozen=True, slots=True)
class PairsRule:
    """Pairs are taken until every measurand's interval has left its tolerance, or pairs or time are over.

    Looking often makes wrong verdicts likelier, so the looks before the last ask for more; and so does having several
    measurands, of which any may be the one that errs (Bonferroni). tests/bench/boot_pairs.py says how often it errs.
    """

    most: int = 48
    """Pairs, at most."""
    fewest: int = 6
    """Before the comparison may end early: the deviation of fewer is anybody's guess."""
    early: float = 0.99
    final: float = 0.95

    def wants(self, pair: int) -> bool:
        """Whether that pair is measured in any case, whatever the ones before it show."""
        return pair <= min(self.fewest, self.most) or (pair % 2 == 0 and pair <= self.most)

    def standing(self, samples: Sequence[Samples], *, ended: bool = False) -> Standing:
        """What the pairs so far say; ``ended`` when no further pair will come."""
        pairs = min((len(one.candidate) for one in samples), default=0)
        if pairs < 2:
            return Standing((), Verdict.INCONCLUSIVE if ended else None)
        # Of two guests the one booted later is a little slower: only even numbers of pairs are fair to both.
        if pairs >= self.fewest and pairs % 2 == 0:
            early = self._changes(samples, self.early)
            verdict = gravest_change(early).verdict
            if verdict is not Verdict.INCONCLUSIVE:
                return Standing(early, verdict)
        changes = self._changes(samples, self.final)
        over = ended or pairs >= self.most
        return Standing(changes, gravest_change(changes).verdict if over else None)

    def _changes(self, samples: Sequence[Samples], confidence: float) -> tuple[ChangeResult, ...]:
        each = 1.0 - (1.0 - confidence) / len(samples)
        return tuple(one.paired_change(each) for one in samples)

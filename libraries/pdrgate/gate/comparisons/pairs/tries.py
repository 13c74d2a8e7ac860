"""Tries of one comparison: what earlier ones have left, and what this one leaves for the next."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pdrgate.gate.comparisons.pairs.comparison_task import SIDES
from pdrgate.gate.run.progress import RunObserver
from pdrgate.replication import Contradiction, Samples, Try, contradiction
from pdrgate.replication.earlier_tries import Pairs, counting
from pdrgate.results.file_name import as_text
from pdrgate.results.fingerprint import digest
from pdrgate.results.model import Side
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import PdrGateError

if TYPE_CHECKING:
    from pdrgate.history.database.experience import Experience

COUNTING = frozenset({
    Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.UNSTABLE,
    Verdict.ASSERTION_FAILED,
})  # fmt: skip
"""What a try ends with that counts for the next one: what the builds did, and not what machine or testbed did."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The tries that this one goes on with, oldest first."""

    tries: tuple[Try, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    """Why none of them counts, though there are some."""

    @property
    def pairs(self) -> int:
        """The number of pairs that are taken over."""
        return sum(one.taken_over for one in self.tries)

    def of(self, measurand: str) -> list[Pairs]:
        """The pairs of a measurand, try by try."""
        return [one.pairs[measurand] for one in self.tries]

    @property
    def samples(self) -> list[dict[str, dict[Side, tuple[float, ...]]]]:
        """A value of each boot, by try, measurand and side."""
        return [
            {name: dict(zip(SIDES, zip(*pairs, strict=True), strict=True)) for name, pairs in one.pairs.items()}
            for one in self.tries
        ]

    def having(self, measurands: Sequence[str]) -> Earlier:
        """The tries in which all of these measurands were measured."""
        return Earlier(tuple(one for one in self.tries if one.pairs.keys() >= set(measurands)))

    def agreeing(self, fresh: Sequence[Samples]) -> Earlier:
        """The tries; none of them where their pairs contradict the fresh ones in any measurand."""
        found = tuple(filter(None, (contradiction(one, self.of(one.measurand)) for one in fresh)))
        return Earlier(contradictions=found) if found else self

    def in_words(self) -> str:
        """A sentence on the earlier tries; empty where this is the first one."""
        if self.contradictions:
            which = ", ".join(map(str, self.contradictions))
            return f"the pairs of earlier tries of these two builds contradict these and do not count ({which})"
        if not self.tries:
            return ""
        before = ", ".join(one.verdict for one in self.tries)
        return (
            f"this is try {len(self.tries) + 1} of these two builds: {self.pairs} pairs of earlier ones ({before}) "
            "count too, and with --afresh they do not"
        )


class Tries:
    """The tries of one comparison.

    Args:
        experience: keeps all of them; None: tries are not kept.
        run: name of this try that no other try has.
        afresh: whether earlier ones are forgotten.
        resumed: whether it goes on with a run that may have left a try, which is this one.
    """

    def __init__(
        self, experience: Experience | None, run: str, *, afresh: bool, resumed: bool, observer: RunObserver
    ) -> None:  # fmt: skip
        self.earlier = Earlier()
        self._experience = experience
        # A folder's name may be no text, and a history holds nothing else.
        self._run = as_text(run)
        self._afresh = afresh
        self._resumed = resumed
        self._observer = observer
        self._compared = ""

    def find(self, builds: Mapping[Side, str], fingerprints: Mapping[Side, Mapping[str, str]]) -> None:
        """Look up the earlier ones, the first time that it is known what is compared, and say what counts.

        Args:
            builds: by side, the digest of the build's content; empty where it is unknown.
            fingerprints: by side; empty where it is not known yet.
        """
        known = (*builds.values(), *fingerprints.values())
        if self._experience is None or self._compared or not all(known):
            return
        self._compared = digest(
            {f"{side} {what}": each for side, found in fingerprints.items()
             for what, each in (("build", builds[side]), ("fingerprint", digest(found)))}
        )  # fmt: skip
        if self._afresh:
            return
        try:
            found = counting(self._experience.tries(self._compared), time.time())
        except PdrGateError as error:
            self._observer.warned(f"earlier tries of these builds are not known: {error}")
            return
        self.earlier = Earlier(tuple(one for one in found if not (self._resumed and one.run == self._run)))
        if said := self.earlier.in_words():
            self._observer.said(said)

    def keep(self, verdict: Verdict, pairs: Mapping[str, Pairs]) -> None:
        """Leave this one for the next; that it cannot be kept changes no verdict."""
        if self._experience is None or not self._compared or verdict not in COUNTING:
            return
        one = Try(
            run=self._run, when=time.time(), verdict=str(verdict), pairs=pairs, afresh=self._afresh,
            resumed=self._resumed,
        )  # fmt: skip
        try:
            self._experience.add_try(self._compared, one)
        except PdrGateError as error:
            self._observer.warned(f"this try is not kept for a retry: {error}")

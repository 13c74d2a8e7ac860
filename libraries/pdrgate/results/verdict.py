"""Verdicts: what a run says of a build, and what the pipeline makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pdrgate.values.errors import EXIT_FAIL, EXIT_FAULT, EXIT_PASS, EXIT_UNDECIDED, EXIT_UNTESTABLE


class Verdict(StrEnum):
    """The eleven words that a run ends with; see the README's table for what each asks of its reader."""

    PASS = "PASS"
    IMPROVEMENT = "IMPROVEMENT"
    NO_BASELINE = "NO_BASELINE"
    INCONCLUSIVE = "INCONCLUSIVE"
    ASSERTION_FAILED = "ASSERTION_FAILED"
    UNSTABLE = "UNSTABLE"
    REGRESSION = "REGRESSION"
    CRASH = "CRASH"
    DISTURBED = "DISTURBED"
    GENERATOR_LIMITED = "GENERATOR_LIMITED"
    ERROR = "ERROR"

    @property
    def exit_code(self) -> int:
        """0 the pipeline goes on, 1 the SUT fails it, 2 the testbed does, 3 nothing decides."""
        if self in (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.NO_BASELINE):
            return EXIT_PASS
        if self is Verdict.INCONCLUSIVE:
            return EXIT_UNDECIDED
        return EXIT_FAULT if self in (Verdict.DISTURBED, Verdict.GENERATOR_LIMITED, Verdict.ERROR) else EXIT_FAIL

    @property
    def bisect_code(self) -> int:
        """The exit code for ``git bisect run``: 0 good, 1 bad, 125 untestable."""
        if self in (Verdict.PASS, Verdict.IMPROVEMENT):
            return EXIT_PASS
        return EXIT_FAIL if self is Verdict.REGRESSION else EXIT_UNTESTABLE

    @property
    def passes(self) -> bool:
        """Whether the test passes."""
        return self.exit_code == EXIT_PASS


STABLE = frozenset({
    Verdict.PASS, Verdict.IMPROVEMENT, Verdict.NO_BASELINE, Verdict.REGRESSION, Verdict.INCONCLUSIVE,
    Verdict.ASSERTION_FAILED,
})  # fmt: skip
"""Verdicts of measurements that can be trusted, whatever they came to."""

# Evidence against the build outranks a fault of the testbed, which outranks doubt.
_GRAVITY = (
    Verdict.CRASH, Verdict.REGRESSION, Verdict.UNSTABLE, Verdict.ASSERTION_FAILED, Verdict.ERROR,
    Verdict.GENERATOR_LIMITED, Verdict.DISTURBED, Verdict.INCONCLUSIVE, Verdict.NO_BASELINE, Verdict.PASS,
    Verdict.IMPROVEMENT,
)  # fmt: skip


INTERRUPTED = "interrupted; all trials are kept, continue with --resume"
"""The reason of a scenario that Ctrl-C or SIGTERM has ended, which is an ERROR."""


ALL_ACKNOWLEDGED = "no path got worse than is acknowledged"
"""The reason of a run whose every scenario is worse, by no more than somebody has acknowledged."""


PROGRAMS_DIFFER = "the programs differ, and "
"""How a clause begins that says of eBPF programs that packets ran nothing of what differs; a headline has it."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and its reason: one sentence with the numbers it rests on."""

    verdict: Verdict
    reason: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}"

    def remarked(self, *clauses: str) -> Judgement:
        """A copy of the judgement with clauses after its reason; empty clauses are left out."""
        return Judgement(self.verdict, "; ".join(filter(None, (self.reason, *clauses))))


def graver(known: Judgement | None, found: Judgement | None) -> Judgement | None:
    """The graver of two; of two as grave the later."""
    if known is None or found is None:
        return known or found
    return found if gravest_verdict((known.verdict, found.verdict)) is found.verdict else known


def gravest_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a run of several scenarios; ERROR when there is none, for then nothing was measured."""
    found = set(verdicts)
    return next((verdict for verdict in _GRAVITY if verdict in found), Verdict.ERROR)


def by_gravity(verdict: Verdict) -> int:
    """The place of a verdict among all, the gravest first."""
    return _GRAVITY.index(verdict)

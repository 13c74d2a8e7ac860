"""What a measurand says of itself, for all code that judges, prints, draws or stores it.

A class of measurands has one `Description` as its ``about``. Whoever meets the name of a measurand in a result asks the
registry (`pdrgate.measurands.registry`) for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pdrgate.measurands.unit_spelling import Unit
from pdrgate.results.model import Better, ChangeResult, FunctionChange
from pdrgate.results.verdict import Verdict
from pdrgate.values.units import TOLERANCE, change_in_words

TolerancesAsked = Mapping[str, float | None]
"""Tolerances by the option that asks for them. What is missing was not asked for; of None nothing is judged."""


class Rule(Enum):
    """How a measurand is judged. `docs/error-rates.md` says how often each rule errs."""

    PAIRS = "a test of pairs"
    """Samples of boots are compared until their interval decides; all such measurands share one confidence."""
    SURE = "surely changed"
    """All that was seen of one build lies beyond all that was seen of the other, by more than either scatters."""
    EXACT = "exact"
    """Two numbers that nothing makes scatter."""
    REPORT_ONLY = "report-only"
    """No change of it is a verdict."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The change for the worse that is accepted of a measurand."""

    default: float = TOLERANCE
    """The tolerance where none is asked for."""
    option: str = "tolerance"
    """The option of a run that asks for another; empty where none does."""
    least: float = 0.0
    """The tolerance is never less, whatever is asked for."""
    least_delivered: float = 0.0
    """Least tolerance where packets end at programs of the SUT."""

    def accepted(self, asked: TolerancesAsked, *, delivered: bool = False) -> float:
        """The change that is accepted of a run; ``delivered`` says whether packets end at programs of the SUT."""
        found = asked.get(self.option)
        least = max(self.least, self.least_delivered) if delivered else self.least
        return max(self.default if found is None else float(found), least)

    def judges(self, asked: TolerancesAsked) -> bool:
        """Whether a run judges it; else it is report-only there."""
        return self.option not in asked or asked[self.option] is not None


@dataclass(frozen=True, slots=True)
class Parts:
    """The functions of a kernel as the parts of a measurand."""

    change: Callable[[FunctionChange], float]
    """What the measurand changed by in a function, in its unit."""
    sure: Callable[[FunctionChange], bool]
    """Whether the function changed beyond doubt."""

    def within(self, change: float, functions: Sequence[FunctionChange]) -> str:
        """The functions that a change is in, of those that surely changed the same way; empty where none did."""
        same = [one for one in functions if self.sure(one) and (self.change(one) > 0) == (change > 0)]
        same.sort(key=lambda one: -abs(self.change(one)))
        same = [one for one in same if abs(self.change(one)) >= _NEGLIGIBLE * abs(self.change(same[0]))]
        if not same:
            return ""

        def most(named: Sequence[FunctionChange]) -> bool:
            return abs(sum(map(self.change, named))) >= _MOST * abs(change)

        named = same[:_NAMED] if most(same[:_NAMED]) else same[: _NAMED + 1]
        words = ", ".join(f"{one.label} ({_signed(self.change(one))})" for one in named)
        return f"{'most of it' if most(named) else 'the largest parts of it'} in {words}"


_NAMED = 2
"""Functions in a sentence, and one more where these are not most of it."""
_NEGLIGIBLE = 0.1
"""A share of the largest change of a function: one below it is not named beside that."""
_MOST = 0.5
"""A share of a change: functions with as much are called most of it."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words for a measurand's change, where its numbers alone do not say it well."""

    clause: Callable[[ChangeResult, Sequence[FunctionChange] | None], str | None]
    """Returns the change in words; None where its numbers say it better. The functions are where it changed; None
    where nobody looked."""
    whole: bool = True
    """Whether it says all of a REGRESSION, so that neither the tolerance nor the numbers of others are wanted."""
    says_worse: bool = True
    """Whether a reader knows from it that a REGRESSION is one."""


@dataclass(frozen=True, slots=True)
class Description:
    """Everything that holds of a measurand in all results, reports and options."""

    name: str
    """Name of the measurand in results, reports and options."""
    quantity: Unit
    better: Better
    """The direction that is good."""
    about: str
    """What it is, in a clause for a reader of the documentation."""
    rule: Rule = Rule.PAIRS
    beside: bool = False
    """Whether it is judged beside what a run is about, and no run is about it alone."""
    tolerance: Tolerance = Tolerance()
    essential: bool = False
    """Whether pairs of boots need it: it is timed, so that its values have a shape from boot to boot that is judged."""
    sentence: Sentence | None = None
    """Words for its change; None: its numbers are printed."""
    parts: Parts | None = None
    """How functions of the kernel have a part in it, where they have."""
    each: str = "packet"
    """What the numbers of functions beside it are of."""
    report_only: str = ""
    """Why it is report-only, in a clause."""
    slows: str = ""
    """Why a packet is slower for it on hardware, where it costs no more instructions: a sentence."""

    @property
    def unit(self) -> str:
        """The unit as result.json has it."""
        return self.quantity.name

    @property
    def rank(self) -> int:
        """0 of what a run can be about, 1 of what is judged beside it, 2 of all that has another rule."""
        return 2 if self.rule is not Rule.PAIRS else int(self.beside)

    def judged(self, asked: TolerancesAsked) -> bool:
        """Whether a test of pairs compares it in a run, by the tolerances that the run was asked for."""
        return self.rule is Rule.PAIRS and self.tolerance.judges(asked)

    def told(self, change: ChangeResult, functions: Sequence[FunctionChange] | None = None) -> str:
        """A change in words and numbers."""
        said = self.sentence.clause(change, functions) if self.sentence is not None else None
        return self.in_numbers(change) if said is None else said

    def not_judged(self, change: ChangeResult) -> str:
        """Why a change has no verdict, in a short clause; empty where it has one."""
        if change.verdict is not Verdict.NO_BASELINE:
            return ""
        if change.evidence is not None:
            needs = change.evidence.needs
            return "noise hides it" + (f", some {needs} pairs would show it" if needs else "")
        return self.report_only if change.parts else "what boots differ by is not known"

    def in_numbers(self, change: ChangeResult) -> str:
        """A change by both values and its interval; of one that noise hides, what would resolve it."""
        return unresolved(change) or (
            f"{self.name} {self.quantity.said(change.candidate)} against {self.quantity.said(change.baseline)}, "
            f"change {change_in_words(change.change, change.lower, change.upper)}"
        )


def unresolved(change: ChangeResult) -> str:
    """What would resolve a change that noise keeps from its tolerance; empty where noise does not."""
    if not change.unresolved or change.evidence is None:
        return ""
    return (
        f"{change.measurand} not resolved: pairs deviate by {change.evidence.deviation:.1%}, a tolerance of "
        f"{change.tolerance:.1%} would take some {change.evidence.needs} pairs"
    )


def _signed(change: float) -> str:
    return f"{change:+z.{0 if abs(change) >= 10 else 1}f}"

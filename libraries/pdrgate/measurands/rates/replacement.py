"""What it takes to replace what a SUT was set up with, such as its rules, while packets pass.

The kernel works for it, which is counted in instructions. It also makes the command wait, which the SUT's clock
measures. The sum of both, as if a CPU executed a thousand million instructions a second, is the same at any speed of a
guest, but for the wait. What the command itself computes is no part of it: both builds run the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pdrgate.measurands.description import Description, Sentence, Tolerance
from pdrgate.measurands.measurand import Ask, OnRequest
from pdrgate.measurands.observed import gained_by_places
from pdrgate.measurands.unit_spelling import SECONDS, Unit
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import USER_SPACE
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult, FunctionChange

_SPEED = 1e9
"""Instructions a second."""
_NAMED = 2


@dataclass(frozen=True, slots=True)
class Replacements:
    """Trials in which something is replaced, packets passing at a light load."""

    load: float
    """Load of the trials, packets/s."""
    duration: float
    count: int = 3
    """How often it is done; the median of all is the value."""

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        made = sum(one.occasion.phase == Phase.REPLACEMENT for one in trials)
        return Ask(self.load, self.duration, Phase.REPLACEMENT) if made < self.count else None


def _takes_longer(change: ChangeResult, functions: Sequence[FunctionChange] | None) -> str:
    """A change of the time in a sentence that names what is called more often."""
    numbers = (
        f"a replacement takes the kernel {SECONDS.said(change.candidate)}, was {SECONDS.said(change.baseline)} "
        f"({100 * change.change:+z.1f} %, {100 * change.lower:+z.1f} to {100 * change.upper:+z.1f})"
    )
    more = called_more(functions or ()) if change.change > change.tolerance else []
    calls = (f"{one.label} ({one.calls_after:.3g}, was {one.calls_before or 0.0:.3g})" for one in more)
    return f"{numbers}, by calls of {', '.join(calls)}" if more else numbers


def called_more(functions: Sequence[FunctionChange]) -> list[FunctionChange]:
    """Functions that are surely called more often for each replacement.

    What leads to the cause is called once more for each, and so comes first, above all what was not called before.
    """
    more = [one for one in functions if one.calls_changed and _more_calls(one) > 0]
    more.sort(
        key=lambda one: (round(abs(_more_calls(one) - 1.0), 1), one.calls_before or 0.0, -one.after, one.function)
    )
    return more[:_NAMED]


def _more_calls(one: FunctionChange) -> float:
    return (one.calls_after or 0.0) - (one.calls_before or 0.0)


class ReplacementTime(OnRequest):
    """Seconds that the kernel takes for a replacement, of some trials.

    What it executes is the median, and what it makes the command wait is the least: a busy machine lengthens a wait.
    """

    about = Description(
        "time of a replacement", SECONDS, "lower",
        "what the kernel takes to replace rules, sets or routes: its instructions at 1000 MIPS, and the wait",
        beside=True, tolerance=Tolerance(0.1, option=""),
        sentence=Sentence(_takes_longer, whole=False, says_worse=False),
        each="replacement",
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        found = replacing_trials(trials)
        if not found:
            return None
        return median(map(_instructions, found)) / _SPEED + min(map(_waited, found))


class ReplacementLoss(OnRequest):
    """Packets that are sent for each that is forwarded, while something is replaced."""

    about = Description(
        "packets sent for each forwarded", Unit("", metric="ratio"), "lower",
        "packets sent for each that is forwarded, while rules, sets or routes are replaced",
        beside=True, tolerance=Tolerance(0.005, option=""), each="replacement",
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        found = [one for one in trials if one.occasion.phase == Phase.REPLACEMENT and one.forwarded]
        return median(max(1.0, one.offered / one.forwarded) for one in found) if found else None


def replacing_trials(trials: Sequence[Trial]) -> list[Trial]:
    """The trials of a replicate in which something was replaced, and the kernel's work was counted."""
    return [one for one in trials if one.occasion.phase == Phase.REPLACEMENT and one.seen.functions and done(one)]


def done(trial: Trial) -> int:
    """How often something was replaced in a trial."""
    return gained_by_places(trial, "replacement", "done") or 0


def per_replacement(trial: Trial) -> dict[str, tuple[float, float]]:
    """The kernel's instructions and calls by function, for each replacement of a trial."""
    times = done(trial)
    return {
        name: (instructions / times, calls / times)
        for name, (instructions, calls) in trial.seen.functions.items()
        if name != USER_SPACE
    }


def _instructions(trial: Trial) -> float:
    return sum(instructions for instructions, _ in per_replacement(trial).values())


def _waited(trial: Trial) -> float:
    return (gained_by_places(trial, "replacement", "waited") or 0) / 1e6 / done(trial)

"""MLRsearch (RFC 9971) over any measurer, by its authors' library.

The library knows neither generators that fall short nor what to do with the trials when its time is over. Both are
added here: every trial stays with the caller, a generator-limited one is measured again, and where that does not help
its load becomes the upper end of a new search, so that the generator's limit is never taken for the SUT's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pdrgate.search import short_stack  # noqa: F401

# isort: split

from MLRsearch import (
    AbstractMeasurer,
    Config,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)

from pdrgate.record.trial import Trial
from pdrgate.results.model import GoalResult
from pdrgate.search.goals import Goal
from pdrgate.search.patience import Measure, Patience
from pdrgate.values.errors import UsageError

_NARROWINGS = 3
_STEP_DOWN = 0.97


class GoalOutcome(StrEnum):
    """Outcome of the search for one goal."""

    FOUND = "found"
    NO_LOWER_BOUND = "no lower bound"
    """Even the lowest load loses more than the goal allows."""
    NO_UPPER_BOUND = "no upper bound"
    """Even the highest load that the generator can offer holds."""
    OUT_OF_TIME = "out of time"
    GENERATOR_LIMITED = "generator limited"
    """The generator fell short wherever the search went."""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """Results of a search, in the order of its goals."""

    results: tuple[GoalResult, ...]
    min_load: float
    max_load: float
    trials: int
    elapsed: float
    """Seconds of traffic."""

    @property
    def at_its_end(self) -> bool:
        """Whether even the highest load held for some goal."""
        return any(result.outcome == GoalOutcome.NO_UPPER_BOUND for result in self.results)

    def of(self, name: str) -> GoalResult:
        """The result of the goal of that name. Raises KeyError."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(name)


class _OutOfTimeError(Exception):
    pass


class _GeneratorLimitedError(Exception):
    def __init__(self, load: float, reached: float) -> None:
        super().__init__(load)
        self.load = load
        self.reached = reached


@dataclass
class _Measurer(AbstractMeasurer):  # type: ignore[misc]
    """Adapts a `Measure` to the library: retries, deadline, and what counts as loss."""

    measure_trial: Measure
    budget: float
    spent: float = 0.0
    """Seconds of traffic. Not of the clock: a resumed search must end where it would have ended."""
    trials: int = 0

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        for trial in Patience().attempts(self._within_budget, intended_load, intended_duration):
            self.trials += 1
            self.spent += max(trial.intended_duration, trial.sending_time)
        if trial.generator_limited:
            raise _GeneratorLimitedError(intended_load, trial.offered_load)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=trial.offered,
            # A surplus is no gain, and a buffer that hides an overload until the trial is over makes no load hold.
            forwarding_count=round(trial.offered * (1.0 - trial.steady_loss_ratio)),
            offered_duration=trial.sending_time or intended_duration,
            # Up to 0.1 % unsent is the generator's noise. With the intended count it would be counted as loss.
            intended_count=trial.offered,
        )

    def _within_budget(self, load: float, duration: float) -> Trial:
        if self.spent >= self.budget:
            raise _OutOfTimeError
        return self.measure_trial(load, duration)


def search(
    measure: Measure,
    goals: Sequence[Goal],
    *,
    min_load: float,
    max_load: float,
    budget: float,
    log: Callable[[str], None] = lambda _: None,
) -> SearchOutcome:
    """Find the bounds of every goal between two loads (packets/s) within ``budget`` seconds of traffic.

    Raises:
        UsageError: there is no goal, or the loads or the budget leave nothing to search.
    """
    if not goals:
        raise UsageError("a search needs at least one goal, such as a loss ratio of 0.5%")
    if len({_library_goal(goal) for goal in goals}) < len(goals):
        raise UsageError(f"two of the goals {', '.join(goal.name for goal in goals)} ask for the same; leave one out")
    if not 0 < min_load < max_load < math.inf:
        raise UsageError(f"cannot search between {min_load} and {max_load} packets/s; the lower must be above 0")
    if not budget > 0:
        raise UsageError(f"cannot search within {budget} s; give a budget above 0")
    measurer = _Measurer(measure, budget)
    cut_short = GoalOutcome.OUT_OF_TIME
    for _ in range(_NARROWINGS):
        algorithm = MultipleLossRatioSearch(_config(goals, min_load, max_load, budget))
        try:
            algorithm.search(measurer, debug=log)
        except _GeneratorLimitedError as limit:
            cut_short = GoalOutcome.GENERATOR_LIMITED
            lowered = min(limit.load, limit.reached) * _STEP_DOWN
            if lowered <= min_load * 1.01:
                break
            max_load = lowered
            log(f"the generator reached {limit.reached:.0f} of {limit.load:.0f} pps: searching below {lowered:.0f}")
            continue
        except _OutOfTimeError:
            cut_short = GoalOutcome.OUT_OF_TIME
            break
        else:
            break
    found = tuple(_result(algorithm, goal, cut_short) for goal in goals)
    return SearchOutcome(found, min_load, max_load, measurer.trials, measurer.spent)


def _config(goals: Sequence[Goal], min_load: float, max_load: float, budget: float) -> Config:
    return Config(
        goals=[_library_goal(goal) for goal in goals],
        min_load=min_load,
        max_load=max_load,
        search_duration_max=100 * budget + 600,  # by the clock; our own budget ends first and loses nothing
        warmup_duration=None,
    )


def _library_goal(goal: Goal) -> SearchGoal:
    return SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.width,
        initial_trial_duration=goal.initial_trial_duration,
        final_trial_duration=goal.final_trial_duration,
        duration_sum=goal.duration_sum,
        preceding_targets=max(1, goal.preceding_targets),
        expansion_coefficient=2,
        fail_fast=False,
    )


def _result(algorithm: MultipleLossRatioSearch, goal: Goal, cut_short: GoalOutcome) -> GoalResult:
    """Bounds as the library's database has them, also after a search that was cut short."""
    target = algorithm.scaling.goal_to_final_target[_library_goal(goal)]
    bounds = algorithm.database.get_relevant_bounds(target=target)
    lower, upper = bounds.clo, bounds.chi
    throughput = None
    if lower is not None:
        stat = next(iter(lower.target_to_stat.values()))
        throughput = float(lower) * (1.0 - stat.pessimistic_loss_ratio)
    highest = float(algorithm.limit_handler.max_load)
    lowest = float(algorithm.limit_handler.min_load)
    outcome = cut_short
    if upper is None and lower is not None and float(lower) >= highest * (1 - 1e-9):
        outcome = GoalOutcome.NO_UPPER_BOUND
    elif lower is None and upper is not None and float(upper) <= lowest * (1 + 1e-9):
        outcome = GoalOutcome.NO_LOWER_BOUND
    elif lower is not None and upper is not None and 1 - float(lower) / float(upper) <= goal.width * (1 + 1e-6):
        outcome = GoalOutcome.FOUND
    return GoalResult(
        name=goal.name, loss_ratio=goal.loss_ratio, width=goal.width, outcome=outcome.value,
        lower=None if lower is None else float(lower), upper=None if upper is None else float(upper),
        conditional_throughput=throughput,
    )  # fmt: skip

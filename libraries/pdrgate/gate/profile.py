"""Profiles: how much time a verdict may cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pdrgate.errors import UsageError
from pdrgate.search.goals import NDR, PDR, Goal

ProfileName = Literal["smoke", "quick", "standard", "pastrami"]

TOP_TRIALS, BOOT_TOP_TRIALS, STEADY_TOP_TRIALS = 2, 8, 3
"""Trials at the highest load in a repeat, in a boot, and in a boot of constant speed: they tell the saturation
throughput."""

BOOT_WIDTH = 0.02
"""To which the PDR of a boot is told."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Times are seconds; grids are multiples of the PDR that the search found."""

    name: ProfileName
    goals: tuple[Goal, ...]
    """The PDR's goal is among them."""
    search_budget: float
    calibration_duration: float
    trial_duration: float
    """Of each repeat."""
    repeats: int
    """K: trials at each load of the grid."""
    grid: tuple[float, ...]
    boot_trial: float
    """Duration of each trial where boots are compared: there, more boots tell more than longer trials."""

    @property
    def repeats_time(self) -> float:
        """Seconds of traffic in the repeats, with the trials that tell saturation and PDR: two or three each."""
        return self.repeats * self.trial_duration * (len(self.grid) + TOP_TRIALS - 1 + 2.5)

    @property
    def estimate(self) -> float:
        """About how many seconds one scenario takes, the search taken as half its budget."""
        return 3 * self.calibration_duration + self.search_budget / 2 + self.repeats_time * 1.05


def _goal(goal: Goal, width: float, initial: float, final: float, total: float) -> Goal:
    return Goal(goal.name, goal.loss_ratio, width, initial, final, total, goal.exceed_ratio, preceding_targets=2)


_GRID = (0.5, 0.7, 1.15, 1.5, 1.95)
"""Few loads, wide apart beyond the PDR: a TIR divides by the step, so narrow steps turn a throughput that scatters by
1 or 2 % into a TIR that says nothing. Near the PDR the trials lie that tell it, see `PartialDropRate`."""

BOOT_GRID = (0.5, 0.7, 1.25, 1.6, 2.0)
"""Where boots are compared: none so near the PDR that boots of different speed fall on both sides of it."""

PROFILES: dict[ProfileName, Profile] = {
    profile.name: profile
    for profile in (
        # Is everything wired up? Seconds instead of minutes, and numbers that are not worth keeping.
        Profile(
            "smoke",
            goals=(_goal(PDR, 0.05, 0.1, 0.1, 0.3),),
            search_budget=10,
            calibration_duration=0.1,
            trial_duration=0.2,
            repeats=4,
            grid=_GRID,
            boot_trial=0.2,
        ),
        Profile(
            "quick",
            goals=(_goal(PDR, 0.01, 0.5, 1.0, 3.0),),
            search_budget=40,
            calibration_duration=0.3,
            trial_duration=1.0,
            repeats=6,
            grid=_GRID,
            boot_trial=0.25,
        ),
        Profile(
            "standard",
            goals=(_goal(NDR, 0.01, 1.0, 1.0, 5.0), _goal(PDR, 0.005, 1.0, 1.0, 11.0)),
            search_budget=240,
            calibration_duration=0.5,
            trial_duration=2.0,
            repeats=10,
            grid=_GRID,
            boot_trial=1.0,
        ),
        # PASTRAMI section VI, Table I: 50 runs of 10 s at each load; the published grids have 8 to 16 loads.
        Profile(
            "pastrami",
            goals=(_goal(PDR, 0.005, 1.0, 1.0, 21.0),),
            search_budget=300,
            calibration_duration=1.0,
            trial_duration=10.0,
            repeats=50,
            grid=(0.4, 0.6, 0.75, 0.85, 0.93, 1.1, 1.3, 1.55, 1.85),
            boot_trial=2.0,
        ),
    )
}


def profile(name: str) -> Profile:
    """The profile of that name.

    Raises:
        UsageError: there is none.
    """
    for one in PROFILES.values():
        if one.name == name:
            return one
    raise UsageError(f"there is no profile {name!r}; there are {', '.join(PROFILES)}")

"""Profiles: how much time a verdict may cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pdrgate.gate.run.options import ProfileName
from pdrgate.search.goals import NDR, PDR_GOAL, Goal
from pdrgate.search.patience import Patience

TOP_TRIALS, STEADY_TOP_TRIALS = 2, 3
"""Trials at the highest load in a repeat, and in a boot of constant speed. The saturation throughput is theirs."""


BOOT_WIDTH = 0.02
"""The relative width to which the PDR of a boot is measured."""

_OVERHEAD = 0.08
"""Seconds that a trial takes besides its traffic, about: what is under way drains, counters are read."""
_PDR_TRIALS = 3
"""Trials that enclose the PDR in a repeat, about; it has as many as it takes."""
_EASY = 0.25
"""The share of its budget that a search takes whose curve is smooth."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Times are seconds; grids are multiples of the PDR that the search found."""

    name: ProfileName
    goals: tuple[Goal, ...]
    """The PDR's goal is the last; how wide its bounds may lie apart, and what loss it is of, a scenario says."""
    search_budget: float
    calibration_duration: float
    trial_duration: float
    """Seconds of each trial of a repeat."""
    repeats: int
    """K: trials at each load of the grid."""
    grid: tuple[float, ...]
    boot_trial: float
    """Duration of each trial where boots are compared: there, more boots show more than longer trials."""
    boot_top_trials: int = 8
    """Trials at the highest load in a boot."""
    finest_width: float = 0.0
    """Least relative width of a PDR, whatever a suite asks for."""
    patience: Patience = Patience()  # noqa: RUF009  # frozen
    """How often trials of repeats and boots that are not sound are measured again."""
    transfers: int = 2
    """Transfers of a closed loop under load in a repeat; each lasts the trial's duration, in whole seconds."""
    boot_transfers: int = 3
    """Transfers of a closed loop under load in a boot."""
    window_step: int = 1
    """Doublings from one window of a window curve to the next."""
    several_cpus: bool = True
    """Whether builds are booted on guests of several CPUs besides."""

    def trials_time(self, trials: float) -> float:
        """About how many seconds so many trials of the repeats take."""
        return trials * (self.trial_duration + _OVERHEAD)

    @property
    def repeats_time(self) -> float:
        """About how many seconds the repeats take, with the trials for saturation and PDR."""
        return self.trials_time(self.repeats * (len(self.grid) + TOP_TRIALS - 1 + _PDR_TRIALS))

    @property
    def search_time(self) -> tuple[float, float]:
        """Seconds that calibration and search take, about: from an easy curve's to those of the whole budget."""
        share = 1 + _OVERHEAD / self.goals[-1].final_trial_duration
        calibration = 3 * (self.calibration_duration + _OVERHEAD)
        return calibration + _EASY * self.search_budget * share, calibration + self.search_budget * share


def _goal(goal: Goal, initial: float, final: float, total: float) -> Goal:
    return replace(
        goal, initial_trial_duration=initial, final_trial_duration=final, duration_sum=total, preceding_targets=2
    )


_GRID = (0.5, 0.7, 1.15, 1.5, 1.95)
"""Loads of the curve, by the PDR: few, and wide apart beyond it.

A TIR divides by the step, so narrow steps turn a throughput that scatters by 1 or 2 % into a TIR that says nothing.
Near the PDR lie the trials that enclose it, see `PartialDropRate`.
"""

BOOT_GRID = (0.5, 0.7, 1.25, 1.6, 2.0)
"""Loads that boots are compared at, by the PDR: none is so near it that boots of different speed fall on both
sides."""

PROFILES: dict[ProfileName, Profile] = {
    profile.name: profile
    for profile in (
        # Is everything wired up? Seconds instead of minutes, and numbers that are not worth keeping.
        Profile(
            "smoke",
            goals=(_goal(PDR_GOAL, 0.1, 0.1, 0.2),),
            search_budget=2,
            calibration_duration=0.1,
            trial_duration=0.1,
            repeats=3,  # fewer are too few to judge
            grid=(0.6, 1.3, 1.95),
            boot_trial=0.1,
            boot_top_trials=2,
            finest_width=0.1,
            patience=Patience(disturbed=0),  # on a busy machine it took three times as long, and knew no more
            transfers=1,
            boot_transfers=1,
            window_step=3,
            several_cpus=False,
        ),
        Profile(
            "quick",
            goals=(_goal(PDR_GOAL, 0.5, 1.0, 3.0),),
            search_budget=40,
            calibration_duration=0.3,
            trial_duration=1.0,
            repeats=6,
            grid=_GRID,
            boot_trial=0.25,
        ),
        Profile(
            "standard",
            goals=(_goal(NDR, 1.0, 1.0, 5.0), _goal(PDR_GOAL, 1.0, 1.0, 11.0)),
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
            goals=(_goal(PDR_GOAL, 1.0, 1.0, 21.0),),
            search_budget=300,
            calibration_duration=1.0,
            trial_duration=10.0,
            repeats=50,
            grid=(0.4, 0.6, 0.75, 0.85, 0.93, 1.1, 1.3, 1.55, 1.85),
            boot_trial=2.0,
        ),
    )
}

"""Boots of two builds that a load-loss curve is measured of: searched once each, then one grid of loads for all."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import mean

from pdrgate.gate.comparisons.cold_boots.boots import Boots
from pdrgate.gate.comparisons.cold_boots.one_boot import Boot
from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.run.profile import BOOT_GRID, BOOT_WIDTH, STEADY_TOP_TRIALS
from pdrgate.gate.scenarios.load_plan import ends, grid, overloads, past_the_pdr, round_order
from pdrgate.gate.scenarios.replicate_samples import Measurands, measure_in_turn
from pdrgate.gate.scenarios.scenario_run import search_failure, searched
from pdrgate.gate.sut.carried_frames import FramesSeen, judged_with
from pdrgate.gate.sut.load_search import LoadSearch, goals_of
from pdrgate.gate.verdicts.build_latency import latency_trials
from pdrgate.measurands import LatencyTrials, PartialDropRate, ReplicateStep, SaturationThroughput, Setting, Sweep
from pdrgate.measurands.measurand import values_of
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.search.goals import Goal
from pdrgate.values.units import Rate

_GOLDEN = 0.618034
"""Multiples of it lie evenly, modulo 1."""
_PAST_TRIALS = 2, 1
"""A boot has so many trials past the PDR at most loads: there are several boots."""
_END_HOST = 0.5
"""Seconds that a trial of an end host's boot lasts at least."""
_POLL, _OF_A_TRIAL, _LONGEST = 64, 0.015, 4
"""Packets that a driver's poll takes at most, the share of a trial's packets that they may be, and how many times as
long as otherwise a trial lasts at most therefore."""
_AT_ONCE = frozenset({Phase.REPEAT, Phase.SATURATION, Phase.PDR, Phase.IDLE, Phase.MEMORY})
"""Phases of trials that give equal values of a guest of constant speed while another is measured.

At a light load a kernel takes more packets at a time where others have its CPU meanwhile. A guest whose calls are
followed is late.
"""
_ROOM = 4.0
"""Times the highest load that a generator must be able to offer where two of them share a CPU."""
_PLACING = 0.05
"""Relative width that is fine enough to place a grid by."""


class CurveBoots(Boots):
    """Pairs of boots that are compared by their load-loss curves.

    The first boot of each build searches its bounds. All boots then measure one grid of loads around both, and as many
    trials as it takes to find their PDR.
    """

    def __init__(self, task: ComparisonTask) -> None:
        super().__init__(task)
        self.frames = {side: FramesSeen() for side in task.builds}
        self._done: set[Side] = set()
        """Builds that were searched."""
        self._centres: dict[Side, float] = {}
        self._expected = 0.0
        """The PDR that the search came to, then that of the first boots; 0 while none is known."""
        self._confirmed = False
        """Whether boots came to it."""
        self._most: dict[Side, float] = {}
        """Highest load worth a trial when a build was searched, by build."""

    @property
    def goal(self) -> Goal:
        """Goal of the PDR, the last of the profile's."""
        return goals_of(self.session.profile, self.scenario)[-1]

    @property
    def _searched(self) -> Collection[Side]:
        return self.builds if self.loads else self._done

    def _forget_searches(self) -> None:
        if not self.loads:
            self._done.clear()

    def _look_at_packets(self, started: Sequence[Boot]) -> None:
        suts = ((one.build.side, one.sut) for one in started)
        self.unlike = judged_with(self.frames, suts, self.session.observer.said)

    def _stands_others(self, one: Boot) -> bool:
        if not self.facts.steady or self.scenario.starves or _ROOM * max(self.loads) > self._ceiling:
            return False
        ask = one.wants()
        return ask is None or ask.phase in _AT_ONCE

    def _measure_more(self, started: Sequence[Boot]) -> None:
        """Latency, at the same loads in all boots: shares of the PDR that the first boot of the baseline came to."""
        self._expect(started)
        if not self.scenario.latency:
            return
        first = next((one for one in started if one.build.side == "baseline"), None)
        if not self.latency_loads and first is not None:
            pdr = self._measurands.pdr.value(first.trials)
            self.latency_loads = latency_trials(pdr, self.session.profile.boot_trial).loads
        for one in started:
            one.steps = (self._latency,)
        measure_in_turn(started)

    def _steps(self, number: int) -> Sequence[ReplicateStep]:
        self.loads = self.loads or self._grid()
        if self.scenario.starves and self.facts.steady and not self._expected and self._centres:
            self._expected = mean(self._centres.values())
        measurands = self._measurands
        # Loads are shifted from pair to pair, for both boots alike. Otherwise a change would show in steps of the
        # width, or not at all.
        shift = measurands.pdr.width * ((_GOLDEN * number) % 1.0 - 0.5)
        expecting = measurands.expecting(self._expected * (1.0 + shift))
        return expecting.steps(Sweep(round_order(self.loads, number), self._trial))

    def _expect(self, started: Sequence[Boot]) -> None:
        """Have later boots begin at the PDR that the first came to, where a search takes long: an end host's lies below
        its knee."""
        if self.scenario.starves and self.facts.steady and not self._confirmed:
            found = [self._measurands.pdr.value(one.trials) for one in started]
            if told := [pdr for pdr in found if pdr]:
                self._expected, self._confirmed = mean(told), True

    def _unsaturated(self, what: str, trials: Sequence[Trial]) -> Judgement:
        """Why a boot has no saturation throughput: the generator ended below it, or the boot was much faster than the
        first."""
        most = max(trial.intended_load for trial in trials)
        if not any(trial.generator_limited for trial in trials):
            return Judgement(
                Verdict.INCONCLUSIVE,
                f"{what} took all of {Rate(most)}, far more than the first boots did: the machine's speed is not the "
                "same from boot to boot; see pdrgate doctor, and take a quieter machine",
            )
        return Judgement(
            Verdict.GENERATOR_LIMITED,
            f"the generator ends at {Rate(self._ceiling)}, too near the PDR to show saturation ({what} was offered "
            f"{Rate(most)} at most); give the SUT less CPU, or use a faster generator",
        )

    def _values(self, what: str, trials: Sequence[Trial]) -> Mapping[str, float]:
        measurands = self._measurands
        values = values_of(measurands.all, trials)
        saturation = values.get(SaturationThroughput.name)
        if saturation == 0:
            most = Rate(measurands.saturation.load)
            self.failure = Judgement(Verdict.UNSTABLE, f"{what} forwards nothing when it is offered {most}: a livelock")
        elif saturation is None:
            self.failure = self._unsaturated(what, trials)
        elif PartialDropRate.name not in values:
            self.failure = Judgement(
                Verdict.UNSTABLE, f"{what}: no load held a loss of {self.goal.loss_ratio:.1%}: there is no PDR to find"
            )
        return values

    def _search(self, one: Boot) -> None:
        """Calibrate and search, once for each build."""
        side = one.build.side
        if side in self._searched or self.failure is not None:
            return
        searched_by = LoadSearch(one.sut)
        with one.blamed():
            found = searched_by.search(self._searched_goals)
        calibration = searched_by.calibrate()
        self._done.add(side)
        known = self.sides[side]
        self.sides[side] = known.but(
            replace(known.findings, search=searched(found), calibration=searched_by.calibrated())
        )
        failure = search_failure(found, calibration)
        if failure is not None:
            self.failure = Judgement(failure.verdict, f"the {side} {one.build.label}: {failure.reason}")
            return
        result = found.results[-1]
        self._most[side] = calibration.max_load
        self._centres[side] = result.lower or result.upper or 0.0

    @property
    def _searched_goals(self) -> tuple[Goal, ...]:
        """The goals of the search.

        Where boots' speed is constant the search is short: it only places the grid, and each boot measures its own PDR.
        """
        goals = goals_of(self.session.profile, self.scenario)
        if not self.facts.steady:
            return goals
        trial, width = self.session.profile.boot_trial, max(_PLACING, self.goal.width)
        short = replace(
            self.goal, width=width, initial_trial_duration=trial, final_trial_duration=trial, duration_sum=2 * trial,
            preceding_targets=1,
        )  # fmt: skip
        return (short,)

    def _grid(self) -> tuple[float, ...]:
        centres = list(self._centres.values())
        factors = ends(BOOT_GRID) if self.scenario.starves else BOOT_GRID
        return grid(min(centres), factors, min(self._most.values()), highest=max(centres))

    @property
    def _measurands(self) -> Measurands:
        """What all boots measure, once the loads are known."""
        profile = self.session.profile
        width = max(BOOT_WIDTH, profile.finest_width)
        top = min(STEADY_TOP_TRIALS, profile.boot_top_trials) if self.facts.steady else profile.boot_top_trials
        return Measurands.of(
            Setting(
                loads=self.loads, duration=self._trial, loss_ratio=self.goal.loss_ratio, top_trials=top, width=width,
                past=past_the_pdr(max(self.loads)) if self.scenario.starves else (), past_trials=_PAST_TRIALS,
                overloads=overloads(max(self.loads), self.scenario.overload, self._ceiling),
                paths=self.facts.follows_calls, memory=self.facts.sees_memory,
            ),
            self._latency if self.scenario.latency else None,
        )  # fmt: skip

    @property
    def _ceiling(self) -> float:
        """What the generator can offer either build, packets/s, by what was found, also of a run that is resumed."""
        known = [
            one.findings.calibration.ceiling for one in self.sides.values() if one.findings.calibration is not None
        ]
        return min(known, default=math.inf)

    @property
    def _trial(self) -> float:
        """Seconds of a trial. Some hundred packets may stand in an end host's sockets: of fewer than some thousands
        that is per cents, and no loss below them is seen. A kernel forwards a poll at a time: where one more or less is
        some per cent of a trial's packets, rates of equal boots are at two levels."""
        profile = self.session.profile
        duration = profile.boot_trial
        if not self.facts.steady:
            return duration
        share = max(_OF_A_TRIAL, profile.finest_width)
        polls = _POLL * BOOT_GRID[0] / min(self.loads) / share if self.loads else 0.0
        return max(duration, _END_HOST if self.scenario.starves else 0.0, min(polls, _LONGEST * duration))

    @property
    def _latency(self) -> LatencyTrials:
        return LatencyTrials(self.latency_loads, self.session.profile.boot_trial)

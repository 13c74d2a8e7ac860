"""The search of a SUT: what the generator offers, what the SUT forwards, and the bounds of the goals."""

from __future__ import annotations

import dataclasses

from pdrgate.gate.run.profile import Profile
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.measurands import Ask
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import CalibrationResult
from pdrgate.search.calibration import Calibration, calibrate
from pdrgate.search.goals import Goal
from pdrgate.search.mlr import SearchOutcome, search
from pdrgate.values.units import Rate


class LoadSearch:
    """Searches one SUT, of an open loop."""

    def __init__(self, sut: PreparedSut) -> None:
        self.calibration: Calibration | None = None
        self._sut = sut

    def calibrate(self) -> Calibration:
        """What the generator offers, and what the SUT forwards there; measured once."""
        if self.calibration is None:
            session = self._sut.session
            self.calibration = calibrate(
                lambda load, time: self._sut.measure(Ask(load, time, Phase.CALIBRATION)),
                session.profile.calibration_duration, steady=self._sut.testbed.steady,
            )  # fmt: skip
            session.observer.said(
                f"the generator offers up to {Rate(self.calibration.ceiling)}; "
                f"there the SUT handles {Rate(self.calibration.forwarding_rate)}"
            )
        return self.calibration

    def search(self, goals: tuple[Goal, ...]) -> SearchOutcome:
        """Calibrate, then search for the goals' bounds: first where the SUT is, then as far as the generator goes."""
        calibration = self.calibrate()

        def measure(load: float, duration: float) -> Trial:
            return self._sut.measure(Ask(load, duration, Phase.SEARCH), goal=goals[-1].name)

        budget, top = self._sut.session.profile.search_budget, calibration.search_load
        while True:
            found = search(measure, goals, min_load=calibration.min_load, max_load=top, budget=budget)
            if not found.at_its_end or top >= calibration.max_load:
                return found
            # Flat out the SUT forwarded less than it can: it suffers from overload. What it holds may be little beside
            # what the generator can send.
            top = self._overload(top, goals[-1].loss_ratio)

    def _overload(self, held: float, loss_ratio: float) -> float:
        """The first load, doubling from one that is held, that loses too much; at most the highest worth a trial."""
        calibration = self.calibrate()
        load, duration = held, self._sut.session.profile.calibration_duration
        while load < calibration.max_load:
            load = min(2 * load, calibration.max_load)
            if self._sut.measure(Ask(load, duration, Phase.CALIBRATION)).steady_loss_ratio > loss_ratio:
                break
        return load

    def calibrated(self) -> CalibrationResult | None:
        """The calibration as result.json has it."""
        if self.calibration is None:
            return None
        return CalibrationResult(ceiling=self.calibration.ceiling, forwarding_rate=self.calibration.forwarding_rate)


def goals_of(profile: Profile, scenario: Scenario) -> tuple[Goal, ...]:
    """A profile's goals, the last of them as the scenario asks for it and the profile has time for."""
    *others, last = profile.goals
    asked = dataclasses.replace(last, loss_ratio=scenario.loss_ratio, width=scenario.width)
    return (*others, dataclasses.replace(asked, width=max(asked.width, profile.finest_width)))

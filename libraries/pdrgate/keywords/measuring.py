"""Keywords that measure: the When steps, and getters for what they found."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from assertionengine import AssertionOperator, verify_assertion
from robot.api.deco import keyword

from pdrgate.errors import TestbedError, UsageError
from pdrgate.gate.scenario_run import ScenarioRun
from pdrgate.keywords.log import show_picture
from pdrgate.keywords.state import State
from pdrgate.reports.plots import GoalLine, search_path
from pdrgate.results.verdict import Verdict
from pdrgate.search.mlr import SearchResult
from pdrgate.trial import Trial
from pdrgate.units import Duration, Rate, Ratio

Quantile = Literal["p50", "p90", "p99", "max"]


class MeasuringKeywords:
    """Trials and searches."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._last: Trial | None = None

    @keyword
    def search_partial_drop_rate(self, loss: Ratio | None = None, width: Ratio | None = None) -> Rate:
        """Searches the PDR with MLRsearch (RFC 9971) and returns its relevant lower bound.

        ``loss`` is the loss ratio that counts as holding (0.5%), ``width`` the relative width at which the bounds are
        close enough; what is not given is the profile's. Fails with GENERATOR_LIMITED, UNSTABLE or INCONCLUSIVE when
        there is no PDR to find.
        """
        measurement = self._state.begun()
        goals = list(measurement.run.options.profile.goals)
        if loss is not None:
            goals[-1] = dataclasses.replace(goals[-1], loss_ratio=float(loss))
        if width is not None:
            goals[-1] = dataclasses.replace(goals[-1], width=float(width))
        found = measurement.search(goals)
        self._show(found)
        if measurement.judgement is not None:
            raise AssertionError(str(measurement.judgement))
        lower = found.results[-1].lower
        assert lower is not None
        return Rate(lower)

    @keyword
    def measure_load(self, load: Rate, duration: Duration = Duration(1)) -> dict[str, Any]:  # noqa: B008
        """Offers ``load`` for ``duration`` and returns the trial: offered, forwarded, loss_ratio and so on."""
        self._last = self._state.begun().measure_patiently(float(load), float(duration), "load")
        return dataclasses.asdict(self._last) | {
            "loss_ratio": Ratio(self._last.loss_ratio),
            "forwarding_rate": Rate(self._last.forwarding_rate),
            "generator_limited": self._last.generator_limited,
        }

    @keyword
    def get_loss_ratio(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns the loss ratio of the last `Measure Load`, and checks it: ``Get Loss Ratio    <=    0.1%``."""
        trial = self._require_trial()
        if trial.generator_limited:
            raise AssertionError(
                f"{Verdict.GENERATOR_LIMITED}: the generator reached {Rate(trial.offered_load)} of "
                f"{Rate(trial.intended_load)}; choose a lower load"
            )
        expected = None if assertion_operator is None else Ratio.parse(assertion_expected)
        return verify_assertion(Ratio(trial.loss_ratio), assertion_operator, expected, "Loss ratio", message)

    @keyword
    def get_latency(
        self,
        quantile: Quantile = "p99",
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns a latency of the last `Measure Load`, and checks it: ``Get Latency    p99    <    1 ms``."""
        trial = self._require_trial()
        if trial.latency is None:
            raise UsageError("the last trial had no latency probes; begin with the keyword Send Latency Probes")
        expected = None if assertion_operator is None else Duration.parse(assertion_expected)
        value = Duration(getattr(trial.latency, quantile))
        return verify_assertion(value, assertion_operator, expected, f"Latency {quantile}", message)

    @keyword
    def get_pdr(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns the relevant lower bound that the search found, and checks it: ``Get PDR    >=    1 Mpps``."""
        measurement = self._state.measurement
        found = measurement.found if isinstance(measurement, ScenarioRun) else None
        if found is None or found.results[-1].lower is None:
            raise TestbedError("there is no PDR; search it first with Search Partial Drop Rate")
        expected = None if assertion_operator is None else Rate.parse(assertion_expected)
        return verify_assertion(Rate(found.results[-1].lower), assertion_operator, expected, "PDR", message)

    def _require_trial(self) -> Trial:
        if self._last is None:
            raise TestbedError("there is no trial; measure one first with Measure Load")
        return self._last

    def _show(self, found: SearchResult) -> None:
        measurement = self._state.begun()
        goals = [
            GoalLine(result.goal.name, result.goal.loss_ratio, result.lower, result.upper) for result in found.results
        ]
        trials = [trial for trial in measurement.trials if trial.phase == "search"]
        png = search_path(trials, title=measurement.scenario.title, goals=goals)
        show_picture(png, f"{measurement.scenario.name}-search", measurement.run.options.folder / "plots")

"""Keywords that measure: the When steps, and getters for what they found."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from assertionengine import AssertionOperator
from robot.api.deco import keyword

from pdrgate.cause import causes_in_words
from pdrgate.errors import TestbedError, UsageError
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.keywords.log import show_scenario, show_search
from pdrgate.keywords.state import State
from pdrgate.measurands import RECEIVE_RATE
from pdrgate.results.verdict import Verdict
from pdrgate.trial import Trial
from pdrgate.units import Duration, Rate, Ratio

Quantile = Literal["p50", "p90", "p99", "max"]


class MeasuringKeywords:
    """Trials and searches."""

    def __init__(self, state: State) -> None:
        self._state = state

    @keyword
    def search_partial_drop_rate(self, loss: Ratio | None = None, width: Ratio | None = None) -> Rate:
        """Searches for the PDR with MLRsearch (RFC 9971) and returns its relevant lower bound.

        ``loss`` is the loss ratio that counts as holding (0.5%), ``width`` the relative width at which the bounds are
        close enough (1%). Fails with GENERATOR_LIMITED, DISTURBED, UNSTABLE or INCONCLUSIVE when there is no PDR to
        find, and with ERROR, before anything is measured, when the baseline that was named cannot serve.
        """
        measurement = self._state.begun()
        found = measurement.search(None if loss is None else float(loss), None if width is None else float(width))
        show_search(measurement)
        if measurement.judgement is not None:
            raise AssertionError(str(measurement.judgement))
        lower = found.results[-1].lower
        assert lower is not None
        return Rate(lower)

    @keyword
    def get_relevant_lower_bound(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns what `Search Partial Drop Rate` found, and checks it: ``Get Relevant Lower Bound    >=    1 Mpps``.

        It is the highest load that the search knows to hold the goal, and near the PDR, which repeats tell: `Get PDR`.
        """
        measurement = self._state.test.measurement
        bound = measurement.lower_bound if isinstance(measurement, ScenarioRun) else None
        if bound is None:
            raise TestbedError("there is no lower bound; search one first with Search Partial Drop Rate")
        expected = None if assertion_operator is None else Rate.parse(assertion_expected)
        what = "Relevant lower bound"
        return self._state.test.check(Rate(bound), assertion_operator, expected, what, message)

    @keyword
    def measure_window_curve(self) -> int | None:
        """Finds the knee of the window curve of TCP: the least window with nine tenths of the most throughput, in KiB.

        Sweeps go over windows from 16 KiB to 4 MiB until two in a row agree on the knee, four at most; fails with
        UNSTABLE when none do. The knee is told and not compared: it moves in steps.
        """
        measurement = self._state.transferring()
        found = measurement.sweep()
        if measurement.judgement is not None:
            raise AssertionError(str(measurement.judgement))
        return None if found is None else found // 1024

    @keyword
    def measure_transfers(self) -> None:
        """Repeats transfers by TCP, at rest and at the window that `Set TCP Streams` fixes.

        A closed loop offers what it gets acknowledged, so it has no PDR. What is compared in its place is the
        throughput at the fixed window, how many times the round trip at rest one under load takes, how many segments
        are sent for each that arrives, and, where that is counted, what a byte costs the SUT's kernel.
        """
        measurement = self._state.transferring()
        measurement.repeat()
        show_scenario(measurement, ())

    @keyword
    def measure_load(self, load: Rate, duration: Duration = Duration(1)) -> dict[str, Any]:  # noqa: B008
        """Offers ``load`` for ``duration`` and returns the trial: offered, forwarded, loss_ratio and so on."""
        trial = self._state.test.last_trial = self._state.begun().measure_load(float(load), float(duration))
        return dataclasses.asdict(trial) | {
            "loss_ratio": Ratio(trial.loss_ratio),
            "forwarding_rate": Rate(trial.forwarding_rate),
            "generator_limited": trial.generator_limited,
        }

    @keyword
    def soak(self, duration: Duration = Duration(3600), share: Ratio = Ratio(0.9)) -> None:  # noqa: B008
        """Offers a ``share`` of the PDR for ``duration``, or of the search's lower bound where no repeats told the PDR.

        In slices of a 360th, of a second at least, each on disk before the next: a run that was killed goes on with
        ``resume``. Told are the packets that were lost, when and where, and how latency drifts.
        """
        measurement = self._state.begun()
        measurement.measure_soak(float(duration), float(share))
        show_scenario(measurement, measurement.trials)

    @keyword
    def measure_maximum_receive_rate(self, trials: int = 10, duration: Duration | None = None) -> Rate:
        """Measures the MRR as CSIT has it, and returns it: what is forwarded of all that the generator can offer.

        The mean of ``trials`` of ``duration`` each, whatever is lost; if none is given, of the profile's length, a
        second of ``quick``. Where CSIT offers what the link carries, offered is what `Search Partial Drop Rate` calls
        the ceiling: all that the generator has. It is told beside all other measurands, and no verdict goes by it.
        Trials that the machine disturbed are repeated; fails with DISTURBED when that leaves less than half of them,
        and with ERROR, before anything is measured, when the baseline that was named cannot serve.
        """
        measurement = self._state.begun()
        length = measurement.session.profile.trial_duration if duration is None else float(duration)
        found = measurement.measure_receive_rate(trials, length)
        show_scenario(measurement, measurement.trials)
        if found is None or measurement.judgement is not None:
            raise AssertionError(str(measurement.judgement))
        return Rate(found.value)

    @keyword(name="Get MRR")
    def get_mrr(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns what `Measure Maximum Receive Rate` found, and checks it: ``Get MRR    >=    1 Mpps``."""
        measurement = self._state.test.measurement
        found = measurement.result().measurand(RECEIVE_RATE.name) if isinstance(measurement, ScenarioRun) else None
        if found is None:
            raise TestbedError("there is no MRR; measure it first with Measure Maximum Receive Rate")
        expected = None if assertion_operator is None else Rate.parse(assertion_expected)
        return self._state.test.check(Rate(found.value), assertion_operator, expected, RECEIVE_RATE.name, message)

    @keyword
    def get_loss_ratio(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns the loss ratio of the test's last `Measure Load`, and checks it: ``Get Loss Ratio    <=    0.1%``."""
        trial = self._require_trial()
        if trial.generator_limited:
            raise AssertionError(
                f"{Verdict.GENERATOR_LIMITED}: the generator reached {Rate(trial.offered_load)} of "
                f"{Rate(trial.intended_load)}; choose a lower load"
            )
        if trial.disturbed:
            why = causes_in_words(trial.disturbed)
            raise AssertionError(f"{Verdict.DISTURBED}: {why}, in each of the last trial's repeats")
        expected = None if assertion_operator is None else Ratio.parse(assertion_expected)
        return self._state.test.check(Ratio(trial.loss_ratio), assertion_operator, expected, "Loss ratio", message)

    @keyword
    def get_latency(
        self,
        quantile: Quantile = "p99",
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns a latency of the test's last `Measure Load`, and checks it: ``Get Latency    p99    <    1 ms``."""
        trial = self._require_trial()
        if trial.latency is None:
            raise UsageError("the last trial had no latency probes; begin with the keyword Send Latency Probes")
        expected = None if assertion_operator is None else Duration.parse(assertion_expected)
        value = Duration(getattr(trial.latency, quantile))
        return self._state.test.check(value, assertion_operator, expected, f"Latency {quantile}", message)

    @keyword
    def get_pdr(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns the PDR, and checks it: ``Get PDR    >=    1 Mpps``.

        It is the PDR as all reports tell it: of `Measurement Should Be Stable`, or of two builds the candidate's. A
        search alone has none, but the `Get Relevant Lower Bound`.
        """
        measurement = self._state.test.measurement
        pdr = measurement.result().pdr if measurement is not None else None
        if pdr is None:
            raise TestbedError(
                "there is no PDR; measure it first with Measurement Should Be Stable, after Search Partial Drop Rate"
            )
        expected = None if assertion_operator is None else Rate.parse(assertion_expected)
        return self._state.test.check(Rate(pdr.load), assertion_operator, expected, "PDR", message)

    def _require_trial(self) -> Trial:
        trial = self._state.test.last_trial
        if trial is None:
            raise TestbedError("there is no trial in this test; measure one first with Measure Load")
        return trial

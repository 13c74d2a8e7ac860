"""Keywords that measure: the When steps, and getters for what they found."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from assertionengine import AssertionOperator
from robot.api import SkipExecution
from robot.api.deco import keyword

from pdrgate.gate.run.measures import MeasureName, measure_of
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.keywords.failures import verdict_failure
from pdrgate.keywords.log import show_scenario, show_search
from pdrgate.keywords.state import KeywordComponent
from pdrgate.measurands import RECEIVE_RATE
from pdrgate.record.cause import causes_in_words
from pdrgate.record.parts import flattened
from pdrgate.record.trial import Trial
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import TestbedError, UsageError
from pdrgate.values.units import Duration, Rate, Ratio

Quantile = Literal["p50", "p90", "p99", "max"]


class MeasuringKeywords(KeywordComponent):
    """Trials and searches."""

    @keyword
    def search_partial_drop_rate(self, loss: Ratio | None = None, width: Ratio | None = None) -> Rate:
        """Searches the PDR with MLRsearch (RFC 9971) and returns its relevant lower bound, a rate.

        ``loss`` is the loss ratio up to which a load holds, 0.5% if none is given. ``width`` is the relative width at
        which the bounds are close enough, 1% if none is given.

        Fails with GENERATOR_LIMITED, DISTURBED, UNSTABLE or INCONCLUSIVE where there is no PDR to find. Fails with
        ERROR, before anything is measured, where the baseline that was named cannot serve.
        """
        measurement = self._state.begun()
        found = measurement.search(None if loss is None else float(loss), None if width is None else float(width))
        show_search(measurement)
        if measurement.judgement is not None:
            raise verdict_failure(measurement.result())
        lower = found.results[-1].lower
        assert lower is not None
        return Rate(lower)

    @keyword
    def measure_of_path(self, measure: MeasureName | None = None) -> str:
        """Returns what is measured on the test's path: ``measure``, as ``--measure`` takes it.

        Where it is none, that is the PDR, and of a closed loop its transfers. The test is skipped where its path has
        none of it.
        """
        scenario = self._state.asked
        found = measure_of(measure, scenario)
        if why := found.misfit(scenario):
            raise SkipExecution(why)
        return found.name

    @keyword
    def get_relevant_lower_bound(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns the bound that `Search Partial Drop Rate` found, and checks it.

        It is the highest load that the search knows to hold the goal. The PDR lies near it, and is measured
        by repeats, see `Get PDR`.

        | Get Relevant Lower Bound    >=    1 Mpps
        """
        measurement = self._state.test.measurement
        bound = measurement.lower_bound if isinstance(measurement, ScenarioRun) else None
        if bound is None:
            raise TestbedError("there is no lower bound; search one first with Search Partial Drop Rate")
        what = "Relevant lower bound"
        return self._state.test.check(Rate(bound), assertion_operator, assertion_expected, what, message)

    @keyword
    def measure_window_curve(self) -> int | None:
        """Finds the knee of TCP's window curve, the least window with 90 % of the most throughput; returns it in KiB.

        Sweeps go over windows from 16 KiB to 4 MiB until two in a row agree on the knee, four at most. Fails with
        UNSTABLE when no two agree. The knee is report-only, for it moves in steps.
        """
        measurement = self._state.transferring()
        found = measurement.sweep()
        if measurement.judgement is not None:
            raise verdict_failure(measurement.result())
        return None if found is None else found // 1024

    @keyword
    def measure_transfers(self) -> None:
        """Repeats transfers by TCP, at rest and at the window of `Set TCP Streams`.

        A closed loop offers what is acknowledged, so it has no PDR. These are compared in its place: the throughput at
        the fixed window; round trips under load, as a multiple of those at rest; segments sent for each that arrives;
        and, where it is counted, what a byte costs the SUT's kernel.
        """
        measurement = self._state.transferring()
        measurement.repeat()
        show_scenario(measurement, ())

    @keyword
    def measure_load(self, load: Rate, duration: Duration = Duration(1)) -> dict[str, Any]:  # noqa: B008
        """Offers ``load`` for ``duration`` and returns the trial, a dictionary.

        Its keys are those of a line of trials.jsonl, such as ``offered``, ``forwarded`` and ``latency``, and besides
        ``loss_ratio``, ``forwarding_rate`` and ``generator_limited``. Counts are packets, times are seconds.

        | ${trial}    Measure Load    500 kpps    duration=2 s
        | Should Be True    $trial['loss_ratio'] < 0.001
        """
        trial = self._state.test.last_trial = self._state.begun().measure_load(float(load), float(duration))
        told: dict[str, Any] = msgspec.to_builtins(flattened(trial))
        return told | {
            "loss_ratio": Ratio(trial.loss_ratio),
            "forwarding_rate": Rate(trial.forwarding_rate),
            "generator_limited": trial.generator_limited,
        }

    @keyword
    def soak(self, duration: Duration = Duration(3600), share: Ratio = Ratio(0.9)) -> None:  # noqa: B008
        """Offers a ``share`` of the PDR for ``duration``, or of the search's lower bound where no repeats gave a PDR.

        A slice lasts a 360th of the duration, a second at least, and is on disk before the next begins: a run that was
        killed goes on with ``resume``. Results show how many packets were lost, when and where, and how latency drifts.
        """
        measurement = self._state.begun()
        measurement.measure_soak(float(duration), float(share))
        show_scenario(measurement, measurement.trials)

    @keyword
    def measure_maximum_receive_rate(self, trials: int = 10, duration: Duration | None = None) -> Rate:
        """Measures the MRR and returns it: the rate that is forwarded of all that the generator can offer.

        The maximum receive rate is the mean of ``trials`` of ``duration`` each, whatever is lost. Without a duration a
        trial lasts as long as the profile's: one second in ``quick``. CSIT offers what the link carries; here the
        generator's ceiling is offered, as the search found it. The MRR is report-only: reports show it beside
        all other measurands, and no verdict rests on it.

        Trials that the machine disturbed are repeated. Fails with DISTURBED when less than half of them are left, and
        with ERROR, before anything is measured, where the baseline that was named cannot serve.
        """
        measurement = self._state.begun()
        length = measurement.session.profile.trial_duration if duration is None else float(duration)
        found = measurement.measure_receive_rate(trials, length)
        show_scenario(measurement, measurement.trials)
        if found is None or measurement.judgement is not None:
            raise verdict_failure(measurement.result())
        return Rate(found.value)

    @keyword(name="Get MRR")
    def get_mrr(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns the rate that `Measure Maximum Receive Rate` found, and checks it.

        | Get MRR    >=    1 Mpps
        """
        measurement = self._state.test.measurement
        found = measurement.result().measurand(RECEIVE_RATE.name) if isinstance(measurement, ScenarioRun) else None
        if found is None:
            raise TestbedError("there is no MRR; measure it first with Measure Maximum Receive Rate")
        return self._state.test.check(
            Rate(found.value), assertion_operator, assertion_expected, RECEIVE_RATE.name, message
        )

    @keyword
    def get_loss_ratio(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns the steady loss ratio of the test's last `Measure Load`, and checks it.

        It is the ratio that the load would come to if the trial went on: what was lost, and what the SUT's queues grew
        by. So it does not depend on how long the trial lasts, and it is the one that a PDR is judged by.

        Fails with GENERATOR_LIMITED or DISTURBED where the trial shows nothing of the SUT.

        | Get Loss Ratio    <=    0.1%
        """
        trial = self._require_trial()
        if trial.generator_limited:
            raise AssertionError(
                f"{Verdict.GENERATOR_LIMITED}: the generator reached {Rate(trial.offered_load)} of "
                f"{Rate(trial.intended_load)}; choose a lower load"
            )
        if trial.seen.disturbed:
            why = causes_in_words(trial.seen.disturbed)
            raise AssertionError(f"{Verdict.DISTURBED}: {why}, in each of the last trial's repeats")
        return self._state.test.check(
            Ratio(trial.steady_loss_ratio), assertion_operator, assertion_expected, "Loss ratio", message
        )

    @keyword
    def get_latency(
        self,
        quantile: Quantile = "p99",
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns a latency of the test's last `Measure Load`, and checks it. `Send Latency Probes` must come first.

        | Get Latency    p99    <    1 ms
        """
        trial = self._require_trial()
        if trial.seen.latency is None:
            raise UsageError("the last trial had no latency probes; begin with the keyword Send Latency Probes")
        value = Duration(getattr(trial.seen.latency, quantile))
        return self._state.test.check(value, assertion_operator, assertion_expected, f"Latency {quantile}", message)

    @keyword
    def get_pdr(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns the PDR that all reports show, and checks it.

        `Measurement Should Be Stable` measures it. Where two builds are compared, it is the candidate's. A search alone
        has no PDR, but has the bound that `Get Relevant Lower Bound` returns.

        | Get PDR    >=    1 Mpps
        """
        measurement = self._state.test.measurement
        pdr = measurement.result().pdr if measurement is not None else None
        if pdr is None:
            raise TestbedError(
                "there is no PDR; measure it first with Measurement Should Be Stable, after Search Partial Drop Rate"
            )
        return self._state.test.check(Rate(pdr.load), assertion_operator, assertion_expected, "PDR", message)

    def _require_trial(self) -> Trial:
        trial = self._state.test.last_trial
        if trial is None:
            raise TestbedError("there is no trial in this test; measure one first with Measure Load")
        return trial

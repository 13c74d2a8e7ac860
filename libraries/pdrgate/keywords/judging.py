"""Keywords that judge: the Then steps."""

from __future__ import annotations

from typing import Any

from assertionengine import AssertionOperator
from robot.api.deco import keyword

from pdrgate.gate.comparisons.packet_vectors.vectors_comparison import VectorsComparison
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.keywords.failures import verdict_failure
from pdrgate.keywords.log import show_evidence, show_scenario
from pdrgate.keywords.state import AnyMeasurement, KeywordComponent
from pdrgate.results.verdict import Judgement
from pdrgate.values.errors import TestbedError
from pdrgate.values.units import Ratio


class JudgingKeywords(KeywordComponent):
    """Stability and comparison."""

    @keyword
    def measurement_should_be_stable(self) -> None:
        """Repeats trials around the PDR, and fails unless PASTRAMI's checks say that the PDR can be trusted.

        Call it after `Search Partial Drop Rate`. After `Measure Transfers` it asks whether their throughput at the
        fixed window stays one number. After `Compare Kernel Builds` the trials are there already: it fails for a build
        whose curve supports no comparison.

        A failure names the check, with its number and its bound: ``UNSTABLE: TIR 0.46 after PDR 701 kpps, needs <
        0.10``.
        """
        measurement = self._state.measured
        if isinstance(measurement, VectorsComparison):
            raise TestbedError("runs on packets have no curve; judge them with: Packets Should Be Answered Alike")
        if not isinstance(measurement, PairsComparison):
            measurement.repeat()
            if measurement.judgement is not None:
                # The test ends here. The change that was measured is reported all the same, though not accepted.
                measurement.judge(self._tolerance(None))
            show_scenario(measurement, measurement.trials, searched=False)
            _fail_unless_passing(measurement, measurement.judgement)
        else:
            # The change that was measured is reported also where it is not accepted.
            judgement = measurement.judge(self._tolerance(None)) if measurement.stability() else None
            _fail_with_evidence(measurement, judgement)

    @keyword(name="PDR Should Not Have Regressed")
    def pdr_should_not_have_regressed(self, tolerance: Ratio | None = None) -> str:
        """Compares all measurands with the baseline's, and fails when one is worse by more than its tolerance.

        ``tolerance`` is that of PDR and saturation throughput. Without one it is that of `Compare Kernel Builds`, else
        that of `Open Testbed`. Other measurands have tolerances of their own.

        Fails with REGRESSION when the whole interval of a change lies beyond the tolerance, and with INCONCLUSIVE when
        the interval spans it. Without a baseline the verdict is NO_BASELINE and the test passes. Returns the verdict. A
        test may ask several times; its verdict is the gravest.

        | PDR Should Not Have Regressed    tolerance=2%
        """
        if isinstance(self._state.measured, VectorsComparison):
            raise TestbedError("runs on packets have no PDR; judge them with: Packets Should Be Answered Alike")
        judgement = self._state.measured.judge(self._tolerance(tolerance))
        _fail_with_evidence(self._state.measured, judgement)
        return str(judgement.verdict)

    @keyword
    def packets_should_be_answered_alike(self, tolerance: Ratio | None = None) -> str:
        """Fails when two eBPF programs return other verdicts or leave other packets, or the candidate's cost more.

        Call it after `Compare EBPF Builds On Packets`. ``tolerance`` is the growth of a run's instructions that is
        accepted, of all packets together and of each; without one it is the run's ``cost_tolerance``. Where nothing
        counts instructions, answers alone are judged. Returns the verdict.

        | Packets Should Be Answered Alike    tolerance=0.5%
        """
        measurement = self._state.measured
        if not isinstance(measurement, VectorsComparison):
            raise TestbedError("no program was run on packets; begin with Compare EBPF Builds On Packets")
        judgement = measurement.judge(None if tolerance is None else float(tolerance))
        _fail_with_evidence(measurement, judgement)
        return str(judgement.verdict)

    @keyword(name="TCP Should Not Have Regressed")
    def tcp_should_not_have_regressed(self, tolerance: Ratio | None = None) -> str:
        """Compares transfers with the baseline's, and fails when they are worse by more than their tolerances.

        ``tolerance`` is that of the throughput at the fixed window. Round trips under load have at least 15 %,
        retransmissions half a percent of all segments. All else is as in `PDR Should Not Have Regressed`.
        """
        return str(self.pdr_should_not_have_regressed(tolerance))

    @keyword
    def soak_should_have_lost_at_most(self, loss: Ratio = Ratio(0.0)) -> None:  # noqa: B008 - a frozen number
        """Fails when the test's `Soak` lost more than ``loss`` of its packets. With 0 % its load is an NDR.

        Fails with UNSTABLE where only the SUT can be the reason. Fails with DISTURBED where all of it was lost while
        the machine was disturbed, by evidence other than the loss.
        """
        measurement = self._state.measured
        if not isinstance(measurement, ScenarioRun):
            raise TestbedError("two builds are being compared; soak one in a test of its own")
        _fail_with_evidence(measurement, measurement.judge_soak(float(loss)))

    @keyword
    def get_verdict(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns the verdict so far, and checks it.

        | Get Verdict    ==    PASS
        """
        judgement = self._state.test.measurement.judgement if self._state.test.measurement else None
        if judgement is None:
            raise TestbedError("there is no verdict yet; search the PDR and judge it first")
        verdict = str(judgement.verdict)
        return self._state.test.check(verdict, assertion_operator, assertion_expected, "Verdict", message)

    def _tolerance(self, asked: Ratio | None) -> float:
        """The tolerance of a test: its own, else that of the comparison of its builds, else the run's."""
        if asked is not None:
            return float(asked)
        measurement = self._state.measured
        if isinstance(measurement, PairsComparison):
            return measurement.task.plan.tolerance
        return float(measurement.session.options.tolerance)


def _fail_with_evidence(measurement: AnyMeasurement, judgement: Judgement | None) -> None:
    """Robot unfolds what fails: there the evidence is seen without a click."""
    if judgement is not None and not judgement.verdict.passes:
        show_evidence(measurement.result(judgement))
    _fail_unless_passing(measurement, judgement)


def _fail_unless_passing(measurement: AnyMeasurement, judgement: Judgement | None) -> None:
    if judgement is not None and not judgement.verdict.passes:
        raise verdict_failure(measurement.result(judgement))

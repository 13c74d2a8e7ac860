"""Keywords that judge: the Then steps."""

from __future__ import annotations

from typing import Any

from assertionengine import AssertionOperator, verify_assertion
from robot.api.deco import keyword

from pdrgate.errors import TestbedError
from pdrgate.gate.build_comparison import BuildComparison
from pdrgate.gate.scenario_run import ScenarioRun
from pdrgate.keywords.log import show_html, show_picture
from pdrgate.keywords.state import State
from pdrgate.reports import plots, tables
from pdrgate.results.verdict import Judgement
from pdrgate.stability import Assessment
from pdrgate.units import Ratio


class JudgingKeywords:
    """Stability and comparison."""

    def __init__(self, state: State) -> None:
        self._state = state

    @keyword
    def measurement_should_be_stable(self) -> None:
        """Repeats trials below, at and beyond the PDR and fails unless PASTRAMI's checks say the PDR can be trusted.

        After `Compare Kernel Builds` the trials are there already, and those of both builds must be stable.

        A failure says which check failed, with its number and its bound: ``UNSTABLE: TIR 0.46 after PDR 701 kpps,
        needs < 0.10``.
        """
        measurement = self._measured()
        if isinstance(measurement, ScenarioRun):
            self._show(measurement, measurement.repeat())
        _fail_unless_passing(measurement.judgement)

    @keyword(name="PDR Should Not Have Regressed")
    def pdr_should_not_have_regressed(self, tolerance: Ratio = Ratio(0.02)) -> str:  # noqa: B008
        """Compares the PDR with the baseline's and fails when it is lower by more than ``tolerance``.

        Fails with REGRESSION when the whole interval of the change is below, and with INCONCLUSIVE when it spans the
        tolerance. Without a baseline the verdict is NO_BASELINE and the test passes. Returns the verdict.
        """
        measurement = self._measured()
        judgement = measurement.judge(float(tolerance))
        _fail_unless_passing(judgement)
        return str(judgement.verdict)

    @keyword
    def get_verdict(
        self,
        assertion_operator: AssertionOperator | None = None,
        assertion_expected: Any = None,
        message: str | None = None,
    ) -> Any:
        """Returns the verdict so far, and checks it: ``Get Verdict    ==    PASS``."""
        judgement = self._state.measurement.judgement if self._state.measurement else None
        if judgement is None:
            raise TestbedError("there is no verdict yet; search the PDR and judge it first")
        return verify_assertion(str(judgement.verdict), assertion_operator, assertion_expected, "Verdict", message)

    def _measured(self) -> ScenarioRun | BuildComparison:
        if self._state.measurement is None:
            raise TestbedError("there is no PDR; search it first with Search Partial Drop Rate")
        return self._state.measurement

    def _show(self, measurement: ScenarioRun, assessment: Assessment) -> None:
        title, folder = measurement.scenario.title, measurement.run.options.folder / "plots"
        subtitle = f"kernel {measurement.run.environment.kernel_release}"
        name = measurement.scenario.name
        show_picture(plots.load_loss(assessment, title=title, subtitle=subtitle), f"{name}-load-loss", folder)
        show_picture(plots.rates(assessment, title=title, subtitle=subtitle), f"{name}-rates", folder)
        show_picture(plots.repeats(assessment, title=title), f"{name}-repeats", folder)
        show_html(tables.checks_table(assessment))
        show_html(tables.loads_table(assessment))


def _fail_unless_passing(judgement: Judgement | None) -> None:
    if judgement is not None and not judgement.verdict.passes:
        raise AssertionError(str(judgement))

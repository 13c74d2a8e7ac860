"""The library itself: a thin facade over components, one per concern."""

from __future__ import annotations

import re
import time
from typing import Any

from rich.text import Text
from robot.api import SkipExecution, logger
from robotlibcore import DynamicCore

from pdrgate import __version__
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.declaration import declarations
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.run_record import not_in_history
from pdrgate.gate.run.scenario import Scenario
from pdrgate.keywords.comparing import BuildKeywords
from pdrgate.keywords.describing import ScenarioKeywords
from pdrgate.keywords.failures import STOPPED, failed_by, is_assertion
from pdrgate.keywords.judging import JudgingKeywords
from pdrgate.keywords.log import show_run, show_trials
from pdrgate.keywords.measuring import MeasuringKeywords
from pdrgate.keywords.state import RunningTest, State
from pdrgate.keywords.testbed import TestbedKeywords
from pdrgate.reports.console.screen import verdict_text
from pdrgate.reports.words.durations import time_left
from pdrgate.reports.words.headline import scenario_headline, scenario_in_lines
from pdrgate.results.verdict import INTERRUPTED, Judgement, Verdict
from pdrgate.values.errors import PdrGateError
from pdrgate.values.units import Duration, Rate, Ratio

_NAMED = re.compile(r"--([a-z][a-z-]*)(?: (\d+)([^\s,;)]*))?")


def as_arguments(sentence: str) -> str:
    """The sentence with arguments of `Open Testbed` in place of options; what these have not stays as it is."""
    return _NAMED.sub(_argument, sentence.replace("--set ", ""))


def _argument(named: re.Match[str]) -> str:
    name = named[1].replace("-", "_")
    one = declarations(Options).get(name)
    if one is None:
        return named[0]
    if one.flag:
        return f"{name}=True"
    number, unit = named[2], named[3]
    if number is None:
        return f"{name}=…"
    return f"{name}={number} {unit}" if unit.isalpha() else f"{name}={number}{unit}"


_LINE = 100
"""Characters of what a path came to, in its line."""


# In the example below Robot takes the outer asterisks of five for bold, and shows three.
class PdrGate(DynamicCore):  # type: ignore[misc]  # it ships no types
    """Decides whether a kernel's packet data path is still as fast as it was, and whether that can be trusted.

    A suite opens a testbed. Each test describes a scenario, searches its partial drop rate (PDR, the highest load with
    at most 0.5 % loss), repeats trials around it, and asks two questions: is the measurement stable, and has the PDR
    regressed? A test that fails says its verdict first: UNSTABLE, REGRESSION, CRASH, INCONCLUSIVE, ASSERTION_FAILED,
    DISTURBED, GENERATOR_LIMITED or ERROR.

    == Example ==

    | ***** Settings *****
    | Library        PdrGate
    | Suite Setup    Open Testbed    testbed.yaml
    |
    | ***** Test Cases *****
    | IPv6 Routing Keeps Its PDR
    |     Set Data Path                    ipv6-routing
    |     Set Receive Buffers              4096
    |     Search Partial Drop Rate         loss=0.5%    width=1%
    |     Measurement Should Be Stable
    |     PDR Should Not Have Regressed    tolerance=2%

    The words of the gate's own suites, ``The SUT Routes IPv6`` for one, come with it for others to use, and so does
    ``${TESTBED}``, a guest of constant speed:

    | Resource       pdrgate/resources/gate.resource

    == Quantities ==

    Loads are written with a unit, ``1.2 Mpps`` or ``500 kpps``, ratios as ``0.5%`` or ``0.005``, durations as
    ``500 ms`` or ``10 s``. An unknown unit fails with the units that there are.

    == Results ==

    ``result.json``, ``trials.jsonl`` and ``plots/`` lie in Robot's output directory. The testbed is put back as it was
    when the suite that opened it ends, also when it fails or is interrupted.
    """

    ROBOT_LIBRARY_SCOPE = "GLOBAL"
    ROBOT_LIBRARY_VERSION = __version__
    ROBOT_LISTENER_API_VERSION = 3
    ROBOT_LIBRARY_DOC_FORMAT = "ROBOT"
    ROBOT_LIBRARY_CONVERTERS = {Rate: Rate.parse, Ratio: Ratio.parse, Duration: Duration.parse}  # noqa: RUF012

    def __init__(self) -> None:
        self._state = State()
        self._testbeds = TestbedKeywords(self._state)
        self._describing = ScenarioKeywords(self._state)
        self._described: dict[str, Scenario] | None = None
        self.ROBOT_LIBRARY_LISTENER = self
        super().__init__(
            [
                self._testbeds,
                self._describing,
                MeasuringKeywords(self._state),
                BuildKeywords(self._state),
                JudgingKeywords(self._state),
            ]
        )

    def get_keyword_documentation(self, name: str) -> str:
        """Called by Robot. The options of a testbed are documented by what declares them."""
        text: str = super().get_keyword_documentation(name)
        if name != "open_testbed":
            return text
        rows = (
            f"| ``{one.name}`` | {', '.join(one.choices) or one.form} | {one.default_text} | {one.help} |"
            for one in declarations(Options).values()
        )
        return "\n".join((text, "", "| =Option= | =Value= | =Default= | =Meaning= |", *rows))

    def only_describe(self, scenarios: dict[str, Scenario]) -> None:
        """Have each test describe its scenario and end where it would measure.

        Args:
            scenarios: gets the scenario of each test, by its long name.
        """
        self._described = scenarios

    def run_keyword(self, name: str, args: Any, kwargs: Any = None) -> Any:
        """Called by Robot. A fault of the testbed or of an argument fails with ERROR, as all reports call it."""
        component = getattr(self.keywords[name], "__self__", None)
        if self._described is not None and component is not self._describing:
            if component is self._testbeds:
                return None
            self._described[self._state.test.longname] = self._state.test.scenario
            raise SkipExecution("its scenario is described")
        try:
            return super().run_keyword(name, args, kwargs)
        except PdrGateError as error:
            measurement = self._state.test.measurement
            show_trials(measurement.trials if measurement is not None else ())
            told = str(error) if self._state.by_gate else as_arguments(str(error))
            raise AssertionError(f"{Verdict.ERROR}: {told}") from error

    def start_test(self, data: Any, result: Any) -> None:
        """Every test describes its scenario anew."""
        self._state.test = RunningTest(data.name, data.longname)
        if self._state.began is None:
            self._state.began = time.monotonic()
        self._testbeds.share_connections()  # of a testbed that a suite above this one has opened

    def end_test(self, data: Any, result: Any) -> None:
        """Put the SUT back and record the verdict, however the test ended."""
        test, self._state.test = self._state.test, RunningTest()
        self._state.screen.status("")
        measurement = test.measurement
        if measurement is None:
            if result.failed and self._state.record is not None:
                reason = _one_line(result.message.removeprefix(f"{Verdict.ERROR}: "))
                self._state.record.fail(reason, path=test.name)
                if self._state.brief:
                    self._line_of_path(test.name, Verdict.ERROR, reason)
                show_run(self._state.record.result(), result.parent)
            return
        try:
            asserted = failed_by(result, test.failed_checks)
            ended = _judged(measurement.judgement, result.passed, result.message, asserted)
            judgement = measurement.finish(ended)
        except PdrGateError as error:
            result.status = "FAIL"
            result.message = f"{Verdict.ERROR}: {error}"
            return
        if not judgement.verdict.passes and (result.failed or ended.verdict.passes):
            result.status = "FAIL"
            result.message = scenario_in_lines(measurement.session.record.scenarios[-1])
            if measurement.session.record.scenarios[-1].details.acknowledged:
                result.status = "SKIP"  # neither a pass nor a failure
        if isinstance(measurement, PairsComparison) and measurement.stay_up:
            scenario = measurement.scenario
            if scenario.streams is None:
                self._state.paths[scenario.name] = scenario
        show_run(measurement.session.record.result(), result.parent)
        self._tell(measurement.scenario.title, judgement, test.name)

    def _tell(self, title: str, judgement: Judgement, test: str) -> None:
        """Say what a test came to, as far as the gate does not when all has ended."""
        screen, ended = self._state.screen, len(self._state.record.scenarios if self._state.record else ())
        if self._state.brief and self._state.record is not None:
            line = scenario_headline(self._state.record.scenarios[-1], _LINE)
            self._line_of_path(test, judgement.verdict, line.removeprefix(f"{judgement.verdict}: "))
            return
        if not self._state.by_gate:
            screen.line(f"  {title}")
            screen.line(f"  {judgement}")
        elif ended < self._state.to_measure:
            screen.line(Text.assemble(f"  {ended} of {self._state.to_measure}: ", verdict_text(judgement.verdict)))

    def _line_of_path(self, test: str, verdict: Verdict, sentence: str) -> None:
        """Print what one of several paths came to, and how long the others will take."""
        record, number = self._state.record, self._state.to_measure
        done = len(record.scenarios) + len(record.result().left_out) if record is not None else 0
        left = time_left(time.monotonic() - (self._state.began or 0.0), done, number)
        said = f": {sentence}" if len(sentence) <= _LINE else f": {sentence[:_LINE]}…"
        parts = (f"  {done} of {number}, {test}: ", verdict_text(verdict), said, f"; {left}" if left else "")
        self._state.screen.line(Text.assemble(*parts))

    def start_suite(self, data: Any, result: Any) -> None:
        """Testbeds are opened by suites, and a run has as many chances to err as tests."""
        self._state.suite = data.longname
        top = data
        while top.parent is not None:
            top = top.parent
        self._state.tests = max(1, top.test_count)

    def end_suite(self, data: Any, result: Any) -> None:
        """Close what the suite opened and did not close."""
        self._testbeds.suite_ended(data.longname)
        self._state.suite = data.longname.rpartition(".")[0]

    def close(self) -> None:
        """Put the run into the history when all has ended: its folder is complete, so nothing of it can be lost."""
        if self._state.record is not None:
            for where in self._state.histories:
                if untold := not_in_history(where, self._state.record.folder):
                    logger.console(f"pdrgate: {untold}", stream="stderr")

    def end_library_keyword(self, data: Any, implementation: Any, result: Any) -> None:
        """Remember an assertion of the suite's own that failed."""
        if result.failed and is_assertion(implementation):
            self._state.test.failed_checks.append(result)


def _judged(judgement: Judgement | None, passed: bool, message: str, asserted: bool) -> Judgement:
    """The verdict of a test that has ended, also when it ended before a verdict was asked for, or otherwise than by it.

    What a suite itself asserts may fail because of the build, and has a word of its own. Everything else that ends a
    test, a typing error for one, is no verdict of ours and not the build's fault.

    Args:
        asserted: whether it failed by nothing else than what the suite asserts.
    """
    if passed:
        return judgement or Judgement(Verdict.NO_BASELINE, "the test asked for no comparison")
    if judgement is not None and not judgement.verdict.passes:
        return judgement
    if message == STOPPED:
        return Judgement(Verdict.ERROR, INTERRUPTED)
    if asserted:
        found = "" if judgement is None else f"the gate itself says {judgement.verdict}"
        return Judgement(Verdict.ASSERTION_FAILED, _one_line(message)).remarked(found)
    word, _, reason = message.partition(": ")
    told = next((one for one in Verdict if one == word and not one.passes), None)
    return Judgement(Verdict.ERROR, _one_line(message)) if told is None else Judgement(told, _one_line(reason))


def _one_line(message: str) -> str:
    """Robot proposes other keywords below an unknown one's name."""
    return " ".join(message.split())

"""JUnit's XML of a run, xunit.xml, as CI servers read it.

What a build fails is a failure, what testbed or tool do is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from pdrgate.reports.ci.export_figures import slug, unit
from pdrgate.reports.markup.columns import table_lines
from pdrgate.reports.words.build_words import build_lines, kernel_release
from pdrgate.reports.words.headline import scenario_fault, scenario_headline, scenario_in_lines
from pdrgate.reports.words.path_remarks import said_of_paths
from pdrgate.reports.words.path_table import is_portfolio, path_lines, paths_table
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import EXIT_FAULT, EXIT_PASS

XUNIT_FILE = "xunit.xml"
LARGEST_XUNIT = 64 << 20
"""Largest xunit.xml that is read, bytes."""
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""
_FAULTS = tuple(word for word in Verdict if word.exit_code == EXIT_FAULT)


def junit(result: RunResult) -> bytes:
    """The file's content of a run whose output.xml is not there any more: a test case per scenario."""
    suite = ElementTree.Element("testsuite", name="pdrgate")
    cases: list[tuple[str, Verdict, str, ScenarioResult | None]] = [
        (one.case, one.verdict, one.reason, one) for one in result.scenarios
    ]
    cases += [(one.path, Verdict.ERROR, one.reason, None) for one in result.left_out if one.is_fault]
    unable = [one for one in result.left_out if not one.is_fault]
    for name, verdict, reason, scenario in cases or [(result.run, result.verdict, result.reason, None)]:
        case = ElementTree.SubElement(suite, "testcase", classname="pdrgate", name=_xml(name))
        if scenario is not None and scenario.details.acknowledged:
            ElementTree.SubElement(case, "skipped", message=_xml(scenario_headline(scenario)))
        elif verdict.exit_code != EXIT_PASS:
            ElementTree.SubElement(case, "failure", message=_xml(f"{verdict}: {reason}"))
        _tell(case, scenario)
    for left in unable:
        case = ElementTree.SubElement(suite, "testcase", classname="pdrgate", name=_xml(left.path))
        ElementTree.SubElement(case, "skipped", message=_xml(left.reason))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    _count(suite)
    return _written(suite, result)


def retold(robots: bytes, result: RunResult) -> bytes:
    """Robot's own file, whose tests know no fault but the build's: with errors, and numbers as properties.

    Raises:
        ValueError: it is not Robot's.
    """
    try:
        suite = ElementTree.fromstring(robots)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from error
    left = list(result.scenarios)
    for case in suite.iter("testcase"):
        skipped = case.find("skipped") is not None
        own = (one for one in left if _xml(one.origin.test) == case.get("name"))
        mine = next((one for one in own if bool(one.details.acknowledged) or not skipped), None)
        if mine is not None:
            left.remove(mine)
        _tell(case, mine)
    for one in (suite, *suite.iter("testsuite")):
        # Of the topmost it is a page with pictures.
        for properties in one.findall("properties"):
            one.remove(properties)
        _count(one)
    return _written(suite, result)


def suites_side_by_side(tests: Mapping[str, bytes], result: RunResult) -> bytes:
    """The tests of several runs, each a suite called as its run. Its name distinguishes equal tests of two runs."""
    whole = ElementTree.Element("testsuites")
    for place, own in tests.items():
        suite = ElementTree.fromstring(own)
        suite.set("name", _xml(place))
        for case in suite.iter("testcase"):
            case.set("classname", _xml(f"{place}: {case.get('classname')}"))
        whole.append(suite)
    _count(whole)
    ElementTree.indent(whole)
    whole.set("name", _xml(f"pdrgate: {result.verdict}"))
    content: bytes = ElementTree.tostring(whole, encoding="UTF-8", xml_declaration=True)
    return content + b"\n"


def failed_besides(tests: bytes) -> Iterator[str]:
    """Tests that failed though their verdict passes, and why; of what `junit` or `retold` made."""
    for case in ElementTree.fromstring(tests).iter("testcase"):
        for failure in case.findall("failure"):
            word = failure.get("type")
            if word not in set(Verdict) or Verdict(word).passes:
                yield f"{case.get('name')}: {failure.get('message')}"


def _tell(case: ElementTree.Element, scenario: ScenarioResult | None) -> None:
    for failure in case.findall("failure"):
        told = str(failure.get("message"))
        word = scenario.verdict if scenario else next((one for one in _FAULTS if f"{one}: " in told), None)
        if word is not None:
            failure.set("type", str(word))
        if word in _FAULTS:
            failure.tag = "error"
        whole = _xml(f"{scenario.verdict}: {scenario.reason}") if scenario is not None else ""
        if scenario is not None and told in (whole, _xml(scenario_in_lines(scenario))):
            # CI servers show the message in a line, and the text to who asks for it.
            failure.set("message", _xml(scenario_headline(scenario)))
            failure.text = _xml("\n".join(filter(None, (scenario_fault(scenario), whole))))
    if scenario is not None:
        properties = ElementTree.Element("properties")
        for name, value in _numbers(scenario):
            ElementTree.SubElement(properties, "property", name=_xml(name), value=_xml(value))
        case.insert(0, properties)


def _numbers(scenario: ScenarioResult) -> Iterator[tuple[str, str]]:
    yield "verdict", str(scenario.verdict)
    if fault := scenario_fault(scenario):
        yield "fault", fault
    yield "scenario", scenario.label
    for known in scenario.details.acknowledged:
        yield "acknowledged", f"until {known.until}: {known.reason} ({known.by})"
    yield from [(str(side.side), side.build) for side in scenario.builds.sides] or [
        ("kernel", kernel_release(scenario))
    ]
    if scenario.comparison is not None and scenario.comparison.notice:
        yield "notice", scenario.comparison.notice
    for number, line in enumerate(build_lines(scenario), start=1):
        yield f"builds.{number}", line
    for number, line in enumerate(scenario.details.unmeasured, start=1):
        yield f"unmeasured.{number}", line
    for one in scenario.findings.measurands:
        for end, value in (("", one.value), (".lower", one.lower), (".upper", one.upper)):
            if value is not None:
                yield f"{slug(one.name)}{end} ({unit(one)})", f"{value:.6g}"
    for change in scenario.comparison.changes if scenario.comparison else ():
        for end, value in (("", change.change), (".lower", change.lower), (".upper", change.upper)):
            yield f"change.{slug(change.measurand)}{end} (%)", f"{100 * value:.4g}"


def _count(suite: ElementTree.Element) -> None:
    cases = list(suite.iter("testcase"))
    suite.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))


def _written(suite: ElementTree.Element, result: RunResult) -> bytes:
    properties = ElementTree.Element("properties")
    for name, value in (
        ("verdict", str(result.verdict)), ("testbed", result.testbed.name), ("profile", result.profile),
        ("run", result.run), ("command", result.command),
    ):  # fmt: skip
        if value:
            ElementTree.SubElement(properties, "property", name=name, value=_xml(value))
    suite.insert(0, properties)
    if is_portfolio(result):
        _tell_paths(suite, result)
    ElementTree.indent(suite)
    content: bytes = ElementTree.tostring(suite, encoding="UTF-8", xml_declaration=True)
    return content + b"\n"


def _tell_paths(suite: ElementTree.Element, result: RunResult) -> None:
    """Put the table over all paths where CI servers show what a suite printed."""
    table = paths_table(path_lines(result), result)
    lines = [*table_lines(table, indent=""), *said_of_paths(result)]
    ElementTree.SubElement(suite, "system-out").text = _xml("\n".join(("", *lines, "")))


def _xml(told: str) -> str:
    return _NO_XML.sub("\ufffd", told)

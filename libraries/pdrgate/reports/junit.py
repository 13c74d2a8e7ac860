"""xunit.xml from a result: a test case per scenario, for a run whose output.xml is not there any more."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from pdrgate.errors import EXIT_FAIL, EXIT_PASS
from pdrgate.results.model import RunResult
from pdrgate.results.verdict import Verdict

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def junit(result: RunResult) -> bytes:
    """The file's content. A SUT that fails is a failure; a testbed or a tool that does is an error."""
    cases = [(scenario.test or scenario.name, scenario.verdict, scenario.reason) for scenario in result.scenarios]
    cases = cases or [(result.run, result.verdict, result.reason)]
    codes = [verdict.exit_code for _, verdict, _ in cases]
    suite = ElementTree.Element(
        "testsuite",
        name="pdrgate",
        tests=str(len(cases)),
        failures=str(codes.count(EXIT_FAIL)),
        errors=str(sum(code not in (EXIT_PASS, EXIT_FAIL) for code in codes)),
        skipped="0",
    )
    for name, verdict, reason in cases:
        case = ElementTree.SubElement(suite, "testcase", classname="pdrgate", name=_NO_XML.sub("\ufffd", name))
        _outcome(case, verdict, _NO_XML.sub("\ufffd", reason))
    ElementTree.indent(suite)
    content: bytes = ElementTree.tostring(suite, encoding="UTF-8", xml_declaration=True)
    return content + b"\n"


def _outcome(case: ElementTree.Element, verdict: Verdict, reason: str) -> None:
    if verdict.exit_code != EXIT_PASS:
        tag = "failure" if verdict.exit_code == EXIT_FAIL else "error"
        ElementTree.SubElement(case, tag, message=f"{verdict}: {reason}", type=str(verdict))

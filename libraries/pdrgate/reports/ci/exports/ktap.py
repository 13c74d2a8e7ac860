"""The Kernel Test Anything Protocol, version 1 (Linux, Documentation/dev-tools/ktap.rst): a result line for each path.

kselftest, KUnit's parser and NIPA read it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pdrgate.reports.ci.export_figures import says_more
from pdrgate.reports.words.headline import headline, scenario_headline
from pdrgate.results.model import RunResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.printable import printable


def ktap(result: RunResult) -> str:
    """The run as KTAP: its headline as a diagnostic, then a line for each scenario with its verdict as a diagnostic.

    A scenario that passes is ``ok``. A path that was left out is ``ok`` with the directive SKIP and its reason. One
    that a fault kept from being measured is ``not ok``. A run that does not pass, while its scenarios do, has a line of
    its own.
    """
    lines = list(_results(result))
    if says_more(result):
        number = len(result.scenarios) + len(result.left_out) + 1
        lines += [f"# {_plain(headline(result))}", f"not ok {number} the run"]
    count = sum(not line.startswith("#") for line in lines)
    return "\n".join(["KTAP version 1", f"1..{count}", f"# {_plain(headline(result))}", *lines]) + "\n"


def _results(result: RunResult) -> Iterator[str]:
    for number, scenario in enumerate(result.scenarios, start=1):
        yield f"# {_plain(scenario_headline(scenario))}"
        yield f"{'ok' if scenario.verdict.passes else 'not ok'} {number} {_plain(scenario.label)}"
    for number, one in enumerate(result.left_out, start=len(result.scenarios) + 1):
        if one.is_fault:
            yield f"# {Verdict.ERROR}: {_plain(one.reason)}"
            yield f"not ok {number} {_plain(one.path)}"
        else:
            yield f"ok {number} {_plain(one.path)} # SKIP {_plain(one.reason)}"


def _plain(text: str) -> str:
    """The text in one line, without the character that begins a directive."""
    return " ".join(printable(text).replace("#", "").split())


EXPORT = ktap

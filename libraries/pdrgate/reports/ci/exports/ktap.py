"""The Kernel Test Anything Protocol, version 1 (Linux, Documentation/dev-tools/ktap.rst): a result line for each path.

kselftest, KUnit's parser and NIPA read it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pdrgate.reports.ci.export_figures import says_more
from pdrgate.reports.words.headline import headline, scenario_headline
from pdrgate.reports.words.path_table import acknowledged_until
from pdrgate.results.model import RunResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.printable import printable


def ktap(result: RunResult) -> str:
    """The run as KTAP: a line for each scenario with its verdict as a diagnostic, then the headline of several.

    A scenario that passes is ``ok``. One whose change is acknowledged is ``ok`` with the directive XFAIL. A path that
    was left out is ``ok`` with the directive SKIP and its reason. One that a fault kept from being measured is ``not
    ok``. A run that does not pass, while its scenarios do, has a line of its own.
    """
    lines = list(_results(result))
    count = sum(not line.startswith("#") for line in lines)
    told = f"# {_plain(headline(result))}"
    if told not in lines:  # a parser takes what stands above a result for that result's
        lines.append(told)
    if says_more(result):
        count += 1
        lines.append(f"not ok {count} the run")
    return "\n".join(["KTAP version 1", f"1..{count}", *lines]) + "\n"


def _results(result: RunResult) -> Iterator[str]:
    for number, scenario in enumerate(result.scenarios, start=1):
        yield f"# {_plain(scenario_headline(scenario))}"
        known = acknowledged_until(scenario)
        expected = f" # XFAIL acknowledged until {known}" if known else ""
        yield f"{'ok' if scenario.counts_as.passes else 'not ok'} {number} {_plain(scenario.case)}{expected}"
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

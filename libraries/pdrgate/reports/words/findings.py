"""An examination as text: a line for each finding, its remedy below it, and a sentence at the end."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from pdrgate.doctor import Finding, Status, worst

WIDTH = 120
_STATUS, _CHECK = 9, 18
"""Columns."""
_INDENT = " " * (2 + _STATUS + _CHECK)


def render_findings(findings: Iterable[Finding]) -> Iterator[str]:
    """Lines as findings come: the part they are of before the first of each part, then status, check and message."""
    for part, found in groupby(findings, key=lambda finding: finding.part):
        yield ""
        yield part
        for finding in found:
            status = finding.status.upper() if finding.status is Status.FAIL else finding.status.value
            yield from _wrapped(f"  {status:{_STATUS}s}{finding.check:{_CHECK}s}", finding.message)
            if finding.remedy:
                yield from _wrapped(f"{_INDENT}-> ", finding.remedy)


def findings_summary(findings: Sequence[Finding]) -> str:
    """What it comes to, in one line."""
    counts = Counter(finding.status for finding in findings)
    told = [
        f"{counts[status]} {word}{'s' * (counts[status] != 1 and status is not Status.UNKNOWN)}"
        for status, word in ((Status.FAIL, "failure"), (Status.WARN, "warning"), (Status.UNKNOWN, "unknown"))
        if counts[status]
    ]
    numbers = f" ({', '.join(told)})" if told else ""
    match worst(findings):
        case Status.FAIL:
            return f"FAIL: mend what failed before you measure{numbers}"
        case Status.WARN:
            return f"WARN: it can be measured, and the numbers may suffer{numbers}"
    return f"OK: this testbed is fit to measure{numbers}"


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip

"""Sentences on changes for the worse that people have acknowledged, and on what became of each."""

from __future__ import annotations

from collections.abc import Iterator

from pdrgate.reports.words.path_table import acknowledged_until, paths_of
from pdrgate.results.acknowledgement import AcknowledgedPath
from pdrgate.results.model import RunResult
from pdrgate.values.printable import printable
from pdrgate.values.units import Ratio

_NAMED = 3
"""Paths in a headline."""


def acknowledged_ways(result: RunResult) -> tuple[str, ...]:
    """``; 1 of 72 acknowledged: NAT, until 2027-01-31``, and the same in less words; empty where none is."""
    own = [one for one in result.scenarios if one.details.acknowledged]
    if not own:
        return ("",)
    number = f"; {len(own)} of {len(paths_of(result))} acknowledged"
    named = printable(", ".join(one.details.acknowledged[0].path for one in own[:_NAMED]))
    more = f" and {len(own) - _NAMED} more" if len(own) > _NAMED else ""
    until = f"until {min(map(acknowledged_until, own))}"
    return f"{number}: {named}{more}, {until}", f"{number}, {until}", number


def acknowledged_lines(result: RunResult) -> Iterator[str]:
    """A line for each acknowledgement of a path that was measured: what it covers, or why it does not."""
    for one in result.acknowledged:
        if line := _line(one):
            yield printable(line)


def _line(one: AcknowledgedPath) -> str:
    known = one.acknowledgement
    what = f"{known.path}{f', {known.measurand}' if known.measurand else ''}"
    by = f"{known.reason} ({known.by})"
    size = Ratio(known.tolerance).text
    match one.state:
        case "holds":
            return f"acknowledged: {what}, up to {size}, until {known.until}: {by}"
        case "exceeded":
            return f"acknowledged up to {size}, and it may be worse than that: {what}: {by}"
        case "ended":
            return f"no longer acknowledged, since {known.until} has passed: {what}: {by}"
        case "not needed":
            return f"acknowledged, and it passes by itself: {what}; the entry can be deleted"
        case _:
            return ""

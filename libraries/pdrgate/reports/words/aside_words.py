"""Sentences on paths that have no part in a run's verdict.

Their changes for the worse were acknowledged by people, or they were to be measured and were not: neither build could,
or something else failed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pdrgate.reports.words.path_table import acknowledged_until, paths_of
from pdrgate.results.acknowledgement import AcknowledgedPath
from pdrgate.results.model import RunResult
from pdrgate.values.printable import first_names, printable
from pdrgate.values.units import Ratio

_ACKNOWLEDGED, _LEFT_OUT = 3, 6
"""Paths in a headline that are named as acknowledged, and paths in a sentence on those that were left out."""


def acknowledged_ways(result: RunResult) -> tuple[str, ...]:
    """``; 1 of 72 acknowledged: NAT, until 2027-01-31``, and the same in less words; empty where none is."""
    own = [one for one in result.scenarios if one.details.acknowledged]
    if not own:
        return ("",)
    number = f"; {len(own)} of {len(paths_of(result))} acknowledged"
    named = first_names([one.details.acknowledged[0].path for one in own], _ACKNOWLEDGED)
    until = f"until {min(map(acknowledged_until, own))}"
    return f"{number}: {named}, {until}", f"{number}, {until}", number


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


def left_out_ways(result: RunResult) -> tuple[str, ...]:
    """``; 2 paths left out: the kernel has no netem``, and the same without the reason; empty where all were measured.

    The reason stands there where all of them have the same, and the run has another. Paths that a fault kept from being
    measured are ``; 9 paths not measured``. A run of a single path that failed says nothing but its reason.
    """
    faults = sum(one.is_fault for one in result.left_out)
    unable = len(result.left_out) - faults
    reasons = {one.reason for one in result.left_out} - {result.reason}
    if not result.left_out or (len(result.left_out) == faults == 1 and not reasons):
        return ("",)
    parts = [_paths(unable, "left out")] * bool(unable) + [_paths(faults, "not measured")] * bool(faults)
    clause = f"; {', '.join(parts)}"
    return (*(f"{clause}: {printable(one)}" for one in reasons if len(reasons) == 1 and len(parts) == 1), clause)


def left_out_lines(result: RunResult) -> Iterator[str]:
    """``left out: TCP With Loss and Two More: neither build can: …``, a line for each reason."""
    paths: dict[tuple[bool, str], list[str]] = defaultdict(list)
    for one in result.left_out:
        paths[one.is_fault, one.reason].append(one.path)
    for (is_fault, reason), names in paths.items():
        what = "not measured" if is_fault else "left out"
        yield printable(f"{what}: {first_names(names, _LEFT_OUT)}: {reason}")


def _paths(number: int, what: str) -> str:
    return f"{number} path{'s' * (number > 1)} {what}"

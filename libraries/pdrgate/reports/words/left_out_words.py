"""Sentences on the paths that a run was to measure and did not: neither build could, or something else failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pdrgate.results.model import RunResult
from pdrgate.values.printable import printable

_NAMED = 6
"""Paths in a sentence."""


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
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        what = "not measured" if is_fault else "left out"
        yield printable(f"{what}: {', '.join(names[:_NAMED])}{more}: {reason}")


def _paths(number: int, what: str) -> str:
    return f"{number} path{'s' * (number > 1)} {what}"

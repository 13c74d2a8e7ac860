"""Sentences on the paths that a run was to measure and could not, with neither build."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pdrgate.results.model import RunResult
from pdrgate.values.printable import printable

_NAMED = 6
"""Paths in a sentence."""


def left_out_ways(result: RunResult) -> tuple[str, ...]:
    """``; 2 paths left out: the kernel has no netem``, and the same without the reason; empty where all were measured.

    The reason stands there where all of them have the same.
    """
    if not result.left_out:
        return ("",)
    number = len(result.left_out)
    clause = f"; {number} path{'s' * (number > 1)} left out"
    reasons = {one.reason for one in result.left_out}
    return (*(f"{clause}: {printable(one)}" for one in reasons if len(reasons) == 1), clause)


def left_out_lines(result: RunResult) -> Iterator[str]:
    """``left out: TCP With Loss and Two More: neither build can: …``, a line for each reason."""
    paths: dict[str, list[str]] = defaultdict(list)
    for one in result.left_out:
        paths[one.reason].append(one.path)
    for reason, names in paths.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield printable(f"left out: {', '.join(names[:_NAMED])}{more}: {reason}")

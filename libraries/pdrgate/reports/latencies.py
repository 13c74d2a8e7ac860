"""Latency at shares of the PDR in words, the same for all reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdrgate.reports.builds import of_builds
from pdrgate.results.model import LatencyResult, ScenarioResult
from pdrgate.units import Duration, Rate


def latency_by_build(scenario: ScenarioResult) -> Iterator[tuple[str, Sequence[LatencyResult]]]:
    """That of each build that was compared, the baseline's first; of the only one without a name."""
    return of_builds(scenario, lambda one: one.latency)


def latency_lines(scenario: ScenarioResult) -> list[str]:
    """A sentence for each build: ``latency, median and 99 %: 120 µs, 310 µs at 50 % of the PDR (9.3 kpps); …``."""
    lines = []
    for label, found in latency_by_build(scenario):
        told = [
            f"{Duration(one.p50)}, {Duration(one.p99)} at {share_in_words(one)} ({Rate(one.load)})" for one in found
        ]
        lines.append(f"{f'{label}: ' if label else ''}latency, median and 99 %: {'; '.join(told)}")
    return lines


def share_in_words(one: LatencyResult) -> str:
    """``90 % of the PDR``."""
    return f"{100 * one.share:g} % of the PDR"

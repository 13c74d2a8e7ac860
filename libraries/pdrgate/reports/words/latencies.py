"""Latency at shares of the PDR in words, the same for all reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdrgate.measurands import Cost
from pdrgate.reports.tree import Cell, Column, ReportPart, Table, begun
from pdrgate.reports.words.build_words import lines_by_build, of_builds
from pdrgate.results.losses import thousands
from pdrgate.results.model import LatencyResult, ScenarioResult
from pdrgate.values.units import Duration, Rate


def latency_by_build(scenario: ScenarioResult) -> Iterator[tuple[str, Sequence[LatencyResult]]]:
    """Latencies of each build that was compared, the baseline's first; those of the only one have no name."""
    return of_builds(scenario, lambda one: one.findings.latency)


def latency_part(scenario: ScenarioResult) -> ReportPart:
    """Latency at each share of the PDR, and what a packet costs there; in a sentence ``latency, median and 99 %: 120
    µs, 310 µs at 50 % of the PDR (9.3 kpps); …``."""
    tables = [_table(latency, label) for label, latency in latency_by_build(scenario)]
    lines = lines_by_build(scenario, lambda one: one.findings.latency, _sentence)
    return ReportPart(title="Latency", lines=lines, brief=tables, whole=tables)


def _table(latency: Sequence[LatencyResult], of: str) -> Table:
    counted = any(one.instructions is not None for one in latency)
    columns = (
        Column("latency at", heads=True), Column("load", True), Column("median", True), Column("90 %", True),
        Column("99 %", True), Column("longest", True), Column("probes", True), Column("trials", True),
        *((Column(Cost.unit, True), Column("packets a poll", True)) if counted else ()),
    )  # fmt: skip
    rows = [
        [
            Cell(share_in_words(one)), Cell(str(Rate(one.load))), *map(Cell, latency_cells(one)),
            Cell(thousands(one.probes)), Cell(str(one.trials)),
            *((Cell(_number(one.instructions, ".0f")), Cell(_number(one.batch, ".3g"))) if counted else ()),
        ]
        for one in latency
    ]  # fmt: skip
    return Table(begun(of, "one-way latency of probes, medians over the trials"), columns, rows)


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def latency_cells(one: LatencyResult) -> tuple[str, str, str, str]:
    """Median, 90 %, 99 % and the longest in words: ``2 ms``, or ``1 ms to 2 ms`` where more is not known."""
    median, ninety, ninety_nine, longest = map(
        latency_in_words, (one.p50, one.p90, one.p99, one.longest), one.within or (0.0,) * 4
    )
    return median, ninety, ninety_nine, longest


def latency_in_words(latency: float, within: float = 0.0) -> str:
    """A latency that may be less by ``within`` seconds."""
    return f"{Duration(max(0.0, latency - within))} to {Duration(latency)}" if within else str(Duration(latency))


def share_in_words(one: LatencyResult) -> str:
    """``90 % of the PDR``."""
    return f"{100 * one.share:g} % of the PDR"


def _sentence(found: Sequence[LatencyResult]) -> Iterator[str]:
    told = []
    for one in found:
        middle, _, tail, _ = latency_cells(one)
        told.append(f"{middle}, {tail} at {share_in_words(one)} ({Rate(one.load)})")
    buckets = " (the generator's buckets; what is within 15 % is judged)" if any(one.within for one in found) else ""
    yield f"latency, median and 99 %: {'; '.join(told)}{buckets}"

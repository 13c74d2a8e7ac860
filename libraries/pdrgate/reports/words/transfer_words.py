"""Transfers over TCP: each of them, and whether their throughput is one number."""

from __future__ import annotations

from pdrgate.reports.tree import Cell, Column, ReportPart, Table
from pdrgate.reports.words.assessment_words import checks_table
from pdrgate.results.model import ScenarioResult, TransfersResult


def transfers_part(scenario: ScenarioResult) -> ReportPart:
    """Whether the throughput of the repeats is one number; each transfer."""
    found = scenario.details.transfers
    if found is None:
        return ReportPart()
    return ReportPart(
        title="Transfers",
        is_check=True,
        whole=[checks_table("The throughput of the repeats", found.checks)] if found.checks else (),
        further=[_table(found)] if found.transfers else (),
    )


def _table(found: TransfersResult) -> Table:
    """Each transfer in measured order; of the window curve, where the knee is."""
    columns = [
        Column("transfer", heads=True), Column("window", True), Column("throughput", True),
        Column("round trip", True), Column("sent again", True), Column("SUT's CPU busy", True),
        Column("the other's", True), Column("", wraps=True),
    ]  # fmt: skip
    rows = [
        [
            Cell(f"{one.phase} {one.repeat or ''}".rstrip()), Cell(f"{one.window // 1024} KiB"),
            Cell(f"{one.throughput / 1e9:.4g} Gbit/s"), Cell("" if one.rtt is None else f"{1e3 * one.rtt:.3g} ms"),
            Cell(f"{one.retransmitted} of {one.segments}"), Cell(_share(one.sut_busy)), Cell(_share(one.station_busy)),
            Cell(one.disturbed),
        ]
        for one in found.transfers
    ]  # fmt: skip
    told = ["Transfers"]
    if found.rest_rtt is not None:
        told.append(f"a round trip takes {1e3 * found.rest_rtt:.3g} ms at rest")
    if found.knees:
        knee = "no two sweeps agree on the knee" if found.knee is None else f"knee {found.knee // 1024} KiB"
        told.append(f"{knee} (by sweep {', '.join(f'{one // 1024}' for one in found.knees)} KiB)")
    return Table("; ".join(told), columns, rows)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"

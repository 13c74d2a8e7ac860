"""What is said of a soak."""

from __future__ import annotations

from pdrgate.reports.tree import Cell, Column, ReportPart, Table
from pdrgate.results.losses import thousands
from pdrgate.results.model import ScenarioResult
from pdrgate.results.soak import SoakResult
from pdrgate.values.units import Duration, Rate


def soak_part(scenario: ScenarioResult) -> ReportPart:
    """A soak's numbers; its remarks where the verdict's reason does not say them."""
    found = scenario.details.soak
    if found is None:
        return ReportPart()
    said = found.sentence() in scenario.reason
    return ReportPart(title="Soak", remarks=() if said else (found.sentence(), *found.remarks()), whole=[_table(found)])


def _table(found: SoakResult) -> Table:
    facts = (
        ("load", str(Rate(found.load))),
        ("slices", f"{found.slices} of {Duration(found.slice)}"),
        ("offered", thousands(found.offered)),
        ("lost", thousands(found.lost)),
        ("bursts", str(found.bursts)),
        ("lost while the machine was disturbed", thousands(found.disturbed_lost)),
        ("slices that the machine disturbed", str(found.disturbed)),
        ("slices in which the generator fell short", str(found.limited)),
        ("latency, median", "" if found.latency is None else str(Duration(found.latency))),
        ("latency, 99 %", "" if found.tail is None else str(Duration(found.tail))),
    )
    rows = [[Cell(name), Cell(value)] for name, value in facts if value]
    return Table(found.sentence(), (Column("soak", heads=True), Column("", True)), rows)

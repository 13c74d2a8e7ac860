"""A soak in words and as a table, the same for all reports."""

from __future__ import annotations

from pdrgate.reports.markup.html import Cell, Column, Table
from pdrgate.results.losses import thousands
from pdrgate.results.model import ScenarioResult
from pdrgate.results.soak import SoakResult
from pdrgate.values.units import Duration, Rate


def soak_lines(scenario: ScenarioResult) -> list[str]:
    """What is to be said of a soak where the verdict's reason does not say it."""
    found = scenario.details.soak
    if found is None or found.sentence() in scenario.reason:
        return []
    return [found.sentence(), *found.remarks()]


def soak_table(found: SoakResult) -> str:
    """A table of the soak's numbers."""
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
    return Table(found.sentence(), (Column("soak", heads=True), Column("", True)), rows).html()

"""All that is said of a scenario, in the order in which every report shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pdrgate.measurands import described
from pdrgate.reports.tree import Cell, Column, Paragraph, ReportPart, Table
from pdrgate.reports.words.arrival_words import arrivals_part
from pdrgate.reports.words.assessment_words import assessment_part
from pdrgate.reports.words.build_words import builds_part
from pdrgate.reports.words.costs import changes_part, cost_part
from pdrgate.reports.words.drop_words import drops_part
from pdrgate.reports.words.frame_words import frames_part
from pdrgate.reports.words.latencies import latency_part
from pdrgate.reports.words.loss_words import losses_part
from pdrgate.reports.words.measurands import value_in_words
from pdrgate.reports.words.memory_words import memory_part
from pdrgate.reports.words.packet_way import way_part
from pdrgate.reports.words.soak_words import soak_part
from pdrgate.reports.words.spike_in_words import spike_in_part
from pdrgate.reports.words.transfer_words import transfers_part
from pdrgate.reports.words.vector_words import vectors_part
from pdrgate.results.model import BootResult, MeasurandResult, ScenarioResult

_PARTS = (
    frames_part, vectors_part, spike_in_part, soak_part, builds_part, cost_part, changes_part, memory_part, way_part,
    latency_part, arrivals_part, losses_part, drops_part, transfers_part, assessment_part,
)  # fmt: skip


def scenario_parts(scenario: ScenarioResult) -> Iterator[ReportPart]:
    """What a reader wants first comes first: wrong frames, which functions cost more, where packets were lost, whether
    to trust it."""
    yield from (part(scenario) for part in _PARTS)
    further = []
    if scenario.origin.set_up:
        further.append(facts_table("The scenario's own set-up", scenario.origin.set_up))
    if scenario.builds.boots:
        further.append(_boots(scenario.builds.boots, scenario.findings.measurands))
    yield ReportPart(title="Boots", further=further)


def else_seen(scenario: ScenarioResult) -> Iterator[Paragraph]:
    """What disturbed, which boots failed, what a kernel complained of, and what was not counted."""
    if scenario.details.interference:
        yield Paragraph(f"meanwhile {scenario.details.interference}")
    for boot in scenario.builds.boots:
        if boot.failure:
            yield Paragraph(f"boot {boot.pair} of the {boot.side} failed: {boot.failure}")
    yield from (Paragraph("the SUT's kernel:", complaint) for complaint in scenario.findings.complaints)
    if scenario.details.uncounted:
        yield Paragraph(scenario.details.uncounted)


def facts_tables(scenario: ScenarioResult) -> list[Table]:
    """What made the trials, of each build; what differs from the baseline first."""
    differs = scenario.comparison.differs if scenario.comparison else {}
    shown = {name: f"{ours or 'unknown'} (baseline: {theirs or 'unknown'})" for name, (theirs, ours) in differs.items()}
    facts: list[tuple[str, Mapping[str, Any]]] = [
        (f"The {side.side}: {side.build}", {**side.findings.fingerprint, **side.findings.environment})
        for side in scenario.builds.sides
    ]
    alone = [
        ("What made these trials", scenario.findings.fingerprint), ("The SUT's machine", scenario.findings.environment)
    ]  # fmt: skip
    found = [("Differs from the baseline", shown), *(facts or alone)]
    return [facts_table(caption, known) for caption, known in found if known]


def facts_table(caption: str, facts: Mapping[str, Any]) -> Table:
    """Names and what is known under them; what lies deeper as ``place.name``."""
    rows = [[Cell(name), Cell(text)] for name, text in _flat(facts)]
    return Table(caption, (Column("", heads=True), Column("", wraps=True)), rows)


def _boots(boots: Sequence[BootResult], measurands: Sequence[MeasurandResult]) -> Table:
    """Each boot in the order they were measured: its values, or why it failed, with the call trace."""
    units = {one.name: one.unit for one in measurands}
    names = list(dict.fromkeys(name for boot in boots for name in boot.values))
    columns = [Column("pair", True), Column("side"), Column("kernel"), *(Column(name, True) for name in names)]
    rows = []
    for boot in boots:
        told = [boot.failure, *(boot.crash.trace if boot.crash else ()), *boot.complaints]
        values = [
            value_in_words(boot.values[name], units.get(name, described(name).unit)) if name in boot.values else ""
            for name in names
        ]
        texts = (str(boot.pair), boot.side, boot.kernel, *values, "\n".join(line for line in told if line))
        rows.append([Cell(text) for text in texts])
    return Table("Boots", (*columns, Column("", wraps=True)), rows)


def _flat(facts: Mapping[str, Any], place: str = "") -> list[tuple[str, str]]:
    """What is known, one fact each."""
    found: list[tuple[str, str]] = []
    for key, value in facts.items():
        name = f"{place}{key}"
        if isinstance(value, Mapping):
            found += _flat(value, f"{name}.")
        elif isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
            found += _flat({str(number): one for number, one in enumerate(value)}, f"{name}.")
        elif isinstance(value, list | tuple):
            found.append((name, ", ".join(map(str, value))))
        elif value is not None:
            found.append((name, str(value)))
    return found

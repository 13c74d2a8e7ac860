"""How packets arrived at the receivers of an end host in words, the same for all reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdrgate.reports.tree import Cell, Column, ReportPart, Table, begun
from pdrgate.reports.words.build_words import lines_by_build, of_builds
from pdrgate.results.losses import thousands
from pdrgate.results.model import ArrivalsResult, AssessmentResult, ScenarioResult
from pdrgate.values.units import Duration, Rate


def arrivals_part(scenario: ScenarioResult) -> ReportPart:
    """Each build's arrivals by load: ``arrivals: half of the gaps below 64 µs, 99 % below 128 µs at 7.5 kpps (1 packet
    a call); …``; and the loads past the PDR: ``delivered at the least past the PDR: 6.1 kpps of 17.9 kpps, …``."""
    arrived = lines_by_build(
        scenario,
        lambda one: one.findings.arrivals,
        lambda found: [f"arrivals: {'; '.join(map(_in_words, dict.fromkeys((found[0], found[-1]))))}"],
    )
    starved = lines_by_build(scenario, lambda one: one.findings.assessment, _starved)
    found = of_builds(scenario, lambda one: one.findings.arrivals)
    return ReportPart(
        title="Arrivals", lines=(*arrived, *starved), further=[_table(arrivals, label) for label, arrivals in found]
    )  # fmt: skip


def _table(found: Sequence[ArrivalsResult], of: str) -> Table:
    """How packets arrived at the receivers, by load."""
    polled = any(one.batch is not None for one in found)
    columns = (
        Column("offered", heads=True), Column("packets a call", True),
        *((Column("packets a poll", True),) if polled else ()),
        Column("half of the gaps", True), Column("90 %", True), Column("99 %", True), Column("gaps timed", True),
        Column("trials", True),
    )  # fmt: skip
    rows = [
        [
            Cell(str(Rate(one.load))), Cell(_number(one.packets_per_call)),
            *((Cell(_number(one.batch)),) if polled else ()),
            *(Cell(_below(bound)) for bound in (one.p50, one.p90, one.p99)),
            Cell(thousands(one.gaps)), Cell(str(one.trials)),
        ]
        for one in found
    ]  # fmt: skip
    return Table(begun(of, "arrivals at the receivers: gaps between calls that bring packets"), columns, rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _below(bound: float | None) -> str:
    """A class of gaps: ``< 64 µs``."""
    return "longer" if bound is None else f"< {Duration(bound)}"


def _starved(assessment: AssessmentResult) -> Iterator[str]:
    told = [f"{Rate(point.least)} of {Rate(point.load)}" for point in assessment.loads if point.least is not None]
    if told:
        yield f"delivered at the least past the PDR: {', '.join(told)}"


def _in_words(one: ArrivalsResult) -> str:
    number = _number(one.packets_per_call)
    each = f" ({number} packet{'s' * (number != '1')} a call)" if number else ""
    return f"half of the gaps {_below(one.p50)}, 99 % {_below(one.p99)} at {Rate(one.load)}{each}"

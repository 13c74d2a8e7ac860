"""What stands beside a verdict: that two builds differ by more than their change, and what was not measured."""

from __future__ import annotations

from pdrgate.reports.tree import Cell, Column, ReportPart, Table
from pdrgate.reports.words.program_words import program_lines
from pdrgate.results.build_differences import differences_in_words, unknown_in_words
from pdrgate.results.model import ScenarioResult


def build_lines(scenario: ScenarioResult) -> list[str]:
    """What a reader must know of the two builds beside the verdict; empty where they differ by their change alone."""
    comparison = scenario.comparison
    if comparison is None:
        return []
    words = differences_in_words(comparison.build_differences)
    told = f"the builds differ by more than their change: {words}" if words else ""
    unknown = unknown_in_words(comparison.unknown_configs)
    return [line for line in (*program_lines(scenario), told, unknown, *nameless_lines(scenario)) if line]


def nameless_lines(scenario: ScenarioResult) -> list[str]:
    """``the candidate: of cache lines no names of BPF maps: …``, where a build's kernel has no names for some."""
    of_sides: dict[str, list[str]] = {}
    for side in scenario.builds.sides:
        for seen in (side.findings.memory, side.findings.several_cpus):
            for why in seen.missing if seen is not None else ():
                found = of_sides.setdefault(why, [])
                found += [side.side] * (side.side not in found)
    return [
        f"{'both builds' if len(sides) > 1 else f'the {sides[0]}'}: of cache lines {why}"
        for why, sides in of_sides.items()
    ]


def lines_beside(scenario: ScenarioResult) -> list[str]:
    """What a reader must know beside the verdict: of the two builds, and of what was to be measured and was not."""
    return [*build_lines(scenario), *scenario.details.unmeasured]


def builds_part(scenario: ScenarioResult) -> ReportPart:
    """Each difference of the two builds beside their change, and what a packet pays for it."""
    differences = scenario.comparison.build_differences if scenario.comparison is not None else ()
    columns = (
        Column("of both builds", heads=True), Column("kind"), Column("baseline"), Column("candidate"),
        Column("why it matters", wraps=True),
    )  # fmt: skip
    rows = [
        [
            Cell(one.name),
            Cell(one.kind, "warn" if one.weighty else ""),
            *map(Cell, (one.baseline, one.candidate, one.why)),
        ]
        for one in differences
    ]  # fmt: skip
    caption = "What differs beside the change: no IMPROVEMENT is claimed of what is marked"
    return ReportPart(title="What the builds differ by", whole=[Table(caption, columns, rows)] if rows else ())

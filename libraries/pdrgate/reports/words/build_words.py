"""What stands beside a verdict: by what more than their change two builds differ, what was not measured, what programs
answer, and how much of them packets ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from pdrgate.measurands.counted.program_run import PROGRAM_ANSWER, ProgramRun, program_run
from pdrgate.reports.tree import Cell, Column, ReportPart, Table
from pdrgate.results.build_differences import differences_in_words, unknown_in_words
from pdrgate.results.model import ScenarioResult, SideResult


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


_SMALL = 0.5
"""Share of a program's code below which packets leave it early."""


def program_lines(scenario: ScenarioResult) -> Iterator[str]:
    """Sentences on the programs of both builds; none where the builds are no eBPF programs."""
    sides = scenario.builds.sides
    answers = [str(side.findings.environment.get(PROGRAM_ANSWER, "")) for side in sides]
    if len(sides) != 2 or not (any(answers) or scenario.details.vectors):
        return
    if len(set(answers)) > 1:
        yield from (
            f"the {side.side}'s program: {answer}" for side, answer in zip(sides, answers, strict=True) if answer
        )
    elif answers[0]:
        yield f"both programs: {answers[0]}"
    runs = [program_run(side.findings) for side in sides]
    reached = [None if run is None else run.reached for run in runs]
    if None not in reached and min(filter(None, reached), default=0.0) >= _SMALL:
        yield "packets reach " + ", ".join(
            f"{share:.0%} of the {side.side}'s program" for side, share in zip(sides, reached, strict=True)
        )
    for side, run in zip(sides, runs, strict=True):
        if run is not None and run.most is not None and run.most < _SMALL:
            yield _little(side, run, "packets" if scenario.details.vectors else "traffic")


def _little(side: SideResult, run: ProgramRun, option: str) -> str:
    program = f"the {side.side}'s program"
    if run.reached is not None:
        ran = f"packets reach {run.reached:.0%} of {program}, which has {run.size:.0f} bytes of machine code"
    else:
        ran = (
            f"a packet executes {run.instructions:.0f} instructions of {program}, {run.most:.0%} at most of its "
            f"{run.size:.0f} bytes of machine code"
        )
    return f"{ran}; send other packets (--set {option}) or fill its maps (--set maps) where it is to do more"


_Part = TypeVar("_Part")


def lines_by_build(
    scenario: ScenarioResult,
    part: Callable[[ScenarioResult | SideResult], _Part | None],
    told: Callable[[_Part], Iterable[str]],
) -> list[str]:
    """Lines on a part of each build, behind the build's name where two were compared."""
    return [f"{label}: {line}" if label else line for label, found in of_builds(scenario, part) for line in told(found)]


def kernel_release(build: ScenarioResult | SideResult) -> str:
    """The release of a build's kernel; empty where nobody knows."""
    known = build.findings
    return str(known.environment.get("kernel_release") or known.fingerprint.get("kernel") or "")


def of_builds(
    scenario: ScenarioResult, part: Callable[[ScenarioResult | SideResult], _Part | None]
) -> Iterator[tuple[str, _Part]]:
    """A part of each build that was compared, the baseline's first; that of the only one has no name. Empty parts are
    left out.

    Args:
        part: of a build that was compared, or of a scenario of one.
    """
    told: list[tuple[str, ScenarioResult | SideResult]] = [(side.side, side) for side in scenario.builds.sides]
    for label, one in told or [("", scenario)]:
        if found := part(one):
            yield label, found

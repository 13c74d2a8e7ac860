"""A run in Robot's own pages, report.html and log.html: what stands at their top, whoever opens them."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pdrgate.gate.run.slower_paths import decisive_scenario
from pdrgate.measurands import AT_THE_KNEE
from pdrgate.reports.markup.robot_text import bold, link, picture, robot_table, robot_text
from pdrgate.reports.pages.scenario_parts import Picture, kernel_release
from pdrgate.reports.words.build_words import lines_beside
from pdrgate.reports.words.costs import changes_table, largest_changes, total_change
from pdrgate.reports.words.headline import fault_in_words, headline, left_out, scenario_headline
from pdrgate.reports.words.loss_words import by_build
from pdrgate.reports.words.measurands import PDR_ABOUT, intervals_in_words, judged_first, measurand_rows
from pdrgate.reports.words.memory_words import MEMORY_CAPTION, memory_table
from pdrgate.reports.words.path_remarks import said_of_paths
from pdrgate.reports.words.path_table import PATH_HEAD, is_portfolio, lines_that_tell
from pdrgate.results.losses import thousands
from pdrgate.results.model import AssessmentResult, RunResult, ScenarioResult

STATISTICS: Mapping[str, Any] = {"tagstatexclude": "path-*", "suitestatlevel": 1}
"""Options of Robot: a path is a suite, a tag and a test of its own, of which its statistics need only the last."""
_OUTCOMES = {False: "FAILED", None: "undecided"}
_ALONE = "this build"
"""The label of a build that is the only one."""
_PLACES = 5
"""Rows of where packets were lost, of each build."""
_COLUMN = 660
"""Pixels of report.html, whose text is as wide whatever the window."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The documentation and the metadata of the topmost suite, in Robot's documentation format."""

    documentation: str
    metadata: Mapping[str, str]
    """Robot shows it in the order of its names."""


def overview(result: RunResult, main: Picture | None) -> Overview:
    """Verdict, numbers and evidence of a run; ``main`` is the picture of its `decisive_scenario`."""
    decisive = decisive_scenario(result.scenarios)
    told = headline(result)
    blocks = [f"{bold(result.verdict)}: {robot_text(told.removeprefix(f'{result.verdict}: '))}"]
    if fault := fault_in_words(result):
        blocks.append(robot_text(fault))
    blocks += _paths(result) if is_portfolio(result) else _numbers(result)
    if main is not None:
        blocks.append(picture(_fitting(main.png), f"{result.verdict}: {main.title}"))
    if decisive is not None:
        blocks += evidence(decisive)
    if more := left_out(told, result.reason):
        blocks.append("\n".join(f"- {robot_text(one)}" for one in more))
    return Overview("\n\n".join(blocks), dict(_metadata(result, decisive)))


def evidence(scenario: ScenarioResult) -> Iterator[str]:
    """What the verdict of a scenario rests on: where its cost changed, where packets were lost, the checks."""
    yield from (robot_text(line) for line in lines_beside(scenario))
    comparison = scenario.comparison
    largest, number = largest_changes(comparison.functions if comparison else ())
    if comparison is not None and largest:
        told = changes_table(largest, comparison.functions, total_change(comparison))
        most = f", the largest {len(largest)} of {number} changes" if number > len(largest) else ""
        yield f"Instructions per packet by function{most}:"
        yield robot_table(told.head, told.rows)
    if (memory := memory_table(scenario)) is not None:
        yield f"{MEMORY_CAPTION}:"
        yield robot_table(memory.head, memory.rows)
    losses = [
        (label or _ALONE, place.where, place.hint, thousands(place.packets), f"{place.packets / found.offered:.3%}")
        for label, found in by_build(scenario)
        for place in found.places[:_PLACES]
    ]
    if losses:
        yield "Where packets were lost:"
        yield robot_table(("build", "place", "what it hints at", "packets", "of the offered"), losses)
    if checks := [line for label, one in _assessments(scenario) for line in _checked(label, one)]:
        yield "Whether the curve can be trusted:"
        yield "\n".join(checks)


def _fitting(png: bytes) -> str:
    """The address of a picture that fits beside Robot's labels: its documentation can give none a size."""
    width, height = struct.unpack(">II", png[16:24])  # of every PNG: its first chunk
    shown = f'width="{_COLUMN}" height="{_COLUMN * height / width:.0f}" viewBox="0 0 {width} {height}"'
    data = base64.b64encode(png).decode()
    image = f'<image width="{width}" height="{height}" href="data:image/png;base64,{data}"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {shown}>{image}</svg>'
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _checked(label: str, assessment: AssessmentResult) -> Iterator[str]:
    """A line for the checks that passed, and one for each that did not."""
    for one in assessment.checks:
        if not one.passed:
            told = f"{bold(_OUTCOMES[one.passed])}: {robot_text(one.sentence)}"
            yield f"- {robot_text(label)}, {robot_text(one.name)}: {told}"
    checks = assessment.checks
    passed = [one.name for one in checks if one.passed]
    yield f"- {robot_text(label)}: {len(passed)} of {len(checks)} checks ok ({robot_text(', '.join(passed))})"


def _assessments(scenario: ScenarioResult) -> Iterator[tuple[str, AssessmentResult]]:
    for side in scenario.builds.sides:
        found = side.findings.assessment or (scenario.findings.assessment if side.side == "candidate" else None)
        if found is not None:
            yield side.side, found
    if not scenario.builds.sides and scenario.findings.assessment is not None:
        yield _ALONE, scenario.findings.assessment


def _paths(result: RunResult) -> Iterator[str]:
    """The paths in one table, and what they have in common."""
    shown, others = lines_that_tell(result)
    yield robot_table(PATH_HEAD, [one.cells for one in shown])
    yield from (robot_text(told) for told in (*filter(None, (others,)), *said_of_paths(result)))


def _numbers(result: RunResult) -> Iterator[str]:
    """A table of measurands for each scenario, its name above it where there are several."""
    for scenario in result.scenarios:
        if len(result.scenarios) > 1:
            yield f"{bold(scenario.title)}: {robot_text(scenario_headline(scenario))}"
        rows, _ = judged_first(measurand_rows(scenario))
        if rows and scenario.comparison is not None:
            head = ("measurand", "base", "candidate", "change", "verdict")
            yield robot_table(head, [(row.title, row.baseline, row.number, row.change, row.marked) for row in rows])
            yield robot_text(intervals_in_words(scenario.comparison))
        elif rows:
            yield robot_table(
                ("measurand", "value", "95 % interval"), [(row.name, row.value, row.interval) for row in rows]
            )


def _metadata(result: RunResult, decisive: ScenarioResult | None) -> Iterator[tuple[str, str]]:
    yield "Verdict", bold(result.verdict)
    sentence = f": {result.testbed.sentence}" if result.testbed.sentence else ""
    yield "Testbed", robot_text(f"{result.testbed.name or 'none'}{sentence}; profile {result.profile}")
    yield "Whole run on one page", link("summary.html", "summary.html")
    if result.command:
        yield "Again", robot_text(result.command)
    if decisive is None:
        return
    rows = {row.name: row for row in measurand_rows(decisive)}
    if (pdr := rows.get(AT_THE_KNEE) or rows.get(PDR_ABOUT.name)) is not None:
        yield "PDR", robot_text(f"{pdr.value} ({pdr.interval})" if pdr.interval else pdr.value)
    if changes := [f"{row.name} {row.change}" for row in rows.values() if row.change]:
        yield "Change", robot_text("; ".join(changes))
    builds = [f"{side.side} {side.build}" for side in decisive.builds.sides] or [kernel_release(decisive)]
    if told := " against ".join(reversed([one for one in builds if one])):
        yield "Kernel", robot_text(told)

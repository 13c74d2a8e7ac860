"""A run in Robot's own pages, report.html and log.html: what stands at their top, whoever opens them."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pdrgate.measurands import AT_THE_KNEE
from pdrgate.measurands.slower_paths import decisive_scenario
from pdrgate.reports.markup.robot_text import bold, captioned_table, link, picture, robot_table, robot_text
from pdrgate.reports.pages.scenario_pictures import Picture
from pdrgate.reports.tree import Table
from pdrgate.reports.words.build_words import kernel_release, lines_beside
from pdrgate.reports.words.headline import headline, left_out, lines_below, scenario_headline
from pdrgate.reports.words.measurand_tables import measurands_table
from pdrgate.reports.words.measurands import PDR_ABOUT, measurand_rows
from pdrgate.reports.words.path_remarks import said_of_paths
from pdrgate.reports.words.path_table import is_portfolio, lines_that_tell, paths_table
from pdrgate.reports.words.scenario_tree import scenario_parts
from pdrgate.reports.words.selection_words import selection_table
from pdrgate.results.model import RunResult, ScenarioResult

STATISTICS: Mapping[str, Any] = {"tagstatexclude": "path-*", "suitestatlevel": 1}
"""Options of Robot: a path is a suite, a tag and a test of its own, of which its statistics need only the last."""
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
    blocks += [robot_text(line) for line in lines_below(result)]
    if (touched := selection_table(result)) is not None:
        blocks += captioned_table(touched)
    blocks += _paths(result) if is_portfolio(result) else _numbers(result)
    if main is not None:
        blocks.append(picture(_fitting(main.png), f"{result.verdict}: {main.title}"))
    if decisive is not None:
        blocks += evidence(decisive)
    if more := left_out(told, result.reason):
        blocks.append("\n".join(f"- {robot_text(one)}" for one in more))
    return Overview("\n\n".join(blocks), dict(_metadata(result, decisive)))


def evidence(scenario: ScenarioResult) -> Iterator[str]:
    """What must be known beside the verdict of a scenario, and the brief tables that it rests on."""
    yield from (robot_text(line) for line in lines_beside(scenario))
    for part in scenario_parts(scenario):
        for block in part.brief:
            if isinstance(block, Table):
                yield from captioned_table(block)


def _fitting(png: bytes) -> str:
    """The address of a picture that fits beside Robot's labels: its documentation can give none a size."""
    width, height = struct.unpack(">II", png[16:24])  # of every PNG: its first chunk
    shown = f'width="{_COLUMN}" height="{_COLUMN * height / width:.0f}" viewBox="0 0 {width} {height}"'
    data = base64.b64encode(png).decode()
    image = f'<image width="{width}" height="{height}" href="data:image/png;base64,{data}"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {shown}>{image}</svg>'
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _paths(result: RunResult) -> Iterator[str]:
    """The paths in one table, and what they have in common."""
    shown, others = lines_that_tell(result)
    yield robot_table(paths_table(shown, result))
    yield from (robot_text(told) for told in (*filter(None, (others,)), *said_of_paths(result)))


def _numbers(result: RunResult) -> Iterator[str]:
    """A table of measurands for each scenario, its name above it where there are several."""
    for scenario in result.scenarios:
        if len(result.scenarios) > 1:
            yield f"{bold(scenario.label)}: {robot_text(scenario_headline(scenario))}"
        yield from captioned_table(replace(measurands_table(scenario), caption=""))


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
        yield "PDR", robot_text(f"{pdr.number} ({pdr.interval})" if pdr.interval else pdr.number)
    if changes := [f"{row.name} {row.change}" for row in rows.values() if row.change]:
        yield "Change", robot_text("; ".join(changes))
    builds = [f"{side.side} {side.build}" for side in decisive.builds.sides] or [kernel_release(decisive)]
    if told := " against ".join(reversed([one for one in builds if one])):
        yield "Kernel", robot_text(told)

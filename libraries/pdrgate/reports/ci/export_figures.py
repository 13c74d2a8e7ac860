"""The numbers of a run as all exports have them: by scenario, build and measurand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pdrgate.measurands import unit_of
from pdrgate.reports.words.build_words import kernel_release
from pdrgate.reports.words.measurands import measurands_of
from pdrgate.results.model import MeasurandResult, RunResult, ScenarioResult


@dataclass(frozen=True, slots=True)
class BuildFigures:
    """What was measured of one build of a scenario."""

    scenario: str
    """The scenario's label, see `named`."""
    side: str
    """``baseline`` or ``candidate``; ``candidate`` for the only one."""
    name: str
    kernel: str
    measurands: Sequence[MeasurandResult]


def named(result: RunResult) -> Iterator[tuple[str, ScenarioResult]]:
    """Each scenario by its label; the second of the same label in a run has a number."""
    seen: Counter[str] = Counter()
    for scenario in result.scenarios:
        seen[scenario.label] += 1
        yield f"{scenario.label}-{seen[scenario.label]}" if seen[scenario.label] > 1 else scenario.label, scenario


def says_more(result: RunResult) -> bool:
    """Whether the run does not pass by something that none of its scenarios has: an error around them, for one."""
    return not result.verdict.passes and all(one.verdict is not result.verdict for one in result.scenarios)


def builds(result: RunResult) -> Iterator[BuildFigures]:
    """All that were measured, the baseline of a comparison before its candidate."""
    for name, scenario in named(result):
        for side in scenario.builds.sides:
            measured = measurands_of(scenario) if side.side == "candidate" else side.findings.measurands
            yield BuildFigures(name, side.side, side.build, kernel_release(side), measured)
        if not scenario.builds.sides:
            yield BuildFigures(name, "candidate", "", kernel_release(scenario), measurands_of(scenario))


def slug(name: str, gap: str = "-") -> str:
    """A name of letters, digits and gaps, at most 64 of them: ``saturation-throughput``."""
    return re.sub(r"[^a-z0-9]+", gap, name.lower()).strip(gap)[:64].strip(gap) or "unnamed"


def unit(one: MeasurandResult) -> str:
    """The unit in full: packets/s, instructions/packet."""
    return unit_of(one.unit).name

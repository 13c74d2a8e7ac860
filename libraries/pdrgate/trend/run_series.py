"""Series of builds from the results of runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pdrgate.results.fingerprint import UNKNOWN, series
from pdrgate.results.model import CostResult, MeasurandResult, RunResult, ScenarioResult
from pdrgate.trend.series import Point, Series

_PDR = "PDR"
_OPTIONS = ("--kernel", "--bpf")


@dataclass(frozen=True, slots=True)
class _Key:
    """Key of a series: what is equal for all of its points."""

    scenario: str
    testbed: str
    fingerprint: str
    measurand: str


def series_of(results: Iterable[RunResult]) -> tuple[Series, ...]:
    """A series per scenario, testbed and measurand over all results. Properties that a build chooses split no series.

    Of a run that compared two builds, only the candidate becomes a point.
    """
    found: dict[_Key, Series] = {}
    for result in sorted(results, key=lambda one: one.started):
        for scenario in result.scenarios:
            for measurand in _measurands(scenario):
                key = _Key(
                    scenario.name,
                    scenario.findings.fingerprint.get("testbed") or result.testbed.name,
                    series(scenario.findings.fingerprint),
                    measurand.name,
                )
                so_far = found.get(key) or Series(
                    scenario=key.scenario, title=scenario.label, testbed=key.testbed, fingerprint=key.fingerprint,
                    measurand=key.measurand, unit=measurand.unit, better=measurand.better, points=(),
                )  # fmt: skip
                found[key] = replace(so_far, points=(*so_far.points, _point(result, scenario, measurand)))
    return tuple(found.values())


def cost_at(results: Iterable[RunResult], wanted: Series, point: Point) -> CostResult | None:
    """Cost of a packet at a point of a series; None if it was not counted."""
    for result in results:
        if (result.run, result.started) != (point.run, point.time):
            continue
        for scenario in result.scenarios:
            if scenario.name == wanted.scenario and series(scenario.findings.fingerprint) == wanted.fingerprint:
                candidate = scenario.builds.side("candidate")
                return (candidate and candidate.findings.cost) or scenario.findings.cost
    return None


def _measurands(scenario: ScenarioResult) -> Iterator[MeasurandResult]:
    yield from scenario.findings.measurands
    if scenario.pdr is not None and scenario.measurand(_PDR) is None:
        pdr = scenario.pdr
        yield MeasurandResult(
            name=_PDR, unit="packets/s", better="higher", value=pdr.load, lower=pdr.lower, upper=pdr.upper
        )


def _point(result: RunResult, scenario: ScenarioResult, measurand: MeasurandResult) -> Point:
    return Point(
        build=_build(scenario),
        time=result.started,
        value=measurand.value,
        lower=measurand.lower,
        upper=measurand.upper,
        verdict=scenario.verdict,
        run=result.run,
        option=_option(result.command),
    )


def _build(scenario: ScenarioResult) -> str:
    candidate = scenario.builds.side("candidate")
    if candidate is not None:
        return candidate.build
    known = (scenario.findings.fingerprint.get(key, UNKNOWN) for key in ("kernel", "kernel_version"))
    return " ".join(one for one in known if one != UNKNOWN) or UNKNOWN


def _option(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    at = next((number for number, word in enumerate(words[:-1]) if word in _OPTIONS), None)
    return "" if at is None else shlex.join(words[at : at + 2])

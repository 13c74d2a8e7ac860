"""How packets arrived at the receivers of an end host in words, the same for all reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdrgate.reports.words.builds import lines_by_build, of_builds
from pdrgate.results.model import ArrivalsResult, AssessmentResult, ScenarioResult
from pdrgate.values.units import Duration, Rate


def arrivals_by_build(scenario: ScenarioResult) -> Iterator[tuple[str, Sequence[ArrivalsResult]]]:
    """Arrivals of each build that was compared, the baseline's first; those of the only one have no name."""
    return of_builds(scenario, lambda one: one.findings.arrivals)


def arrivals_lines(scenario: ScenarioResult) -> list[str]:
    """A sentence for each build, of its lowest and its highest load: ``arrivals: half of the gaps below 64 µs, 99 %
    below 128 µs at 7.5 kpps (1 packet a call); …``."""
    return lines_by_build(
        scenario,
        lambda one: one.findings.arrivals,
        lambda found: [f"arrivals: {'; '.join(map(_in_words, dict.fromkeys((found[0], found[-1]))))}"],
    )


def starved_lines(scenario: ScenarioResult) -> list[str]:
    """A sentence for each build, of the loads past the PDR: ``delivered at the least past the PDR: 6.1 kpps of 17.9
    kpps, …``."""
    return lines_by_build(scenario, lambda one: one.findings.assessment, _starved)


def below(bound: float | None) -> str:
    """A class of gaps: ``< 64 µs``."""
    return "longer" if bound is None else f"< {Duration(bound)}"


def _starved(assessment: AssessmentResult) -> Iterator[str]:
    told = [f"{Rate(point.least)} of {Rate(point.load)}" for point in assessment.loads if point.least is not None]
    if told:
        yield f"delivered at the least past the PDR: {', '.join(told)}"


def _in_words(one: ArrivalsResult) -> str:
    number = "" if one.packets_per_call is None else f"{one.packets_per_call:.3g}"
    each = f" ({number} packet{'s' * (number != '1')} a call)" if number else ""
    return f"half of the gaps {below(one.p50)}, 99 % {below(one.p99)} at {Rate(one.load)}{each}"

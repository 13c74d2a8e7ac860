"""The Go benchmark data format (golang.org/design/14313-benchmark-format), as benchstat reads it.

benchstat old.txt new.txt                       # two runs
benchstat -col build comparison.txt             # the two builds of one
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pdrgate.reports.ci.export_figures import BuildFigures, builds, slug, unit
from pdrgate.results.model import MeasurandResult, RunResult
from pdrgate.values.printable import printable


def go_benchmarks(result: RunResult) -> str:
    """A line for each sample of each build: of a boot where builds were compared, else of a repeat.

    What has to be equal for two runs to be comparable is a configuration line, which benchstat keeps apart. The build
    is one only where a run has two, for benchstat must not keep apart what it is to compare.
    """
    found = [build for build in builds(result) if build.measurands]
    units = {_unit(one): one.better for build in found for one in build.measurands}
    lines = [
        f"pkg: pdrgate/{slug(result.testbed.kind)}",
        f"testbed: {_words(result.testbed.name)}",
        f"profile: {_words(result.profile)}",
        *(f"Unit {name} better={better}" for name, better in units.items()),
    ]
    for build in found:
        told = f"{build.side} {build.name}" if build.name else ""
        lines += ["", f"build: {_words(told)}"] if told else [""]
        lines += _samples(build)
    return "\n".join(lines) + "\n"


def _samples(build: BuildFigures) -> Iterator[str]:
    name = f"BenchmarkForwarding/scenario={re.sub(r'[^!-~]', '_', printable(build.scenario))[:200]}"
    values = [(one.samples or (one.value,), _unit(one)) for one in build.measurands]
    for number in range(max(len(samples) for samples, _ in values)):
        told = [f"{samples[number]:.10g} {unit}" for samples, unit in values if number < len(samples)]
        yield f"{name} 1 {' '.join(told)}"


def _unit(one: MeasurandResult) -> str:
    """A unit of the measurand's own, for benchstat distinguishes measurands by their unit alone: ``pdr-packets/s``."""
    return f"{slug(one.name)}-{re.sub(r'[^!-~]+', '_', unit(one))}".rstrip("-")


def _words(told: str) -> str:
    return printable(" ".join(told.split())) or "unknown"


EXPORT = go_benchmarks

"""InfluxDB's line protocol, which Telegraf, InfluxDB and VictoriaMetrics take: a line per build and measurand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pdrgate.reports.ci.export_figures import builds, named, slug, unit
from pdrgate.results.model import RunResult
from pdrgate.values.printable import printable

_ESCAPES = str.maketrans({"\\": "\\\\", ",": "\\,", "=": "\\=", " ": "\\ "})
_LONGEST = 256
"""Characters of a tag's value: far below what InfluxDB takes, and as much as anybody reads."""


def influx_lines(result: RunResult) -> str:
    """Measurands with the ends of their 95 % intervals, changes with theirs, and verdicts, as of the run's start."""
    return "".join(f"{line} {round(result.started * 1e9)}\n" for line in _lines(result))


def _lines(result: RunResult) -> Iterator[str]:
    of_run = {"testbed": result.testbed.name, "profile": result.profile, "run": result.run}
    for build in builds(result):
        tags = of_run | {"scenario": build.scenario, "side": build.side, "build": build.name, "kernel": build.kernel}
        for one in build.measurands:
            fields = {"value": one.value, "lower": one.lower, "upper": one.upper}
            yield f"pdrgate_{slug(one.name, '_')}{_tags({**tags, 'unit': unit(one)})} {_numbers(fields)}"
    for name, scenario in named(result):
        tags = of_run | {"scenario": name}
        for change in scenario.comparison.changes if scenario.comparison else ():
            fields = {"value": change.change, "lower": change.lower, "upper": change.upper}
            told = tags | {"measurand": change.measurand, "verdict": str(change.verdict)}
            yield f"pdrgate_change{_tags(told)} {_numbers(fields)}"
        passes = "t" if scenario.verdict.passes else "f"
        yield f'pdrgate_verdict{_tags(tags)} passes={passes},verdict="{scenario.verdict}"'


def _tags(tags: Mapping[str, str]) -> str:
    """Sorted, as InfluxDB likes them best; one that is empty must be left out."""
    told = ((key, printable(value)[:_LONGEST].translate(_ESCAPES)) for key, value in sorted(tags.items()) if value)
    return "".join(f",{key}={value}" for key, value in told)


def _numbers(fields: Mapping[str, float | None]) -> str:
    return ",".join(f"{key}={value:.12g}" for key, value in fields.items() if value is not None)


EXPORT = influx_lines

"""OpenMetrics text, which Prometheus scrapes and its Pushgateway takes; all are gauges without a time of their own, so
that node_exporter's textfile collector, which knows neither newer types nor times, reads them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pdrgate.measurands import unit_of
from pdrgate.reports.ci.export_figures import builds, named, slug
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.printable import printable

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\""})


@dataclass
class _Family:
    """All samples of one name."""

    about: str
    unit: str = ""
    samples: list[str] = field(default_factory=list)


def open_metrics(result: RunResult) -> str:
    """Measurands with the ends of their 95 % intervals, changes with theirs, and a gauge of 0 or 1 for each verdict."""
    families: dict[str, _Family] = {}

    def add(name: str, about: str, value: float, labels: Mapping[str, str], unit: str = "") -> None:
        whole = f"pdrgate_{name}_{unit}" if unit else f"pdrgate_{name}"
        family = families.setdefault(whole, _Family(about, unit))
        family.samples.append(f"{whole}{{{_labels(labels)}}} {value:.12g}")

    of_run = {"testbed": result.testbed.name, "profile": result.profile}
    about = "When the run began, seconds since the epoch"
    add("run_started", about, result.started, of_run | {"run": result.run}, "seconds")
    for build in builds(result):
        labels = of_run | {"scenario": build.scenario, "side": build.side, "build": build.name, "kernel": build.kernel}
        for one in build.measurands:
            spelled = unit_of(one.unit)
            kind = spelled.metric or slug(spelled.name, "_")
            for end, value in (("", one.value), ("_lower", one.lower), ("_upper", one.upper)):
                if value is not None:
                    interval = f", {end[1:]} end of its 95 % interval" if end else f", {one.better} is better"
                    add(f"{slug(one.name, '_')}{end}", f"{printable(one.name)}{interval}", value, labels, kind)
    for scenario_name, scenario in named(result):
        labels = of_run | {"scenario": scenario_name}
        for name, about, value, further in _judged(scenario):
            add(name, about, value, {**labels, **further}, "ratio" if name.startswith("change") else "")
    return "".join(map(_told, families, families.values())) + "# EOF\n"


def _judged(scenario: ScenarioResult) -> Iterator[tuple[str, str, float, Mapping[str, str]]]:
    for change in scenario.comparison.changes if scenario.comparison else ():
        about = "Change against the baseline"
        labels = {"measurand": change.measurand, "verdict": str(change.verdict)}
        yield "change", about, change.change, labels
        yield "change_lower", f"{about}, lower end of its interval", change.lower, labels
        yield "change_upper", f"{about}, upper end of its interval", change.upper, labels
    for verdict in Verdict:
        found = float(verdict is scenario.verdict)
        yield "verdict", "1 for the verdict of the scenario", found, {"verdict": str(verdict)}


def _told(name: str, family: _Family) -> str:
    head = [f"# TYPE {name} gauge", *([f"# UNIT {name} {family.unit}"] if family.unit else [])]
    return "\n".join([*head, f"# HELP {name} {family.about.translate(_ESCAPES)}.", *family.samples]) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{printable(value).translate(_ESCAPES)}"' for name, value in labels.items())


EXPORT = open_metrics

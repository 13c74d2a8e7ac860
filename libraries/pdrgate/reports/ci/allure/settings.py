"""What Allure shows beside the tests of a run: environment, executor, categories, numbers by name; all pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pdrgate.measurands import unit_of
from pdrgate.reports.ci.export_figures import named, slug
from pdrgate.reports.ci.pipeline import Pipeline
from pdrgate.reports.words.build_words import kernel_release
from pdrgate.results.model import RunResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.printable import printable

_LONGEST_KEY = 120
MEANINGS = {
    Verdict.REGRESSION: "slower than the baseline beyond the tolerance",
    Verdict.CRASH: "the candidate does not boot or load, or dies under load, and the baseline does not",
    Verdict.ASSERTION_FAILED: "an assertion of the suite's own failed",
    Verdict.UNSTABLE: "the curve does not support a PDR",
    Verdict.INCONCLUSIVE: "the values scatter too much to say",
    Verdict.DISTURBED: "the machine, not the build, kept the measurement from an answer",
    Verdict.GENERATOR_LIMITED: "the generator, not the SUT, was the limit",
    Verdict.ERROR: "the testbed or a tool failed",
}
"""What a verdict that fails means, whatever its numbers are: the name of its category."""
_SEVERITIES = ("blocker", "critical", "normal", "minor", "trivial")
_SEVERITY = {Verdict.CRASH: "blocker", Verdict.REGRESSION: "critical", Verdict.UNSTABLE: "critical"}
"""How severe a verdict is where no tag says it; others are normal."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a run, as Allure's trends have it."""

    key: str
    title: str
    unit: str
    better: str
    value: float


def status(verdict: Verdict) -> str:
    """Allure's word: what the build fails is failed, what testbed or tool do is broken."""
    return {0: "passed", 1: "failed", 3: "failed"}.get(verdict.exit_code, "broken")


def labelled(labels: Sequence[Mapping[str, str]], verdict: Verdict) -> list[Mapping[str, str]]:
    """A test's labels with its owner and its severity, as tags say them (``owner:routing``, ``severity:blocker``)."""
    known = {str(one.get("name")) for one in labels}
    told = [str(one.get("value")) for one in labels if one.get("name") == "tag"]
    found = list(labels)
    for name in ("owner", "severity"):
        values = [tag.partition(":")[2] for tag in told if tag.lower().startswith(f"{name}:")]
        value = values[0].strip() if values else ""
        if name == "severity":
            value = value.lower() if value.lower() in _SEVERITIES else _SEVERITY.get(verdict, "normal")
        if value and name not in known:
            found.append({"name": name, "value": printable(value)})
    return found


def job_links(result: RunResult, job: Pipeline) -> list[Mapping[str, str]]:
    """The pages of the job and of the commit that it judges."""
    commit = job.page_of(result.commit)
    found = [(f"{job.name} {job.number}".strip(), job.url), (f"Commit {commit.rpartition('/')[2][:12]}", commit)]
    return [{"type": "link", "name": printable(name), "url": url} for name, url in found if url]


def numbers(result: RunResult) -> Iterator[Number]:
    """Measurands and changes of each scenario, of a comparison the candidate's."""
    for name, scenario in named(result):
        end = f"{slug(result.testbed.name)}.{slug(name)}"[:_LONGEST_KEY]
        where = printable(f"{scenario.label}, {result.testbed.name}")
        for one in scenario.findings.measurands:
            title = f"{printable(one.name)}: {where}"
            value = float(f"{one.value:.6g}")
            yield Number(f"{slug(one.name)}.{end}", title, unit_of(one.unit).in_column, one.better, value)
        for change in scenario.comparison.changes if scenario.comparison else ():
            title = f"change of {printable(change.measurand)}: {where}"
            yield Number(
                f"change-{slug(change.measurand)}.{end}", title, "%", change.better, float(f"{100 * change.change:.4g}")
            )


def environment(result: RunResult) -> Mapping[str, str]:
    """What was measured, and on what."""
    found = {"Verdict": str(result.verdict)}
    for scenario in result.scenarios[:1]:
        found["Kernel"] = kernel_release(scenario)
        found |= {side.side.capitalize(): side.build for side in scenario.builds.sides}
    found |= {
        "Testbed": result.testbed.name, "Profile": result.profile, "Run": result.run, "Command": result.command,
        "Testbed.sentence": result.testbed.sentence, "pdrgate": result.pdrgate,
    }  # fmt: skip
    return {name: printable(" ".join(value.split())) for name, value in found.items() if value}


def executor(result: RunResult, job: Pipeline) -> Mapping[str, Any]:
    """The job of a CI that ran it, else pdrgate itself."""
    told: dict[str, Any] = {
        "type": job.kind, "name": job.name, "buildName": f"{job.name} {job.number or result.run}"
    }  # fmt: skip
    told |= {"buildUrl": job.url} if job.url else {}
    return told | {"buildOrder": int(job.number) if job.number.isdecimal() else int(result.started)}


def categories() -> list[dict[str, Any]]:
    """A category for each verdict that fails, by its word at the beginning of the message; for Allure 2 and 3.

    Both want the expression to match all lines of it.
    """
    return [
        {"name": f"{word}: {meaning}", "matchedStatuses": [status(word)], "messageRegex": rf"^{word}:[\s\S]*"}
        for word, meaning in MEANINGS.items()
    ]


def configuration(result: RunResult) -> Mapping[str, Any]:
    """What Allure 3 wants in its allurerc.json: categories that are not split by message, trends with name and unit."""
    rules = [
        {"name": one["name"], "matchers": {"statuses": one["matchedStatuses"], "message": one["messageRegex"]},
         "groupByMessage": False}
        for one in categories()
    ]  # fmt: skip
    metrics = {one.key: {"title": one.title, "unit": one.unit, "better": one.better} for one in numbers(result)}
    return {
        "name": printable(f"pdrgate: {result.testbed.name}"),
        "output": "allure-report",
        "historyPath": "../allure-history.jsonl",
        "appendHistory": True,
        "historyLimit": 500,
        "categories": {"rules": rules},
        "performance": {"metrics": metrics},
    }

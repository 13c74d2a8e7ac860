"""What Allure shows beside the tests of a run: environment, executor, categories, numbers by name; all pure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pdrgate.measurands import unit_of
from pdrgate.printable import printable
from pdrgate.reports.ci.export_figures import named, slug
from pdrgate.reports.pages.scenario_parts import kernel_release
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict

_LONGEST_KEY = 120
MEANINGS = {
    Verdict.REGRESSION: "slower than the baseline beyond the tolerance",
    Verdict.CRASH: "the candidate does not boot or load, or dies under load, and the baseline does not",
    Verdict.UNSTABLE: "the curve does not support a PDR",
    Verdict.INCONCLUSIVE: "the values scatter too much to say",
    Verdict.DISTURBED: "the machine, not the build, kept the measurement from an answer",
    Verdict.GENERATOR_LIMITED: "the generator, not the SUT, was the limit",
    Verdict.ERROR: "the testbed or a tool failed",
}
"""What a verdict that fails means, whatever its numbers are: else each run had a category of its own."""


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
    return {0: "passed", 1: "failed"}.get(verdict.exit_code, "broken")


def message(scenario: ScenarioResult) -> str:
    """The verdict and what it is about, without a number: Allure puts tests of one message together."""
    changes = scenario.comparison.changes if scenario.comparison else ()
    about = [one.measurand for one in changes if one.verdict is scenario.verdict]
    if scenario.verdict is Verdict.UNSTABLE and scenario.findings.assessment is not None:
        about = [one.name for one in scenario.findings.assessment.checks if one.passed is False]
    of = f" ({', '.join(about)})" if about else ""
    return printable(f"{scenario.verdict}: {MEANINGS.get(scenario.verdict, 'passes')}{of}")


def numbers(result: RunResult) -> Iterator[Number]:
    """Measurands and changes of each scenario, of a comparison the candidate's."""
    for name, scenario in named(result):
        end = f"{slug(result.testbed.name)}.{slug(name)}"[:_LONGEST_KEY]
        where = printable(f"{scenario.title}, {result.testbed.name}")
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


def executor(result: RunResult, variables: Mapping[str, str] = os.environ) -> Mapping[str, Any]:
    """The job of a CI that ran it, by what that tells its programs; else pdrgate itself."""
    if "JENKINS_URL" in variables and "BUILD_URL" in variables:
        kind, name, url, number = "jenkins", "Jenkins", variables["BUILD_URL"], variables.get("BUILD_NUMBER", "")
    elif variables.get("GITHUB_ACTIONS") == "true":
        number = variables.get("GITHUB_RUN_NUMBER", "")
        url = "/".join(
            (variables.get("GITHUB_SERVER_URL", "https://github.com"), variables.get("GITHUB_REPOSITORY", ""))
        )
        kind, name, url = "github", "GitHub Actions", f"{url}/actions/runs/{variables.get('GITHUB_RUN_ID', '')}"
    elif variables.get("GITLAB_CI") == "true":
        number = variables.get("CI_PIPELINE_IID", "")
        kind, name, url = "gitlab", "GitLab CI", variables.get("CI_JOB_URL", "")
    else:
        kind, name, url, number = "pdrgate", "pdrgate", "", ""
    told: dict[str, Any] = {"type": kind, "name": name, "buildName": f"{name} {number or result.run}"}
    told |= {"buildUrl": url} if url.startswith(("https://", "http://")) else {}
    return told | {"buildOrder": int(number) if number.isdecimal() else int(result.started)}


def categories() -> list[dict[str, Any]]:
    """A category for each verdict that fails, by its word at the beginning of the message; for Allure 2 and 3."""
    return [
        {"name": f"{word}: {meaning}", "matchedStatuses": [status(word)], "messageRegex": rf"^{word}:.*"}
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

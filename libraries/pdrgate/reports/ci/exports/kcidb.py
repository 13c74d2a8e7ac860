"""Kernel CI's database, by its I/O schema 5.3 (kcidb-io): a checkout, the candidate's build, a test for each path.

`kcidb-submit` or KernelCI's submission API takes it. A whole run of an origin of one's own is reported: whoever submits
for another origin replaces the prefix of the identifiers.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pdrgate.measurands import Cost
from pdrgate.reports.ci.export_figures import says_more, slug, unit
from pdrgate.reports.words.headline import headline, scenario_headline
from pdrgate.reports.words.measurands import measurands_of
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.printable import printable

_VERSION = {"major": 5, "minor": 3}
_ORIGIN = "pdrgate"
_LATEST = 253_402_300_799.0
"""Seconds of the epoch at the end of the year 9999, the last that a time has four digits for."""
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_STATUS = {
    Verdict.PASS: "PASS", Verdict.IMPROVEMENT: "PASS", Verdict.NO_BASELINE: "DONE", Verdict.INCONCLUSIVE: "DONE",
    Verdict.ERROR: "ERROR", Verdict.DISTURBED: "MISS", Verdict.GENERATOR_LIMITED: "MISS",
}  # fmt: skip
"""KCIDB's word for a verdict; all others are a fault of the build, FAIL. MISS: the machine allowed no answer."""


def kcidb(result: RunResult) -> str:
    """The run as one JSON object of the schema."""
    build = _build(result)
    checkout: dict[str, Any] = {"id": build["checkout_id"], "origin": _ORIGIN}
    if _COMMIT.fullmatch(result.commit):
        checkout["git_commit_hash"] = result.commit
    tests = [*_tests(result, build["id"])]
    found = {"version": _VERSION, "checkouts": [checkout], "builds": [build], "tests": tests}
    return json.dumps(found, indent=2) + "\n"


def _build(result: RunResult) -> dict[str, Any]:
    """The candidate: known by the digest of its content, or by the name of its kernel."""
    side = next((found for one in result.scenarios if (found := one.builds.side("candidate")) is not None), None)
    kernel = result.environment.get("kernel_release", "unknown")
    name = side.build if side is not None else str(kernel)
    digest = (side.digest if side is not None else "") or hashlib.sha256(name.encode()).hexdigest()
    checkout = result.commit if _COMMIT.fullmatch(result.commit) else digest
    return {
        "id": f"{_ORIGIN}:{digest}", "checkout_id": f"{_ORIGIN}:{checkout}", "origin": _ORIGIN,
        "comment": printable(name),
    }  # fmt: skip


def _tests(result: RunResult, build: str) -> Iterator[dict[str, Any]]:
    begun = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(min(max(result.started, 0.0), _LATEST)))
    run = hashlib.sha256(f"{result.run} {result.started} {result.testbed.name} {build}".encode()).hexdigest()[:16]
    for number, scenario in enumerate(result.scenarios, start=1):
        test: dict[str, Any] = {
            "id": f"{_ORIGIN}:{run}-{number}", "build_id": build, "origin": _ORIGIN,
            "path": f"pdrgate.{slug(scenario.case, '_')}", "status": _STATUS.get(scenario.verdict, "FAIL"),
            "start_time": begun, "comment": printable(scenario_headline(scenario)),
        }  # fmt: skip
        known = [asdict(one) for one in scenario.details.acknowledged]
        yield test | _number(scenario) | ({"misc": {"acknowledged": known}} if known else {})
    for number, one in enumerate(result.left_out, start=len(result.scenarios) + 1):
        yield {
            "id": f"{_ORIGIN}:{run}-{number}", "build_id": build, "origin": _ORIGIN,
            "path": f"pdrgate.{slug(one.path, '_')}", "status": "ERROR" if one.is_fault else "SKIP",
            "start_time": begun, "comment": printable(one.reason),
        }  # fmt: skip
    if says_more(result):
        yield {
            "id": f"{_ORIGIN}:{run}", "build_id": build, "origin": _ORIGIN, "path": "pdrgate",
            "status": _STATUS.get(result.verdict, "FAIL"), "start_time": begun, "comment": printable(headline(result)),
        }  # fmt: skip


def _number(scenario: ScenarioResult) -> dict[str, Any]:
    """What a packet costs, or the first measurand; nothing where nothing was measured."""
    measured = measurands_of(scenario)
    one = next((one for one in measured if one.name == Cost.name), measured[0] if measured else None)
    return {} if one is None else {"number": {"value": one.value, "unit": unit(one)}}


EXPORT = kcidb

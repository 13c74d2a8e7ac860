"""Results of runs that never were, for tests of what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pdrgate.gate.fingerprint import METHOD
from pdrgate.history.results import RESULT_FILE, write_result
from pdrgate.results.model import SCHEMA, MeasurandResult, PdrResult, RunResult, ScenarioResult, TestbedResult
from pdrgate.results.verdict import Verdict

FINGERPRINT = {
    "scenario": "ipv6-routing-1cpu-4096-64B",
    "method": METHOD,
    "profile": "quick",
    "testbed": "local-netns",
    "generator": "embedded/xdp",
    "kernel": "6.18.44",
    "kernel_version": "#1 SMP",
    "config": "unknown",
    "cpu_model": "a CPU",
    "cpus": "2",
}
PER_RUN = (1.001e6, 0.999e6, 1.0e6)


def pdr(samples: tuple[float, ...] = PER_RUN) -> MeasurandResult:
    """The measurand of that name."""
    return MeasurandResult(
        name="PDR", unit="packets/s", better="higher", value=1e6, lower=0.99e6, upper=1.01e6, samples=samples
    )


def scenario(
    verdict: str = "NO_BASELINE", *, per_run: tuple[float, ...] | None = PER_RUN, **fingerprint: str
) -> ScenarioResult:
    """One scenario; ``per_run`` None means that no PDR was found."""
    known = FINGERPRINT | fingerprint
    return ScenarioResult(
        name=known["scenario"],
        title="IPv6 routing",
        verdict=Verdict(verdict),
        reason="because",
        boot="abcd",
        fingerprint=known,
        trials=3,
        pdr=None if per_run is None else PdrResult(load=1e6, lower=0.99e6, upper=1.01e6),
        measurands=() if per_run is None else (pdr(per_run),),
    )


def result(*scenarios: ScenarioResult, started: float = 1.0, **changes: Any) -> RunResult:
    """A whole result."""
    known: dict[str, Any] = {
        "schema": SCHEMA,
        "pdrgate": "0",
        "run": "r",
        "started": started,
        "finished": started + 1,
        "profile": "quick",
        "testbed": TestbedResult(name="local-netns", kind="local-netns"),
        "environment": {},
        "verdict": scenarios[0].verdict if scenarios else Verdict.ERROR,
        "reason": "because",
        "scenarios": scenarios,
    }
    return RunResult(**(known | changes))


def written(folder: Path, *scenarios: ScenarioResult, started: float = 1.0) -> Path:
    """The folder of a run with that result in it."""
    folder.mkdir(parents=True)
    write_result(folder / RESULT_FILE, result(*scenarios, started=started))
    return folder

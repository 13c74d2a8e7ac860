"""Results of runs that never were, for tests of what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pdrgate.history.results import RESULT_FILE, write_result

FINGERPRINT = {
    "scenario": "ipv6-routing-1cpu-4096-64B",
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


def scenario(
    verdict: str = "NO_BASELINE", *, per_run: tuple[float, ...] | None = PER_RUN, **fingerprint: str
) -> dict[str, Any]:
    """One entry of ``scenarios``; ``per_run`` None means that no PDR was found."""
    known = FINGERPRINT | fingerprint
    pdr = None
    if per_run is not None:
        pdr = {"load": 1e6, "lower": 0.99e6, "upper": 1.01e6, "per_run": list(per_run)}
    return {
        "name": known["scenario"],
        "title": "IPv6 routing",
        "verdict": verdict,
        "reason": "because",
        "boot": "abcd",
        "fingerprint": known,
        "trials": 3,
        "calibration": None,
        "search": None,
        "pdr": pdr,
        "assessment": None,
        "comparison": None,
    }


def result(*scenarios: dict[str, Any], started: float = 1.0) -> dict[str, Any]:
    """A whole result."""
    return {
        "schema": 1,
        "pdrgate": "0",
        "run": "r",
        "started": started,
        "finished": started + 1,
        "profile": "quick",
        "testbed": {"name": "local-netns", "kind": "local-netns"},
        "environment": {},
        "verdict": scenarios[0]["verdict"] if scenarios else "ERROR",
        "reason": "because",
        "scenarios": list(scenarios),
    }


def written(folder: Path, *scenarios: dict[str, Any], started: float = 1.0) -> Path:
    """The folder of a run with that result in it."""
    folder.mkdir(parents=True)
    write_result(folder / RESULT_FILE, result(*scenarios, started=started))
    return folder

"""Results of runs that never were, for tests of what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flat_values import flat_scenario, flat_side, flat_trial

from pdrgate.gate.sut.fingerprinting import METHOD
from pdrgate.history.results import RESULT_FILE, write_result
from pdrgate.history.trials import TRIALS_FILE
from pdrgate.record.stretch import Latency
from pdrgate.record.trial import Trial
from pdrgate.results.model import (
    SCHEMA,
    BootResult,
    ChangeResult,
    ComparisonResult,
    CostResult,
    Evidence,
    FunctionResult,
    MeasurandResult,
    PdrResult,
    RunResult,
    ScenarioResult,
    Side,
    TestbedResult,
)
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
    return flat_scenario(
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


def compared(
    verdict: str = "PASS", *, boots: tuple[float, ...] = PER_RUN, candidate: str = "6.19", **fingerprint: str
) -> ScenarioResult:
    """Two builds, a pair of boots for each of ``boots``; the candidate is one percent slower."""
    known = FINGERPRINT | fingerprint
    kernels: dict[Side, str] = {"baseline": known["kernel"], "candidate": candidate}
    values: dict[Side, tuple[float, ...]] = {"baseline": boots, "candidate": tuple(0.99 * one for one in boots)}
    cost = CostResult(
        instructions=5000.0,
        batch=None,
        trials=3,
        functions=(FunctionResult(name="ip6_forward", instructions=173.0, calls=1.0),),
    )
    sides = tuple(
        flat_side(
            side=side, build=f"linux-{kernel}", environment={"kernel_release": kernel, "boot_id": "of its own"},
            fingerprint=known | {"kernel": kernel}, measurands=(pdr(values[side]),), cost=cost,
        )
        for side, kernel in kernels.items()
    )  # fmt: skip
    change = ChangeResult(
        measurand="PDR", change=-0.01, lower=-0.012, upper=-0.008, confidence=0.99, tolerance=0.02, baseline=1e6,
        candidate=0.99e6, unit="packets/s", better="higher", verdict=Verdict.PASS,
        evidence=Evidence(slower=-6.0, faster=-9.0, pairs=len(boots), deviation=0.004, resolves=0.015),
    )  # fmt: skip
    return flat_scenario(
        name=known["scenario"], title="IPv6 routing", verdict=Verdict(verdict), reason="because",
        fingerprint=sides[1].findings.fingerprint, trials=3, pdr=PdrResult(load=0.99e6, lower=0.98e6, upper=1e6),
        measurands=sides[1].findings.measurands, sides=sides,
        boots=tuple(
            BootResult(
                side=side, pair=pair, boot=f"{side}-{pair}-{known['scenario']}", kernel=kernels[side],
                values={"PDR": own[pair - 1]},
            )
            for pair in range(1, len(boots) + 1)
            for side, own in values.items()
        ),
        comparison=ComparisonResult(
            baseline=sides[0].build, tolerance=0.02, change=-0.01, lower=-0.012, upper=-0.008, confidence=0.99,
            changes=(change,), pairs=len(boots),
        ),
    )  # fmt: skip


def trial(number: int = 1, **changes: Any) -> Trial:
    """A trial of the scenario above."""
    known: dict[str, Any] = {
        "offered": 1000, "forwarded": 998, "drained": 3, "sending_time": 1.0, "under_way": (1, 2, 3),
        "scenario": FINGERPRINT["scenario"], "latency": Latency(1e-6, 2e-6, 3e-6, 4e-6, 10), "boot": "abcd",
        "phase": "repeat", "repeat": number, "started": 100.0 + number,
    }  # fmt: skip
    return flat_trial(1000.0 * number, 1.0, **(known | changes))


def written(folder: Path, *scenarios: ScenarioResult, started: float = 1.0, trials: int = 0) -> Path:
    """The folder of a run with that result in it, named as it."""
    folder.mkdir(parents=True)
    write_result(folder / RESULT_FILE, result(*scenarios, started=started, run=folder.name))
    if trials:
        own = (trial(number, started=started + number) for number in range(1, trials + 1))
        (folder / TRIALS_FILE).write_text("".join(f"{one.to_json()}\n" for one in own))
    return folder

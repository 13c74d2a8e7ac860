"""How long the trend page of many runs takes, and how much memory: of results on disk, by the command.

    .venv/bin/python tests/bench/trend_page.py [--runs 200] [--scenarios 12] [--keep FOLDER]

The results are made: as long as real ones, of a kernel that gets slower by 4 % in one build, creeps by 0.2 % a build in
another scenario, and has lone dips. The limits are 10 s and 300 MB.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from flat_values import flat_scenario

from pdrgate.history.results import RESULT_FILE, read_result, write_result
from pdrgate.results.model import (
    SCHEMA,
    CostResult,
    FunctionResult,
    MeasurandResult,
    RunResult,
    ScenarioResult,
    TestbedResult,
)
from pdrgate.results.verdict import Verdict

LIBRARIES = sys.path[0]
DAY = 86400.0
FUNCTIONS = 120


def measurand(name: str, unit: str, better: str, value: float, noise: random.Random) -> MeasurandResult:
    told = value * math.exp(noise.gauss(0, 0.006))
    samples = tuple(told * math.exp(noise.gauss(0, 0.004)) for _ in range(6))
    return MeasurandResult(
        name=name, unit=unit, better=better, value=told, lower=0.993 * told, upper=1.007 * told, samples=samples
    )  # type: ignore[arg-type]  # fmt: skip


def scenario(name: str, number: int, run: int, runs: int, noise: random.Random) -> ScenarioResult:
    level = 20e3 * (1 - number / 30)
    if number % 4 == 0 and run >= 0.7 * runs:
        level *= 0.96
    if number % 4 == 1:
        level *= math.exp(-0.002 * max(0, run - 0.6 * runs))
    verdict = Verdict.PASS
    if noise.random() < 0.03:
        level, verdict = level * 0.85, noise.choice([Verdict.UNSTABLE, Verdict.DISTURBED, Verdict.PASS])
    elif noise.random() < 0.03:
        verdict = noise.choice([Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE, Verdict.NO_BASELINE])
    cost = measurand("cost", "instructions/packet", "lower", 1e8 / level, noise)
    functions = tuple(
        FunctionResult(name=f"function_{one}", instructions=cost.value / FUNCTIONS, calls=1.0, deviation=1.0)
        for one in range(FUNCTIONS)
    )
    fingerprint = {f"entry_{one}": "a value of some length" for one in range(20)}
    return flat_scenario(
        name=name, title=f"IPv{4 + 2 * (number % 2)} routing, {1 + number // 2} cpu, buffer 4096 packets",
        verdict=verdict, reason="not slower", trials=60,
        cost=CostResult(instructions=cost.value, batch=64, trials=9, functions=functions),
        fingerprint=fingerprint | {"scenario": name, "testbed": "local-vm", "kernel": f"6.1.{run}"},
        environment={f"fact_{one}": "a value of some length" for one in range(60)},
        measurands=(
            measurand("PDR", "packets/s", "higher", level, noise),
            measurand("saturation throughput", "packets/s", "higher", 0.99 * level, noise),
            cost,
        ),
    )  # fmt: skip


def make(folder: Path, runs: int, scenarios: int) -> None:
    noise = random.Random(1)
    for run in range(runs):
        found = tuple(scenario(f"scenario-{number:02d}", number, run, runs, noise) for number in range(scenarios))
        name = f"run-{run:03d}"
        (folder / name).mkdir()
        write_result(
            folder / name / RESULT_FILE,
            RunResult(
                schema=SCHEMA, pdrgate="0", run=name, started=1.75e9 + run * DAY, finished=None,
                profile="quick", testbed=TestbedResult(name="local-vm", kind="local-vm"), environment={},
                verdict=Verdict.PASS, reason="not slower", scenarios=found,
                command=f"./ci/gate --kernel linux-6.1.{run}.deb --against linux-6.1.0.deb",
            ),
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--scenarios", type=int, default=12)
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="where results and page stay, to be looked at")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        (folder / "results").mkdir(parents=True)
        make(folder / "results", options.runs, options.scenarios)
        size = sum(file.stat().st_size for file in folder.rglob(RESULT_FILE))
        page = folder / "trend.html"
        command = [sys.executable, "-m", "pdrgate.cli", "trend", str(folder / "results"), "--page", str(page)]
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        told = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": LIBRARIES}, capture_output=True, text=True, check=False
        )  # fmt: skip
        took = time.monotonic() - began
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert told.returncode == 1, told.stderr
        assert len(read_result(folder / "results" / "run-000").scenarios) == options.scenarios
        moved = sum(line.startswith(("WORSE", "BETTER")) for line in told.stdout.splitlines())
        print(
            f"{options.runs} runs of {options.scenarios} scenarios, {size / 1e6:.0f} MB of results: {took:.1f} s "
            f"({children.ru_utime - used:.1f} s of CPU), {children.ru_maxrss / 1024:.0f} MB at most, a page of "
            f"{page.stat().st_size / 1e6:.1f} MB, {moved} changes"
        )


if __name__ == "__main__":
    main()

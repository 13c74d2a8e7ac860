"""Comparisons on guests of several CPUs alone: what two builds differ by there, how often equal ones are told as
different, and what it takes.

    sudo env PYTHONPATH=libraries:tests/fakes .venv/bin/python tests/bench/several_cpus.py \\
        BASELINE CANDIDATE RESULTS SCENARIO... [--times N] [--living]
        [--cpus 2|3|4]

Builds are named as for `pdrgate gate --kernel`; a scenario is the name of a data path, or a scenario file in
YAML. Each comparison boots both builds anew, or with --living only where what they show is worse, and judges them as
the gate does. All trials are kept in RESULTS.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from rule_changes import several_cpus_changes

from pdrgate.builds.named_build import named_build
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.living_boots.several_cpu_suts import SeveralCpuSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.progress import RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.scenario_file import scenario_of
from pdrgate.gate.run.session import Session
from pdrgate.guests.metering.sharing import FEWEST_CPUS, MOST_CPUS
from pdrgate.measurands import described
from pdrgate.results.model import MemoryResult, Side
from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.vm.vm_config import LocalVm

_TESTBED = Path(__file__).parents[2] / "resources/testbeds/local-vm.yaml"
_LEAST = 0.1
"""Of a value for a packet, for a function to be named."""


class Told(RunObserver):
    """Prints what goes wrong, and nothing of each trial."""

    def said(self, sentence: str) -> None:
        """Print it where it tells of several CPUs."""
        if "CPUs share" in sentence:
            print(f"  {sentence}", flush=True)


def scenario(text: str) -> Scenario:
    """The scenario of that name, or that a file has."""
    return scenario_of(Path(text)) if text.endswith((".yaml", ".yml")) else Scenario(text)


def values(one: MemoryResult) -> str:
    """Each measurand's value in each trial, and the functions that have most of the first."""
    told = "; ".join(f"{name} {' '.join(f'{value:.3f}' for value in own)}" for name, own in one.values.items())
    first = next(iter(one.values))
    most = sorted(one.functions, key=lambda of: -max(of.values[first]))
    named = [f"{of.name} {max(of.values[first]):.2f} {dict(of.kinds)}" for of in most if max(of.values[first]) > _LEAST]
    return f"{told}; {', '.join(named)}"


def verdict(found: dict[Side, MemoryResult]) -> str:
    """What is judged of both, in a sentence."""
    both = found["baseline"], found["candidate"]
    sentences = []
    for one in several_cpus_changes(*both):
        sentence = described(one.measurand).sentence
        sentences.append(f"{one.verdict}: {sentence.clause(one, None) if sentence else one.measurand}")
    return "; ".join(sentences) or "nothing surely changed"


def cpu_seconds() -> float:
    """What this process and those that it has waited for have used."""
    return sum(os.times()[:4])


def main() -> None:
    """Compare, so many times for each scenario, and print each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("baseline")
    parser.add_argument("candidate")
    parser.add_argument("results", type=Path)
    parser.add_argument("scenarios", nargs="+", type=scenario, metavar="SCENARIO")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--living", action="store_true", help="on boots that stay up, as in the portfolio")
    parser.add_argument("--cpus", type=int, choices=range(FEWEST_CPUS, MOST_CPUS + 1), default=FEWEST_CPUS)
    asked = parser.parse_args()
    kernels = [named_build(text, report=print) for text in (asked.baseline, asked.candidate)]
    record = RunRecord(asked.results / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}", "smoke", resume=False)
    testbed = load_testbed(_TESTBED)
    assert isinstance(testbed, LocalVm)
    testbed = replace(testbed, sharing_vcpus=asked.cpus)
    session = Session(testbed, Options(profile="smoke"), record, Told(), state=record.folder / "state")
    session.take()
    try:
        builds = {
            side: Build(side, kernel.name, partial(session.boot, kernel))
            for side, kernel in zip(SIDES, kernels, strict=True)
        }
        suts = LivingSuts(session, builds)
        seen = suts.several_cpus.seen if asked.living else SeveralCpuSuts(session, builds, alone=True).seen
        for number in range(asked.times):
            for one in asked.scenarios:
                begun, used = time.monotonic(), cpu_seconds()
                found = dict(seen(ComparisonTask(session, one, builds, Plan(2, 600, 0.5), f"bench {number}")))
                took = f"{time.monotonic() - begun:.1f} s, {cpu_seconds() - used:.1f} s of CPUs"
                print(f"{one.name} {number + 1}: {verdict(found) if found else 'told nothing'} ({took})", flush=True)
                for side, result in found.items():
                    print(f"  {side}: {values(result)}", flush=True)
        suts.close()
    finally:
        session.close()
        record.close()


if __name__ == "__main__":
    main()

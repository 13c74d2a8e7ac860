"""eBPF objects that others wrote, each measured by itself: how many load, how many are carried, and why others are not.

    sudo .venv/bin/python tests/bench/real_objects.py FOLDER [--table tests/bench/real_objects.yaml] [--only PATTERN]
        [--kernel PACKAGE]

Nothing is fetched: FOLDER has the objects, and the table says with which options each is measured. On namespaces, a
line for each program: the packets/s that it handles of a flood (median of three), by the fate that is asked for, or the
reason why none is measured. With a kernel they run in one guest of it, which stays up, and a line has the share of the
program's machine code that packets reached: an object counts as reached where one of its programs is by half or more. A
guest that is lost is booted anew. Programs that no port takes are compared with themselves by `pdrgate gate`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from flat_values import changed

from pdrgate.bpf.filling import check_setup
from pdrgate.builds.bpf_build import BpfBuild, BpfBuildError, bpf_build
from pdrgate.builds.named_build import named_build
from pdrgate.builds.program_setup import program_setup
from pdrgate.data_paths.catalogue import data_path
from pdrgate.data_paths.contract import DataPath
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.scenario_file import described_by
from pdrgate.gate.sut.probe import probe_path
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.hosts.cpus import CpuPlan, plan_cpus
from pdrgate.measurands.counted.program_run import CodeReached
from pdrgate.observers.fates import by_fate
from pdrgate.observers.reading import nested
from pdrgate.observers.set_up_costs import LoadObserver
from pdrgate.observers.watching import Observer, watching
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease, whole_machine
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.values.errors import PdrGateError, SutError

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs/examples"
FLOOD, DURATION, TRIALS = 20e6, 0.3, 3
COUNTED_LOAD = 10e3
"""Packets/s in a guest, where it matters what runs and not how fast."""
REACHED = 0.5
WAYS = ("measured", "not handled", "not loaded", "not chosen")
_REACHED = re.compile(r"(\d+)% of its code reached")


@dataclass(frozen=True)
class Way:
    """How an object is measured."""

    scenario: Scenario
    options: Mapping[str, Any]
    """Those of eBPF programs, as a scenario's file has them."""
    programs: tuple[str, ...]
    gated: bool | str
    """Whether the gate measures it, because its hook is no port's; the path where it has to be named."""


def way_of(table: list[dict[str, Any]], name: str, folder: Path) -> Way:
    """The way of the first pattern that fits a name: an example of the documentation's, with what the pattern says."""
    said = next(dict(one) for one in table if fnmatch(name, one["objects"]))
    del said["objects"]
    programs, gated = said.pop("program", ""), said.pop("gated", False)
    example = {} if gated else yaml.safe_load((EXAMPLES / f"{said.pop('example', 'mixed')}.yaml").read_text())
    if "maps" in example:
        example["maps"] = str(EXAMPLES / example["maps"])
    example["files"] = [str(EXAMPLES / one) for one in example.get("files", ())]
    if isinstance(said.get("maps"), dict):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(said["maps"]))
        said["maps"] = f"{name}.yaml"
    file = folder / "way.yaml"
    file.write_text(yaml.safe_dump({"name": "way", **example, **said}))
    scenario, options = described_by(file)
    named = programs or options.pop("program", "")
    return Way(scenario, options, tuple(named) if isinstance(named, list) else (named,), gated)


def builds(path: Path, way: Way) -> Iterator[BpfBuild | BpfBuildError]:
    """The programs of an object that its way names, else the one that is meant by default."""
    said = way.options
    setup = program_setup(
        said.get("attach", "auto"), said.get("maps"), said.get("rodata", ()), said.get("replaces", "")
    )
    for name in way.programs:
        try:
            yield check_setup(bpf_build(f"{path}:{name}" if name else path, setup=setup))
        except BpfBuildError as error:
            yield error


def opened(kernel: str, cpus: CpuPlan, journal: Journal, folder: Path) -> NetnsTestbed | VmTestbed:
    """Namespaces, or a guest whose code is counted."""
    if not kernel:
        return NetnsTestbed(1, cpus, journal)
    machine = GuestConfig(cpus=cpus.sut, accelerator="tcg", metered=True, memory=2048)
    testbed = VmTestbed(named_build(kernel), cpus, journal, folder / "consoles", machine=machine, patience=300.0)
    testbed.ready()
    testbed.guest.count()
    return testbed


def watched(testbed: NetnsTestbed | VmTestbed, path: DataPath) -> Iterator[Observer]:
    """Observers of a trial, the counting of code the innermost."""
    yield from testbed.observers()
    yield LoadObserver(path.load_cost())
    if isinstance(testbed, VmTestbed) and testbed.executed is not None:
        yield from testbed.executed.stay().counting()


def handled(testbed: NetnsTestbed | VmTestbed, build: BpfBuild, scenario: Scenario) -> tuple[float, float | None]:
    """Packets/s that are handled, and the share of the program's code that ran, where that is counted. Raises
    PdrGateError when none is."""
    fate = scenario.fate or "forwarded"
    if scenario.set_up is not None and scenario.set_up.steps:
        testbed.furnish(scenario.set_up.programs, scenario.set_up.words)
    path = data_path(scenario.data_path, build, fate=fate, set_up=scenario.set_up)
    rates, trials = [], []
    load, times = (FLOOD, TRIALS) if isinstance(testbed, NetnsTestbed) else (COUNTED_LOAD, 1)
    try:
        path.apply(testbed.hops)
        generator = testbed.generator(path.family)
        try:
            frames = scenario.frames
            try:
                probe_path(path, testbed, generator, frames, fate)
            except PdrGateError as error:
                raise PdrGateError(f"{error}; {path.explain(generator.sample(frames))}") from error
            for _ in range(times):
                with watching(watched(testbed, path)) as watch:
                    trial = generator.trial(load, DURATION, frames)
                before, after = nested(watch.observation.before), nested(watch.observation.after)
                counted = {**before, **trial.seen.counters_before}, {**after, **trial.seen.counters_after}
                trial = changed(trial, counters_before=counted[0], counters_after=counted[1])
                trials.append(trial)
                trial = by_fate(trial, fate)
                rates.append(trial.forwarded / trial.sending_time)
        finally:
            generator.close()
    finally:
        path.restore()
    return statistics.median(rates), CodeReached().value(trials)


def gated(path: Path, program: str, way: Way, kernel: str) -> tuple[str, float | None]:
    """The reason of the verdict on a program compared with itself, and the share of its code that was reached."""
    named = f"{path}:{program}" if program else str(path)
    said = [f"{name}={value}" for name, value in way.options.items() if name in ("maps", "attach")]
    said += [f"rodata={one}" for one in way.options.get("rodata", ())]
    with tempfile.TemporaryDirectory() as results:
        command = (
            sys.executable, "-m", "pdrgate.cli", "gate", "--bpf", named, "--against", named, "--profile", "smoke",
            "--testbed", str(ROOT / "resources/testbeds/steady-guest.yaml"), "--wait", "1 h", "--output", results,
            *(("--kernel", kernel) if kernel else ()),
            *(("--scenario", way.gated) if isinstance(way.gated, str) else ()),
            *(word for one in said for word in ("--set", one)),
        )  # fmt: skip
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": str(ROOT / "libraries")}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        found = [one for one in Path(results).glob("*/result.json") if not one.parent.is_symlink()]
        if not found:
            return (done.stderr.strip() or done.stdout.strip()).splitlines()[-1], None
        (entry,) = json.loads(found[0].read_text())["scenarios"]
    shares = [
        one["value"] for side in entry["builds"]["sides"] for one in side["findings"]["measurands"]
        if one["name"] == CodeReached.name
    ]  # fmt: skip
    return f"{entry['verdict']}: {entry['reason']}", max(shares, default=None)


class Machine:
    """The testbed that objects are measured on, one after the other; one that was lost is opened anew."""

    def __init__(self, kernel: str, journal: Journal, folder: Path) -> None:
        self._open = partial(opened, kernel, plan_cpus(None, None), journal, folder)
        self._testbed: NetnsTestbed | VmTestbed | None = None

    def measured(self, build: BpfBuild, way: Way) -> str:
        """What became of a program, in words that begin with one of `WAYS`, and the share of its code at the end."""
        try:
            if self._testbed is None:
                self._testbed = self._open()
            rate, share = handled(self._testbed, build, way.scenario)
        except BpfBuildError as error:
            return f"not loaded: {error}"
        except PdrGateError as error:
            if not isinstance(error, SutError):
                self.close()
            return f"not handled: {error}"
        reached = "" if share is None else f", {share:.0%} of its code reached"
        return f"measured, {rate / 1e3:.0f} kpps{reached}"

    def close(self) -> None:
        testbed, self._testbed = self._testbed, None
        if testbed is not None:
            with contextlib.suppress(PdrGateError):
                testbed.close()


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--table", type=Path, default=Path(__file__).with_suffix(".yaml"))
    asked.add_argument("--only", default="*")
    asked.add_argument("--kernel", default="")
    given = asked.parse_args()
    table = yaml.safe_load(given.table.read_text())
    objects = [path for path in sorted(given.folder.glob("*.o")) if fnmatch(path.name, given.only)]
    outcomes: dict[str, list[str]] = {path.name: [] for path in objects}

    def note(path: Path, program: str, outcome: str) -> None:
        outcomes[path.name].append(outcome)
        print(f"{path.name}{':' if program else ''}{program}: {outcome}", flush=True)

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        ways = {path: way_of(table, path.name, folder) for path in objects}
        with (
            Lease.acquire(whole_machine(), wait=900),
            Journal.begin(folder) as journal,
            contextlib.closing(Machine(given.kernel, journal, folder)) as machine,
        ):
            for path, way in ways.items():
                for build in builds(path, way) if not way.gated else ():
                    refused = isinstance(build, BpfBuildError)
                    outcome = f"not chosen: {build}" if refused else machine.measured(build, way)
                    note(path, "" if refused else build.program, outcome)
        for path, way in ways.items():
            for program in way.programs if way.gated else ():
                reason, share = gated(path, program, way, given.kernel)
                reached = "" if share is None else f", {share:.0%} of its code reached"
                note(path, program, f"{'not handled' if share is None else 'measured'}, {reason}{reached}")
    counts: Counter[str] = Counter()
    for found in outcomes.values():
        counts[next(way for way in WAYS if any(one.startswith(way) for one in found))] += 1
        shares = [float(one[1]) / 100 for line in found if (one := _REACHED.search(line))]
        counts[f"of these reached by {REACHED:.0%} or more"] += max(shares, default=0.0) >= REACHED
    print(f"{len(objects)} objects: " + ", ".join(f"{count} {what}" for what, count in counts.most_common()))


if __name__ == "__main__":
    main()

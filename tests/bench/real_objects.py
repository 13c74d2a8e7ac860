"""eBPF objects that others wrote, each measured by itself: how many load, how many are carried, and why others are not.

    sudo .venv/bin/python tests/bench/real_objects.py FOLDER [--table tests/bench/real_objects.yaml] [--only PATTERN]
        [--kernel PACKAGE]

Nothing is fetched: FOLDER has the objects, and the table says with which options each is measured. On namespaces, a
line for each program: the packets/s that it handles of a flood (median of three), by the fate that is asked for, or the
reason why none is measured. With a kernel they run in one guest of it, which stays up, and a line has the share of the
program's machine code that packets reached: an object counts as reached where one of its programs is by half or more.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
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
from pdrgate.traffic.chosen.traffic_words import chosen_traffic
from pdrgate.values.errors import PdrGateError

FLOOD, DURATION, TRIALS = 20e6, 0.3, 3
COUNTED_LOAD = 10e3
"""Packets/s in a guest, where it matters what runs and not how fast."""
REACHED = 0.5
OWN_PATHS = {"xdp": "xdp-ipv6-routing", "tc": "tc-redirect"}


def told_of(table: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next((dict(one) for one in table if fnmatch(name, one["objects"])), {})


def builds(path: Path, told: Mapping[str, Any], folder: Path) -> Iterator[BpfBuild | BpfBuildError]:
    """The programs of an object that the table names, else the one that is meant by default."""
    maps = None
    if "maps" in told:
        maps = folder / "maps.yaml"
        maps.write_text(yaml.safe_dump(told["maps"]))
    setup = program_setup(told.get("attach", "auto"), maps, told.get("rodata", ()))
    named = told.get("program", "")
    names = named if isinstance(named, list) else [named]
    for name in names:
        try:
            yield check_setup(bpf_build(f"{path}:{name}" if name else path, setup=setup))
        except BpfBuildError as error:
            yield error


def opened(kernel: str, cpus: CpuPlan, journal: Journal, folder: Path) -> NetnsTestbed | VmTestbed:
    """Namespaces, or a guest whose code is counted."""
    if not kernel:
        return NetnsTestbed(1, cpus, journal)
    machine = GuestConfig(cpus=cpus.sut, accelerator="tcg", metered=True)
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


def handled(testbed: NetnsTestbed | VmTestbed, build: BpfBuild, told: Mapping[str, Any]) -> tuple[float, float | None]:
    """Packets/s that are handled, and the share of the program's code that ran, where that is counted. Raises
    PdrGateError when none is."""
    fate = told.get("fate", "forwarded")
    path = data_path(told.get("beneath") or OWN_PATHS[build.kind], build, fate=fate)
    rates, trials = [], []
    load, times = (FLOOD, TRIALS) if isinstance(testbed, NetnsTestbed) else (COUNTED_LOAD, 1)
    try:
        path.apply(testbed.hops)
        generator = testbed.generator(path.family)
        try:
            traffic = chosen_traffic([told["traffic"]]) if "traffic" in told else None
            frames = Scenario(data_path=path.name, fate=fate, traffic=traffic).frames
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


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--table", type=Path, default=Path(__file__).with_suffix(".yaml"))
    asked.add_argument("--only", default="*")
    asked.add_argument("--kernel", default="")
    given = asked.parse_args()
    table = yaml.safe_load(given.table.read_text())
    objects = [path for path in sorted(given.folder.glob("*.o")) if fnmatch(path.name, given.only)]
    counts: Counter[str] = Counter()
    cpus = plan_cpus(None, None)
    with (
        tempfile.TemporaryDirectory() as folder,
        Lease.acquire(whole_machine(), wait=900),
        Journal.begin(Path(folder)) as journal,
        contextlib.closing(opened(given.kernel, cpus, journal, Path(folder))) as testbed,
    ):
        for path in objects:
            outcomes, most = [], 0.0
            told = told_of(table, path.name)
            for build in builds(path, told, Path(folder)):
                if isinstance(build, BpfBuildError):
                    outcomes.append(f"not chosen: {build}")
                    continue
                try:
                    rate, share = handled(testbed, build, told)
                    reached = "" if share is None else f", {share:.0%} of its code reached"
                    outcomes.append(f"measured, {rate / 1e3:.0f} kpps{reached}")
                    most = max(most, share or 0.0)
                except BpfBuildError as error:
                    outcomes.append(f"not loaded: {error}")
                except PdrGateError as error:
                    outcomes.append(f"not handled: {error}")
                print(f"{build.name}: {told.get('fate', 'forwarded')}: {outcomes[-1]}", flush=True)
            if all(one.startswith("not chosen") for one in outcomes):
                print(f"{path.name}: {outcomes[0]}", flush=True)
            ways = ("measured", "not handled", "not loaded", "not chosen")
            best = next(way for way in ways if any(one.startswith(way) for one in outcomes))
            counts[best] += 1
            counts[f"of these reached by {REACHED:.0%} or more"] += most >= REACHED
    print(f"{len(objects)} objects: " + ", ".join(f"{count} {what}" for what, count in counts.most_common()))


if __name__ == "__main__":
    main()

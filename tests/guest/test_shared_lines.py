"""Guests of two and of four CPUs report the lines that known programs were written to share."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import pytest
from rule_changes import memory_changes, several_cpus_changes
from touching_routers import FALSELY_SHARED, OF_EACH_CPU, OF_ODD_AND_EVEN_CPUS, ONE_LOCK, OWN_LOCK, SHARED, Touching
from vm_session import vm_session

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.living_boots.several_cpu_suts import SeveralCpuSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands.memory.scaling import LOCKSTEP_TRIALS, Scaling
from pdrgate.measurands.memory.shared_lines import SharedLines
from pdrgate.record.phase import Phase
from pdrgate.results.model import MemoryResult, Side
from pdrgate.results.verdict import Verdict
from pdrgate.stability.trial_files import read_trials

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting", "nothing_left")]

PROGRAM = "bpf:xdp_router"


def of_program(result: MemoryResult, measurand: str) -> list[float]:
    """The program's value in each trial; 0 where it has hardly any."""
    found = {one.name: one.values[measurand] for one in result.functions}
    return list(found.get(PROGRAM, (0.0,) * result.trials))


def usual(result: MemoryResult, measurand: str) -> float:
    """The median of a build's trials: doubt adds trials, and the first one of a boot may scatter."""
    return median(of_program(result, measurand))


def seen(cloud: KernelBuild, folder: Path, cpus: int, *counters: Touching) -> tuple[MemoryResult, MemoryResult]:
    """The findings on two programs in guests of so many CPUs."""
    with vm_session(folder, sharing_vcpus=cpus) as session:
        builds = {
            side: Build(side, name, partial(session.boot, cloud), counter.built(folder / name, "router"))
            for side, name, counter in zip(SIDES, "ab", counters, strict=True)
        }
        task = ComparisonTask(session, Scenario("xdp-ipv6-routing"), builds, Plan(2, 600, 0.5), "t")
        found = SeveralCpuSuts(session, builds, alone=True).seen(task).results
    before, after = (found[side] for side in SIDES)
    # Packets count only while all CPUs handle some.
    assert before.cpus == after.cpus == cpus
    return before, after


def test_a_counter_of_all_cpus_is_shared_and_one_of_each_cpu_is_no_ones(cloud: KernelBuild, tmp_path: Path) -> None:
    own, shared = seen(cloud, tmp_path, 2, OF_EACH_CPU, SHARED)
    assert usual(own, "shared lines") == pytest.approx(0, abs=0.02)
    assert usual(shared, "shared lines") == pytest.approx(1, abs=0.1)
    assert usual(shared, "falsely shared lines") == pytest.approx(0, abs=0.05)

    (change,) = memory_changes(own, shared, (), [SharedLines])
    assert change.verdict is Verdict.REGRESSION
    assert [one.function for one in change.parts] == [PROGRAM]
    assert change.parts[0].kinds == {"map touched": pytest.approx(1, abs=0.1)}
    # What was measured is on disk, and not among the trials of pairs.
    phases = Counter(one.occasion.phase for one in read_trials(tmp_path / "run" / "several-cpus.jsonl"))
    assert {Phase.MEMORY, *LOCKSTEP_TRIALS} <= phases.keys()
    assert phases[Phase.MEMORY] >= 2 * len(SIDES)
    assert not (tmp_path / "run" / "trials.jsonl").stat().st_size


def test_four_cpus_have_a_counter_from_each_other_and_false_sharing_is_theirs_too(
    cloud: KernelBuild, tmp_path: Path
) -> None:
    shared, falsely = seen(cloud, tmp_path, 4, SHARED, FALSELY_SHARED)
    for one, of_them in ((shared, 0), (falsely, 1)):
        assert usual(one, "shared lines") == pytest.approx(1, abs=0.1)
        assert usual(one, "falsely shared lines") == pytest.approx(of_them, abs=0.1)


def test_four_cpus_share_what_two_do_not_as_a_counter_of_the_even_and_one_of_the_odd_ones(
    cloud: KernelBuild, tmp_path: Path
) -> None:
    _, two = seen(cloud, tmp_path / "two", 2, OF_EACH_CPU, OF_ODD_AND_EVEN_CPUS)
    assert usual(two, "shared lines") == pytest.approx(0, abs=0.02)
    own, four = seen(cloud, tmp_path / "four", 4, OF_EACH_CPU, OF_ODD_AND_EVEN_CPUS)
    assert usual(own, "shared lines") == pytest.approx(0, abs=0.02)
    assert usual(four, "shared lines") == pytest.approx(1, abs=0.1)
    (change,) = memory_changes(own, four, (), [SharedLines])
    assert (change.verdict, [one.function for one in change.parts]) == (Verdict.REGRESSION, [PROGRAM])


def test_a_lock_of_all_cpus_keeps_two_from_handling_twice_as_much(cloud: KernelBuild, tmp_path: Path) -> None:
    found = seen(cloud, tmp_path, 2, OWN_LOCK, ONE_LOCK)
    own, one = (each.values["scaling"] for each in found)
    assert own == pytest.approx([2.0] * len(own), rel=0.05)
    # Two thirds of a packet's instructions are executed with the lock held, so more than 1.5 times cannot be.
    assert all(1.2 < value < 1.65 for value in one)
    (change,) = [one for one in several_cpus_changes(*found) if one.measurand == Scaling.name]
    assert change.verdict is Verdict.REGRESSION


def test_guests_of_several_cpus_stay_up_until_what_is_worse_there_is_asked_of_two_more(
    cloud: KernelBuild, tmp_path: Path
) -> None:
    with vm_session(tmp_path) as session:
        programs = {name: one.built(tmp_path / name, "router") for name, one in _COUNTERS.items()}
        builds = {side: Build(side, side, partial(session.boot, cloud), programs["own"]) for side in SIDES}
        suts = LivingSuts(session, builds)

        def told(scenario: Scenario) -> dict[Side, MemoryResult]:
            task = ComparisonTask(session, scenario, suts.builds, Plan(2, 600, 0.5), "t")
            return dict(suts.several_cpus.seen(task).results)

        equal = told(Scenario("xdp-ipv6-routing"))
        assert told(Scenario("xdp-ipv4-routing")).keys() == equal.keys()
        boots = _boots_of(tmp_path)
        assert len(boots) == 2
        suts.builds["candidate"] = replace(suts.builds["candidate"], program=programs["falsely"])
        worse = told(Scenario("xdp-ipv6-routing"))
        assert len(_boots_of(tmp_path)) == 4
        suts.close()
    # Equal ones have one trial, but where a page went from one CPU to the other by chance.
    assert all(one.trials in (1, 4) and of_program(one, "shared lines")[0] < 0.02 for one in equal.values())
    assert memory_changes(equal["baseline"], equal["candidate"], (), [SharedLines]) == ()
    for measurand in ("shared lines", "falsely shared lines"):
        assert usual(worse["candidate"], measurand) == pytest.approx(1, abs=0.1)
    (change,) = memory_changes(worse["baseline"], worse["candidate"], (), [SharedLines])
    assert (change.verdict, [one.function for one in change.parts]) == (Verdict.REGRESSION, [PROGRAM])


_COUNTERS = {"own": OF_EACH_CPU, "falsely": FALSELY_SHARED}


def _boots_of(folder: Path) -> set[str]:
    return {one.belonging.boot for one in read_trials(folder / "run" / "several-cpus.jsonl")}

"""A guest of two CPUs tells which lines they share: of known programs just what these were written to share."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from touching_routers import FALSELY_SHARED, OF_EACH_CPU, SHARED
from vm_session import vm_session

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.gate.comparisons.cold_boots.two_cpus import on_two_cpus
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.compared_builds import SIDES, Build
from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands.memory_changes import memory_changes
from pdrgate.measurands.shared_lines import JUDGED_OF_TWO_CPUS
from pdrgate.results.model import MemoryResult, Side
from pdrgate.results.verdict import Verdict
from pdrgate.stability.trial_files import read_trials

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting", "nothing_left")]

PROGRAM = "bpf:xdp_router"


def of_program(result: MemoryResult, measurand: str) -> list[float]:
    """The program's value in each trial; 0 where it has hardly any."""
    found = {one.name: one.values[measurand] for one in result.functions}
    return list(found.get(PROGRAM, (0.0,) * result.trials))


def test_a_counter_of_all_cpus_is_shared_and_one_of_each_cpu_is_no_ones(cloud: KernelBuild, tmp_path: Path) -> None:
    with vm_session(tmp_path) as session:
        builds = {
            side: Build(side, name, partial(session.boot, cloud), counter.built(tmp_path / name, "router"))
            for side, name, counter in zip(SIDES, "ab", (OF_EACH_CPU, SHARED), strict=True)
        }
        found = on_two_cpus(ComparisonTask(session, Scenario("xdp-ipv6-routing"), builds, Plan(2, 600, 0.5), "t"))
    own, shared = (found[side] for side in SIDES)
    assert of_program(own, "shared lines") == pytest.approx([0, 0], abs=0.02)
    assert of_program(shared, "shared lines") == pytest.approx([1, 1], abs=0.1)
    assert of_program(shared, "falsely shared lines") == pytest.approx([0, 0], abs=0.05)

    (change,) = memory_changes(own, shared, {}, JUDGED_OF_TWO_CPUS)
    assert change.verdict is Verdict.REGRESSION
    assert [one.function for one in change.parts] == [PROGRAM]
    assert change.parts[0].kinds == {"map touched": pytest.approx(1, abs=0.1)}
    # What was measured is on disk, and not among the trials of pairs.
    assert len(list(read_trials(tmp_path / "run" / "two-cpus.jsonl"))) == 4
    assert not (tmp_path / "run" / "trials.jsonl").stat().st_size


def test_guests_of_two_cpus_stay_up_until_what_is_worse_there_is_asked_of_two_more(
    cloud: KernelBuild, tmp_path: Path
) -> None:
    with vm_session(tmp_path) as session:
        programs = {name: one.built(tmp_path / name, "router") for name, one in _COUNTERS.items()}
        builds = {side: Build(side, side, partial(session.boot, cloud), programs["own"]) for side in SIDES}
        suts = LivingSuts(session, builds)

        def told(scenario: Scenario) -> dict[Side, MemoryResult]:
            return dict(suts.two_cpus.told(ComparisonTask(session, scenario, suts.builds, Plan(2, 600, 0.5), "t")))

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
    assert memory_changes(equal["baseline"], equal["candidate"], {}, JUDGED_OF_TWO_CPUS) == ()
    for measurand in ("shared lines", "falsely shared lines"):
        assert of_program(worse["candidate"], measurand) == pytest.approx([1] * 8, abs=0.1)
    (change,) = memory_changes(worse["baseline"], worse["candidate"], {}, JUDGED_OF_TWO_CPUS)
    assert (change.verdict, [one.function for one in change.parts]) == (Verdict.REGRESSION, [PROGRAM])


_COUNTERS = {"own": OF_EACH_CPU, "falsely": FALSELY_SHARED}


def _boots_of(folder: Path) -> set[str]:
    return {one.belonging.boot for one in read_trials(folder / "run" / "two-cpus.jsonl")}

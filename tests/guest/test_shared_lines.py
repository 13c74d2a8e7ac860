"""A guest of two CPUs tells which lines they share: of known programs just what these were written to share."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from touching_routers import FALSELY_SHARED, OF_EACH_CPU, SHARED
from vm_session import vm_session

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.gate.comparisons.cold_boots.two_cpus import on_two_cpus
from pdrgate.gate.comparisons.pairs.compared_builds import SIDES, Build
from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands.memory_changes import memory_changes
from pdrgate.measurands.shared_lines import JUDGED_OF_TWO_CPUS
from pdrgate.results.model import MemoryResult
from pdrgate.results.verdict import Verdict
from pdrgate.stability.trial_files import read_trials

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting", "nothing_left")]

PROGRAM = "bpf:xdp_router"


def of_program(result: MemoryResult, measurand: str) -> list[float]:
    """The program's value in each trial; 0 where it has hardly any."""
    found = {one.name: one.values[measurand] for one in result.functions}
    return list(found.get(PROGRAM, (0.0,) * result.trials))


def test_counters_of_all_cpus_are_shared_falsely_or_not_and_one_of_each_cpu_is_no_ones(
    cloud: KernelBuild, tmp_path: Path
) -> None:
    with vm_session(tmp_path) as session:

        def compared(*counters: object) -> list[MemoryResult]:
            builds = {
                side: Build(side, name, partial(session.boot, cloud), counter.built(tmp_path / name, "router"))  # type: ignore[attr-defined]
                for side, name, counter in zip(SIDES, "ab", counters, strict=True)
            }
            found = on_two_cpus(ComparisonTask(session, Scenario("xdp-ipv6-routing"), builds, Plan(2, 600, 0.5), "t"))
            return [found[side] for side in SIDES]

        own, shared = compared(OF_EACH_CPU, SHARED)
        own_again, falsely = compared(OF_EACH_CPU, FALSELY_SHARED)
    for one in (own, own_again):
        assert of_program(one, "shared lines") == pytest.approx([0, 0], abs=0.02)
    assert of_program(shared, "shared lines") == pytest.approx([1, 1], abs=0.1)
    assert of_program(shared, "falsely shared lines") == pytest.approx([0, 0], abs=0.05)
    assert of_program(falsely, "shared lines") == pytest.approx([1, 1], abs=0.1)
    assert of_program(falsely, "falsely shared lines") == pytest.approx([1, 1], abs=0.1)

    (change,) = memory_changes(own, shared, {}, JUDGED_OF_TWO_CPUS)
    assert change.verdict is Verdict.REGRESSION
    assert [one.function for one in change.parts] == [PROGRAM]
    assert all(one.verdict is Verdict.PASS for one in memory_changes(own, own_again, {}, JUDGED_OF_TWO_CPUS))
    # What was measured is on disk, and not among the trials of pairs.
    assert len(list(read_trials(tmp_path / "run" / "two-cpus.jsonl"))) == 8
    assert not (tmp_path / "run" / "trials.jsonl").stat().st_size

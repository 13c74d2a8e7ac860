"""Kernels that want to pass: work that is hidden as idle work, packets that stand in for lost ones, guests that die."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hostile_driver import NoHeadersError, hostile_driver
from vm_session import vm_session

from pdrgate.builds.kernel_build import KernelBuild, kernel_build
from pdrgate.gate.comparisons.by_scenario import living_comparison_of
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.scenario import Scenario
from pdrgate.results.verdict import Judgement, Verdict

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting", "nothing_left")]


def judged_against(
    cloud: KernelBuild, source: str, tmp_path: Path, *, several_cpus: bool = False
) -> tuple[PairsComparison, Judgement]:
    """The distribution's kernel with a driver of an attacker's, beside the same kernel as it is."""
    try:
        hostile = kernel_build(str(hostile_driver(tmp_path, cloud, source)))
    except NoHeadersError as error:
        pytest.skip(str(error))
    with vm_session(tmp_path) as session:
        session.profile = replace(session.profile, several_cpus=several_cpus)
        builds = {
            "baseline": Build("baseline", "as it is", partial(session.boot, cloud, counted=True)),
            "candidate": Build("candidate", source, partial(session.boot, hostile, counted=True)),
        }
        # The tolerance of the cost is the run's.
        plan = Plan(2, 600, 0.5, several_cpus=several_cpus)
        made = living_comparison_of(
            ComparisonTask(session, Scenario("ip-routing"), builds, plan), LivingSuts(session, builds)
        )  # type: ignore[arg-type]
        return made, made.run()


def test_packets_that_cost_more_are_not_hidden_by_a_kernel_that_is_busy_without_packets(
    cloud: KernelBuild, tmp_path: Path
) -> None:
    made, found = judged_against(cloud, "busy_when_idle", tmp_path)
    assert found.verdict is Verdict.REGRESSION
    assert "the idle kernel executes " in found.reason
    assert " times as much" in found.reason
    assert min(made.samples("cost", "candidate")) > 1.1 * max(made.samples("cost", "baseline"))
    cost = made.result().findings.cost
    assert cost is not None
    assert any(one.name == "watched_hash" and one.calls >= 3 for one in cost.functions)
    # Calls were followed in the first pair, because the cost differs.
    ways = [side.findings.cost.path for side in made.result().builds.sides if side.findings.cost is not None]
    assert [any(one.function == "watched_hash" for one in way) for way in ways] == [False, True]
    assert all(any(one.caller is not None for one in way) for way in ways)


def test_a_packet_that_is_sent_twice_does_not_stand_in_for_one_that_is_dropped(
    cloud: KernelBuild, tmp_path: Path
) -> None:
    made, found = judged_against(cloud, "twice_and_never", tmp_path)
    assert found.verdict is Verdict.REGRESSION
    assert "of the packets come back twice, 0.0% of the baseline's" in found.reason
    assert made.samples("packets twice", "candidate") == pytest.approx((0.1, 0.1), rel=0.2)
    assert made.samples("packets never", "candidate") == pytest.approx((0.1, 0.1), rel=0.2)
    assert made.samples("packets twice", "baseline") == made.samples("packets never", "baseline") == ()


def test_a_kernel_does_not_hide_what_its_cpus_do_to_each_other_by_dying_where_it_has_several(
    cloud: KernelBuild, tmp_path: Path
) -> None:
    made, found = judged_against(cloud, "dies_on_several_cpus", tmp_path, several_cpus=True)
    assert found.verdict is Verdict.CRASH
    assert found.reason.startswith("with ")
    assert "Kernel panic - not syncing: several CPUs" in found.reason
    assert "2 boots of the candidate" in found.reason
    assert len(made.samples("cost", "candidate")) == 2

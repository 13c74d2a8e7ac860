"""Two builds of equal instructions that touch memory otherwise: told by function, judged, and none that is equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from touching_routers import FAR, NEAR, OF_EACH_CPU, SHARED, Touching, walk
from vm_session import vm_session

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.gate.comparisons.by_scenario import living_comparison_of
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.scenario import Scenario
from pdrgate.results.model import ChangeResult
from pdrgate.results.verdict import Verdict

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting", "nothing_left")]

PROGRAM = Scenario("xdp-ipv6-routing")
Compare = Callable[[Touching, Touching], PairsComparison]


@pytest.fixture
def compare(cloud: KernelBuild, tmp_path: Path) -> Iterator[Compare]:
    """Compares two programs on pairs of guests that stay up for the next comparison."""
    with vm_session(tmp_path) as session:
        builds = {
            side: Build(side, name, partial(session.boot, cloud, counted=True))
            for side, name in zip(SIDES, "ab", strict=True)
        }
        suts = LivingSuts(session, builds)
        taken = 0

        def compared(before: Touching, after: Touching) -> PairsComparison:
            nonlocal taken
            taken += 1
            for side, touching in zip(SIDES, (before, after), strict=True):
                program = touching.built(tmp_path / f"{side}{taken}", "router")
                suts.builds[side] = Build(side, builds[side].label, builds[side].start, program)
            # The tolerance of the cost is the run's; few pairs show what this is about.
            made = living_comparison_of(
                ComparisonTask(session, PROGRAM, suts.builds, Plan(2, 600, 0.5), longname=f"number {taken}"), suts
            )
            made.run()
            return made

        yield compared


def changes(made: PairsComparison) -> dict[str, ChangeResult]:
    assert made.comparison is not None
    return {one.measurand: one for one in made.comparison.changes}


def test_what_a_program_does_with_memory_is_judged_by_function(compare: Compare) -> None:
    far = compare(NEAR, FAR)
    assert far.judgement is not None
    assert far.judgement.verdict is Verdict.REGRESSION
    assert (
        "misses the modelled last level 1.0 times more (0.0 -> 1.0), in bpf:xdp_router, 1.0 of map touched"
        in far.judgement.reason
    )
    assert "% misses" in far.judgement.reason  # the estimate of cycles
    missed = changes(far)["last-level misses"]
    assert missed.verdict is Verdict.REGRESSION
    assert missed.candidate - missed.baseline == pytest.approx(1.0, abs=0.1)
    assert missed.parts[0].function == "bpf:xdp_router"
    assert missed.parts[0].kinds == {"map touched": pytest.approx(1.0, abs=0.1)}

    shared = changes(compare(OF_EACH_CPU, SHARED))["atomics"]
    # Of all together there is now one more and now one fewer: by when the port gives back what was sent.
    assert {one.function: one.change for one in shared.parts}["bpf:xdp_router"] == pytest.approx(1.0, abs=0.02)

    more = changes(compare(walk(1), walk(9)))["cache lines"]
    assert more.verdict is Verdict.REGRESSION
    router = next(one for one in more.parts if one.function == "bpf:xdp_router")
    assert router.change == pytest.approx(8, abs=0.3)
    assert sum(router.kinds.values()) == pytest.approx(8, abs=0.3)
    assert router.kinds["map touched"] == pytest.approx(8, abs=0.3)

    equal = compare(NEAR, NEAR)
    assert equal.judgement is not None
    assert equal.judgement.verdict is not Verdict.REGRESSION
    better = compare(SHARED, OF_EACH_CPU)
    assert better.judgement is not None
    assert better.judgement.verdict is not Verdict.REGRESSION

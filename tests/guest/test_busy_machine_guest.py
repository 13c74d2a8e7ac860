"""What a path is counted at is the same on a machine where others have nearly all of each CPU."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import pytest
from portfolio_paths import scenario_of_path
from vm_session import vm_session

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.gate.comparisons.by_scenario import living_comparison_of
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.results.verdict import Verdict

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting", "nothing_left")]

PATHS = ("ipv4_routing", "udp_delivery", "packet_ring")
LOOPS = 4
"""Endless ones for each CPU of this machine."""
ALIKE = 0.01
"""Relative: what a path costs beside them, and without. It is within 0.5 % in the median of many boots, and here are
four, or two where other paths have foretold the rest."""


@contextmanager
def busy_machine() -> Iterator[None]:
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(LOOPS * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for one in loops:
            one.kill()
            one.wait()


@pytest.mark.long
def test_equal_kernels_cost_the_same_beside_busy_processes_and_without(cloud: KernelBuild, tmp_path: Path) -> None:
    with vm_session(tmp_path) as session:
        builds = {
            side: Build(side, name, partial(session.boot, cloud, counted=True))
            for side, name in zip(SIDES, "ab", strict=True)
        }
        suts = LivingSuts(session, builds)
        try:
            for testbed in suts.pairs((1, 2)).values():
                assert "nohz=off" in testbed.machine.read("/proc/cmdline").split()
            costs: dict[tuple[str, bool], list[float]] = {}
            for path in PATHS:
                for busy in (False, True):
                    made = living_comparison_of(
                        ComparisonTask(
                            session, scenario_of_path(path), suts.builds, Plan(2, 600, 0.5), longname=f"{path} {busy}"
                        ),
                        suts,
                    )
                    if busy:
                        with busy_machine():
                            made.run()
                    else:
                        made.run()
                    assert made.judgement is not None
                    assert made.judgement.verdict is Verdict.PASS, made.judgement
                    costs[path, busy] = [cost for side in SIDES for cost in made.samples("cost", side)]
            for path in PATHS:
                quiet, loaded = (median(costs[path, busy]) for busy in (False, True))
                assert loaded == pytest.approx(quiet, rel=ALIKE), (path, costs)
        finally:
            suts.close()

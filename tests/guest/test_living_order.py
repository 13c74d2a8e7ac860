"""Nothing of a path stays on a guest: others execute there the same before all paths of the portfolio and after.

A path that leaves state behind, such as a setting that the kernel never takes back, changes what the next ones call.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from portfolio_paths import FILES, scenario_of_path
from vm_session import vm_session

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.gate.comparisons.counted_comparison import CountedComparison
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.compared_builds import SIDES, Build
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.verdicts.packet_cost import cost_result
from pdrgate.measurands.function_changes import function_changes
from pdrgate.stretch import by_boot
from pdrgate.trial import Trial

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting", "nothing_left")]

PATHS = {name: one for name in FILES if (one := scenario_of_path(name)).streams is None}
LOOKED_AT = ("ipv4_routing", "ipv6_routing", "bridge")
"""They are counted first, and once more when all others were."""
LOSS = 0.005


def test_what_a_path_executes_does_not_depend_on_those_before(cloud: KernelBuild, tmp_path: Path) -> None:
    with vm_session(tmp_path) as session:
        builds = {side: Build(side, name, partial(session.boot, cloud)) for side, name in zip(SIDES, "ab", strict=True)}
        suts = LivingSuts(session, builds)

        def counted(name: str, when: str) -> Sequence[Trial]:
            # The tolerance of the cost is the run's: no verdict is asked for here, and two pairs are enough.
            made = CountedComparison(session, PATHS[name], suts, Plan(2, 600, 0.5), longname=f"{when} {name}")
            made.run()
            if name in LOOKED_AT:
                print(f"{when} {name}: {[round(cost) for side in SIDES for cost in made.samples('cost', side)]}")
            return made.trials

        first = {name: counted(name, "first") for name in LOOKED_AT}
        for name in PATHS.keys() - first.keys():
            counted(name, "between")
        last = {name: counted(name, "last") for name in LOOKED_AT}
    for name in LOOKED_AT:
        assert _surely_changed(first[name], last[name]) == []


def _surely_changed(first: Sequence[Trial], last: Sequence[Trial]) -> list[str]:
    costs = (cost_result(list(by_boot(trials).values()), LOSS) for trials in (first, last))
    return [f"{one.label} {one.change:+.1f}" for one in function_changes(*costs) if one.sure]

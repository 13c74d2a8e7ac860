"""A build compared with itself: what pairs of boots of a testbed deviate by where nothing has changed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pdrgate.builds.named_build import named_build
from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.results.model import Side
from pdrgate.values.errors import UsageError

_LONG = 7 * 86400.0


def compare_with_itself(session: Session, scenario: Scenario, kernel: str, pairs: int) -> PairsComparison:
    """All pairs of boots of one build, measured and kept in the session's store of noise.

    Where nothing boots, such as in namespaces, a boot is the testbed set up anew.

    Args:
        session: one that is taken, and not open.
        kernel: the build, as a person names it; empty: the testbed as its file has it.

    Raises:
        UsageError: the testbed boots builds, and none is named.
        PdrGateError: as `PairsComparison.measure`.
    """
    # Nothing depends on the tolerance: all pairs are measured, whatever they show.
    plan = Plan(pairs, _LONG, session.options.tolerance, session.config.side_by_side, whole=True)
    comparison = comparison_of(ComparisonTask(session, scenario, _sides(session, kernel), plan))
    comparison.run()
    return comparison


def _sides(session: Session, kernel: str) -> Mapping[Side, Build]:
    config = session.config
    if not kernel:
        # A machine that is reached by SSH goes on between two runs: only what is booted is a boot there.
        if config.waits_for_build or (config.boots_builds and config.over_ssh):
            raise UsageError(f"testbed {config.name} ({config.source}) boots builds; name one with --kernel")
        return {side: Build(side, f"{config.name} as it is", session.make) for side in SIDES}
    named = named_build(kernel)
    return {side: Build(side, f"{named.name} ({named.release})", partial(session.boot, named)) for side in SIDES}

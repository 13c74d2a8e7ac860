"""Two configurations of one kernel, compared in pairs as two builds are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fake_testbed import Watcher

from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.pairs.comparison_task import Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.options import Options, ProfileName
from pdrgate.gate.run.progress import RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import Testbed, load_testbed
from pdrgate.values.units import Duration

NAMESPACES = Path(__file__).parents[2] / "resources/testbeds/local-netns.yaml"
_RENICE = """
for comm in /proc/[0-9]*/comm; do
    read -r name <"$comm" || continue
    case $name in "napi/$1-"*) ;; *) continue ;; esac
    pid=${comm%/comm}
    renice "$2" -p "${pid#/proc/}"
    taskset -cp "$3" "${pid#/proc/}"
done 2>/dev/null; true
"""


def as_it_is(testbed: Testbed) -> None:
    """No configuration of its own."""


def polled(testbed: Testbed, nice: str = "-20") -> None:
    """A thread polls the port, on the SUT's CPU and with the least nice value."""
    hop = testbed.hops[0]
    port = hop.ingress.interface
    for queue in hop.host.run("sh", "-c", f"echo /sys/class/net/{port}/queues/rx-*").stdout.split():
        hop.host.write(f"{queue}/rps_cpus", "0")
    hop.host.write(f"/sys/class/net/{port}/threaded", "1")
    hop.host.run("sh", "-c", _RENICE, "sh", port, nice, ",".join(map(str, hop.cpus)) or "0")


def fair(testbed: Testbed) -> None:
    """A thread polls the port, on the SUT's CPU, and goes before no receiver."""
    polled(testbed, "0")


def compared(
    folder: Path,
    scenario: Scenario,
    configure: Callable[[Testbed], None],
    *,
    baseline: Callable[[Testbed], None] = as_it_is,
    pairs: int,
    tolerance: float,
    testbed: Path = NAMESPACES,
    profile: ProfileName = "smoke",
    observer: RunObserver | None = None,
    wait: str = "10 min",
) -> PairsComparison:
    """A testbed after ``baseline``, or as it is, against the same after ``configure``."""
    config = load_testbed(testbed)
    options = Options(profile=profile, wait=Duration.parse(wait))
    record = RunRecord(folder / "run", profile)
    session = Session(config, options, record, observer or Watcher())
    if profile == "smoke":
        session.profile = replace(session.profile, boot_top_trials=2)

    def configured(journal: Journal, configure: Callable[[Testbed], None]) -> Testbed:
        testbed = session.make(journal)
        try:
            testbed.ready()
            configure(testbed)
        except BaseException:
            testbed.close()
            raise
        return testbed

    builds = {
        "baseline": Build("baseline", "as it is", lambda journal: configured(journal, baseline)),
        "candidate": Build("candidate", "configured", lambda journal: configured(journal, configure)),
    }
    session.take()
    try:
        comparison = comparison_of(ComparisonTask(session, scenario, builds, Plan(pairs, None, tolerance)))  # type: ignore[arg-type]
        comparison.measure()
        comparison.judge(tolerance)
        comparison.finish()
        return comparison
    finally:
        session.close()

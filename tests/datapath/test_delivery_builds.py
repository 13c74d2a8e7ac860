"""The gate on UDP delivery in namespaces: a configuration that delivers less is a regression, an equal one is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fake_testbed import Watcher
from machine_noise import UNDECIDED

from pdrgate.gate.boots import Build
from pdrgate.gate.build_comparison import BuildComparison, Plan
from pdrgate.gate.options import Options
from pdrgate.gate.record import RunRecord
from pdrgate.gate.scenario import Scenario
from pdrgate.gate.session import Session
from pdrgate.results.verdict import Verdict
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import Testbed as AnyTestbed
from pdrgate.testbeds import load_testbed
from pdrgate.units import Duration

pytestmark = pytest.mark.datapath

ROOT = Path(__file__).parents[2]
TOLERANCE = 0.1
FILTER = "table ip slow {{\n chain in {{\n type filter hook input priority 0;\n{}\n }}\n}}\n".format(
    "\n".join(f" udp dport {port} drop" for port in range(1, 401))
)
"""Rules of a firewall that each packet passes, and none drops."""


def compared(folder: Path, configure: Callable[[AnyTestbed], None], pairs: int) -> BuildComparison:
    """Namespaces as they are against the same after ``configure``, in pairs."""
    config = load_testbed(ROOT / "resources/testbeds/local-netns.yaml")
    options = Options(profile="smoke", wait=Duration.parse("10 min"))
    record = RunRecord(folder / "run", "smoke")
    session = Session(config, options, record, Watcher())
    session.profile = replace(session.profile, boot_top_trials=2)

    def configured(journal: Journal) -> AnyTestbed:
        testbed = session.make(journal)
        try:
            configure(testbed)
        except BaseException:
            testbed.close()
            raise
        return testbed

    builds = {
        "baseline": Build("baseline", "as it is", session.make),
        "candidate": Build("candidate", "configured", configured),
    }
    session.take()
    try:
        plan = Plan(pairs, None, TOLERANCE)
        comparison = BuildComparison(session, Scenario("udp-delivery"), builds, plan)  # type: ignore[arg-type]
        comparison.measure()
        comparison.judge(TOLERANCE)
        comparison.finish()
        return comparison
    finally:
        session.close()


def filtered(testbed: AnyTestbed) -> None:
    host = testbed.hops[0].host
    host.write("/run/pdrgate-slow.nft", FILTER)
    try:
        host.run("nft", "--file", "/run/pdrgate-slow.nft")
    finally:
        host.run("rm", "/run/pdrgate-slow.nft")


def test_a_configuration_that_delivers_less_is_a_regression(tmp_path: Path) -> None:
    comparison = compared(tmp_path, filtered, pairs=3)
    assert comparison.judgement is not None
    assert comparison.judgement.verdict in {Verdict.REGRESSION, *map(Verdict, UNDECIDED)}, comparison.judgement
    pdr = {side: comparison.samples("PDR", side) for side in ("baseline", "candidate")}  # type: ignore[arg-type]
    if pdr["baseline"]:
        assert sum(pdr["candidate"]) < 0.8 * sum(pdr["baseline"])


def test_an_equal_configuration_is_none(tmp_path: Path) -> None:
    comparison = compared(tmp_path, lambda testbed: None, pairs=2)
    assert comparison.judgement is not None
    assert comparison.judgement.verdict is not Verdict.REGRESSION, comparison.judgement

"""The gate on UDP delivery in namespaces: a configuration that delivers less is a regression, an equal one is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from configurations import compared
from machine_noise import UNDECIDED

from pdrgate.gate.scenario import Scenario
from pdrgate.results.verdict import Verdict
from pdrgate.testbeds import Testbed as AnyTestbed

pytestmark = pytest.mark.datapath

TOLERANCE = 0.1
FILTER = "table ip slow {{\n chain in {{\n type filter hook input priority 0;\n{}\n }}\n}}\n".format(
    "\n".join(f" udp dport {port} drop" for port in range(1, 401))
)
"""Rules of a firewall that each packet passes, and none drops."""
DELIVERY = Scenario("udp-delivery")


def filtered(testbed: AnyTestbed) -> None:
    host = testbed.hops[0].host
    host.write("/run/pdrgate-slow.nft", FILTER)
    try:
        host.run("nft", "--file", "/run/pdrgate-slow.nft")
    finally:
        host.run("rm", "/run/pdrgate-slow.nft")


def test_a_configuration_that_delivers_less_is_a_regression(tmp_path: Path) -> None:
    comparison = compared(tmp_path, DELIVERY, filtered, pairs=3, tolerance=TOLERANCE)
    assert comparison.judgement is not None
    assert comparison.judgement.verdict in {Verdict.REGRESSION, *map(Verdict, UNDECIDED)}, comparison.judgement
    pdr = {side: comparison.samples("PDR", side) for side in ("baseline", "candidate")}  # type: ignore[arg-type]
    if pdr["baseline"]:
        assert sum(pdr["candidate"]) < 0.8 * sum(pdr["baseline"])


def test_an_equal_configuration_is_none(tmp_path: Path) -> None:
    comparison = compared(tmp_path, DELIVERY, lambda testbed: None, pairs=2, tolerance=TOLERANCE)
    assert comparison.judgement is not None
    assert comparison.judgement.verdict is not Verdict.REGRESSION, comparison.judgement

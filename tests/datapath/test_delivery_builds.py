"""The gate on end hosts in namespaces: a configuration that delivers less is a regression, an equal one is none."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from configurations import compared
from machine_noise import UNDECIDED

from pdrgate.data_paths.catalogue import TcpStreams
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES
from pdrgate.gate.run.scenario import Scenario
from pdrgate.history.trials import TRIALS_FILE
from pdrgate.results.verdict import Verdict
from pdrgate.stability import read_trials
from pdrgate.testbeds import Testbed as AnyTestbed

pytestmark = pytest.mark.datapath

TOLERANCE = 0.1
UDP, TCP = Scenario("udp-delivery"), Scenario("tcp-transfer", tcp=TcpStreams(window=64))


def filtered(testbed: AnyTestbed, protocol: str = "udp", rules: int = 400) -> None:
    """A firewall whose rules each packet passes, and none drops."""
    host = testbed.hops[0].host
    lines = "\n".join(f" {protocol} dport {port} drop" for port in range(1, rules + 1))
    chain = f"chain in {{\n type filter hook input priority 0;\n{lines}\n }}"
    host.write("/run/pdrgate-slow.nft", f"table ip slow {{\n {chain}\n}}\n")
    try:
        host.run("nft", "--file", "/run/pdrgate-slow.nft")
    finally:
        host.run("rm", "/run/pdrgate-slow.nft")


def test_a_configuration_that_delivers_less_is_a_regression(tmp_path: Path) -> None:
    comparison = compared(tmp_path, UDP, filtered, pairs=2, tolerance=TOLERANCE)
    assert comparison.judgement is not None
    assert comparison.judgement.verdict in {Verdict.REGRESSION, *map(Verdict, UNDECIDED)}, comparison.judgement
    pdr = {side: comparison.samples("PDR", side) for side in ("baseline", "candidate")}  # type: ignore[arg-type]
    if pdr["baseline"]:
        assert sum(pdr["candidate"]) < 0.8 * sum(pdr["baseline"])


def test_an_equal_configuration_is_none(tmp_path: Path) -> None:
    comparison = compared(tmp_path, UDP, lambda testbed: None, pairs=2, tolerance=TOLERANCE)
    assert comparison.judgement is not None
    assert comparison.judgement.verdict is not Verdict.REGRESSION, comparison.judgement


def test_a_configuration_that_transfers_less_by_tcp_is_a_regression(tmp_path: Path) -> None:
    slow = functools.partial(filtered, protocol="tcp", rules=100)
    comparison = compared(tmp_path, TCP, slow, pairs=2, tolerance=TOLERANCE)
    assert comparison.judgement is not None
    assert comparison.judgement.verdict in {Verdict.REGRESSION, *map(Verdict, UNDECIDED)}, comparison.judgement
    baseline, candidate = (comparison.samples("TCP throughput", side) for side in SIDES)
    if baseline:
        assert sum(candidate) < 0.9 * sum(baseline)
    transfers = read_trials(tmp_path / "run" / TRIALS_FILE)
    assert {(one.belonging.side, one.belonging.pair) for one in transfers} >= {(side, 1) for side in SIDES}


def test_an_equal_configuration_is_none_by_tcp(tmp_path: Path) -> None:
    comparison = compared(tmp_path, TCP, lambda testbed: None, pairs=2, tolerance=TOLERANCE)
    assert comparison.judgement is not None
    assert comparison.judgement.verdict is not Verdict.REGRESSION, comparison.judgement

"""The gate on latency in namespaces: ports that take packets in later are a regression, and hold as many as before."""

from __future__ import annotations

from pathlib import Path

import pytest
from configurations import compared
from machine_noise import UNDECIDED

from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands.rates.latency import MedianLatency
from pdrgate.results.verdict import Verdict
from pdrgate.testbeds import Testbed as AnyTestbed

pytestmark = pytest.mark.datapath

LATE = Scenario("ipv4-routing", latency=True)
LATER = 100_000
"""Nanoseconds that a port's NAPI waits for further packets; a veth's ring holds those of 128 us at 2 Mpps."""


def coalescing(testbed: AnyTestbed) -> None:
    """As `ethtool -C rx-usecs` does it for network cards: no interrupt for a single packet."""
    for hop in testbed.hops:
        for port in hop.ports:
            device = f"/sys/class/net/{port.interface}"
            hop.host.write(f"{device}/napi_defer_hard_irqs", "1")
            hop.host.write(f"{device}/gro_flush_timeout", str(LATER))


def test_ports_that_wait_for_more_packets_are_a_regression_of_latency(tmp_path: Path) -> None:
    comparison = compared(tmp_path, LATE, coalescing, pairs=2, tolerance=0.5)
    assert comparison.judgement is not None
    verdict, reason = comparison.judgement.verdict, comparison.judgement.reason
    assert verdict in {Verdict.REGRESSION, *map(Verdict, UNDECIDED)}, comparison.judgement
    if verdict is Verdict.REGRESSION:
        assert "latency at " in reason.partition(" is +")[0], reason
    medians = {side: comparison.samples(MedianLatency.name, side) for side in ("baseline", "candidate")}  # type: ignore[arg-type]
    if medians["baseline"]:
        assert min(medians["candidate"]) > LATER / 2 * 1e-9

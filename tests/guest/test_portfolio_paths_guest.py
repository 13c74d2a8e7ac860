"""Each path of the portfolio in a guest: its packets go through, and nothing of it stays."""

from __future__ import annotations

import time

import pytest
from portfolio_paths import FILES, scenario_of_path

from pdrgate.data_paths.catalogue import data_path
from pdrgate.data_paths.network_state import NetworkState
from pdrgate.data_paths.replacing import Replaces
from pdrgate.gate.comparisons.living_boots.overload_step import LIGHT_FOR, LIGHT_LOAD
from pdrgate.gate.sut.probe import probe_path
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.delivery import counted_by

pytestmark = pytest.mark.guest

NEARLY_ALL = 0.995


@pytest.fixture(scope="module")
def testbed(shared_testbed, cloud) -> VmTestbed:
    return shared_testbed(cloud)


@pytest.mark.parametrize("name", FILES)
def test_its_packets_go_through_and_nothing_stays(testbed: VmTestbed, name: str) -> None:
    (hop,) = testbed.hops
    scenario = scenario_of_path(name)
    if scenario.set_up is not None:
        testbed.furnish(scenario.set_up.programs, scenario.set_up.words)
    before = NetworkState.of(hop.host)
    path = data_path(scenario.data_path, None, scenario.delivery, scenario.streams, set_up=scenario.set_up, told=print)
    begun = time.monotonic()
    try:
        path.apply(testbed.hops)
        print(f"{name}: set up in {time.monotonic() - begun:.2f} s")
        if path.loop is not None:
            assert path.loop.transfer(65536, 0.2).delivered > 0
            return
        generator = counted_by(path.arrivals, testbed.generator(path.family))
        try:
            probe_path(path, testbed, generator, scenario.frames, scenario.counts)
            trial = generator.trial(LIGHT_LOAD, LIGHT_FOR, scenario.frames)
            if scenario.replaces:
                assert isinstance(path, Replaces)
                assert path.replace()["done"] > 0
                assert generator.trial(LIGHT_LOAD, LIGHT_FOR, scenario.frames).forwarded > 0
        finally:
            generator.close()
    finally:
        begun = time.monotonic()
        assert path.restore() == []
        print(f"{name}: taken away in {time.monotonic() - begun:.2f} s")
    assert trial.forwarded >= NEARLY_ALL * trial.offered > 0
    assert NetworkState.of(hop.host) == before

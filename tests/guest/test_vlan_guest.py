"""IPv4 behind a VLAN: tagged packets through a guest's kernel, put back to the letter; and faults are named."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

import pytest

from pdrgate.data_paths.catalogue import DATA_PATHS, DataPath, data_path
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.sut.probe import probe_path
from pdrgate.record.trial import Trial
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.values.errors import SutError, TestbedError

pytestmark = pytest.mark.guest

NAME = "vlan-ipv4-routing"
FRAMES = DATA_PATHS[NAME].frames


@pytest.fixture(scope="module")
def testbed(shared_testbed, cloud) -> VmTestbed:
    return shared_testbed(cloud)


def sent(testbed: VmTestbed, path: DataPath, **fields: Any) -> tuple[Trial, FramesSeen]:
    """A trial over the applied path, and what its frames show."""
    generator, seen = testbed.generator(4), FramesSeen()
    try:
        probe_path(path, testbed, generator, FRAMES)
        trial = generator.trial(10e3, 0.1, replace(FRAMES, **fields))
        seen.take(trial, path)
    finally:
        generator.close()
    return trial, seen


def state(testbed: VmTestbed) -> list[str]:
    """Links, addresses, routes, neighbours and offloads."""
    (hop,) = testbed.hops
    words = (("-4", "route"), ("-4", "neighbour"), ("-4", "address"), ("-o", "link"))
    # That a new link is up the kernel tells a little later.
    found = [re.sub(r"<\S+>|state \w+", "", hop.host.run("ip", *one).stdout) for one in words]
    return found + [hop.host.run("ethtool", "-k", port.interface).stdout for port in hop.ports]


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(
    ("size", "vary", "probe_rate"), [(64, "ports", 0), (333, "addresses", 1000), (1518, "ports", 0)]
)
def test_tagged_packets_come_back_as_they_must(
    testbed: VmTestbed, size: int, vary: str, probe_rate: int, directions: Literal[1, 2]
) -> None:
    before, path = state(testbed), data_path(NAME)
    try:
        path.apply(testbed.hops)
        trial, seen = sent(testbed, path, size=size, vary=vary, probe_rate=probe_rate, directions=directions)
    finally:
        assert path.restore() == []
    assert trial.forwarded == trial.offered > 0
    assert seen.looked_at >= 4
    assert (seen.examples, seen.returned, seen.fault) == ([], 0, "")
    assert state(testbed) == before


def test_a_tag_of_another_vlan_is_named(testbed: VmTestbed) -> None:
    """The planted fault: narrower routes lead out of an interface of VLAN 9."""
    path, (hop,) = data_path(NAME), testbed.hops
    try:
        path.apply(testbed.hops)
        for words in (
            ("link", "add", "link", hop.egress.interface, "name", "wrong", "type", "vlan", "id", "9"),
            ("link", "set", "wrong", "up"),
            ("neighbour", "replace", "10.211.99.1", "lladdr", hop.egress.peer_mac, "dev", "wrong"),
            ("route", "add", "198.18.0.0/17", "via", "10.211.99.1", "dev", "wrong", "onlink"),
            ("route", "add", "198.18.128.0/17", "via", "10.211.99.1", "dev", "wrong", "onlink"),
        ):
            hop.host.run("ip", *words)
        trial, seen = sent(testbed, path)
    finally:
        hop.host.run("ip", "link", "delete", "wrong", check=False)
        assert path.restore() == []
    assert trial.forwarded == trial.offered
    assert seen.fault.startswith("makes wrong frames, ")
    assert seen.fault.endswith("VLAN tag 9 in place of 7")


def test_an_interface_that_goes_down_is_named(testbed: VmTestbed) -> None:
    """The other planted fault: the VLAN's interface is down where packets leave, and its routes are gone."""
    path, (hop,) = data_path(NAME), testbed.hops
    try:
        path.apply(testbed.hops)
        hop.host.run("ip", "link", "set", "pdrvlan-out", "down")
        with pytest.raises(SutError, match=rf"^{NAME} forwards none of .* between interfaces of VLAN 7"):
            sent(testbed, path)
    finally:
        told = path.restore()
    assert any("route" in sentence for sentence in told)  # what is gone already is told


def test_a_vlan_that_is_there_already_is_left_alone(testbed: VmTestbed) -> None:
    path, (hop,) = data_path(NAME), testbed.hops
    hop.host.run("ip", "link", "add", "link", hop.ingress.interface, "name", "mine", "type", "vlan", "id", "7")
    try:
        with pytest.raises(TestbedError, match=r"pdrvlan-in type vlan id 7.* exists"):
            path.apply(testbed.hops)
        assert path.restore() == []
        assert "mine@" in hop.host.run("ip", "-br", "link").stdout
    finally:
        hop.host.run("ip", "link", "delete", "mine")

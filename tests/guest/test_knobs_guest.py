"""Knobs on virtio-net with several queues, in a kernel of the distribution: what no veth has."""

from __future__ import annotations

import dataclasses
import re
import secrets
import subprocess
from collections.abc import Iterator, Mapping

import pytest
from knob_snapshot import setting, snapshot

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.guests.emulator.qemu import NetworkPort
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.knobs import (
    InterruptAffinity,
    Knob,
    KnobSet,
    RootQdisc,
    device_interrupts,
    each,
    in_turn,
    plan_knobs,
    rings,
    rps,
)
from pdrgate.knobs.cpu import Smt, idle_latency
from pdrgate.knobs.ethtool import channels, coalescing, pause_frames
from pdrgate.knobs.irqbalance import Irqbalance
from pdrgate.knobs.queues import xps
from pdrgate.knobs.rss import FlowHash, IndirectionTable, flow_hash
from pdrgate.safety.journal import Journal
from pdrgate.values.errors import TestbedError

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]

MAC = "02:70:64:72:01:01"
DEADLINE = 180.0


@pytest.fixture(scope="module")
def guest(
    booting: None, cloud: KernelBuild, config: GuestConfig, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guest]:
    """Two virtual CPUs and one port of two queues, RSS by QEMU. One boot serves all: each test puts all back."""
    folder = tmp_path_factory.mktemp("guest")
    namespace = f"t-knobs-{secrets.token_hex(3)}"  # no run's: others look for what those leave
    two = dataclasses.replace(config, vcpus=2)
    with Journal.begin(folder / "state") as journal:
        subprocess.run(("ip", "netns", "add", namespace), check=True)
        try:
            ports = [NetworkPort("t0", MAC, queues=2, spread=True)]
            with Guest(cloud, two, journal, folder, ports=ports, namespace=namespace) as guest:
                guest.wait(DEADLINE)
                guest.run("ip", "link", "set", guest.interfaces()[MAC], "up")
                yield guest
        finally:
            subprocess.run(("ip", "netns", "delete", namespace), check=True)


@pytest.fixture(scope="module")
def at_rest(guest: Guest) -> Mapping[str, str]:
    """All that knobs can turn, before any test."""
    return snapshot(guest, [guest.interfaces()[MAC]])


@pytest.fixture(scope="module")
def port(guest: Guest, at_rest: Mapping[str, str]) -> Iterator[str]:
    """The port's name. After all tests, which each put back what they change, all that knobs can turn is compared with
    what it was: a look takes an emulated guest two seconds, and what was left says which test left it."""
    name = guest.interfaces()[MAC]
    yield name
    assert snapshot(guest, [name]) == at_rest


def on(name: str) -> list[Knob]:
    return [
        rings(name, {"rx": 128}),
        channels(name, {"combined": 1}),
        IndirectionTable(name, "weight=3,1"),
        IndirectionTable(name, "equal=1"),
        flow_hash(name, {"udp4": "sd", "tcp6": "sd"}),
        FlowHash(name, "udp6=none"),
        InterruptAffinity(name, each([1])),
        InterruptAffinity(name, in_turn([1, 0])),
        rps(name, in_turn([1, 0])),
        xps(name, each([1])),
        RootQdisc(name, "pfifo limit 77"),
    ]


class TestOneByOne:
    """Each puts back what it had, and reads it back; that the look at the whole port would tell is seen, too."""

    @pytest.mark.parametrize("number", range(len(on(""))), ids=[knob.describe() for knob in on("PORT")])
    def test_a_virtio_port_takes_it_and_has_back_what_it_had(
        self, guest: Guest, port: str, at_rest: Mapping[str, str], number: int
    ) -> None:
        knob = on(port)[number]
        had = knob.read(guest)
        with KnobSet() as knobs:
            assert knobs.apply(guest, knob)
            assert knob.holds(knob.read(guest), knob.value)
            name, state = setting(guest, port, knob)
            assert state != at_rest[name]
        assert knob.read(guest) == had


def test_interrupts_are_those_of_the_pci_device_around_the_port(guest: Guest, port: str) -> None:
    found = device_interrupts(guest, port)
    device = guest.run("readlink", "-f", f"/sys/class/net/{port}/device").stdout.strip().rpartition("/")[2]
    assert sorted(found.values()) == sorted(
        [f"{device}-config", *(f"{device}-{way}.{queue}" for way in ("input", "output") for queue in (0, 1))]
    )
    # There are others of virtio that are not the port's.
    assert "virtio0-" in guest.read("/proc/interrupts").replace(f"{device}-", "")
    with KnobSet() as knobs:
        knobs.apply(guest, InterruptAffinity(port, in_turn([1, 0])))
        for number, name in found.items():
            told = guest.read(f"/proc/irq/{number}/smp_affinity_list").strip()
            assert told == {"0": "1", "1": "0"}.get(name.rpartition(".")[2], "0-1")


def test_queues_that_go_come_back_with_what_they_had(guest: Guest, port: str) -> None:
    with KnobSet() as theirs:
        for knob in (IndirectionTable(port, "weight=1,3"), rps(port, each([1])), InterruptAffinity(port, each([1]))):
            theirs.apply(guest, knob)
        before = snapshot(guest, [port])
        with KnobSet() as knobs:
            for one in plan_knobs({"ports": {"channels": {"combined": 1}, "rings": {"rx": 64}}}, [port]):
                knobs.apply(guest, one.knob, one.missing)
            for knob in (channels(port, {}), rings(port, {})):
                name, state = setting(guest, port, knob)
                assert state != before[name]
        assert snapshot(guest, [port]) == before


class TestNothingIsLeftBehind:
    """By what cannot be had."""

    @pytest.mark.parametrize(
        ("make", "lack"),
        [
            (lambda port: rings(port, {"rx": 32768}), r"takes at most rx=\d+ of rings"),
            (lambda port: channels(port, {"combined": 3}), "takes at most combined=2 of channels"),
            (lambda port: IndirectionTable(port, "equal=3"), "has 2 receive queues, too few for equal=3"),
            (lambda port: pause_frames(port, {"rx": True}), "has no pause frames that can be set"),
            (lambda port: coalescing(port, {"rx-usecs-irq": 9}), "has no rx-usecs-irq among its interrupt coalescing"),
            (lambda port: idle_latency(0), "has no CPU idle states to choose from"),
            (lambda port: Smt("on"), "cannot be switched on"),
            (lambda port: Irqbalance("on"), "has no service irqbalance to start"),
        ],
    )  # fmt: skip
    def test_is_a_skip_where_a_guest_lacks_it(self, guest: Guest, port: str, make, lack: str) -> None:  # type: ignore[no-untyped-def]
        knobs = KnobSet()
        assert not knobs.apply(guest, make(port), "skip")
        assert re.search(lack, knobs.skipped[0])

    def test_coalescing_that_the_driver_refuses(self, guest: Guest, port: str) -> None:
        with pytest.raises(TestbedError, match=r"ethtool -C .* rx-frames 4. on guest:.* Invalid argument"):
            KnobSet().apply(guest, coalescing(port, {"rx-frames": 4}))


def test_a_testbed_file_s_knobs_are_the_guest_s(boot_testbed, cloud, config) -> None:  # type: ignore[no-untyped-def]
    section = {
        "missing": "skip", "net.core.netdev_budget": 600,
        "ports": {"offloads": {"gro": False}, "mtu": 1400, "pause": {"rx": False}},
    }  # fmt: skip
    testbed = boot_testbed(cloud, machine=dataclasses.replace(config, vcpus=2), section=section)
    guest = testbed.guest
    assert guest.read("/proc/sys/net/core/netdev_budget") == "600\n"
    interfaces = [testbed.hops[0].ingress.interface, testbed.hops[0].egress.interface]
    for name in interfaces:
        assert guest.read(f"/sys/class/net/{name}/mtu") == "1400\n"
        assert "generic-receive-offload: off" in guest.run("ethtool", "-k", name).stdout
        assert f"; skipped pause frames of {name}: rx=off: {name} on {guest.name} has no pause" in testbed.sentence()
    assert testbed.describe()["knobs"] == (
        "missing=skip; net.core.netdev_budget=600; ports.mtu=1400; ports.offloads.gro=False; ports.pause.rx=False"
    )
    # Pinning is by the interrupts of each port's device.
    testbed.pin("2 cpus")
    for number, name in enumerate(interfaces):
        state = InterruptAffinity(name, each([0])).read(guest)
        assert {part.partition("=")[2] for part in state.split()} == {str(number)}
    testbed.pin("unpinned")
    state = InterruptAffinity(interfaces[1], each([0])).read(guest)
    assert {part.partition("=")[2] for part in state.split()} == {"0-1"}

"""The testbed rack with a SUT that has network cards: a guest's virtio ports interrupt, and are pinned by that."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from knob_snapshot import snapshot

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.catalogue import data_path
from pdrgate.guests.emulator.qemu import NetworkPort
from pdrgate.guests.guest import Guest
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.hosts.cpus import parse_cpu_list, plan_cpus
from pdrgate.knobs import InterruptAffinity, device_interrupts
from pdrgate.knobs.knob import ANY
from pdrgate.knobs.port_network import PortNetwork
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.rack.rack_keys import PortConfig
from pdrgate.testbeds.rack.rack_testbed import RackTestbed
from pdrgate.testbeds.rack.traffic_source import EmbeddedSource
from pdrgate.traffic.frames import Frames

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]

MACS = ("02:70:64:72:02:01", "02:70:64:72:02:02")
TAPS = ("t0", "t1")
VCPUS = 2


@pytest.fixture
def guest(cloud: KernelBuild, journal: Journal, tmp_path: Path) -> Iterator[tuple[Guest, str]]:
    """A guest with two virtual CPUs and two ports that are up, and the namespace of their other ends."""
    namespace = f"pdrgate-r-{uuid.uuid4().hex[:6]}-tg"
    subprocess.run(("ip", "netns", "add", namespace), check=True)
    machine = GuestConfig(cpus=plan_cpus(None, None).sut, accelerator="tcg", vcpus=VCPUS)
    ports = [NetworkPort(tap, mac, 256) for tap, mac in zip(TAPS, MACS, strict=True)]
    try:
        with Guest(cloud, machine, journal, tmp_path / "consoles", ports=ports, namespace=namespace) as guest:
            guest.wait(180)
            for tap in TAPS:
                subprocess.run(("ip", "-n", namespace, "link", "set", tap, "up"), check=True)
            for interface in guest.interfaces().values():
                guest.run("ip", "link", "set", interface, "up")
            yield guest, namespace
    finally:
        subprocess.run(("ip", "netns", "delete", namespace), check=True)


def state(guest: Guest) -> dict[str, str]:
    ports = tuple(guest.interfaces()[mac] for mac in MACS)
    return {**snapshot(guest, ports), **{port: PortNetwork(port).read(guest) for port in ports}}


def test_ports_with_interrupts_are_pinned_by_them_and_all_goes_back(guest: tuple[Guest, str], tmp_path: Path) -> None:
    sut, namespace = guest
    before = state(sut)
    with Journal.begin(tmp_path / "rack-state") as journal:
        source = EmbeddedSource(TAPS, plan_cpus(None, None).generator, journal, namespace=namespace, engine="packet")
        testbed = RackTestbed(
            sut, sut, [PortConfig(mac=mac) for mac in MACS], source, journal,
            cpus=(0, 1), knobs={"missing": "skip", "ports": {"offloads": {"gro": False}, "pause": {"rx": False}}},
        )  # fmt: skip
        try:
            assert testbed.describe()["steering"] == "irq"
            assert testbed.sut_cpus == (0, 1)
            assert "skipped pause frames of" in testbed.sentence()
            interfaces = [port.interface for port in testbed.hops[0].ports]
            pinned = {}
            for pinning in ("1 cpu", "2 cpus", "unpinned"):
                testbed.pin(pinning)  # type: ignore[arg-type]
                pinned[pinning] = [
                    {
                        parse_cpu_list(sut.read(f"/proc/irq/{number}/smp_affinity_list"))
                        for number, name in device_interrupts(sut, interface).items()
                        if "put" in name  # input.N and output.N, not config
                    }
                    for interface in interfaces
                ]
            assert pinned == {
                "1 cpu": [{(0,)}, {(0,)}],
                "2 cpus": [{(0,)}, {(1,)}],
                "unpinned": [{(0, 1)}, {(0, 1)}],
            }
            testbed.pin("1 cpu")
            path = data_path("ipv6-routing")
            path.apply(testbed.hops)
            testbed.set_buffer(256)
            generator = testbed.generator(6)
            # Fewer than the TAP holds: a machine that is busy elsewhere delays them, and loses none.
            trial = generator.trial(2e3, 0.4, Frames())
            generator.close()
            # Beside somebody else's measurement a generator may be too late for some of them, and says so.
            assert trial.offered + trial.unsent == 800
            assert trial.forwarded == trial.offered > 0
            assert testbed.check() == ()
            assert path.restore() == []
            # Not all of it: asked of everything it tells no more, and takes seconds.
            assert all(InterruptAffinity(one, ANY).read(sut) != before[f"interrupts {one}"] for one in interfaces)
            # What closing does first; it then ends the guest.
            testbed._knobs.restore()
            after = state(sut)
            assert {name: (before.get(name), after.get(name)) for name in before.keys() | after.keys()} == {
                name: (value, value) for name, value in before.items()
            }
        finally:
            testbed.close()

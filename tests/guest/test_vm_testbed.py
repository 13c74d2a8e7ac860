"""The testbed local-vm: exact counts through a real guest, its settings read back, and nothing left after a kill."""

import contextlib
import dataclasses
import os
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from flat_values import changed

from pdrgate.bpf.programs import XdpMode
from pdrgate.builds.bpf_build import bpf_build
from pdrgate.data_paths.catalogue import NETWORKS, data_path
from pdrgate.data_paths.paths.xdp_routing import XdpRouting
from pdrgate.gate.sut.dropped_packets import namespaces
from pdrgate.gate.sut.fingerprinting import fingerprint
from pdrgate.guests.guest import GuestError
from pdrgate.guests.metering import SpeedObserver
from pdrgate.guests.metering.function_counts import FunctionObserver
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.observers.accounting import losses
from pdrgate.observers.reading import Counter, Place, nested
from pdrgate.observers.retis import Retis
from pdrgate.observers.watching import watching
from pdrgate.safety.recovery import recover_stale
from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.vm.vm_testbed import DEFAULT_BUFFER, VmTestbed
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]

ROOT = Path(__file__).parents[2]
LOW = 4e3
_TRIES = 5
ABORTS_HALF = """\
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
char _license[] SEC("license") = "GPL";
unsigned int seen = 0;
SEC("xdp") int half(struct xdp_md *ctx) { return seen++ % 2 ? XDP_PASS : XDP_ABORTED; }
"""


def tap(name, counter):
    return Counter(Place("interface", name).of("tg"), counter)


def low(testbed, generator, frames):
    """A trial at a low load that the generator did not limit, and what counters gained in it.

    Others may have this machine's CPUs for longer than the guest's buffers hold: measured again, as the gate does.
    """
    for _ in range(_TRIES):
        before = testbed.counters()
        trial = generator.trial(LOW, 0.25, frames)
        after = testbed.counters()
        if not trial.generator_limited:
            break
    return trial, {name: after[name] - value for name, value in before.items() if name in after}


@pytest.mark.parametrize("engine", ["packet", "xdp"])
@pytest.mark.parametrize("kind", ["cloud", "plain"])
def test_a_low_load_is_forwarded_whole(shared_testbed, request, monkeypatch, engine, kind):
    testbed = shared_testbed(request.getfixturevalue(kind))
    monkeypatch.setattr(testbed, "_engine", engine)
    for family in (4, 6):
        path = data_path(f"ipv{family}-routing")
        path.apply(testbed.hops)
        try:
            with contextlib.closing(testbed.generator(family)) as generator:
                for directions in (1, 2):
                    trial, gained = low(testbed, generator, Frames(family=family, directions=directions))
                    assert trial.forwarded == trial.offered == 1_000 - trial.unsent
                    assert trial.aside.refused == 0
                    sent = gained[tap("t0", "tx_packets")] + gained[tap("t1", "tx_packets")]
                    assert sent >= trial.offered  # and some of the guest's own may have gone the other way
        finally:
            restored = path.restore()  # where this is tried again, it begins anew
        assert restored == []
    assert testbed.guest.check() == ()


def test_an_overload_is_refused_at_the_tap_and_blocks_nobody(shared_testbed, cloud, monkeypatch):
    testbed = shared_testbed(cloud)
    monkeypatch.setattr(testbed, "_engine", "packet")
    path = data_path("ipv4-routing")
    path.apply(testbed.hops)
    testbed.set_buffer(257)
    generator = testbed.generator(4)
    before = testbed.counters()
    trial = generator.trial(600_000.0, 0.5, Frames(family=4))
    after = testbed.counters()
    generator.close()
    assert trial.aside.refused > 0
    assert trial.forwarded < trial.offered
    assert trial.aside.refused == after[tap("t0", "tx_dropped")] - before[tap("t0", "tx_dropped")]
    # All that the TAP took reached the guest: the queue before it is the only place in front of it that loses.
    assert after[tap("t0", "tx_packets")] - before[tap("t0", "tx_packets")] == trial.offered - trial.aside.refused
    ingress = testbed.hops[0].ingress.interface
    received = Counter(Place("interface", ingress), "rx_packets")
    assert after[received] - before[received] == trial.offered - trial.aside.refused
    path.restore()
    testbed.set_buffer(DEFAULT_BUFFER)


def test_what_the_guest_loses_has_a_place(shared_testbed, cloud, tmp_path):
    """The TAP's queue by its counters; a blackhole by the reasons that the guest's kernel tells."""
    testbed = shared_testbed(cloud)
    path = data_path("ipv6-routing")
    path.apply(testbed.hops)
    testbed.set_buffer(257)
    generator = testbed.generator(6)

    def lost(load):
        with watching(testbed.observers()) as watch:
            trial = generator.trial(load, 0.3, Frames(family=6))
        seen = watch.observation
        return losses(changed(trial, counters_before=nested(seen.before), counters_after=nested(seen.after)))

    lost(LOW)  # neighbours are known
    overload = lost(600_000.0)
    assert overload.at("in the queue of TAP t0") == pytest.approx(overload.lost, rel=0.01)
    assert abs(overload.unexplained) < 100
    testbed.set_buffer(DEFAULT_BUFFER)
    host, network = testbed.hops[0].host, str(NETWORKS[6].forward)
    host.run("ip", "-6", "route", "add", "blackhole", network, "metric", "1")
    nowhere = lost(LOW)
    if shutil.which("retis"):  # no registry has the collector
        trace = Retis(testbed.machine, namespaces(testbed)).trace(tmp_path / "retis.data")
        with watching([trace]):
            trial = generator.trial(LOW, 0.05, Frames(family=6))
        drops = trace.drops(trial)
        assert (drops.seen, drops.places[0].function) == (trial.offered, "dst_discard_out")
        assert "ip6_sublist_rcv" in drops.places[0].way
    host.run("ip", "-6", "route", "delete", "blackhole", network, "metric", "1")
    generator.close()
    path.restore()
    assert nowhere.lost == nowhere.offered
    # A machine that is busy elsewhere may fill the TAP's queue meanwhile.
    arrived = nowhere.lost - nowhere.at("in the queue of TAP t0")
    assert arrived > 100
    assert abs(nowhere.at("by a blackhole route") - arrived) < 100, nowhere.sentence()
    assert abs(nowhere.unexplained) < 100, nowhere.sentence()


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_what_a_guests_xdp_program_is_at_fault_for_is_counted_once(
    shared_testbed, cloud, tmp_path: Path, mode: XdpMode
):
    """virtio_net counts it as dropped on receipt, generic XDP is among the kernel's reasons."""
    source, output = tmp_path / "half.bpf.c", tmp_path / "half.bpf.o"
    source.write_text(ABORTS_HALF)
    include = "-I/usr/include/x86_64-linux-gnu"
    subprocess.run(("clang", "-O2", "-g", "-target", "bpf", include, "-c", str(source), "-o", str(output)), check=True)
    testbed = shared_testbed(cloud)
    path = XdpRouting(6, bpf_build(output), mode=mode)
    generator = testbed.generator(6)
    try:
        path.apply(testbed.hops)
        generator.trial(LOW, 0.1, Frames(family=6))  # neighbours are known
        with watching(testbed.observers()) as watch:
            trial = generator.trial(LOW, 0.3, Frames(family=6))
    finally:
        generator.close()
        path.restore()
    seen = watch.observation
    account = losses(
        changed(trial, counters_before=nested(seen.before), counters_after=nested(seen.after))
    )  # fmt: skip
    aborted = account.at(f"by an XDP program that aborted on {testbed.hops[0].ingress.interface}")
    arrived = account.lost - account.at("in the queue of TAP t0")
    assert arrived > 100
    assert abs(aborted - arrived) <= 20, account.sentence()
    assert abs(account.unexplained) <= 20, account.sentence()


def test_a_guest_that_is_not_metered_says_why_nothing_is_counted(shared_testbed, cloud):
    testbed = shared_testbed(cloud)
    assert "sut.cpu_speed" in testbed.executed.uncounted
    assert not any(isinstance(one, FunctionObserver | SpeedObserver) for one in testbed.observers())


@pytest.fixture
def of_a_file(journal, cloud, tmp_path):
    """A testbed as a file of a user's has it."""
    text = (ROOT / "resources/testbeds/local-vm.yaml").read_text()
    file = tmp_path / "vm.yaml"
    file.write_text(re.sub(r"^  ring: 256\b", "  ring: 512", text, flags=re.MULTILINE))
    testbed = load_testbed(file).boot(cloud, journal, tmp_path, print).ready()
    yield testbed
    testbed.close()
    testbed.close()


def test_settings_are_read_back(of_a_file, boot_testbed, cloud):
    testbed = of_a_file
    guest = testbed.guest
    ingress = testbed.hops[0].ingress.interface
    assert "512" in guest.run("ethtool", "-g", ingress).stdout
    testbed.set_buffer(4096)
    with pytest.raises(TestbedError, match=r"512 packets cannot be had: .* use 513 to"):
        testbed.set_buffer(512)
    testbed.pin("1 cpu")
    testbed.pin("unpinned")
    with pytest.raises(TestbedError, match=r"needs 2 virtual CPUs, and the guest has 1; .*sut.vcpus"):
        testbed.pin("2 cpus")
    facts = testbed.describe()
    assert facts["accelerator"] == "tcg"
    assert facts["ring"] == "512"
    environment = testbed.environment()
    assert environment.kernel_release == cloud.release
    found = fingerprint("s", "p", "t", facts, {"name": "g", "engine": "e"}, environment)
    assert found["kernel"] == cloud.release
    assert found["config"] == cloud.config_sha256
    assert testbed.boot_id in str(guest.console)
    assert cloud.release in testbed.sentence()
    with pytest.raises(TestbedError, match=r"a receive ring of 100 packets cannot be had; use 256, 512, 1024"):
        boot_testbed(cloud, ring=100)


def test_two_testbeds_at_once(shared_testbed, cloud, plain):
    testbeds = [shared_testbed(build) for build in (cloud, plain)]
    for testbed, build in zip(testbeds, (cloud, plain), strict=True):
        path = data_path("ipv6-routing")
        path.apply(testbed.hops)
        try:
            with contextlib.closing(testbed.generator(6)) as generator:
                trial, _ = low(testbed, generator, Frames())
        finally:
            path.restore()  # where this is tried again, it begins anew
        assert trial.forwarded == trial.offered
        assert testbed.environment().kernel_release == build.release
    assert len({testbed.boot_id for testbed in testbeds}) == 2


def test_a_build_that_does_not_boot_leaves_nothing(boot_testbed, cloud, config, left_behind, newly_left):
    before = left_behind()
    with pytest.raises(GuestError, match=r"does not boot: Kernel panic") as error:
        boot_testbed(cloud, machine=dataclasses.replace(config, cmdline="rdinit=/none init=/none"))
    assert len(list(error.value.console.parent.glob("*.log"))) == 2  # the start was tried again, once
    assert newly_left(before) == {}


def test_a_namespace_that_could_not_be_deleted_is_deleted_by_the_next_close(
    cloud, config, journal, tmp_path, left_behind, newly_left
):
    before = left_behind()
    testbed = VmTestbed(cloud, plan_cpus(None, None), journal, tmp_path / "consoles", machine=config)
    (name,) = set(left_behind()["namespaces"]) - set(before["namespaces"])
    # Mounted over itself: what `ip netns delete` unmounts is then not all that holds the file.
    subprocess.run(("mount", "--bind", f"/run/netns/{name}", f"/run/netns/{name}"), check=True)
    with pytest.raises(TestbedError, match=rf"ip netns delete {name}.* Device or resource busy"):
        testbed.close()
    assert name in left_behind()["namespaces"]
    testbed.close()
    assert newly_left(before) == {}
    testbed.close()


def test_a_file_opens_it_with_a_build_only(journal, cloud, tmp_path):
    config = load_testbed(ROOT / "resources/testbeds/local-vm.yaml")
    with pytest.raises(TestbedError, match=r"boots kernel builds, and none was named; write one as sut.kernel"):
        config.open(journal)
    with pytest.raises(TestbedError, match=r"local-netns .*boots no kernels; use one of kind local-vm"):
        load_testbed(ROOT / "resources/testbeds/local-netns.yaml").boot(cloud, journal, tmp_path, print)


OWNER = """
import sys
import time
from pathlib import Path
from pdrgate.builds.kernel_build import kernel_build
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.guests.guest_config import GuestConfig
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.vm.vm_testbed import DEFAULT_BUFFER, VmTestbed
journal = Journal.begin(Path(sys.argv[1]))
cpus = plan_cpus(None, None)
machine = GuestConfig(cpus=cpus.sut, accelerator="tcg")
def begun():
    return VmTestbed(kernel_build(sys.argv[2]), cpus, journal, Path(sys.argv[1]), machine=machine)
one = begun().ready()
two = begun()
while not two.guest._console.text():
    time.sleep(0.05)
print(one.guest.pid, two.guest.pid, flush=True)
sys.stdin.readline()
"""


def test_a_killed_owner_leaves_no_guest_and_recovery_the_rest(cloud, tmp_path, left_behind, newly_left):
    """One that is set up, and one whose kernel still boots."""
    before = left_behind()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "libraries")}
    with subprocess.Popen(
        (sys.executable, "-c", OWNER, str(tmp_path), cloud.source),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    ) as owner:  # fmt: skip
        pids = [int(word) for word in owner.stdout.readline().split()]
        pidfds = [os.pidfd_open(pid) for pid in pids]
        during = left_behind()
        assert len(during["guests"]) == len(before["guests"]) + 2
        assert len(during["namespaces"]) == len(before["namespaces"]) + 2
        owner.kill()
    for pidfd in pidfds:
        assert select.select([pidfd], [], [], 30.0)[0], "a guest outlived its owner"
        os.close(pidfd)
    told = recover_stale(tmp_path)
    assert sum(sentence.startswith("deleted namespace") for sentence in told) == 2
    assert newly_left(before) == {}

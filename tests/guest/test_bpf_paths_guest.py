"""XDP, tc, SRv6, UDP and TCP in guests with kernels of the distribution: loaded, verified and counted there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pdrgate.builds.bpf_build import BpfBuildError, own_build
from pdrgate.data_paths.catalogue import DATA_PATHS, DataPath, Receivers, TcpStreams, data_path
from pdrgate.data_paths.paths.tcp_transfer import TcpTransfer
from pdrgate.data_paths.paths.xdp_routing import XdpRouting
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.sut.probe import probe_path
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.delivery import counted_by
from pdrgate.traffic.frames import Frames

pytestmark = pytest.mark.guest

LOAD, DURATION = 10e3, 0.2
WINDOW = 65536


@pytest.mark.parametrize("flavour", ["cloud", "plain"])
def test_every_data_path_in_one_guest(shared_testbed, flavour: str, request: pytest.FixtureRequest) -> None:
    testbed = shared_testbed(request.getfixturevalue(flavour))
    for name, kind in DATA_PATHS.items():
        path = data_path(name)
        try:
            path.apply(testbed.hops)
            if isinstance(path, TcpTransfer):
                transfer = path.loop.transfer(WINDOW, 1.0)
                assert (name, transfer.delivered > 0, transfer.advertised <= WINDOW) == (name, True, True)
            else:
                _carries(testbed, path, kind.frames, kind.program is not None)
        finally:
            told = path.restore()
        assert told == []
        for port in testbed.hops[0].ports:
            assert "xdp" not in testbed.guest.run_json("ip", "-j", "link", "show", "dev", port.interface)[0]
        assert "pdrgate" not in testbed.guest.run("ls", "/sys/fs/bpf").stdout


def _carries(testbed: VmTestbed, path: DataPath, frames: Frames, by_program: bool) -> None:
    generator = counted_by(path.arrivals, testbed.generator(path.family))
    try:
        probe_path(path, testbed, generator, frames)
        counted = path.redirected()
        trial = generator.trial(LOAD, DURATION, frames)
        assert (path.name, trial.forwarded) == (path.name, trial.offered)
        seen = FramesSeen()
        seen.take(trial, path)
        assert (path.name, seen.fault, seen.examples) == (path.name, "", [])
        assert (path.name, seen.looked_at > 0) == (path.name, path.arrivals is None)
        if by_program:
            assert counted is not None
            assert 0 <= (path.redirected() or 0) - counted - trial.forwarded <= 10
        else:
            assert counted is None
    finally:
        generator.close()


def test_receivers_have_their_shares_of_a_guests_cpu(shared_testbed, cloud) -> None:
    testbed = shared_testbed(cloud)
    groups = ("sh", "-c", "cat /sys/fs/cgroup/pdrgate-*/cpu.weight")
    path = data_path("udp-delivery", receivers=Receivers(4, shares=(97, 1, 1, 1), background=1))
    try:
        path.apply(testbed.hops)
        assert sorted(testbed.guest.run(*groups).stdout.split()) == ["1", "1", "1", "97"]
        generator = counted_by(path.arrivals, testbed.generator(4))
        try:
            trial = generator.trial(LOAD / 4, DURATION, Frames(4))
        finally:
            generator.close()
        each = [counted["received"] for place, counted in trial.counters_after.items() if place.startswith("receiver")]
        assert len(each) == 4
        assert sum(each) == trial.forwarded > 0
    finally:
        assert path.restore() == []
    assert testbed.guest.run(*groups, check=False).stdout == ""


def test_a_path_has_its_delay_where_the_guests_kernel_has_netem(shared_testbed, cloud) -> None:
    testbed = shared_testbed(cloud)
    path = TcpTransfer(4, TcpStreams(direction="sends", delay=0.02))
    try:
        path.apply(testbed.hops)
        transfer = path.loop.transfer(WINDOW, 1.0)
    finally:
        path.restore()
    assert (transfer.rtt or 0.0) >= 0.02
    assert transfer.throughput < 1.5 * 8 * WINDOW / 0.02


def test_virtio_has_native_xdp_and_generic_is_another_mode(shared_testbed, cloud) -> None:
    testbed = shared_testbed(cloud)
    for mode, told in (("auto", "XDP native (virtio_net)"), ("generic", "XDP generic (virtio_net: asked for)")):
        path = XdpRouting(6, mode=mode)  # type: ignore[arg-type]
        try:
            path.apply(testbed.hops)
            assert path.sentence() == told
        finally:
            path.restore()


def test_the_guests_own_verifier_has_the_say(shared_testbed, cloud, tmp_path: Path) -> None:
    testbed = shared_testbed(cloud)
    source, output = tmp_path / "bad.c", tmp_path / "bad.o"
    source.write_text('__attribute__((section("xdp"), used)) int bad(void *ctx) { return *(int *)(ctx + 400); }\n')
    subprocess.run(("clang", "-O2", "-target", "bpf", "-c", str(source), "-o", str(output)), check=True)
    path = data_path("xdp-ipv6-routing", output)
    try:
        with pytest.raises(
            BpfBuildError, match=r"guest:.* refuses its program \w+ \(xdp\): the verifier says: .*off=400"
        ):
            path.apply(testbed.hops)
    finally:
        path.restore()
    slower = data_path("xdp-ipv6-routing", own_build("xdp_router", ("LOOKUPS=4",)))
    try:
        slower.apply(testbed.hops)
        assert "program xdp_router.bpf.o (" in slower.sentence()
    finally:
        slower.restore()

"""XDP, tc, SRv6, UDP and TCP in guests with kernels of the distribution: loaded, verified and counted there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pdrgate.builds.bpf_build import BpfBuildError, bpf_build, own_build
from pdrgate.builds.program_setup import ProgramSetup, program_setup
from pdrgate.data_paths.catalogue import DATA_PATHS, DataPath, Receivers, TcpStreams, data_path
from pdrgate.data_paths.paths.tcp_transfer import TcpTransfer
from pdrgate.data_paths.paths.xdp_routing import XdpRouting
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.sut.probe import probe_path
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.delivery import counted_by
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.guest

LOAD, DURATION = 10e3, 0.2
WINDOW = 65536


@pytest.mark.parametrize("flavour", ["cloud", "plain"])
def test_every_data_path_in_one_guest(shared_testbed, flavour: str, request: pytest.FixtureRequest) -> None:
    testbed = shared_testbed(request.getfixturevalue(flavour))
    for name, kind in ((name, kind) for name, kind in DATA_PATHS.items() if kind.alone):
        path = data_path(name)
        try:
            path.apply(testbed.hops)
            if isinstance(path, TcpTransfer):
                transfer = path.loop.transfer(WINDOW, 1.0).transfer
                assert (name, transfer.delivered > 0, transfer.senders.advertised <= WINDOW) == (name, True, True)
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
        each = [
            counted["received"] for place, counted in trial.seen.counters_after.items() if place.startswith("receiver")
        ]
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
        transfer = path.loop.transfer(WINDOW, 1.0).transfer
    finally:
        path.restore()
    assert (transfer.senders.rtt or 0.0) >= 0.02
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


def test_a_kernel_before_tcx_tells_what_to_use(shared_testbed, cloud) -> None:
    testbed = shared_testbed(cloud)
    path = data_path("tc-redirect", bpf_build(own_build("tc_redirect").path, setup=ProgramSetup("tcx-ingress")))
    told = r"needs Linux 6\.6 with CONFIG_NET_XGRESS, and 6\.1\.\S+ has no such hook; use attach=tc-ingress$"
    try:
        with pytest.raises(TestbedError, match=rf"attaches no program tc_redirect \(tc\): tcx ingress: {told}"):
            path.apply(testbed.hops)
    finally:
        assert path.restore() == []


DISPATCHED = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
volatile const __u32 enabled = 0;
__attribute__((noinline)) int first(struct xdp_md *ctx) { return ctx ? XDP_DROP : XDP_ABORTED; }
SEC("xdp") int dispatches(struct xdp_md *ctx) { return enabled ? first(ctx) : XDP_ABORTED; }
char _license[] SEC("license") = "GPL";
"""
PARTS = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("freplace/first") int passes(struct xdp_md *ctx) { return XDP_PASS; }
SEC("xdp") int is_one_too(struct xdp_md *ctx) { return XDP_PASS; }
SEC("freplace/first") int drops(struct xdp_md *ctx) { return XDP_DROP; }
char _license[] SEC("license") = "GPL";
"""


def test_a_program_replaces_a_function_of_the_dispatcher_that_ports_run(shared_testbed, cloud, tmp_path: Path) -> None:
    testbed = shared_testbed(cloud)
    dispatcher, parts = _compiled(tmp_path, "dispatcher", DISPATCHED), _compiled(tmp_path, "parts", PARTS)
    generator = testbed.generator(6)
    try:
        for program, passes in (("passes", True), ("is_one_too", True), ("drops", False)):
            setup = program_setup("xdp", None, ("enabled=1",), f"{dispatcher}:dispatches/first")
            path = data_path("ipv6-routing", bpf_build(f"{parts}:{program}", setup=setup))
            try:
                path.apply(testbed.hops)
                trial = generator.trial(LOAD, DURATION, Frames(6))
                assert (program, trial.forwarded) == (program, trial.offered if passes else 0)
                told = path.explain(generator.sample(Frames(6)))
                assert str(told) == f"the program returns {'XDP_PASS' if passes else 'XDP_DROP'}"
                assert path.load_cost()["verified"] == 2
            finally:
                assert path.restore() == []
    finally:
        generator.close()


def _compiled(folder: Path, name: str, source: str) -> Path:
    (folder / f"{name}.c").write_text(source)
    machine = subprocess.run(("uname", "-m"), capture_output=True, text=True, check=True).stdout.strip()
    command = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}-linux-gnu", "-c", f"{name}.c")
    subprocess.run((*command, "-o", f"{name}.o"), cwd=folder, check=True)
    return folder / f"{name}.o"


FILLED = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct way { __u32 port; __u8 to[6]; __u8 from[6]; };
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8); __type(key, __u32); __type(value, struct way); }
ways SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 4); __uint(key_size, 4); __uint(value_size, 4); }
calls SEC(".maps");
volatile const __u32 step = 0;
SEC("xdp") int entry(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &calls, step);
	return XDP_DROP;
}
SEC("xdp") int sends(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 port = ctx->ingress_ifindex;
	struct way *way = bpf_map_lookup_elem(&ways, &port);
	if (!way || data + 14 > end)
		return XDP_ABORTED;
	__builtin_memcpy(data, way->to, 6);
	__builtin_memcpy(data + 6, way->from, 6);
	return bpf_redirect(way->port, 0);
}
char _license[] SEC("license") = "GPL";
"""
MAPS = """
ways:
  '@in.ifindex': {port: '@out.ifindex', to: '@out.peer.mac', from: '@out.mac'}
  '@out.ifindex': {port: '@in.ifindex', to: '@in.peer.mac', from: '@in.mac'}
calls: {2: sends}
"""


def test_maps_are_filled_and_tables_of_programs_kept_in_a_guest(shared_testbed, cloud, tmp_path: Path) -> None:
    testbed = shared_testbed(cloud)
    (tmp_path / "filled.c").write_text(FILLED)
    machine = subprocess.run(("uname", "-m"), capture_output=True, text=True, check=True).stdout.strip()
    command = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}-linux-gnu", "-c", "filled.c")
    subprocess.run((*command, "-o", "filled.o"), cwd=tmp_path, check=True)
    (tmp_path / "maps.yaml").write_text(MAPS)
    for maps, carries in ((MAPS, True), (MAPS.replace("calls: {2: sends}", ""), False)):
        (tmp_path / "maps.yaml").write_text(maps)
        setup = program_setup("auto", tmp_path / "maps.yaml", ["step=2"])
        path = data_path("xdp-ipv6-routing", bpf_build(f"{tmp_path / 'filled.o'}:entry", setup=setup))
        try:
            path.apply(testbed.hops)
            generator = testbed.generator(6)
            try:
                trial = generator.trial(LOAD, DURATION, Frames(6, directions=2))
                assert (trial.forwarded == trial.offered > 0) is carries
                told = path.explain(generator.sample(Frames(6)))
            finally:
                generator.close()
        finally:
            assert path.restore() == []
        dropped = "XDP_DROP; empty maps, which a file fills (--set maps=FILE): calls"
        assert ("XDP_REDIRECT" if carries else dropped) in str(told)
        assert path.load_cost() == {}
    assert "pdrgate-bpf-load" not in testbed.guest.run("ps").stdout

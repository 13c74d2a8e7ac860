"""Programs of cgroups, sockets and namespaces are attached to a guest's hooks, see its packets, and are gone after."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hook_programs import hook_program
from matrix_kernels import matrix_build

from pdrgate.builds.bpf_build import bpf_build
from pdrgate.builds.kernel_build import BuildError, KernelBuild
from pdrgate.data_paths.catalogue import DATA_PATHS, Receivers, TcpStreams, data_path
from pdrgate.data_paths.paths.tcp_transfer import TcpTransfer
from pdrgate.data_paths.program_path import ProgramBefore
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.delivery import counted_by
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.guest

LOAD, DURATION = 5e3, 0.2
PATHS = {
    "cgroup_skb": ("udp-delivery", 1), "sk_lookup": ("udp-delivery", 1), "sk_reuseport": ("udp-delivery", 4),
    "lwt_seg6local": ("srv6-end", 1),
}  # fmt: skip
"""The data path whose packets call a program, and its receivers, where that is not routing of IPv6."""


def hits(testbed: VmTestbed) -> int:
    (entry,) = testbed.guest.run_json("bpftool", "-j", "map", "dump", "name", "hits")
    return int.from_bytes(bytes(int(byte, 16) for byte in entry["value"]), "little")


def later_kernel() -> KernelBuild:
    """A kernel that has what came after 6.1."""
    try:
        return matrix_build("6.12")
    except BuildError as error:
        pytest.skip(str(error))


def programs(testbed: VmTestbed) -> list[str]:
    """Names of what is there of the programs, once the kernel has let go of them."""
    for _ in range(30):
        found = [
            one["name"]
            for one in testbed.guest.run_json("bpftool", "-j", "prog", "list")
            if one.get("name") == "counting"
        ]
        if not found:
            break
        time.sleep(0.1)
    return found


@pytest.mark.parametrize(
    "kind", ["cgroup_skb", "sk_lookup", "sk_reuseport", "lwt_in", "lwt_out", "lwt_xmit", "lwt_seg6local"]
)
def test_program_at_its_hook_sees_each_packet(shared_testbed, cloud, tmp_path: Path, kind: str) -> None:
    testbed = shared_testbed(cloud)
    build = bpf_build(hook_program(tmp_path, kind))
    name, receivers = PATHS.get(kind, ("ipv6-routing", 1))
    path = data_path(name, build, Receivers(receivers), stays=False)
    frames = DATA_PATHS[name].frames
    try:
        path.apply(testbed.hops)
        assert path.mode.startswith(f"{build.section} before ")
        arrivals = path.arrivals
        generator = testbed.generator(path.family) if arrivals is None else counted_by(arrivals, testbed.generator(4))
        before = hits(testbed)
        try:
            trial = generator.trial(LOAD, DURATION, frames)
        finally:
            generator.close()
        assert trial.forwarded == trial.offered > 0
        assert hits(testbed) - before >= trial.offered
    finally:
        assert path.restore() == []
    assert programs(testbed) == []


@pytest.mark.parametrize("side", ["primary", "peer"])
@pytest.mark.parametrize("family", [4, 6])
def test_program_at_a_netkit_device_sees_each_packet_that_is_routed_through_it(
    shared_testbed, tmp_path: Path, side: str, family: int
) -> None:
    testbed = shared_testbed(later_kernel())
    build = bpf_build(hook_program(tmp_path, "netkit", defines=(f'SIDE="netkit/{side}"',)))
    path = data_path(f"ipv{family}-routing", build, stays=False)
    try:
        path.apply(testbed.hops)
        assert path.mode.startswith(f"netkit/{side} before ")
        generator = testbed.generator(path.family)
        try:
            trial = generator.trial(LOAD, DURATION, DATA_PATHS[f"ipv{family}-routing"].frames)
        finally:
            generator.close()
        assert trial.forwarded == trial.offered > 0
        assert hits(testbed) >= trial.offered
    finally:
        assert path.restore() == []
    assert programs(testbed) == []
    assert "pdrgate-nk" not in testbed.guest.run("ip", "link").stdout
    assert "5476" not in testbed.guest.run("ip", f"-{family}", "rule").stdout


def test_kernel_without_netkit_devices_is_refused(shared_testbed, cloud, tmp_path: Path) -> None:
    path = data_path("ipv6-routing", bpf_build(hook_program(tmp_path, "netkit")), stays=False)
    try:
        with pytest.raises(TestbedError, match=r"has no netkit devices .* they need Linux 6\.7 with CONFIG_NETKIT"):
            path.apply(shared_testbed(cloud).hops)
    finally:
        assert path.restore() == []


# Of sk_skb, a connection in a hundred waits until its time is over: why is not known.
@pytest.mark.parametrize("kind", ["sockops", "sk_msg", pytest.param("sk_skb", marks=pytest.mark.long), "struct_ops"])
def test_program_at_its_hook_sees_tcp_of_the_sut(shared_testbed, cloud, tmp_path: Path, kind: str) -> None:
    testbed = shared_testbed(cloud)
    program = bpf_build(f"{hook_program(tmp_path, kind)}:counting")
    path = ProgramBefore(TcpTransfer(4, TcpStreams(request=64, buffers="kernel")), program, disposable=True)
    try:
        path.apply(testbed.hops)
        assert path.loop.transfer(65536, 0.5).transfer.requests > 0
        assert hits(testbed) > 0
    finally:
        assert path.restore() == []
    assert programs(testbed) == []


def test_program_of_cgroups_is_not_attached_to_a_host_that_stays(shared_testbed, cloud, tmp_path: Path) -> None:
    testbed = shared_testbed(cloud)
    program = bpf_build(hook_program(tmp_path, "cgroup_skb"))
    path = ProgramBefore(data_path("udp-delivery"), program)
    try:
        with pytest.raises(TestbedError, match=r"is attached to the whole of guest:.*; measure it in a guest: "):
            path.apply(testbed.hops)
    finally:
        path.restore()

"""Programs of cgroups, sockets and namespaces are attached to a guest's hooks, see its packets, and are gone after."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pdrgate.builds.bpf_build import bpf_build
from pdrgate.data_paths.catalogue import TcpStreams, data_path
from pdrgate.data_paths.paths.tcp_transfer import TcpTransfer
from pdrgate.data_paths.program_path import ProgramBefore
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.delivery import counted_by
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.guest

LOAD, DURATION = 5e3, 0.2

SOURCE = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); }
	hits SEC(".maps");
SEC("%s") int counting(%s *ctx)
{
	__u32 at = 0;
	__u64 *count = bpf_map_lookup_elem(&hits, &at);

	if (count)
		__sync_fetch_and_add(count, 1);
	return %d;
}
char _license[] SEC("license") = "GPL";
"""


def compiled(folder: Path, section: str, context: str, returns: int) -> Path:
    source, output = folder / "some.c", folder / "some.o"
    source.write_text(SOURCE % (section, context, returns))
    machine = subprocess.run(("uname", "-m"), capture_output=True, text=True, check=True).stdout.strip()
    command = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}-linux-gnu", "-c", str(source))
    subprocess.run((*command, "-o", str(output)), check=True)
    return output


def hits(testbed: VmTestbed) -> int:
    (entry,) = testbed.guest.run_json("bpftool", "-j", "map", "dump", "name", "hits")
    return int.from_bytes(bytes(int(byte, 16) for byte in entry["value"]), "little")


@pytest.mark.parametrize(
    ("section", "context", "returns"),
    [
        ("cgroup_skb/ingress", "struct __sk_buff", 1),
        ("cgroup/skb", "struct __sk_buff", 1),
        ("sk_lookup", "struct bpf_sk_lookup", 1),
    ],
)
def test_program_at_its_hook_sees_each_delivered_packet(
    shared_testbed, cloud, tmp_path: Path, section: str, context: str, returns: int
) -> None:
    testbed = shared_testbed(cloud)
    path = data_path("udp-delivery", bpf_build(compiled(tmp_path, section, context, returns)))
    try:
        path.apply(testbed.hops)
        assert path.mode.startswith(f"{section} before ")
        generator = counted_by(path.arrivals, testbed.generator(path.family))
        before = hits(testbed)
        try:
            trial = generator.trial(LOAD, DURATION, Frames(path.family))
        finally:
            generator.close()
        assert trial.forwarded == trial.offered > 0
        assert hits(testbed) - before >= trial.offered
    finally:
        assert path.restore() == []
    assert not [one for one in testbed.guest.run_json("bpftool", "-j", "prog", "list") if one["name"] == "counting"]


def test_program_of_sock_ops_sees_connections_of_the_sut(shared_testbed, cloud, tmp_path: Path) -> None:
    testbed = shared_testbed(cloud)
    program = bpf_build(compiled(tmp_path, "sockops", "struct bpf_sock_ops", 1))
    path = ProgramBefore(TcpTransfer(4, TcpStreams()), program, disposable=True)
    try:
        path.apply(testbed.hops)
        assert path.loop.transfer(65536, 0.5).transfer.delivered > 0
        assert hits(testbed) > 0
    finally:
        assert path.restore() == []


def test_program_of_cgroups_is_not_attached_to_a_host_that_stays(shared_testbed, cloud, tmp_path: Path) -> None:
    testbed = shared_testbed(cloud)
    program = bpf_build(compiled(tmp_path, "cgroup_skb/egress", "struct __sk_buff", 1))
    path = ProgramBefore(data_path("udp-delivery"), program)
    try:
        with pytest.raises(TestbedError, match=r"is attached to the whole of guest:.*; measure it in a guest: "):
            path.apply(testbed.hops)
    finally:
        path.restore()

"""A program of an object is loaded by its name, without the others, and told what it costs to have it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdrgate.bpf.programs import loaded
from pdrgate.builds.bpf_build import BpfBuildError, bpf_build
from pdrgate.hosts.host import Host, local_host

pytestmark = [pytest.mark.datapath, pytest.mark.usefixtures("machine")]

SOURCE = r"""
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, long);
} seen SEC(".maps");
SEC("xdp") int counting(struct xdp_md *ctx)
{
	int at = 0;
	long *count = bpf_map_lookup_elem(&seen, &at);
	return count && ++*count > 2 ? XDP_DROP : XDP_PASS;
}
SEC("tc") int shot(struct __sk_buff *skb) { return TC_ACT_SHOT; }
SEC("?xdp") int left_out(struct xdp_md *ctx) { return bpf_xdp_adjust_head(ctx, -4) ? XDP_ABORTED : XDP_TX; }
SEC("xdp") int refused(struct xdp_md *ctx) { return *(int *)(long)ctx->data; }
char _license[] SEC("license") = "GPL";
"""


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    (folder / "several.c").write_text(SOURCE)
    machine = subprocess.run(("uname", "-m"), capture_output=True, text=True, check=True).stdout.strip()
    command = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}-linux-gnu", "-c", "several.c")
    subprocess.run((*command, "-o", "several.o"), cwd=folder, check=True)
    return folder / "several.o"


@pytest.fixture
def here() -> Iterator[Host]:
    host = local_host()
    yield host
    host.close()


def test_maps_are_the_programs_own_and_go_with_it(here: Host, several: Path) -> None:
    numbers = set()
    for _ in range(2):
        with loaded(here, bpf_build(f"{several}:counting"), "") as program:
            (held,) = program.maps.values()
            numbers.add(held.number)
            assert (held.kind, held.entries) == ("array", 1)
            assert program.cost.memory >= held.memory > 0
            assert program.cost.jited > 0
            assert program.cost.processed >= 8
    assert len(numbers) == 2


def test_programs_of_one_object_load_without_each_other(here: Host, several: Path) -> None:
    for source, kind, name in ((several, "tc", "shot"), (f"{several}:left_out", None, "left_out")):
        with loaded(here, bpf_build(source, kind), "") as program:
            assert here.run_json("bpftool", "-j", "prog", "show", "id", str(program.number))["name"] == name
    with (
        pytest.raises(BpfBuildError, match=r"refuses its program refused \(xdp\): the verifier says: .*packet"),
        loaded(here, bpf_build(f"{several}:refused"), ""),
    ):
        raise AssertionError

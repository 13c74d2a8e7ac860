"""A program of an object is loaded by its name, without the others, and told what it costs to have it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdrgate.bpf.programs import loaded
from pdrgate.builds.bpf_build import BpfBuildError, bpf_build
from pdrgate.builds.program_setup import program_setup
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
BY_GCC = r"""
#define SEC(name) __attribute__((section(name), used))
struct {
	int (*type)[2];
	int (*max_entries)[1];
	int *key;
	long *value;
} seen SEC(".maps");
static void *(*lookup)(void *map, const void *key) = (void *)1;
SEC("xdp") int counting(void *ctx)
{
	int at = 0;
	long *count = lookup(&seen, &at);
	if (count)
		*count += 1;
	return 2;
}
char _license[] SEC("license") = "GPL";
"""
CALLS = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__type(key, int);
	__type(value, int);
} calls SEC(".maps");
SEC("xdp") int callee(struct xdp_md *ctx) { return ctx->data_end - ctx->data > 64 ? XDP_DROP : XDP_PASS; }
SEC("xdp") int caller(struct xdp_md *ctx) { bpf_tail_call(ctx, &calls, 0); return XDP_PASS; }
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


@pytest.mark.skipif(shutil.which("bpf-gcc") is None, reason="there is no bpf-gcc: apt-get install gcc-bpf")
def test_object_that_gcc_made_is_loaded(here: Host, tmp_path: Path) -> None:
    source = tmp_path / "by_gcc.c"
    source.write_text(BY_GCC)
    subprocess.run(("bpf-gcc", "-O2", "-gbtf", "-c", source.name, "-o", "by_gcc.o"), cwd=tmp_path, check=True)
    with loaded(here, bpf_build(tmp_path / "by_gcc.o"), "") as program:
        assert program.build.section == "xdp"
        assert [one.kind for one in program.maps.values()] == ["array"]


def test_machine_code_of_all_programs_that_are_loaded_counts(here: Host, several: Path, tmp_path: Path) -> None:
    """Those that a table calls are part of what packets may reach."""
    calls = tmp_path / "calls.yaml"
    calls.write_text("calls: {0: callee}\n")
    source = several.with_name("calls.c")
    source.write_text(CALLS)
    machine = subprocess.run(("uname", "-m"), capture_output=True, text=True, check=True).stdout.strip()
    command = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}-linux-gnu", "-c", "calls.c")
    subprocess.run((*command, "-o", "calls.o"), cwd=several.parent, check=True)
    sizes = []
    for setup in (program_setup("auto", None, ()), program_setup("auto", calls, ())):
        with loaded(here, bpf_build(f"{several.with_name('calls.o')}:caller", setup=setup), "") as program:
            sizes.append(program.cost.jited)
            program.leave()
    assert sizes[1] > sizes[0] > 0


def test_programs_of_one_object_load_without_each_other(here: Host, several: Path) -> None:
    for source, kind, name in ((several, "tc", "shot"), (f"{several}:left_out", None, "left_out")):
        with loaded(here, bpf_build(source, kind), "") as program:
            assert here.run_json("bpftool", "-j", "prog", "show", "id", str(program.number))["name"] == name
    with (
        pytest.raises(BpfBuildError, match=r"refuses its program refused \(xdp\): the verifier says: .*packet"),
        loaded(here, bpf_build(f"{several}:refused"), ""),
    ):
        raise AssertionError

"""Programs are run on packets by this machine's own kernel, each run on the packet as it was."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdrgate.bpf.prog_run import PacketRuns, RefusedPacketError, packet_runs, verdict_name
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
SEC("xdp") int balancer(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data;
	if (data + 14 > (unsigned char *)(long)ctx->data_end)
		return XDP_ABORTED;
	if (data[12])
		return XDP_PASS;	/* handled before */
	data[12] = 1;
	return XDP_TX;
}
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
PACKETS = (bytes(60), bytes(range(100)))


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


@pytest.fixture
def runs(here: Host) -> Iterator[PacketRuns]:
    with packet_runs(here, PACKETS) as runs:
        yield runs


def test_each_run_gets_the_packet_as_it_was(here: Host, several: Path, runs: PacketRuns) -> None:
    with loaded(here, bpf_build(f"{several}:balancer"), "") as program:
        outcomes = runs.outcomes(program, times=5)
    # The second packet looks as if it had been handled; the first one is, five times, and does not look so.
    assert [verdict_name("xdp", one.verdict) for one in outcomes] == ["XDP_TX", "XDP_PASS"]
    assert outcomes[0].output == bytes(12) + b"\1" + bytes(47)
    assert outcomes[1].output == PACKETS[1]


def test_maps_are_the_programs_own_and_go_with_it(here: Host, several: Path, runs: PacketRuns) -> None:
    for _ in range(2):
        with loaded(here, bpf_build(f"{several}:counting"), "") as program:
            assert [one.verdict for one in runs.outcomes(program)] == [2, 2]
            assert [one.verdict for one in runs.outcomes(program, 1, 1)] == [1]
            (held,) = program.maps.values()
            assert (held.kind, held.entries) == ("array", 1)
            assert program.cost.memory >= held.memory > 0
            assert program.cost.jited > 0
            assert program.cost.processed >= 8


def test_programs_of_one_object_load_without_each_other(here: Host, several: Path, runs: PacketRuns) -> None:
    with loaded(here, bpf_build(several, "tc"), "") as program:
        assert verdict_name("tc", runs.outcomes(program)[0].verdict) == "TC_ACT_SHOT"
    with loaded(here, bpf_build(f"{several}:left_out"), "") as program:
        assert len(runs.outcomes(program)[0].output) == len(PACKETS[0]) + 4
    with (
        pytest.raises(BpfBuildError, match=r"refuses its program refused \(xdp\): the verifier says: .*packet"),
        loaded(here, bpf_build(f"{several}:refused"), ""),
    ):
        raise AssertionError


def test_a_packet_that_the_kernel_does_not_take_is_told(here: Host, several: Path) -> None:
    with (
        packet_runs(here, (bytes(60), bytes(5))) as runs,
        loaded(here, bpf_build(f"{several}:balancer"), "") as program,
        pytest.raises(
            RefusedPacketError, match=r"does not run several\.o:balancer .* on packet 2: Invalid argument"
        ) as error,
    ):
        runs.outcomes(program)
    assert "\n" not in str(error.value)

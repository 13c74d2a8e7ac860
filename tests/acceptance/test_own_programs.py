"""A program of a user's own by itself, as a user starts it: loaded by a keyword, and by a scenario's file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from machine_noise import MEASURED, UNDECIDED

from tests.acceptance.conftest import Ended, forked
from tests.acceptance.test_real_gate import gate, leaves_no_trace

__all__ = ["leaves_no_trace"]  # for each test here too

pytestmark = pytest.mark.datapath

SOURCE = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8); __type(key, __u32); __type(value, __u32); }
acl SEC(".maps");
volatile const __u32 lookups = 1;
static int looked_up(int verdict)
{
	for (__u32 at = 0; at < lookups && at < 1000; at++) {
		__u32 key = at & 7, *found = bpf_map_lookup_elem(&acl, &key);

		if (!found)
			return XDP_ABORTED;
	}
	return verdict;
}
SEC("xdp") int drops(struct xdp_md *ctx) { return looked_up(XDP_DROP); }
SEC("xdp") int returns(struct xdp_md *ctx) { return looked_up(XDP_TX); }
char _license[] SEC("license") = "GPL";
"""
LOOKUPS = 300
"""So many that the program is slower than the generator."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: an object, and what its map holds."""
    made = tmp_path_factory.mktemp("filter")
    (made / "filter.c").write_text(SOURCE)
    machine = subprocess.run(("uname", "-m"), capture_output=True, text=True, check=True).stdout.strip()
    command = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}-linux-gnu", "-c", "filter.c")
    subprocess.run((*command, "-o", "filter.o"), cwd=made, check=True)
    (made / "acl.yaml").write_text("acl: {0..7: 1}\n")
    return made


def only_scenario(ended: Ended) -> dict[str, Any]:
    assert ended.result["verdict"] in MEASURED, ended.stdout + ended.stderr
    (found,) = ended.result["scenarios"]
    assert found["pdr"] is not None or ended.result["verdict"] != "NO_BASELINE"
    return dict(found)


def test_the_pdr_of_a_program_that_drops_is_searched(folder: Path, tmp_path: Path) -> None:
    (folder / "drop.yaml").write_text(
        "name: acl\nfate: dropped\nebpf_program:\n  object: filter.o\n  program: drops\n  attach: xdp-generic\n"
        f"  maps: acl.yaml\n  rodata: [lookups={LOOKUPS}]\n"
    )
    ended = gate(tmp_path, "--scenario", str(folder / "drop.yaml"))
    found = only_scenario(ended)
    assert found["name"] == "ip-routing-program_filter.o_drops-set_up_acl-1cpu-4096-64B-dropped"
    assert found["fingerprint"]["program"].startswith("filter.o:drops (")
    assert found["fingerprint"]["data_path_mode"] == "XDP generic (veth) before kernel"
    assert set(found["set_up"]) == {"program drops", "attached", "map acl", "variable lookups"}
    assert found["calibration"]["ceiling"] > 1.5 * found["calibration"]["forwarding_rate"] > 0
    if found["pdr"] is not None:
        assert 0 < found["pdr"]["load"] < found["calibration"]["ceiling"]


SUITE = """
*** Settings ***
Library           PdrGate
Variables         pdrgate.launch.variables
Suite Setup       Open Chosen Testbed
Suite Teardown    Close Testbed

*** Test Cases ***
A Balancer Sends Packets Back
    Load EBPF Program    {folder}/filter.o    program=returns    attach=xdp-generic
    Fill EBPF Map    acl    0..7=1
    Set EBPF Variables    lookups={lookups}
    What Counts Is    returned
    Search Partial Drop Rate
    Measurement Should Be Stable
    PDR Should Not Have Regressed
"""


@pytest.mark.parametrize("testbed", ["namespaces", "guest"])
def test_a_program_that_a_keyword_loads_is_measured(folder: Path, tmp_path: Path, testbed: str) -> None:
    suite = tmp_path / "own.robot"
    suite.write_text(SUITE.format(folder=folder, lookups=LOOKUPS))
    asked = ("--suite", str(suite), "--scenario", "all")
    if testbed == "guest":
        ended = forked(["gate", "--output", str(tmp_path), "--profile", "smoke", "--wait", "5 min", *asked], tmp_path)
    else:
        ended = gate(tmp_path, *asked)
    found = only_scenario(ended)
    assert found["name"] == "ip-routing-program_filter.o_returns-1cpu-4096-64B-returned"
    assert found["fingerprint"]["program"].startswith("filter.o:returns (")
    assert "XDP generic" in found["carried"]
    assert found["calibration"]["forwarding_rate"] > 0
    if testbed == "guest":
        assert found["cost"]["instructions"] > 10 * LOOKUPS
        assert any("returns" in one["name"] for one in found["cost"]["functions"])


LOADER = """#!/bin/sh -e
# Puts one program at both ports, as loaders of users do.
for port in "$IN" "$OUT"; do
	ip link set dev "$port" xdpgeneric obj filter.o program returns
done
ip link show dev "$IN" | grep -q xdpgeneric
"""


@pytest.mark.parametrize("testbed", ["namespaces", "guest"])
def test_a_loader_of_the_users_is_a_step_of_the_set_up(folder: Path, tmp_path: Path, testbed: str) -> None:
    """A table without elements is a program's own business: it aborts, and that is seen."""
    (folder / "load.sh").write_text(LOADER)
    (folder / "load.sh").chmod(0o755)
    (folder / "loader.yaml").write_text(
        "name: loader\nfate: handled\nfiles: [load.sh, filter.o]\nset_up:\n- run: ./load.sh\n"
        "  undo: for port in $IN $OUT; do ip link set dev $port xdpgeneric off; done\n"
    )
    asked = ("--scenario", str(folder / "loader.yaml"))
    if testbed == "guest":
        ended = forked(["gate", "--output", str(tmp_path), "--profile", "smoke", "--wait", "5 min", *asked], tmp_path)
    else:
        ended = gate(tmp_path, *asked)
    found = only_scenario(ended)
    assert found["calibration"]["forwarding_rate"] > 0
    assert found["set_up"]["step 1"].startswith("./load.sh (undo: for port")
    assert set(found["set_up"]) == {"step 1", "load.sh", "filter.o"}
    if testbed == "guest":
        assert any("returns" in one["name"] for one in found["cost"]["functions"])


CLOCKS = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("xdp") int some(struct xdp_md *ctx)
{
#pragma unroll
	for (int i = 0; i < CLOCKS; i++)
		bpf_ktime_get_ns();
	return XDP_TX;
}
char _license[] SEC("license") = "GPL";
"""


def test_two_programs_are_compared_on_a_kernel_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "some.c").write_text(CLOCKS)
    machine = subprocess.run(("uname", "-m"), capture_output=True, text=True, check=True).stdout.strip()
    for clocks in (1, 20):
        command = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}-linux-gnu", f"-DCLOCKS={clocks}")
        subprocess.run((*command, "-c", "some.c", "-o", f"reads{clocks}.o"), cwd=tmp_path, check=True)
    builds = ("--bpf", str(tmp_path / "reads20.o"), "--against", str(tmp_path / "reads1.o"))
    asked = ("--kernel", "linux-image-cloud-amd64", *builds, "--wait", "5 min")
    asked += ("--set", "fate=returned", "--set", "boots=3")
    ended = forked(["gate", "--output", str(tmp_path / "runs"), "--profile", "smoke", *asked], tmp_path / "runs")
    assert ended.result["verdict"] in UNDECIDED | {"REGRESSION"}, ended.stdout + ended.stderr
    (found,) = ended.result["scenarios"]
    assert "cloud" in found["fingerprint"]["kernel"]
    baseline, candidate = (side["cost"]["instructions"] for side in found["sides"])
    assert candidate > baseline + 19 * 5

"""Programs as people have them, in namespaces: maps filled, tables of programs, hooks, and a path beneath them."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pdrgate.bpf.prog_run import packet_outcome
from pdrgate.bpf.programs import loaded
from pdrgate.builds.bpf_build import BpfBuild, BpfBuildError, bpf_build, own_build
from pdrgate.builds.program_setup import ProgramSetup, fillings, variables
from pdrgate.data_paths.attached_programs import interface_number, sut_names
from pdrgate.data_paths.catalogue import DataPath, data_path
from pdrgate.data_paths.contract import Hop, Port
from pdrgate.gate.sut.probe import probe_path
from pdrgate.testbeds.netns.netns_testbed import NetnsTestbed
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator
from pdrgate.values.errors import TestbedError

pytestmark = pytest.mark.datapath

LOAD, DURATION = 20e3, 0.1

SOURCE = r"""
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
struct way { __u32 port; __u8 to[6]; __u8 from[6]; };
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8); __type(key, __u32); __type(value, struct way); }
ways SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 2); __type(key, __u32); __type(value, __u64); }
allowed SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 4); __uint(key_size, 4); __uint(value_size, 4); }
calls SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_DEVMAP); __uint(max_entries, 64); __uint(key_size, 4); __uint(value_size, 4); }
ports SEC(".maps");
volatile const __u32 step = 0;
static int sent(void *data, void *end, __u32 port)
{
	struct way *way = bpf_map_lookup_elem(&ways, &port);
	if (!way || data + 14 > end)
		return 0;
	__builtin_memcpy(data, way->to, 6);
	__builtin_memcpy(data + 6, way->from, 6);
	return way->port;
}
SEC("xdp.frags") int entry(struct xdp_md *ctx)
{
	__u32 one = 1;
	__u64 *allows = bpf_map_lookup_elem(&allowed, &one);
	if (!allows || *allows != 7)
		return XDP_DROP;
	bpf_tail_call(ctx, &calls, step);
	return XDP_DROP;
}
SEC("xdp.frags") int sends(struct xdp_md *ctx)
{
	int port = sent((void *)(long)ctx->data, (void *)(long)ctx->data_end, ctx->ingress_ifindex);
	return port ? bpf_redirect(port, 0) : XDP_DROP;
}
SEC("?xdp") int by_map(struct xdp_md *ctx)
{
	sent((void *)(long)ctx->data, (void *)(long)ctx->data_end, ctx->ingress_ifindex);
	return bpf_redirect_map(&ports, ctx->ingress_ifindex, XDP_DROP);
}
SEC("xdp") int passes(struct xdp_md *ctx) { return XDP_PASS; }
SEC("xdp") int drops(struct xdp_md *ctx) { return XDP_DROP; }
__attribute__((weak)) SEC("old_section") int weak_one(struct xdp_md *ctx) { return XDP_PASS; }
SEC("tc") int shot(struct __sk_buff *skb) { return TC_ACT_SHOT; }
SEC("tc") int goes_on(struct __sk_buff *skb) { return TC_ACT_OK; }
char _license[] SEC("license") = "GPL";
"""
WAYS = """
ways:
  '@in.ifindex': {port: '@out.ifindex', to: '@out.peer.mac', from: '@out.mac'}
  '@out.ifindex': {port: '@in.ifindex', to: '@in.peer.mac', from: '@in.mac'}
"""

AT_TCX = """
import ctypes, sys
for hook in 46, 47:
    ids = (ctypes.c_uint32 * 64)()
    asked = (ctypes.c_uint32 * 16)(int(sys.argv[1]), hook)
    ctypes.memmove(ctypes.byref(asked, 16), (ctypes.c_uint64 * 1)(ctypes.addressof(ids)), 8)
    asked[6] = 64
    if ctypes.CDLL(None, use_errno=True).syscall(NUMBER, 16, asked, 64):
        sys.exit(f"BPF_PROG_QUERY: {ctypes.get_errno()}")
    print(asked[6])
"""
"""Prints how many programs tcx has at the ingress and at the egress of an interface, by its number."""


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    (folder / "several.c").write_text(SOURCE)
    machine = subprocess.run(("uname", "-m"), capture_output=True, text=True, check=True).stdout.strip()
    command = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}-linux-gnu", "-c", "several.c")
    subprocess.run((*command, "-o", "several.o"), cwd=folder, check=True)
    return folder / "several.o"


@pytest.fixture(scope="module")
def testbed(make_testbed) -> NetnsTestbed:
    return make_testbed(hops=1)


@pytest.fixture(scope="module")
def generator(testbed: NetnsTestbed) -> Iterator[Generator]:
    with_six = testbed.generator(6)
    yield with_six
    with_six.close()


@pytest.fixture
def build(several: Path, tmp_path: Path) -> Callable[..., BpfBuild]:
    def made(program: str, maps: str = "", *told: str, attach: str = "auto") -> BpfBuild:
        (tmp_path / "maps.yaml").write_text(maps)
        filled = fillings(tmp_path / "maps.yaml") if maps else ()
        return bpf_build(f"{several}:{program}", setup=ProgramSetup(attach, filled, variables(told)))  # type: ignore[arg-type]

    return made


@pytest.fixture
def apply(testbed: NetnsTestbed) -> Iterator[Callable[[str, BpfBuild], DataPath]]:
    taken: list[DataPath] = []

    def applied(name: str, build: BpfBuild) -> DataPath:
        taken.append(data_path(name, build))
        taken[-1].apply(testbed.hops)
        return taken[-1]

    yield applied
    assert [told for path in taken for told in path.restore()] == []
    for port in testbed.hops[0].ports:
        shown = testbed.hops[0].host.run_json("ip", "-j", "link", "show", "dev", port.interface)[0]
        assert "xdp" not in shown
        assert "clsact" not in [
            one["kind"] for one in testbed.hops[0].host.run_json("tc", "-j", "qdisc", "show", "dev", port.interface)
        ]
        assert at_tcx(testbed.hops[0], port) == [0, 0]


def at_tcx(hop: Hop, port: Port) -> list[int]:
    """Programs at the ingress and the egress of a port, as the kernel tells."""
    number = {"x86_64": "321", "aarch64": "280"}[platform.machine()]
    query = (sys.executable, "-c", AT_TCX.replace("NUMBER", number), str(interface_number(hop.host, port)))
    return [int(line) for line in hop.host.run(*query).stdout.split()]


CALLS = WAYS + "allowed: {1: 7}\ncalls: {2: sends}\n"


@pytest.mark.parametrize("attach", ["xdp", "xdp-generic"])
def test_a_program_forwards_by_what_its_maps_were_filled_with(generator, apply, build, attach: str) -> None:
    path = apply("xdp-ipv6-routing", build("entry", CALLS, "step=2", attach=attach))
    assert path.mode == ("XDP generic (veth)" if attach == "xdp-generic" else "XDP native (veth)")
    trial = generator.trial(LOAD, DURATION, Frames(6, directions=2))
    assert trial.forwarded == trial.offered > 0
    cost = path.load_cost()
    assert min(cost[name] for name in ("verified", "jited", "memory")) > 0


@pytest.mark.parametrize("lacks", ["allowed: {1: 7}", "calls: {2: sends}", "'@in.ifindex': {", "step"])
def test_without_one_of_them_it_forwards_nothing(generator, apply, build, lacks: str) -> None:
    maps = "\n".join(line for line in CALLS.splitlines() if lacks not in line)
    apply("xdp-ipv6-routing", build("entry", maps, *(() if lacks == "step" else ("step=2",))))
    assert generator.trial(LOAD, DURATION, Frames(6)).forwarded == 0


def test_a_devmap_holds_the_suts_own_ports(generator, apply, build) -> None:
    maps = WAYS + "ports: {'@in.ifindex': '@out.ifindex', '@out.ifindex': '@in.ifindex'}"
    apply("xdp-ipv6-routing", build("by_map", maps))
    trial = generator.trial(LOAD, DURATION, Frames(6, directions=2))
    assert trial.forwarded == trial.offered > 0


def test_both_ports_share_a_programs_maps(testbed: NetnsTestbed, apply, build) -> None:
    host = testbed.hops[0].host
    before = {one["id"] for one in host.run_json("bpftool", "-j", "map", "show")}
    apply("xdp-ipv6-routing", build("entry", CALLS, "step=2"))
    found = [one for one in host.run_json("bpftool", "-j", "map", "show") if one["id"] not in before]
    assert [one["name"] for one in found if one["name"] == "ways"] == ["ways"]


def test_what_is_empty_and_what_is_told_of_the_sut(testbed: NetnsTestbed, build) -> None:
    hop = testbed.hops[0]
    with loaded(hop.host, build("entry", WAYS + "allowed: {1: 7}"), "", sut_names(hop)) as program:
        assert {name: one.empty for name, one in program.maps.items() if name in ("calls", "allowed")} == {
            "calls": True, "allowed": False
        }  # fmt: skip
        told = hop.host.run_json("bpftool", "-j", "map", "dump", "id", str(program.maps["allowed"].number))
        assert {value["value"][0] for value in told[1]["values"]} == {"0x07"}  # on every CPU


@pytest.mark.parametrize(
    ("program", "maps", "told"),
    [
        (
            "entry",
            WAYS + "allowed: {1: 7}",
            r"the program returns XDP_DROP; empty maps, which a file fills .--set maps=FILE.: calls",
        ),
        (
            "entry",
            WAYS + "allowed: {1: 7}\ncalls: {2: sends}",
            r"^the program returns XDP_REDIRECT$",
        ),
        ("passes", "", r"^the program returns XDP_PASS$"),
    ],
)
def test_a_packet_that_is_not_forwarded_is_explained(generator, apply, build, program, maps, told) -> None:
    path = apply("xdp-ipv6-routing", build(program, maps, "step=2"))
    assert re.search(told, str(path.explain(generator.sample(Frames(6)))))


def test_a_tc_program_tells_its_verdict_too(generator, apply, build) -> None:
    assert "returns TC_ACT_SHOT" in str(apply("tc-redirect", build("shot")).explain(generator.sample(Frames(6))))


def test_a_map_that_is_full_is_told(testbed: NetnsTestbed, build) -> None:
    with (
        pytest.raises(BpfBuildError, match=r"refuses its program entry .*: map ways: takes no element 08000000: .*may"),
        loaded(testbed.hops[0].host, build("entry", "ways: {0..8: {port: 1}}"), ""),
    ):
        raise AssertionError


OLD = """
__attribute__((section("maps"), used)) struct { unsigned int type, key, value, entries, flags, id, pinning; } known = {
	1, 4, 8, 16, 0, 0, 2 };
static void *(*lookup)(void *map, const void *key) = (void *)1;
__attribute__((section("xdp"), used)) int looks(void *context)
{
	unsigned int key = 3;

	return lookup(&known, &key) ? 1 : 2;
}
"""


@pytest.mark.parametrize(("maps", "verdict"), [("known: {3: 1}", "XDP_DROP"), ("known: {4: 1}", "XDP_PASS")])
def test_maps_of_an_old_section_are_there_and_filled(
    testbed: NetnsTestbed, tmp_path: Path, maps: str, verdict: str
) -> None:
    (tmp_path / "old.c").write_text(OLD)
    (tmp_path / "maps.yaml").write_text(maps)
    command = ("clang", "-O2", "-g", "-target", "bpf", "-c", tmp_path / "old.c", "-o", tmp_path / "old.o")
    subprocess.run(command, check=True)
    build = bpf_build(tmp_path / "old.o", setup=ProgramSetup(maps=fillings(tmp_path / "maps.yaml")))
    hop = testbed.hops[0]
    assert packet_outcome(hop.host, build, sut_names(hop), bytes(64)).verdict == verdict


@pytest.mark.parametrize(
    ("program", "attach", "mode"),
    [
        ("passes", "auto", "XDP native (veth) before kernel"),
        ("weak_one", "xdp-generic", "XDP generic (veth) before kernel"),
        ("goes_on", "tc-egress", "tc egress before kernel"),
        ("goes_on", "tcx-ingress", "tcx ingress before kernel"),
        ("goes_on", "tcx-egress", "tcx egress before kernel"),
    ],
)
def test_what_a_program_lets_pass_is_right_with_a_path_beneath(
    testbed: NetnsTestbed, generator, apply, build, program: str, attach: str, mode: str
) -> None:
    path = apply("ipv6-routing", build(program, attach=attach))
    assert path.mode == path.describe()["data_path_mode"] == mode
    assert probe_path(path, testbed, generator, Frames(6)).forwarded > 0


@pytest.mark.parametrize(
    ("program", "attach"),
    [
        ("drops", "auto"), ("shot", "tc-egress"), ("shot", "tc-ingress"), ("shot", "tcx-egress"),
        ("shot", "tcx-ingress"),
    ],
)  # fmt: skip
def test_the_program_is_really_before_it(generator, apply, build, program: str, attach: str) -> None:
    apply("ipv6-routing", build(program, attach=attach))
    assert generator.trial(LOAD, DURATION, Frames(6)).forwarded == 0


@pytest.mark.parametrize(("attach", "there"), [("tcx-ingress", [1, 0]), ("tcx-egress", [0, 1])])
def test_a_link_of_tcx_has_it_at_both_ports(testbed: NetnsTestbed, apply, build, attach: str, there: list[int]) -> None:
    hop = testbed.hops[0]
    path = apply("ipv6-routing", build("goes_on", attach=attach))
    assert [at_tcx(hop, port) for port in hop.ports] == [there, there]
    assert min(path.load_cost()[name] for name in ("verified", "jited")) > 0


def test_a_patch_panel_is_one_by_tcx_too(generator, apply) -> None:
    path = apply("tc-redirect", bpf_build(own_build("tc_redirect").path, setup=ProgramSetup("tcx-ingress")))
    assert path.mode == "tcx ingress"
    trial = generator.trial(LOAD, DURATION, Frames(6, directions=2))
    assert trial.forwarded == trial.offered > 0
    assert (path.redirected() or 0) >= trial.forwarded


def test_a_link_of_tcx_goes_with_what_loaded_it(testbed: NetnsTestbed, build) -> None:
    hop = testbed.hops[0]
    host, number = hop.host, interface_number(hop.host, hop.ingress)
    with loaded(host, build("shot"), "classifier", links=[f"tcx egress {number}"]) as program:
        assert at_tcx(hop, hop.ingress) == [0, 1]
        folder = str(Path(program.pin).parent)
        assert host.exists(f"{folder}/tcx-{number}")
    assert not host.exists(folder)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (0, r"interface \d+ has a program there already \(id \d+\); take it off"),
        (900000, r"interface \d+: No such device"),
    ],
)
def test_what_tcx_does_not_attach_is_told(testbed: NetnsTestbed, build, more: int, told: str) -> None:
    hop = testbed.hops[0]
    number = interface_number(hop.host, hop.ingress)
    with (
        loaded(hop.host, build("goes_on"), "classifier", links=[f"tcx ingress {number}"]),
        pytest.raises(TestbedError, match=rf"attaches no program shot \(tc\): tcx ingress: {told}$"),
        loaded(hop.host, build("shot"), "classifier", links=[f"tcx ingress {number + more}"]),
    ):
        raise AssertionError

"""An eBPF program that a scenario loads, in words and in a file: what it is called, what tells it from another."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pdrgate.bpf.filling import SUT_NAMES, check_setup, dispatcher_orders, orders
from pdrgate.builds.bpf_build import BpfBuildError, bpf_build
from pdrgate.builds.program_setup import Attach, ProgramSetup
from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.scenario_file import scenario_of
from pdrgate.keywords.library import PdrGate
from pdrgate.results.fingerprint import build_digest, conditions, may_differ
from pdrgate.values.errors import UsageError

SOURCE = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8); __type(key, __u32); __type(value, __u32); }
vips SEC(".maps");
volatile const __u32 port = 0;
SEC("xdp") int one(struct xdp_md *ctx) { return bpf_map_lookup_elem(&vips, &ctx->ingress_ifindex) ? XDP_TX : port; }
SEC("xdp") int other(struct xdp_md *ctx) { return XDP_DROP; }
SEC("tc") int third(struct __sk_buff *skb) { return 0; }
char _license[] SEC("license") = "GPL";
"""

DISPATCHER = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
volatile const __u32 enabled = 0;
__attribute__((noinline)) int first(struct xdp_md *ctx) { return ctx ? XDP_DROP : XDP_ABORTED; }
SEC("xdp") int dispatches(struct xdp_md *ctx) { return enabled ? first(ctx) : XDP_PASS; }
char _license[] SEC("license") = "GPL";
"""
PART = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
volatile const __u32 port = 0;
SEC("freplace/first") int part(struct xdp_md *ctx) { return port; }
char _license[] SEC("license") = "GPL";
"""


def compiled(folder: Path, name: str, source: str) -> Path:
    (folder / f"{name}.c").write_text(source)
    machine = subprocess.run(("uname", "-m"), capture_output=True, text=True, check=True).stdout.strip()
    command = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}-linux-gnu", "-c", f"{name}.c")
    subprocess.run((*command, "-o", f"{name}.o"), cwd=folder, check=True)
    return folder / f"{name}.o"


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    compiled(folder, "dispatcher", DISPATCHER)
    compiled(folder, "part", PART)
    compiled(folder, "several", SOURCE)
    (folder / "vips.yaml").write_text("vips: {1: 2, 3: 4}\n")
    return folder / "several.o"


def asked(library: PdrGate) -> Scenario:
    return library._state.test.scenario


def test_it_is_in_the_name_the_title_the_terms_and_the_record(several: Path) -> None:
    library = PdrGate()
    library.load_ebpf_program(several, "one", "xdp-generic", several.parent / "vips.yaml", ("port=7",))
    scenario = asked(library)
    assert scenario.name == "ip-routing-program_several.o_one-1cpu-4096-64B"
    assert ", with the program several.o:one" in scenario.title
    assert scenario.program is not None
    digest = scenario.program.sha256
    assert scenario.terms == {"program": f"several.o:one ({digest[:8]})"}
    assert scenario.recorded == {
        "program one": f"of several.o, SHA-256 {digest}", "attached": "xdp-generic",
        "map vips": "filled by 2 entries", "variable port": "7",
    }  # fmt: skip


def test_maps_are_filled_before_and_after_it_is_loaded(several: Path) -> None:
    library = PdrGate()
    library.fill_ebpf_map("vips", **{"1": "2"})
    library.load_ebpf_program(several, "one")
    library.set_ebpf_variables("port=9")
    program = asked(library).program
    assert program is not None
    assert [one.entries for one in program.setup.maps] == [(("1", "2"),)]
    assert program.setup.variables == (("port", "9"),)
    with pytest.raises(Exception, match=r"has no map nowhere; it has vips"):
        library.fill_ebpf_map("nowhere", **{"1": "2"})


@pytest.mark.parametrize(
    ("before", "beneath"),
    [(None, "ip-routing"), ("ipv6-routing", "ipv6-routing"), ("xdp-ipv4-routing", "xdp-ipv4-routing")],
)
def test_it_stands_on_the_data_path_that_was_chosen(several: Path, before: str | None, beneath: str) -> None:
    library = PdrGate()
    if before:
        library.set_data_path(before)
    library.load_ebpf_program(several, "other")
    library.set_up_sut("true")
    assert asked(library).data_path == beneath


@pytest.mark.parametrize(
    ("path", "program", "attach", "told"),
    [
        ("tcp-transfer", "one", "auto", "tcp-transfer is a closed loop, which no program of the scenario's stands"),
        ("tc-redirect", "one", "auto", "tc-redirect runs a program for tc, and several.o:one is one for xdp; choose"),
        ("xdp-ipv6-routing", "third", "tc-egress", "xdp-ipv6-routing runs a program for xdp, and several.o:third is"),
        ("xdp-ipv6-routing", "third", "tcx-egress", "xdp-ipv6-routing runs a program for xdp, and several.o:third is"),
    ],
)
def test_a_data_path_that_cannot_run_it_is_told(several: Path, path: str, program: str, attach: str, told: str) -> None:
    library = PdrGate()
    library.set_data_path(path)
    with pytest.raises(UsageError) as raised:
        library.load_ebpf_program(several, program, attach)  # type: ignore[arg-type]
    assert str(raised.value).startswith(told)


@pytest.mark.parametrize("attach", ["tcx-ingress", "tcx-egress"])
def test_tcx_takes_a_program_for_tc_and_is_part_of_the_build(several: Path, attach: Attach) -> None:
    library = PdrGate()
    library.load_ebpf_program(several, attach=attach)
    program = asked(library).program
    assert program is not None
    assert (program.program, program.recorded()["attached"]) == ("third", attach)
    assert data_path("ip-routing", program).mode == f"{attach.replace('-', ' ')} before kernel"
    assert program.digest != bpf_build(f"{several}:third").digest
    with pytest.raises(
        BpfBuildError, match=rf"several\.o: {attach} takes a program for tc, and this data path runs one"
    ):
        bpf_build(several, "xdp", program.setup)


def test_a_second_one_is_refused(several: Path) -> None:
    library = PdrGate()
    library.load_ebpf_program(several, "one")
    with pytest.raises(UsageError, match=r"loads several\.o:one already; have a step of `Set Up SUT` load several\.o"):
        library.load_ebpf_program(several, "other")


def test_a_file_says_the_same(several: Path, tmp_path: Path) -> None:
    file = several.parent / "own.yaml"
    file.write_text(
        "name: own\nfate: returned\ndata_path: xdp-ipv4-routing\nebpf_program:\n  object: several.o\n  program: one\n"
        "  attach: xdp\n  maps: vips.yaml\n  rodata: [port=7]\n"
    )
    scenario = scenario_of(file)
    assert scenario.program is not None
    assert (scenario.program.program, scenario.program.setup.attach, scenario.counts) == ("one", "xdp", "returned")
    assert scenario.program.setup.variables == (("port", "7"),)
    for line, told in (
        ("  object: none.o", r"the scenario .*own\.yaml: .*none\.o: cannot read it"),
        ("  object: several.o\n  program: fourth", r"has no program fourth, but one in xdp, other in xdp, third in tc"),
        (
            "  object: several.o\n  programme: one",
            r"the scenario .*own\.yaml: programme: there is no such key; did you mean program\?",
        ),
    ):
        file.write_text(f"name: own\nebpf_program:\n{line}\n")
        with pytest.raises(UsageError, match=told):
            scenario_of(file)


@pytest.mark.parametrize("value", ["9" * 5000, "2026-99-99", "!!int x"], ids=["long", "date", "int"])
def test_a_value_that_cannot_be_read_is_told(value: str, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(f"name: own\nframe_size: {value}\n")
    with pytest.raises(UsageError, match=r"the scenario .*own\.yaml: "):
        scenario_of(tmp_path / "own.yaml")


def test_results_of_two_builds_of_it_are_comparable_and_no_resumed_run_mixes_them() -> None:
    """The program is a build, like the kernel: it may differ from the baseline's, and a fingerprint has it."""
    old, new = ({"scenario": "a", "kernel": "6.1", "program": f"lb.o ({digits})"} for digits in ("1", "2"))
    assert "program" in may_differ(old, new)
    assert conditions(old) == conditions(new)
    assert build_digest(old) != build_digest(new)


def test_compared_builds_take_no_place_beside_it(several: Path) -> None:
    library = PdrGate()
    library.load_ebpf_program(several, "one")
    with pytest.raises(UsageError, match=r"the scenario loads several\.o:one, in whose place the compared"):
        library.compare_ebpf_builds(str(several), str(several))


def test_a_program_of_the_option_is_named_with_its_object(several: Path) -> None:
    library = PdrGate()
    library.load_ebpf_program(Path(f"{several}:other"))
    assert asked(library).program == bpf_build(f"{several}:other")


@pytest.mark.parametrize(
    ("program", "replaces", "function"),
    [
        ("part.o", "dispatcher.o:dispatches", "first"),
        ("part.o", "dispatcher.o", "first"),
        ("several.o:other", "dispatcher.o:dispatches/first", "first"),
    ],
)
def test_a_program_replaces_a_function_of_a_dispatcher(
    several: Path, program: str, replaces: str, function: str
) -> None:
    folder = several.parent
    build = check_setup(bpf_build(f"{folder}/{program}", setup=ProgramSetup("xdp", replaces=f"{folder}/{replaces}")))
    assert (build.kind, build.port_section) == ("xdp", "xdp")
    found = build.dispatcher
    assert found is not None
    assert (found.build.program, found.function) == ("dispatches", function)
    assert build.recorded()["replaces"] == f"first of {found.build.name}, SHA-256 {found.build.sha256}"
    if ":" in program:
        assert build.digest != bpf_build(f"{folder}/{program}", setup=ProgramSetup("xdp")).digest


def test_variables_are_those_of_the_program_or_of_its_dispatcher(several: Path) -> None:
    library = PdrGate()
    part, dispatcher = (several.parent / name for name in ("part.o", "dispatcher.o"))
    library.load_ebpf_program(part, rodata=("enabled=1", "port=2"), replaces=f"{dispatcher}:dispatches")
    build = asked(library).program
    assert build is not None
    assert build.dispatcher is not None
    assert orders(build, SUT_NAMES) == "value port 02000000\n"
    assert dispatcher_orders(build, build.dispatcher.build, SUT_NAMES) == "value enabled 01000000\n"
    with pytest.raises(BpfBuildError, match=r"part\.o: has no global variable neither; it has port"):
        library.set_ebpf_variables("neither=1")


@pytest.mark.parametrize(
    ("program", "replaces", "told"),
    [
        (
            "part.o",
            "",
            r"those in freplace/first replace a function of a dispatcher: name that with --set replaces=OBJECT:PROGRAM",
        ),
        ("several.o:other", "dispatcher.o:dispatches", r"its section xdp does not name what it replaces of dispatcher"),
        ("part.o", "dispatcher.o:none", r"dispatcher\.o: has no program none, but dispatches in xdp; name one"),
        (
            "part.o",
            "several.o:third",
            r"several\.o: holds a program for tc \(section tc\), and this data path runs one",
        ),
    ],
)
def test_what_replaces_nothing_is_told(several: Path, program: str, replaces: str, told: str) -> None:
    folder = several.parent
    setup = ProgramSetup(replaces=f"{folder}/{replaces}" if replaces else "")
    with pytest.raises(BpfBuildError, match=told):
        bpf_build(f"{folder}/{program}", "xdp", setup)


def test_a_file_names_the_dispatcher_beside_it(several: Path) -> None:
    file = several.parent / "replaced.yaml"
    file.write_text("name: own\nebpf_program: {object: part.o, replaces: 'dispatcher.o:dispatches'}\n")
    program = scenario_of(file).program
    assert program is not None
    assert program.dispatcher is not None
    assert program.dispatcher.build.path == several.parent / "dispatcher.o"

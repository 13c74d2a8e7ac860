"""eBPF objects: what one is told by, which are refused and why, and that ours are compiled once."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from pdrgate.bpf.programs import _why
from pdrgate.builds import bpf_build as bpf_builds
from pdrgate.builds.bpf_build import OWN_BUILDS, BpfBuildError, bpf_build, own_build
from pdrgate.builds.kernel_build import absolute
from pdrgate.builds.program_code import code_of, ip_versions
from pdrgate.cli.gate import _default_tag
from pdrgate.data_paths.attached_links import system_hook
from pdrgate.data_paths.catalogue import DATA_PATHS, data_path
from pdrgate.gate.run.options import RunOptions
from pdrgate.hosts.host import Completed
from pdrgate.values.errors import TestbedError

needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed: run ci/bootstrap")


def compiled(folder: Path, text: str, name: str = "some") -> Path:
    source, output = folder / f"{name}.c", folder / f"{name}.o"
    source.write_text(text)
    subprocess.run(("clang", "-O2", "-target", "bpf", "-c", str(source), "-o", str(output)), check=True)
    return output


def program(section: str, name: str = "one") -> str:
    return f'__attribute__((section("{section}"), used)) int {name}(void *ctx) {{ return 2; }}\n'


@needs_clang
@pytest.mark.parametrize(
    ("section", "kind"),
    [("xdp", "xdp"), ("xdp.frags", "xdp"), ("tc", "tc"), ("tc/ingress", "tc"), ("classifier", "tc"), ("action", "tc")],
)
def test_a_build_is_told_by_its_section(tmp_path: Path, section: str, kind: str) -> None:
    path = compiled(tmp_path, program(section))
    build = bpf_build(path)
    assert (build.name, build.path, build.section, build.kind) == ("some.o", path, section, kind)
    assert len(build.sha256) == 64
    assert build.label == f"some.o ({build.sha256[:8]})"
    other = "tc" if kind == "xdp" else "xdp"
    with pytest.raises(BpfBuildError, match=rf"holds a program for {kind} \(section {section}\).* one for {other}; "):
        bpf_build(path, other)  # type: ignore[arg-type]


LOOKS_AT = """
struct context { unsigned data, data_end; };
__attribute__((section("xdp"), used)) int one(struct context *ctx) {
    unsigned char *data = (void *)(unsigned long)ctx->data, *end = (void *)(unsigned long)ctx->data_end;
    if (data + 14 > end) return 1;
    unsigned short type = *(unsigned short *)(data + 12);
    %s
    return 2;
}
"""
IPV4, IPV6 = "if (type == __builtin_bswap16(0x0800)) return 3;", "if (type == __builtin_bswap16(0x86dd)) return 4;"


@needs_clang
@pytest.mark.parametrize(("text", "versions", "tag"), [
    (IPV4, {4}, "path-xdp-ipv4"), (IPV6, {6}, "path-xdp-ipv6"), (IPV4 + IPV6, {4, 6}, "path-xdp-ipv6"),
    ("if (type != __builtin_bswap16(0x0800)) return 1;", {4}, "path-xdp-ipv4"), ("", set(), "path-xdp-ipv6"),
])  # fmt: skip
def test_a_program_that_looks_at_ipv4_alone_gets_ipv4(tmp_path: Path, text: str, versions: set[int], tag: str) -> None:
    path = compiled(tmp_path, LOOKS_AT % text)
    assert ip_versions(bpf_build(path)) == versions
    assert _default_tag(RunOptions(testbed=Path(), bpf=str(path), against=str(path))) == tag
    both = compiled(tmp_path, LOOKS_AT % (IPV4 + IPV6), "both")
    assert _default_tag(RunOptions(testbed=Path(), bpf=str(path), against=str(both))) == "path-xdp-ipv6"


@needs_clang
def test_the_code_of_a_program_is_known_without_what_a_debugger_reads(tmp_path: Path) -> None:
    one, other = (bpf_build(compiled(tmp_path, LOOKS_AT % text, name)) for text, name in ((IPV4, "a"), (IPV6, "b")))
    named = compiled(tmp_path, LOOKS_AT % IPV4 + "/* a remark */", "c")
    assert code_of(one) == code_of(bpf_build(named)) != code_of(other)


@needs_clang
@pytest.mark.parametrize(
    ("section", "kind", "place", "path"),
    [
        ("cgroup_skb/ingress", "cgroup_skb", "cgroup", "path-udp-delivery"),
        ("?cgroup_skb/egress", "cgroup_skb", "cgroup", "path-udp-send"),
        ("cgroup/skb", "cgroup_skb", "cgroup", "path-udp-delivery"),
        ("cgroup/connect6", "cgroup", "cgroup", ""),
        ("sockops", "sock_ops", "cgroup", "path-tcp-connections"),
        ("sk_lookup/one", "sk_lookup", "netns", "path-udp-delivery"),
        ("flow_dissector", "flow_dissector", "netns", "path-vxlan"),
        ("netfilter", "netfilter", "netfilter", "path-ipv6-routing"),
    ],
)
def test_section_of_a_hook_has_its_kind_place_and_path(
    tmp_path: Path, section: str, kind: str, place: str, path: str
) -> None:
    build = bpf_build(f"{compiled(tmp_path, program(section))}:one")
    hook = system_hook(build)
    assert (build.kind, hook.place, hook.path) == (kind, place, path)


@needs_clang
def test_program_for_ports_comes_before_programs_of_hooks(tmp_path: Path) -> None:
    assert bpf_build(compiled(tmp_path, program("sockops", "one") + program("xdp", "two"))).program == "two"


@needs_clang
def test_functions_that_a_program_calls_are_no_programs(tmp_path: Path) -> None:
    text = "__attribute__((noinline)) int helper(int a) { return a + 1; }\n" + program("xdp")
    assert bpf_build(compiled(tmp_path, text)).section == "xdp"


@needs_clang
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            program("socket"),
            r"no port takes its programs \(one in socket\); --set packets=FILE runs those in socket on packets",
        ),
        (
            program("xdp/cpumap"),
            r"no port takes its programs \(one in xdp/cpumap\); --set packets=FILE runs those in xdp/cp",
        ),
        (
            program("fentry/ip_rcv") + program("kprobe.multi/tcp*", "two"),
            r"\(one in fentry/ip_rcv, two in kprobe.multi/tcp\*\); have a step of a scenario load those in",
        ),
        (
            program("fexit/ip_rcv") + program("socket", "two") + program("tracepoint/net/netif_rx", "three"),
            r"; --set packets=FILE runs those in socket on packets of a file; have a step .* in "
            r"fexit/ip_rcv, tracepoint/net/netif_rx, as the file \$BPF, and measure the path that calls them: --sc",
        ),
        (program("cgroup/dev"), r"have a step of a scenario load those in cgroup/dev, as the file \$BPF, and measure"),
        (program("socket"), r"--set packets=FILE runs those in socket on packets of a file$"),
        (
            program("fentry/ip_rcv") + program("my_own", "two"),
            r"do not say what its programs are for \(one in fentry.*\); say it with --set attach=xdp, .*, and name one",
        ),
        (program("xdp_prog"), r"are for \(one in xdp_prog\); say it with --set attach=xdp, or attach=tc-ingress$"),
        ("int data = 1;\n", r"holds no program; put one into SEC"),
        (program("xdp", "a") + program("xdp", "b"), r"several programs \(a in xdp, b in xdp\); name one .* some.o:a$"),
        (program("xdp", "a") + program("tc", "b"), r"holds several programs \(.*a in xdp.*\); name one of them"),
    ],
)
def test_objects_without_exactly_one_program_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = compiled(tmp_path, text)
    with pytest.raises(BpfBuildError, match=message) as error:
        bpf_build(path)
    assert str(error.value).startswith(f"{path}: ")


@needs_clang
def test_a_program_is_chosen_by_its_name_or_by_what_the_data_path_runs(tmp_path: Path) -> None:
    text = program("?xdp", "left_out") + program("xdp", "a") + program("tc", "b") + program("xdp1", "old")
    path = compiled(tmp_path, text)
    assert [bpf_build(path, kind).program for kind in ("xdp", "tc")] == ["a", "b"]
    chosen = bpf_build(f"{path}:left_out")
    assert (chosen.name, chosen.program, chosen.kind) == ("some.o:left_out", "left_out", "xdp")
    assert bpf_build(chosen, "xdp") is chosen
    assert len({chosen.digest, chosen.sha256, bpf_build(f"{path}:a").digest}) == 3
    assert bpf_build(f"{path}:old", "xdp").section == "xdp1"  # no section of libbpf's: the data path says
    with pytest.raises(BpfBuildError, match=r"no port takes its program seen in fexit/ip_rcv; have a step of a scen"):
        bpf_build(f"{compiled(tmp_path, program('fexit/ip_rcv', 'seen') + program('xdp'), 'traced')}:seen")
    with pytest.raises(BpfBuildError, match=r"does not say what its program old in xdp1 is for; say it with --set a"):
        bpf_build(f"{path}:old")
    with pytest.raises(BpfBuildError, match=r"has no program c, but .*a in xdp.*; name one of these$"):
        bpf_build(f"{path}:c")
    with_colon = path.rename(tmp_path / "some:a")
    assert bpf_build(with_colon, "tc").program == "b"  # a file's own name


@needs_clang
def test_the_program_that_was_chosen_is_what_a_data_path_runs_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = compiled(tmp_path, program("xdp", "first") + program("xdp", "second"))
    chosen = bpf_build(f"{path}:second", "xdp")
    assert "some.o:second" in data_path("xdp-ipv6-routing", chosen).sentence()
    monkeypatch.chdir(tmp_path)
    assert absolute("some.o:second") == f"{path}:second"
    assert absolute("linux-image-amd64:amd64") == "linux-image-amd64:amd64"


def test_files_that_are_no_objects(tmp_path: Path) -> None:
    path = tmp_path / "what"
    with pytest.raises(BpfBuildError, match=r"cannot read it: No such file or directory; name an eBPF object file$"):
        bpf_build(path)
    host = b"\x7fELF\x02\x01".ljust(0x12, b"\0") + struct.pack("<H", 62)
    for content, why in (
        (b"", "it is no ELF file"),
        (b"#!/bin/sh\n", "it is no ELF file"),
        (b"\x7fELF\x01\x01", "it is no 64-bit ELF file"),
        (host.ljust(64, b"\0"), "it is for machine 62 and not for BPF, 247"),
        (host[:0x12] + struct.pack("<H", 247), "it is damaged"),
    ):
        path.write_bytes(content)
        with pytest.raises(BpfBuildError, match=rf"is no eBPF object \({why}\); compile one with clang -target bpf$"):
            bpf_build(path)


@needs_clang
def test_a_damaged_object_is_told_in_one_line(tmp_path: Path) -> None:
    content = compiled(tmp_path, program("xdp")).read_bytes()
    path = tmp_path / "cut.o"
    for length in range(0, len(content) - 64, 7):  # less than the last section's header
        path.write_bytes(content[:length])
        with pytest.raises(BpfBuildError) as error:
            bpf_build(path)
        assert "\n" not in str(error.value)


@needs_clang
@pytest.mark.parametrize("name", OWN_BUILDS)
def test_our_own_are_compiled_once(tmp_path: Path, name: str) -> None:
    build = own_build(name, cache=tmp_path)
    assert build.kind == {"tc_redirect": "tc", "drop_reasons": "tp_btf"}.get(name, "xdp")
    written = build.path.stat().st_mtime_ns
    assert own_build(name, cache=tmp_path) == build
    assert build.path.stat().st_mtime_ns == written


@needs_clang
def test_macros_make_another_build(tmp_path: Path) -> None:
    plain, slow = own_build("xdp_router", cache=tmp_path), own_build("xdp_router", ("LOOKUPS=3",), cache=tmp_path)
    assert plain.sha256 != slow.sha256
    assert plain.path != slow.path
    assert own_build("xdp_router", cache=tmp_path) == plain


def test_a_missing_source_or_compiler_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TestbedError, match=r"none\.bpf\.c is not there; .*install pdrgate again$"):
        own_build("none", cache=tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(TestbedError, match=r"takes clang, which is not on PATH; run ./ci/bootstrap, or: apt-get"):
        own_build("xdp_router", cache=tmp_path)


@needs_clang
def test_a_source_that_does_not_compile_is_told_by_the_compilers_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bpf_builds, "SOURCES", tmp_path)
    (tmp_path / "broken.bpf.c").write_text("int a = ;\n")
    with pytest.raises(TestbedError, match=r"broken\.bpf\.c failed: .*error: expected expression") as error:
        own_build("broken", cache=tmp_path / "cache")
    assert "\n" not in str(error.value)
    assert not list((tmp_path / "cache").rglob("*.o"))


@needs_clang
def test_a_data_path_takes_programs_of_its_kind_only(tmp_path: Path) -> None:
    xdp, tc = (compiled(tmp_path, program(section), section) for section in ("xdp", "tc"))
    assert data_path("xdp-ipv6-routing", xdp).name == "xdp-ipv6-routing"
    assert data_path("xdp-ipv4-routing", bpf_build(xdp)).family == 4
    assert data_path("tc-redirect", tc).name == "tc-redirect"
    with pytest.raises(BpfBuildError, match=r"this data path runs one for tc; choose the data path that goes with it"):
        data_path("tc-redirect", xdp)
    before = data_path("ipv6-routing", xdp)
    assert (before.name, before.by_kernel, before.of_user) == ("ipv6-routing", True, True)
    assert before.describe()["data_path_mode"] == "XDP before kernel"


def test_names_of_data_paths_are_their_own() -> None:
    assert {name: data_path(name).name for name in DATA_PATHS} == {name: name for name in DATA_PATHS}
    assert {name: data_path(name).family for name in DATA_PATHS} == {
        name: kind.family for name, kind in DATA_PATHS.items()
    }
    # Results of the kernel's own routing stay comparable with those made before there were other data paths.
    assert data_path("ipv6-routing").describe() == {}


def completed(stderr: str) -> Completed:
    return Completed(("bpftool",), 255, "", stderr)


def test_the_verifiers_last_lines_are_told() -> None:
    said = """\
libbpf: prog 'one': BPF program load failed: Permission denied
libbpf: prog 'one': -- BEGIN PROG LOAD LOG --
0: R1=ctx(off=0,imm=0) R10=fp0
; return *(int *)ctx;
0: (61) r0 = *(u32 *)(r1 +400)
invalid bpf_context access off=400 size=4
processed 1 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0
-- END PROG LOAD LOG --
libbpf: failed to load object 'some.o'
Error: failed to load object file
"""
    assert _why(completed(said)) == (
        "the verifier says: 0: R1=ctx(off=0,imm=0) R10=fp0 | 0: (61) r0 = *(u32 *)(r1 +400) | "
        "invalid bpf_context access off=400 size=4"
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("libbpf: Kernel error message: hardware LRO\nError: interface xdpdrv attach failed: Busy\n", "hardware LRO"),
        (
            "Error: interface xdpdrv attach failed: Operation not supported\n",
            "interface xdpdrv attach failed: Operation not supported",
        ),
        (
            "libbpf: elf: what is not an ELF object\nError: failed to open object file\n",
            "elf: what is not an ELF object",
        ),
        ("", "exit code 255"),
        (
            "libbpf: elf: skipping unrecognized data section(5) .rodata.str1.1\n"
            "pdrgate: tcx egress: needs Linux 6.6 with CONFIG_NET_XGRESS, and 6.1.0 has no such hook; use "
            "attach=tc-egress\n",
            "tcx egress: needs Linux 6.6 with CONFIG_NET_XGRESS, and 6.1.0 has no such hook; use attach=tc-egress",
        ),
        (
            "libbpf: extern (func ksym) 'no_such': not found in kernel or module BTFs\n"
            "libbpf: failed to load object 'x.o'\nError: failed to load object file\n",
            "extern (func ksym) 'no_such': not found in kernel or module BTFs",
        ),
        (
            "libbpf: elf: skipping unrecognized data section(5) .rodata.str1.1\n"
            "libbpf: couldn't reuse pinned map at '/sys/fs/bpf/x': parameter mismatch\n"
            "libbpf: map 'x': error reusing pinned map\nlibbpf: failed to load object 'x.o'\n"
            "Error: failed to load object file\n",
            "couldn't reuse pinned map at '/sys/fs/bpf/x': parameter mismatch",
        ),
    ],
)
def test_without_a_log_the_tools_words_are(said: str, told: str) -> None:
    assert _why(completed(said)) == told

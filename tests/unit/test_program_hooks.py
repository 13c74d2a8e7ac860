"""Hooks of eBPF programs: places by sections, operations that are registered, and why a kernel refuses a program."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hook_programs import SOURCES, hook_program

from pdrgate.bpf.missing_functions import since_when
from pdrgate.bpf.struct_ops import RegisteredOps, registered_ops, without_links
from pdrgate.builds.bpf_build import BpfBuildError, bpf_build
from pdrgate.builds.program_hooks import hook_of
from pdrgate.builds.program_setup import ProgramSetup
from pdrgate.data_paths.set_up import set_up_of
from pdrgate.data_paths.tcp_streams import TcpStreams

needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")


@pytest.mark.parametrize(
    ("section", "kind", "place", "path"),
    [
        ("sk_reuseport/migrate", "sk_reuseport", "reuseport", "path-udp-delivery-to-four"),
        ("sk_msg", "sk_msg", "sockets", "path-tcp-requests"),
        ("sk_skb/stream_verdict", "sk_skb", "sockets", "path-tcp-requests"),
        ("lwt_xmit", "lwt", "route", "path-ipv6-routing"),
        ("lwt_seg6local", "lwt", "route", "path-srv6-end"),
        ("netkit/peer", "netkit", "netkit", "path-ipv6-routing"),
        ("struct_ops.s/init", "struct_ops", "kernel", "path-tcp-requests"),
    ],
)
def test_section_names_the_place_and_the_path_that_calls_it(section: str, kind: str, place: str, path: str) -> None:
    hook = hook_of(section)
    assert hook is not None
    assert (hook.kind, hook.place, hook.path) == (kind, place, path)


def test_sections_without_a_hook_have_none() -> None:
    assert [hook_of(one) for one in ("fentry/ip_rcv", "cgroup/dev", "lwt", "xdp")] == [None] * 4


@needs_clang
def test_operations_have_the_name_that_the_kernel_knows_them_by(tmp_path: Path) -> None:
    build = bpf_build(hook_program(tmp_path, "struct_ops"))
    assert registered_ops(build) == RegisteredOps("tcp_congestion_ops", "mine")
    assert build.kind == "struct_ops"
    plain = without_links(build.read())
    assert len(plain) == len(build.read())
    assert b".struct_ops.link" not in plain


def test_senders_may_use_the_congestion_control_of_their_kernel() -> None:
    assert "by the congestion control of its kernel" in str(TcpStreams(direction="sends", congestion=""))


@needs_clang
def test_object_without_operations_registers_none(tmp_path: Path) -> None:
    with pytest.raises(BpfBuildError, match=r"registers no operations with a name; what is measured are congestion"):
        registered_ops(bpf_build(hook_program(tmp_path, "sk_msg")))


@needs_clang
@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_objects_of_all_kinds_are_builds(tmp_path: Path, kind: str) -> None:
    build = bpf_build(f"{hook_program(tmp_path, kind)}:counting")
    hook = hook_of(build.section)
    assert hook is not None
    assert hook.kind == build.kind


@needs_clang
def test_what_steps_load_may_be_of_any_kind_and_is_set_up_by_them(tmp_path: Path) -> None:
    path = hook_program(tmp_path, "sk_skb")
    build = bpf_build(path, by_steps=True)
    assert (build.kind, build.name) == ("any", path.name)
    with pytest.raises(BpfBuildError, match=r"steps of the scenario load it \(\$BPF\); leave out attach"):
        bpf_build(path, setup=ProgramSetup("xdp"), by_steps=True)


@pytest.mark.parametrize(
    ("step", "loads"),
    [("bpftool prog load $BPF /sys/fs/bpf/x", True), ("./serve ${BPF} $IN", True), ("echo $BPFTOOL BPF", False)],
)
def test_steps_that_name_the_object_load_it(step: str, loads: bool) -> None:
    assert set_up_of([step]).loads_program is loads


@pytest.mark.parametrize(
    ("why", "more"),
    [
        (
            "libbpf: extern (func ksym) 'bpf_xdp_metadata_rx_hash': not found in kernel or module BTFs",
            "since Linux 6.3",
        ),
        ("libbpf: extern (func ksym) 'bpf_xdp_get_xfrm_state': not found in kernel BTF", "since Linux 6.8: name one"),
        ("libbpf: extern (func ksym) 'bpf_ct_release': not found in kernel or module BTFs", "[modprobe nf_conntrack]"),
        (
            "libbpf: extern (func ksym) 'bpf_of_a_module': not found in kernel or module BTFs",
            "name a newer kernel with",
        ),
        ("metadata kfuncs require device-bound program", "a program that is bound to its card"),
    ],
)
def test_missing_function_of_the_kernel_is_named_with_its_release(why: str, more: str) -> None:
    assert more in since_when(why)


def test_other_refusals_get_no_release() -> None:
    assert since_when("invalid access to packet, off=0 size=14") == ""

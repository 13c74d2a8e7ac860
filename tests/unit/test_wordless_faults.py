"""Faults that a kernel reports in a sentence of its own, without a word such as WARNING; and panics of Rust."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdrgate.crashes.faults import Crash, FaultReader
from pdrgate.crashes.kernel_log import parse_warnings
from pdrgate.crashes.unspecific import identifies

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
TRACE = ("Call Trace:", " <TASK>", " dump_stack_lvl+0x64/0x80", " example_rx+0x1d/0xd0", " example_poll+0x9f/0x120",
         " </TASK>")  # fmt: skip
CPU = ("CPU: 0 UID: 0 PID: 0 Comm: swapper/0 Not tainted 6.12.0-test #1", "Hardware name: Example Board")


def found(*lines: str) -> tuple[Crash, ...]:
    reader = FaultReader()
    reader.read("".join(f"[   12.{at:06}] {line}\n" for at, line in enumerate(lines)))
    reader.end()
    return reader.faults


@pytest.mark.parametrize(
    ("sentence", "details"),
    [
        (
            "eth1: hw csum failure",
            ("skb len=60 headroom=98", "dev name=eth1 feat=0x1", "skb linear:   00000000: 45 00"),
        ),
        ("(NULL net_device): hw csum failure", ()),
        ("unchecked MSR access error: WRMSR to 0x1a0 at rIP: 0xffffffff8106a4e4 (native_write_msr+0x4/0x20)", ()),
        ("sched: Unexpected reschedule of offline CPU#1!", ()),
        ("DMA-API: device driver maps memory from kernel text", ()),
        ("kobject_add_internal failed for eth1 with -EEXIST, don't try to register things with the same name.", ()),
        ("sysfs: cannot create duplicate filename '/class/net/eth1'", ()),
        ("netif_napi_add_weight() called with weight 256", ()),
    ],
)
def test_a_sentence_before_a_trace_is_a_fault(sentence: str, details: tuple[str, ...]) -> None:
    (crash,) = found("random: crng init done", sentence, *details, *CPU, *TRACE, "eth1: link up")
    assert (crash.kind, crash.line) == ("taint-warning", sentence)
    assert crash.where == ("example_rx", "example_poll")
    (again,) = found(sentence, *TRACE)
    assert again.fingerprint == crash.fingerprint


def test_traces_of_another_report_are_no_faults() -> None:
    stall = "rcu: INFO: rcu_preempt self-detected stall on CPU"
    (crash,) = found(stall, *CPU, *TRACE, "Sending NMI from CPU 0 to CPUs 1:", "NMI backtrace for cpu 1", *CPU, *TRACE)
    assert crash.kind == "lockup"
    assert found("sysrq: Show Blocked State", "task:sleep           state:D stack:0", *TRACE) == ()
    assert found(*CPU, *TRACE) == ()


def test_a_programs_sentence_is_none_of_the_kernels() -> None:
    reader = FaultReader()
    reader.read("[   12.000001] eth1: link up\nhello from a program\n[   12.000002] Call Trace:\n")
    assert [crash.line for crash in reader.faults] == ["eth1: link up"]


def test_a_log_has_the_sentence_and_not_its_details() -> None:
    lines = ("eth1: hw csum failure", "skb len=60 headroom=98", *CPU, *TRACE, "eth1: link down")
    log = "".join(f"<4>[   12.{at:06}] {line}\n" for at, line in enumerate(lines))
    assert parse_warnings(log) == ("eth1: hw csum failure", "eth1: link down")


RUST = "_RNvNtCs2aBcDeFgHiJ_4core9panicking9panic_fmt+0x7c/0x80"


@pytest.mark.parametrize("legacy", [False, True])
def test_a_panic_of_rust_is_told_by_its_sentence_and_place(legacy: bool) -> None:
    head = ("rust_kernel: panicked at 'no way', drivers/net/e.rs:8:2",) if legacy else (
        "rust_kernel: panicked at drivers/net/e.rs:8:2:", "no way")  # fmt: skip
    (crash,) = found(
        *head, "------------[ cut here ]------------", "kernel BUG at rust/helpers/bug.c:7!",
        "Oops: invalid opcode: 0000 [#1] PREEMPT SMP NOPTI", "RIP: 0010:rust_helper_BUG+0x8/0x10", "Call Trace:",
        " <TASK>", " _RNvCs1aBcDeFgHiJ_7___rustc17rust_begin_unwind+0x12f/0x140", f" {RUST}",
        " first_user_of_it+0x5d/0x90 [example_rust]", " </TASK>",
    )  # fmt: skip
    assert (crash.kind, crash.where) == ("oops", ("first_user_of_it",))
    assert crash.sentence() == f"{' '.join(head)} at first_user_of_it+0x5d/0x90"


@pytest.mark.parametrize(
    ("function", "tells"),
    [
        ("_RNvNtCs2aBcDeFgHiJ_4core6option13unwrap_failed", False),
        ("_RNvNtNtCs2aB_4core5slice5index24slice_end_index_len_fail", False),
        ("_RNvMNtCs2aB_4core6optionINtB2_6OptionhE6expectCs4_12example_rust", False),
        ("_ZN4core9panicking5panic17h0123456789abcdefE", False),
        ("rust_begin_unwind", False),
        ("_RNvMs_NtCs3aBcDeFgHiJ_12example_rust4ringNtB4_4Ring4take", True),
        ("_ZN12example_rust4ring4Ring4take17h0123456789abcdefE", True),
        ("_RNvNtCs3aB_6kernel3net4poll", True),
    ],
)
def test_what_of_rust_tells_a_fault(function: str, tells: bool) -> None:
    assert identifies(function) is tells


@pytest.mark.skipif(not CASES.is_dir(), reason="the reported cases are not here")
def test_consoles_as_they_were_reported() -> None:
    def of(case: str) -> Crash:
        reader = FaultReader()
        reader.read((CASES / case).read_text())
        reader.end()
        (crash,) = reader.faults
        return crash

    csum, msr = of("trace-without-word/console-csum.txt"), of("trace-without-word/console-msr.txt")
    assert (csum.line, csum.where[0]) == ("eth0: hw csum failure", "__skb_checksum_complete")
    assert msr.line.startswith("unchecked MSR access error")
    assert msr.where == ("example_setup",)
    rust = [of(f"rust-panic-where/console-{one}.txt") for one in "acd"]
    assert "4Ring4take" in rust[0].where[0]
    assert [one.where[0] for one in rust[1:]] == ["first_user_of_it", "second_user_of_it"]
    assert len({one.fingerprint for one in rust}) == 3
    assert "panicked at drivers/net/example_rust.rs:88:21: index out of bounds" in rust[0].sentence()

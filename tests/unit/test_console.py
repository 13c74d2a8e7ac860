"""Consoles of kernels that died, and logs of kernels that live."""

import itertools
import os
import shutil
import subprocess
from dataclasses import replace

import pytest
from console_faults import find_crashes

from pdrgate.crashes.faults import Crash, gravest_crash, last_lines
from pdrgate.crashes.kernel_log import parse_warnings, taint_words
from pdrgate.crashes.source_lines import SourceLines

PANIC = """\
[    2.412567] sysrq: Trigger a crash
[    2.412832] Kernel panic - not syncing: sysrq triggered crash
[    2.413041] CPU: 0 PID: 107 Comm: sh Not tainted 6.1.0-56-amd64 #1  Debian 6.1.192-2
[    2.413280] Hardware name: QEMU Standard PC (i440FX + PIIX, 1996), BIOS 1.16.2-debian-1.16.2-1 04/01/2014
[    2.413535] Call Trace:
[    2.414051]  <TASK>
[    2.414190]  dump_stack_lvl+0x44/0x5c
[    2.414448]  panic+0x118/0x2f4
[    2.414518]  ? _printk+0x68/0x83
[    2.414588]  sysrq_handle_crash+0x16/0x20
[    2.414677]  __handle_sysrq.cold+0x44/0x11c
[    2.414757]  write_sysrq_trigger+0x24/0x40
[    2.414907]  vfs_write+0xc7/0x3f0
[    2.415108]  ? syscall_exit_to_user_mode+0x1e/0x40
[    2.415689]  entry_SYSCALL_64_after_hwframe+0x6e/0xd8
[    2.415877] RIP: 0033:0x7f8c30025350
[    2.416202] Code: 40 00 48 8b 15 b1 aa 0d 00 f7 d8 64 89 02 48 c7 c0 ff ff ff ff eb b7 0f 1f 00 80
[    2.416540] RSP: 002b:00007ffe2fc79798 EFLAGS: 00000202 ORIG_RAX: 0000000000000001
[    2.417336]  </TASK>
[    2.417749] Kernel Offset: 0x31c00000 from 0xffffffff81000000
"""

OOPS = """\
[   41.217013][    C0] BUG: kernel NULL pointer dereference, address: 0000000000000008
[   41.217900][    C0] #PF: supervisor read access in kernel mode
[   41.218500][    C0] #PF: error_code(0x0000) - not-present page
[   41.219000][    C0] PGD 0 P4D 0
[   41.219300][    C0] Oops: 0000 [#1] PREEMPT SMP NOPTI
[   41.219700][    C0] CPU: 0 PID: 15 Comm: ksoftirqd/0 Tainted: G        W          6.1.99 #7
[   41.220300][    C0] RIP: 0010:ip6_forward+0x12a/0xb30
[   41.220700][    C0] Code: 48 8b 43 58 48 83 e0 fe 48 89 44 24 08 0f 84 b4 00 00 00 48 8b 40 08 <48> 8b 40 08
[   41.222000][    C0] RSP: 0018:ffffb1f08007bc58 EFLAGS: 00010246
[   41.224000][    C0] Call Trace:
[   41.224200][    C0]  <IRQ>
[   41.224400][    C0]  ? __die_body.cold+0x1a/0x1f
[   41.224700][    C0]  ? page_fault_oops+0xd2/0x2b0
[   41.225000][    C0]  ip6_rcv_core.isra.0+0x1b2/0x4a0
[   41.225300][    C0]  virtnet_poll+0x2f8/0x560 [virtio_net]
[   41.225600][    C0]  __napi_poll+0x2b/0x1b0
[   41.225900][    C0]  </IRQ>
[   41.226100][    C0] Modules linked in: virtio_net net_failover failover
[   41.226500][    C0] ---[ end trace 0000000000000000 ]---
[   41.227000][    C0] Kernel panic - not syncing: Fatal exception in interrupt
[   41.227400][    C0] Kernel Offset: 0xda00000 from 0xffffffff81000000
"""

WARNING = """\
[   12.000000] ------------[ cut here ]------------
[   12.000001] WARNING: CPU: 0 PID: 12 at net/core/dev.c:3912 __dev_queue_xmit+0x1f2/0xe00
[   12.000002] RIP: 0010:__dev_queue_xmit+0x1f2/0xe00
[   12.000003] Call Trace:
[   12.000004]  <TASK>
[   12.000005]  ? __warn+0x7d/0xcd
[   12.000006]  ip_finish_output2+0x1a3/0x560
[   12.000007]  </TASK>
[   12.000008] ---[ end trace 0000000000000000 ]---
"""

LOCKUP = """\
[  100.000000] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [ksoftirqd/0:15]
[  100.000001] RIP: 0010:net_rx_action+0x10/0x2f0
[  100.000002] Call Trace:
[  100.000003]  __do_softirq+0xc3/0x2ab
"""


def test_a_panic_has_its_sentence_and_trace_and_no_program_counter_of_a_program():
    (crash,) = find_crashes(PANIC)
    assert crash.kind == "panic"
    assert crash.line == "Kernel panic - not syncing: sysrq triggered crash"
    assert crash.rip is None
    assert crash.trace[:3] == ("dump_stack_lvl+0x44/0x5c", "panic+0x118/0x2f4", "sysrq_handle_crash+0x16/0x20")
    assert not any("_printk" in frame for frame in crash.trace)  # the kernel itself doubts it
    assert crash.where[0] == "sysrq_handle_crash"
    assert crash.sentence() == (
        "Kernel panic - not syncing: sysrq triggered crash at sysrq_handle_crash+0x16/0x20 < __handle_sysrq.cold < "
        "write_sysrq_trigger < vfs_write"
    )


def test_an_oops_is_told_once_and_before_the_panic_that_it_ends_in():
    oops, panic = find_crashes(OOPS)
    assert (oops.kind, panic.kind) == ("oops", "panic")
    assert oops.line == "BUG: kernel NULL pointer dereference, address: 0000000000000008"
    assert oops.rip == "ip6_forward+0x12a/0xb30"
    assert oops.trace == ("ip6_rcv_core.isra.0+0x1b2/0x4a0", "virtnet_poll+0x2f8/0x560", "__napi_poll+0x2b/0x1b0")
    assert oops.where == ("ip6_forward", "ip6_rcv_core.isra.0", "virtnet_poll", "__napi_poll")
    assert gravest_crash((panic, oops)) == oops


def test_other_faults_have_their_kinds():
    assert find_crashes(LOCKUP)[0].kind == "lockup"
    (warning,) = find_crashes(WARNING)
    assert (warning.kind, warning.rip) == ("taint-warning", "__dev_queue_xmit+0x1f2/0xe00")
    assert find_crashes("INFO: task kworker/0:1:12 blocked for more than 120 seconds.")[0].kind == "hung"
    assert find_crashes("[1.0] sh invoked oom-killer: gfp_mask=0x140dca")[0].kind == "oom"
    assert find_crashes("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:")[0].kind == "lockup"
    assert [crash.kind for crash in find_crashes(WARNING + LOCKUP + OOPS)] == [
        "taint-warning", "lockup", "oops", "panic"
    ]  # fmt: skip


def test_a_healthy_console_has_none():
    assert find_crashes("") == ()
    assert (
        find_crashes("[ 0.1] Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on\n[ 0.2] PANIC=off") == ()
    )
    assert gravest_crash(()) is None


def test_the_fingerprint_is_that_of_the_fault_and_not_of_the_boot():
    (panic,) = find_crashes(PANIC)
    moved = (
        PANIC.replace("+0x16/0x20", "+0x18/0x24").replace("2.41", "9.93").replace("vfs_write+0xc7", "vfs_write+0xd1")
    )
    assert find_crashes(moved)[0].fingerprint == panic.fingerprint
    oops = find_crashes(OOPS)[0]
    assert find_crashes(OOPS.replace("0000000000000008", "ffff888001234000"))[0].fingerprint == oops.fingerprint
    assert oops.fingerprint != panic.fingerprint
    bare = Crash("panic", "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100")
    assert bare.fingerprint == replace(bare, line=bare.line.replace("100", "200")).fingerprint
    assert len(bare.fingerprint) == 8


def test_a_console_may_break_off_or_hold_anything():
    assert find_crashes(OOPS[:700])[0].kind == "oops"
    for cut in range(0, len(OOPS), 37):
        find_crashes(OOPS[:cut])
    find_crashes("\0\ufffd\r\n" * 50 + PANIC.replace("\n", "\r\n"))
    assert find_crashes(PANIC.replace("\n", "\r\n")) == find_crashes(PANIC)


def test_last_lines():
    assert last_lines("") == "nothing"
    assert last_lines("[ 1.0] a\n\n<6>[ 2.0] b\nc\nd\n", 2) == "c | d"
    assert last_lines("[ 1.0] a\n\n<6>[ 2.0] b\n") == "a | b"


def test_taint_and_warnings_in_words():
    assert taint_words(0) == ()
    assert taint_words(1 << 9 | 1 << 12 | 1) == (
        "P (proprietary module)", "W (warning)", "O (module from outside the tree)"
    )  # fmt: skip
    assert taint_words(1 << 40) == ("bit 40",)
    log = "<6>[ 1.0] hello\n<4>[ 1.1] odd\n<3>[ 1.2] bad\n<14>[ 1.3] from a program\n<12>[ 1.4] loud program\n"
    assert parse_warnings(log) == ("odd", "bad")


needs_binutils = pytest.mark.skipif(
    not all(map(shutil.which, ("gcc", "nm", "addr2line"))), reason="needs gcc and binutils"
)


@pytest.fixture
def program(tmp_path):
    """A program with two functions, and a fault of its own in them."""
    (tmp_path / "net").mkdir()
    source = tmp_path / "net" / "path.c"
    source.write_text(
        "int g;\n\nint inner(int a)\n{\n\tg += a;\n\treturn g;\n}\n\nint main(void)\n{\n\treturn inner(1);\n}\n"
    )
    vmlinux = tmp_path / "vmlinux"
    subprocess.run(("gcc", "-g", "-O0", "-fno-inline", "-o", vmlinux, source), check=True, cwd=tmp_path)
    starts = {}
    lines = subprocess.run(("nm", "-n", vmlinux), capture_output=True, text=True, check=True).stdout.splitlines()
    parts = [line.split() for line in lines if len(line.split()) == 3]
    for one, following in itertools.pairwise(parts):
        starts[one[2]] = int(following[0], 16) - int(one[0], 16)
    return vmlinux, Crash(
        "oops", "Oops", rip=f"inner+0x0/{starts['inner']:#x}", trace=(f"main+0x1/{starts['main']:#x}", "other+0x1/0x2")
    )


@needs_binutils
def test_frames_are_decoded_to_source_lines(program, tmp_path):
    vmlinux, crash = program
    (decoded,) = SourceLines(vmlinux).decode([crash])
    assert decoded.rip == f"{crash.rip} (net/path.c:4)"
    assert decoded.trace[0] == f"{crash.trace[0]} (net/path.c:10)"
    assert decoded.trace[1] == "other+0x1/0x2"
    assert decoded.fingerprint == crash.fingerprint
    # Of another build, by its size: better no line than a wrong one.
    foreign = replace(crash, rip="inner+0x0/0x999", trace=())
    assert SourceLines(vmlinux).decode([foreign, crash]) == (foreign, decoded)
    assert SourceLines(tmp_path / "none").decode([crash]) == (crash,)
    assert SourceLines(None).decode([crash]) == (crash,)


@needs_binutils
def test_each_fault_is_decoded_once(program, tmp_path, monkeypatch):
    vmlinux, crash = program
    warning = replace(crash, kind="taint-warning")
    tools, runs = tmp_path / "bin", tmp_path / "runs"
    tools.mkdir()
    for tool in ("nm", "addr2line"):
        (tools / tool).write_text(f'#!/bin/sh\necho {tool} >> "{runs}"\nexec {shutil.which(tool)} "$@"\n')
        (tools / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    lines = SourceLines(vmlinux)
    assert lines.decode([]) == ()
    assert not runs.exists()
    (first,) = lines.decode([warning])
    assert first.rip.endswith("(net/path.c:4)")
    assert runs.read_text().split() == ["nm", "addr2line"]
    for _ in range(3):
        assert lines.decode([warning]) == (first,)
    assert runs.read_text().split() == ["nm", "addr2line"]
    # Two new ones cost as much as one.
    third = replace(crash, kind="lockup")
    assert [one.kind for one in lines.decode([warning, crash, third])] == ["taint-warning", "oops", "lockup"]
    assert runs.read_text().split() == ["nm", "addr2line"] * 2

"""Faults by their grammar: in every form that kernels have written them, behind everything that logs put before a line.

The reports here are made up: no kernel said them, but each has the form of one.
"""

from __future__ import annotations

import random
import re
import re._constants as codes
import re._parser as parser
from collections.abc import Callable, Iterator

import pytest
from console_faults import find_crashes

from pdrgate.crashes import console_line, faults, grammar, kernel_log, unspecific
from pdrgate.crashes.faults import Crash, FaultReader, last_lines
from pdrgate.crashes.kernel_log import KernelLog, parse_warnings, read_kernel_log
from pdrgate.crashes.unspecific import identifies
from pdrgate.hosts.host import Completed

NULL_POINTER = """\
BUG: kernel NULL pointer dereference, address: 0000000000000008
#PF: supervisor read access in kernel mode
Oops: Oops: 0000 [#1] PREEMPT SMP NOPTI
CPU: 0 UID: 0 PID: 15 Comm: ksoftirqd/0 Not tainted 6.12.0 #1
RIP: 0010:path_rx+0x31/0x90 [path]
Code: 48 8b 43 58 <48> 8b 40 08
Call Trace:
 <IRQ>
 ? __die_body+0x1a/0x1f
 path_poll+0x11/0x80 [path]
 __napi_poll+0x2b/0x1b0
 </IRQ>
---[ end trace 0000000000000000 ]---"""

PREFIXES: dict[str, Callable[[int], str]] = {
    "none": lambda n: "",
    "time": lambda n: f"[{n / 1e6 + 12:12.6f}] ",
    "short time": lambda n: f"[    {12 + n / 10:.1f}] ",
    "task": lambda n: f"[{n / 1e6 + 12:12.6f}][  T101] ",
    "cpu": lambda n: f"[{n / 1e6 + 12:12.6f}][    C0] ",
    "cpu apart": lambda n: f"[{n / 1e6 + 12:12.6f}] [    C0] ",
    "level": lambda n: "<4>",
    "level and time": lambda n: f"<4>[{n / 1e6 + 12:12.6f}] ",
    "level and caller": lambda n: f"<1>[{n / 1e6 + 12:12.6f}][   T1] ",
    "decoded": lambda n: f"kern  :warn  : [{n / 1e6 + 12:12.6f}] ",
    "syslog": lambda n: "Jun  1 10:00:01 sut-01.lab kernel: ",
    "syslog and time": lambda n: f"Jun 11 10:00:01 sut01 kernel: [{n / 1e6 + 12:12.6f}] ",
    "rsyslog": lambda n: f"2024-06-11T10:00:01.123456+02:00 sut01 kernel: [{n / 1e6 + 12:12.6f}] ",
    "journal iso": lambda n: "2024-06-11T10:00:01+0200 sut01 kernel: ",
    "journal monotonic": lambda n: f"[{n / 1e6 + 12:12.6f}] sut01 kernel: ",
    "journal full": lambda n: "Tue Jun 11 10:00:01.123456 sut01 kernel: ",
    "ctime": lambda n: "[Tue Jun 11 10:00:01 2024] ",
    "human": lambda n: "[  +0.000123] ",
    "human minute": lambda n: "[Jun11 10:00] ",
    "dmesg iso": lambda n: "2024-06-11T10:00:01,123456+02:00 ",
}


def behind(prefix: Callable[[int], str], text: str, end: str = "\n") -> str:
    return "".join(f"{prefix(number)}{line}{end}" for number, line in enumerate(text.splitlines()))


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_fault_is_the_same_whatever_stands_before_its_lines(prefix: str, end: str) -> None:
    assert find_crashes(behind(PREFIXES[prefix], NULL_POINTER, end)) == find_crashes(NULL_POINTER)


def test_of_an_oops_the_place_and_the_trace_are_read() -> None:
    (oops,) = find_crashes(NULL_POINTER)
    assert (oops.kind, oops.rip, oops.where) == ("oops", "path_rx+0x31/0x90", ("path_rx", "path_poll", "__napi_poll"))


FORMS = [
    # What it says; its kind; where, when the line itself names that.
    ("WARNING: CPU: 1 PID: 22 at net/core/skbuff.c:1234 one_check+0x4a/0x120", "taint-warning", ("one_check",)),
    ("WARNING: CPU: 1 PID: 22 at net/core/skbuff.c:1234 one_check+0x4a/0x120 [path]", "taint-warning", ("one_check",)),
    ("WARNING: at net/core/skbuff.c:1234 one_check+0x4a/0x120()", "taint-warning", ("one_check",)),
    ("WARNING: at net/core/skbuff.c:1234 one_check+0x4a/0x120 [path]()", "taint-warning", ("one_check",)),
    ("WARNING: net/core/skbuff.c:1234 at one_check+0x4a/0x120, CPU#1: tool/22", "taint-warning", ("one_check",)),
    ("WARNING: net/core/skbuff.c:1234 at one_check+0x4a/0x120 CPU: 1 PID: 22", "taint-warning", ("one_check",)),
    ("WARNING: [!skb] net/core/skbuff.c:1234 at one_check+0x4a/0x120, CPU#1: a b/22", "taint-warning", ("one_check",)),
    ("WARNING: CPU: 1 PID: 22 at [!skb] net/core/skbuff.c:1234 one_check+0x4a/0x120", "taint-warning", ("one_check",)),
    ("WARNING: possible circular locking dependency detected", "taint-warning", ()),
    ("WARNING: possible irq lock inversion dependency detected", "taint-warning", ()),
    ("WARNING: lock held when returning to user space!", "taint-warning", ()),
    ("WARNING: Nested lock was not taken", "taint-warning", ()),
    ("[ INFO: possible recursive locking detected ]", "taint-warning", ()),
    ("[ INFO: suspicious RCU usage. ]", "taint-warning", ()),
    ("[ BUG: Invalid wait context ]", "taint-warning", ()),
    ("[ BUG: held lock freed! ]", "taint-warning", ()),
    ("BUG: anything at all that nobody has thought of yet", "taint-warning", ()),
    ("driver core: BUG: something of its own", "taint-warning", ()),
    ("BUG: sleeping function called from invalid context at mm/slab.h:1", "taint-warning", ()),
    ("BUG: KCSAN: data-race in one / other", "taint-warning", ()),
    ("BUG: KMSAN: uninit-value in one_check+0x1b/0x200", "taint-warning", ("one_check",)),
    ("BUG: KASAN: use-after-free in one_check+0x1b/0x200 [path]", "oops", ("one_check",)),
    ("BUG: KFENCE: use-after-free read in one_check+0x1b/0x200", "oops", ("one_check",)),
    ("BUG: unable to handle page fault for address: ffffc90000a00000", "oops", ()),
    ("BUG: unable to handle kernel paging request at 0000001000000018", "oops", ()),
    ("BUG: Bad page state in process tool  pfn:12345", "oops", ()),
    ("BUG: scheduling while atomic: tool/123/0x00000100", "oops", ()),
    ("BUG kmalloc-64 (Not tainted): Poison overwritten", "oops", ()),
    ("BUG skbuff_head_cache (Tainted: G        W         ): Object already free", "oops", ()),
    ("kernel BUG at net/core/skbuff.c:120!", "oops", ()),
    ("invalid opcode: 0000 [#1] SMP NOPTI", "oops", ()),
    ("divide error: 0000 [#1] SMP NOPTI", "oops", ()),
    ("general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1] SMP", "oops", ()),
    ("general protection fault: 0000 [#1] SMP", "oops", ()),
    ("Oops: general protection fault, maybe for address 0x1: 0000 [#1] SMP", "oops", ()),
    ("traps: PANIC: double fault, error_code: 0x0", "oops", ()),
    ("Unable to handle kernel NULL pointer dereference at virtual address 0000000000000008", "oops", ()),
    ("Internal error: Oops: 0000000096000004 [#1] SMP", "oops", ()),
    ("Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)", "panic", ()),
    ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [ksoftirqd/0:15]", "lockup", ()),
    ("NMI watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [ksoftirqd/0:15]", "lockup", ()),
    ("BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 33s!", "lockup", ()),
    ("watchdog: CPU1: Watchdog detected hard LOCKUP on cpu 1", "lockup", ()),
    ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 1", "lockup", ()),
    ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "lockup", ()),
    ("rcu: INFO: rcu_preempt self-detected stall on CPU", "lockup", ()),
    ("INFO: rcu_sched self-detected stall on CPU { 0}  (t=21000 jiffies g=1 c=2 q=3)", "lockup", ()),
    ("rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 0-.... }", "lockup", ()),
    ("INFO: task kworker/0:1:12 blocked for more than 120 seconds.", "hung", ()),
    ("INFO: task tool:12 blocked in I/O wait for more than 120 seconds.", "hung", ()),
    ("sh invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE), order=0", "oom", ()),
    ("Out of memory: Killed process 123 (tool) total-vm:1kB", "oom", ()),
    ("UBSAN: shift-out-of-bounds in net/core/dev.c:12:3", "taint-warning", ()),
    ("UBSAN: Undefined behaviour in net/core/dev.c:12:3", "taint-warning", ()),
    ("virtio_net virtio0 eth1: NETDEV WATCHDOG: CPU: 0: transmit queue 0 timed out 5012 ms", "taint-warning", ()),
    ("NETDEV WATCHDOG: eth0 (e1000): transmit queue 0 timed out", "taint-warning", ()),
    ("refcount_t: addition on 0; use-after-free.", "taint-warning", ()),
    ("list_del corruption, ffff888001234000->next is LIST_POISON1 (dead000000000100)", "taint-warning", ()),
    ("unregister_netdevice: waiting for eth1 to become free. Usage count = 2", "taint-warning", ()),
    ('irq 16: nobody cared (try booting with the "irqpoll" option)', "taint-warning", ()),
    ("tool: vmalloc error: size 4096, failed to allocate pages, mode:0xcc2(GFP_KERNEL)", "taint-warning", ()),
]


@pytest.mark.parametrize(("text", "kind", "where"), FORMS)
@pytest.mark.parametrize("prefix", ["none", "time", "cpu", "syslog", "level"])
def test_a_report_begins_by_its_head(text: str, kind: str, where: tuple[str, ...], prefix: str) -> None:
    (found,) = find_crashes(behind(PREFIXES[prefix], f"quiet before\n{text}\nquiet after"))
    assert (found.kind, found.where) == (kind, where)
    assert found.line == text.removeprefix("[ ").removesuffix(" ]")


@pytest.mark.parametrize(
    "text",
    [
        "Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on, data leaks possible",
        "Warning: unable to open an initial console.",
        "e1000e 0000:00:1f.6 eth0: WARNING: the link is slow",
        "virtio_net virtio0: Warning: a feature is missing",
        "ACPI: BIOS WARNING: something of its own",
        "WARNING: BIOS bug: CPU MTRRs don't cover all of memory, losing 1024MB",
        "INFO: lockdep is turned off.",
        "INFO: NMI handler (perf_event_nmi_handler) took too long to run: 2.345 msecs",
        "INFO: Object 0xffff888001234000 @offset=0 fp=0x0",
        "INFO: Slab 0xffffea0000048d00 objects=32 used=1",
        "INFO: task tool:12 blocked on a mutex likely owned by task other:13.",
        "traps: tool[123] general protection fault ip:401136 sp:7ffd error:0 in tool[401000+1000]",
        "tool[123] general protection fault ip:401136 sp:7ffd error:0",
        "traps: tool[1] trap invalid opcode ip:1 sp:2 error:0",
        "tool[123]: segfault at 0 ip 0000000000401136 sp 00007ffd error 4 in tool[401000+1000]",
        "---[ end Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100 ]---",
        "Kernel command line: console=ttyS0 panic=-1 oops=panic BUG: WARNING: nothing",
        "rcu: Hierarchical RCU implementation.",
        "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
        "kasan: KernelAddressSanitizer initialized",
        "kmemleak: Kernel memory leak detector initialized (mem pool available: 15679)",
        "MDS CPU bug present and SMT on",
        "[Firmware Bug]: TSC ADJUST: CPU0: -1 force to 0",
        "workqueue: foo hogged CPU for >10000us 4 times",
        "clocksource: timekeeping watchdog on CPU0: Marking clocksource 'tsc' as unstable",
        "Tainted: [W]=WARN",
        "x86/bugs: Vulnerable",
        "systemd[1]: a unit had a general protection fault",
        "rcu: rcu_preempt kthread starved for 21000 jiffies! g1 f0x0 RCU_GP_WAIT_FQS(5)",
    ],
)
@pytest.mark.parametrize("prefix", ["none", "time", "syslog"])
def test_prose_is_no_report(text: str, prefix: str) -> None:
    assert find_crashes(behind(PREFIXES[prefix], text)) == ()


def test_what_a_program_writes_between_a_kernels_lines_is_no_report_of_it() -> None:
    console = "[    1.000000] Run /init as init process\nWARNING: Failed to connect to lvmetad.\nINFO: all is well\n"
    assert find_crashes(console) == ()
    # But a line that is not at its end when the kernel speaks hides nothing.
    (found,) = find_crashes("[    1.000000] a\n# cat /x[    2.000000][    C0] BUG: Bad rss-counter state mm:1\n")
    assert (found.kind, found.line) == ("oops", "BUG: Bad rss-counter state mm:1")


@pytest.mark.parametrize(
    "form",
    [
        "WARNING: net/core/skbuff.c:1234 at {place}, CPU#1: ksoftirqd/1/22",
        "WARNING: net/core/skbuff.c:1234 at {place} CPU: 1 PID: 22",
        "WARNING: at net/core/skbuff.c:1234 {place}()",
    ],
)
def test_a_warning_has_one_fingerprint_in_its_old_and_its_new_forms(form: str) -> None:
    rest = "RIP: 0010:one_check+0x4a/0x120\nCall Trace:\n <TASK>\n one_caller+0x33/0x80\n </TASK>\n"
    (old,) = find_crashes("WARNING: CPU: 1 PID: 22 at net/core/skbuff.c:1234 one_check+0x4a/0x120\n" + rest)
    (new,) = find_crashes(form.format(place="one_check+0x4a/0x120") + "\n" + rest)
    assert new.fingerprint == old.fingerprint
    assert new.where == ("one_check", "one_caller")


def test_kernels_before_4_10_put_an_address_before_each_symbol() -> None:
    oops, panic = find_crashes(
        "[  71.3] BUG: unable to handle kernel NULL pointer dereference at 0000000000000018\n"
        "[  71.3] IP: [<ffffffffa0123456>] path_rx+0x31/0x90 [path]\n"
        "[  71.3] Oops: 0000 [#1] SMP \n"
        "[  71.3] RIP: 0010:[<ffffffffa0123456>]  [<ffffffffa0123456>] path_rx+0x31/0x90 [path]\n"
        "[  71.3] Call Trace:\n"
        "[  71.3]  <IRQ>  [<ffffffff8163b2c1>] ? path_maybe+0x1/0x2\n"
        "[  71.3]  [<ffffffffa0123111>] path_poll+0x11/0x80 [path]\n"
        "[  71.3]  <EOI>  [<ffffffff81655ca0>] net_rx_action+0x2b/0x1b0\n"
        "[  71.3] Code: 48 8b\n"
        "[  71.3] RIP  [<ffffffffa0123456>] path_rx+0x31/0x90 [path]\n"
        "[  71.3] Kernel panic - not syncing: Fatal exception in interrupt\n"
    )
    assert oops.where == ("path_rx", "path_poll", "net_rx_action")
    assert panic.kind == "panic"


def test_arm64_says_pc_and_call_trace_in_its_own_way() -> None:
    (oops,) = find_crashes(
        "Unable to handle kernel paging request at virtual address dead000000000100\n"
        "Internal error: Oops: 0000000096000044 [#1] PREEMPT SMP\n"
        "pc : path_rx+0x31/0x90 [path]\nlr : path_poll+0x11/0x80 [path]\n"
        "Call trace:\n path_rx+0x31/0x90 [path] (P)\n path_poll+0x11/0x80 [path]\nCode: f9400000\n"
    )
    assert (oops.line.split()[0], oops.where) == ("Unable", ("path_rx", "path_poll"))


@pytest.mark.parametrize(
    ("console", "kind", "line", "where"),
    [
        (
            "------------[ cut here ]------------\nrefcount_t: underflow; use-after-free.\n"
            "WARNING: CPU: 1 PID: 22 at lib/refcount.c:28 refcount_warn_saturate+0xba/0x110\n"
            "RIP: 0010:refcount_warn_saturate+0xba/0x110\nCall Trace:\n path_put+0x1/0x2\n",
            "taint-warning",
            "refcount_t: underflow; use-after-free.",
            ("path_put",),
        ),
        (
            "list_add corruption. prev->next should be next (1), but was 2.\n------------[ cut here ]------------\n"
            "kernel BUG at lib/list_debug.c:31!\nOops: invalid opcode: 0000 [#1] SMP\n"
            "RIP: 0010:__list_add_valid_or_report+0x78/0xb0\nCall Trace:\n path_add+0x1/0x2\n",
            "oops",
            "list_add corruption. prev->next should be next (1), but was 2.",
            ("path_add",),
        ),
        (
            "WARNING: at net/sched/sch_generic.c:297 dev_watchdog+0x26b/0x280()\n"
            "NETDEV WATCHDOG: eth0 (e1000): transmit queue 0 timed out\n",
            "taint-warning",
            "WARNING: at net/sched/sch_generic.c:297 dev_watchdog+0x26b/0x280()",
            ("dev_watchdog",),
        ),
        (
            "sh invoked oom-killer: gfp_mask=0x1\nCall Trace:\n path_alloc+0x1/0x2\n\nMem-Info:\n"
            "Out of memory: Killed process 12 (sh)\n",
            "oom",
            "sh invoked oom-killer: gfp_mask=0x1",
            ("path_alloc",),
        ),
        (
            "general protection fault, probably for non-canonical address 0xdffffc0000000000: 0000 [#1] SMP KASAN\n"
            "KASAN: null-ptr-deref in range [0x0000000000000000-0x0000000000000007]\nRIP: 0010:path_rx+0x1/0x2\n",
            "oops",
            "general protection fault, probably for non-canonical address 0xdffffc0000000000: 0000 [#1] SMP KASAN",
            ("path_rx",),
        ),
    ],
)
def test_several_heads_of_one_fault_are_one(console: str, kind: str, line: str, where: tuple[str, ...]) -> None:
    (found,) = find_crashes(console)
    assert (found.kind, found.line, found.where) == (kind, line, where)


@pytest.mark.parametrize(
    ("head", "frames", "where"),
    [
        (
            "BUG: KASAN: slab-out-of-bounds in path_rx+0x1a2/0x400",
            ("print_report", "kasan_report", "__asan_report_load8_noabort"),
            ("path_rx", "path_poll"),
        ),
        (
            "BUG: KASAN: use-after-free in path_rx+0x1a2/0x400",
            ("print_address_description.constprop.0", "kasan_check_range", "__kasan_report.cold"),
            ("path_rx", "path_poll"),
        ),
        (
            "INFO: task tool:1 blocked for more than 122 seconds.",
            ("__schedule", "schedule", "schedule_preempt_disabled", "__mutex_lock.constprop.0"),
            ("path_poll",),
        ),
        (
            "INFO: task tool:1 blocked for more than 122 seconds.",
            ("__schedule", "schedule", "rwsem_down_write_slowpath", "down_write"),
            ("path_poll",),
        ),
        (
            "INFO: task tool:1 blocked for more than 122 seconds.",
            ("__schedule", "schedule_timeout", "__wait_for_common", "wait_for_completion"),
            ("path_poll",),
        ),
        ("WARNING: suspicious RCU usage", ("dump_stack_lvl", "lockdep_rcu_suspicious.cold"), ("path_poll",)),
        (
            "BUG: sleeping function called from invalid context at mm/slab.h:1",
            ("dump_stack_lvl", "__might_resched.cold", "__might_sleep"),
            ("path_poll",),
        ),
        (
            "UBSAN: shift-out-of-bounds in net/core/dev.c:12:3",
            ("dump_stack_lvl", "ubsan_epilogue", "__ubsan_handle_shift_out_of_bounds.cold"),
            ("path_poll",),
        ),
    ],
)
def test_frames_that_report_or_wait_tell_nothing(head: str, frames: tuple[str, ...], where: tuple[str, ...]) -> None:
    trace = "".join(f" {name}+0x1/0x2\n" for name in (*frames, "path_poll"))
    (found,) = find_crashes(f"{head}\nCall Trace:\n <TASK>\n{trace} </TASK>\n")
    assert found.where == where
    assert where[0] in found.sentence().partition(" at ")[2].split("<")[0]


def test_functions_of_a_data_path_tell() -> None:
    path = (
        "ip6_forward",
        "__netif_receive_skb_one_core",
        "virtnet_poll",
        "rtnl_lock",
        "schedule_work",
        "dst_release",
        "lock_sock_nested",
        "download_firmware",
        "panic_on_oops_setup",
        "diet_queue",
        "warn_users",
        "nmi_handle_packets",
        "dev_watchdog",
        "do_softirq",
        "fib_table_lookup",
        "bpf_prog_run",
        "napi_schedule_prep",
        "queue_work_on",
        "writeback_single_inode",
        "downlink_rx",
    )
    assert [name for name in path if not identifies(name)] == []


LOCKS = """\
======================================================
WARNING: possible circular locking dependency detected
6.12.0 #1 Not tainted
------------------------------------------------------
{comm}/{pid} is trying to acquire lock:
{address} ({first}){{+.+.}}-{{3:3}}, at: {function}+0x30/0x90

but task is already holding lock:
{address} ({second}){{+.+.}}-{{3:3}}, at: rtnl_lock+0x15/0x20

which lock already depends on the new lock.

the existing dependency chain (in reverse order) is:

-> #1 ({second}){{+.+.}}-{{3:3}}:
       lock_acquire+0xd1/0x2e0
       path_a+0x1/0x2
-> #0 ({first}){{+.+.}}-{{3:3}}:
       __lock_acquire+0x1/0x2

2 locks held by {comm}/{pid}:
 #0: {address} (&other->of_this_way){{....}}-{{0:0}}, at: path_c+0x1/0x2

stack backtrace:
CPU: {cpu} UID: 0 PID: {pid} Comm: {comm} Not tainted 6.12.0 #1
Call Trace:
 <TASK>
 dump_stack_lvl+0x6d/0xa0
 print_circular_bug.cold+0x178/0x1be
 check_noncircular+0x14b/0x170
 __lock_acquire+0x1/0x2
 lock_acquire+0xd1/0x2e0
 __mutex_lock+0x1/0x2
 {function}+0x30/0x90
 </TASK>
"""


def lock_report(first: str, second: str, function: str, seed: int) -> Crash:
    chance = random.Random(seed)
    text = LOCKS.format(
        first=first,
        second=second,
        function=function,
        comm=chance.choice(("tool", "kworker/u4:3")),
        pid=chance.randrange(1, 9999),
        address=f"ffff{chance.getrandbits(48):012x}",
        cpu=chance.randrange(8),
    )
    (found,) = find_crashes(behind(lambda n: f"[{seed * 7 + n / 1e6:12.6f}][{f'T{seed}':>6}] ", text))
    return found


def test_one_lock_order_has_one_fingerprint_in_all_boots_and_another_has_another() -> None:
    one = lock_report("&dev->tx_lock", "rtnl_mutex", "path_a", 1)
    assert one.locks == ("&dev->tx_lock", "rtnl_mutex")
    assert one.where == ("path_a",)
    assert "of &dev->tx_lock, rtnl_mutex at path_a+0x30/0x90" in one.sentence()
    for seed in range(2, 30):
        again = lock_report(f"&dev->tx_lock#{seed}", f"rtnl_mutex#{seed}/1", "path_a", seed)
        assert again.fingerprint == one.fingerprint
    # Found on the other way round, by another function: the same order of locks.
    assert lock_report("rtnl_mutex", "&dev->tx_lock#2", "path_b", 31).fingerprint == one.fingerprint
    assert lock_report("&dev->rx_lock", "rtnl_mutex", "path_a", 32).fingerprint != one.fingerprint


def test_two_cpus_that_tell_at_once_are_told_apart_by_who_says_it() -> None:
    other = NULL_POINTER.replace("path_", "other_")
    lines: list[str] = []
    for number, pair in enumerate(zip(NULL_POINTER.splitlines(), other.splitlines(), strict=True)):
        lines += [f"[{number + 1:5}.000000][    C{cpu}] {line}" for cpu, line in enumerate(pair)]
    one, two = find_crashes("\n".join(lines))
    assert one == find_crashes(NULL_POINTER)[0]
    assert two == find_crashes(other)[0]


def test_a_stall_has_the_trace_of_the_cpu_that_was_asked() -> None:
    (stall,) = find_crashes(
        "[   60.000000][    C1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n"
        "[   60.000001][    C1] rcu: \t0-...!: (1 GPs behind) idle=1\n"
        "[   60.000002][    C1] Sending NMI from CPU 1 to CPUs 0:\n"
        "[   60.000003][    C0] NMI backtrace for cpu 0\n"
        "[   60.000004][    C0] RIP: 0010:path_rx+0x1/0x2\n"
        "[   60.000005][    C0] Call Trace:\n[   60.000006][    C0]  path_poll+0x1/0x2\n"
    )
    assert (stall.kind, stall.where) == ("lockup", ("path_rx", "path_poll"))


TRACE_OF = "[   60.0]{0}CPU: 0 PID: 1 Comm: tool\n[   60.1]{0}{1}\n[   60.2]{0}Call Trace:\n[   60.3]{0} <TASK>\n"


@pytest.mark.parametrize(
    ("head", "pc", "frames", "line", "where"),
    [
        (
            "skbuff: skb_under_panic: text:ffffffff8178aed4 len:68 put:32 head:ff data:e0 tail:0x24 end:0xec0 dev:x\n"
            "------------[ cut here ]------------\nkernel BUG at net/core/skbuff.c:111!\ninvalid opcode: 0000 [#1] SMP",
            "RIP: 0010:skb_panic+0x48/0x4a", ("skb_push+0x4/0x40", "tunnel_header+0x10/0x80"),
            "skbuff: skb_under_panic: ", ("tunnel_header",),
        ),
        (
            "------------[ cut here ]------------\nCFI failure (target: example_xmit+0x0/0x10):\n"
            "WARNING: CPU: 8 PID: 0 at kernel/cfi.c:29 __cfi_check_fail+0x2e/0x40",
            "RIP: 0010:__cfi_check_fail+0x2e/0x40", ("__cfi_check+0x1/0x2", "dev_hard_start_xmit+0x1/0x2"),
            "CFI failure (target: example_xmit+0x0/0x10):", ("example_xmit", "dev_hard_start_xmit"),
        ),
        (
            "CFI failure at path_out+0x30/0x90 (target: bad_hook+0x0/0x10; expected type: 0xa540670c)\n"
            "Oops: invalid opcode: 0000 [#1] SMP",
            "RIP: 0010:path_out+0x30/0x90", ("path_out+0x30/0x90", "path_in+0x1/0x2"), "CFI failure at path_out",
            ("path_out", "path_in"),
        ),
        (
            "page:(____ptrval____) refcount:1 mapcount:0 mapping:0000000000000000 index:0x0 pfn:0x100200\n"
            "page dumped because: VM_BUG_ON_PAGE(page_ref_count(page))\n------------[ cut here ]------------\n"
            "kernel BUG at mm/internal.h:96!\ninvalid opcode: 0000 [#1] SMP PTI",
            "RIP: 0010:path_pages+0x1/0x2", ("path_in+0x1/0x2",),
            "page dumped because: VM_BUG_ON_PAGE(page_ref_count(page))", ("path_pages", "path_in"),
        ),
    ],
)  # fmt: skip
def test_what_a_kernel_found_stands_before_the_trap_that_ends_it(
    head: str, pc: str, frames: tuple[str, ...], line: str, where: tuple[str, ...]
) -> None:
    text = "".join(f"[   59.0] {one}\n" for one in head.split("\n"))
    text += TRACE_OF.format(" ", pc) + "".join(f"[   60.4]  {one}\n" for one in frames)
    (fault,) = find_crashes(text)
    assert fault.line.startswith(line)
    assert fault.where == where


def test_a_device_that_is_held_has_the_trace_of_who_holds_it() -> None:
    holders = "".join(
        f"[   60.3]      {one}+0x10/0x40 net/core/dev.c:1\n"
        for one in ("__netdev_tracker_alloc", "netdev_hold", "path_adds_queue", "path_registers")
    )
    waits = "[   60.0] unregister_netdevice: waiting for bridge0 to become free. Usage count = 2\n"
    (fault,) = find_crashes(f"{waits}[   60.1] ref_tracker: netdev@ffff88807e1b05a0 has 1/1 users at\n{holders}")
    assert fault.line == waits[10:].strip().removeprefix("] ")
    assert fault.where == ("path_adds_queue", "path_registers")
    (alone,) = find_crashes(f"[   60.1] ref_tracker: net notrefcnt@ffff8881 has 1/1 users at\n{holders}")
    assert alone.where == fault.where
    assert [one.where for one in find_crashes(waits * 2)] == [(), ()], "an older kernel does not say who"


# --- As it is written -----------------------------------------------------------------------------------------------


def pieces(text: str, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    while text:
        size = chance.choice((1, 2, 7, 100))
        yield text[:size]
        text = text[size:]


@pytest.mark.parametrize("seed", range(8))
def test_in_whatever_pieces_a_console_comes_it_has_the_same_faults(seed: int) -> None:
    text = behind(PREFIXES["task"], NULL_POINTER + "\nquiet\n" + "\n".join(form for form, _, _ in FORMS))
    reader, seen = FaultReader(), 0
    for piece in pieces(text, seed):
        reader.read(piece)
        assert reader.count >= seen
        seen = reader.count
    reader.end()
    assert reader.faults == find_crashes(text)


def test_a_report_that_is_being_written_is_known_as_such() -> None:
    reader = FaultReader()
    head, trace = NULL_POINTER.split("Call Trace:")
    reader.read(head)
    assert (reader.count, reader.writing) == (1, False)
    reader.read("Call Trace:" + trace[: trace.index("__napi")])
    assert reader.writing
    reader.read(trace[trace.index("__napi") :] + "\n")
    assert not reader.writing
    assert reader.faults == find_crashes(NULL_POINTER)


@pytest.mark.parametrize(
    "line",
    [
        "rcu detected stall " * 140 + "\n",
        "rcu" * 900 + "\n",
        "a" * 100_000,
        "WARNING: " * 5000 + "\n",
        "[" * 50_000,
        "BUG: " + "(" * 9000,
        "[    1.000000] " * 4000,
        "x: " * 20_000,
        " " * 60_000 + "\n",
        "\x1b[" * 20_000,
        "invoked oom-killer" * 2000,
        "f0" * 30_000 + "+0x",
        "-> #1 (" * 9000,
        "Call Trace:\n" + " f+0x1/0x2\n" * 20_000,
        "BUG: x\n" * 20_000,
        "[ INFO: " * 6000,
        "Jun 11 10:00:01 " * 5000,
    ],
)
def test_what_is_done_for_a_line_is_bounded_whatever_is_on_it(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the characters that patterns are given: each line once, and no more than its longest."""
    given: list[int] = []
    real = faults.console_lines
    monkeypatch.setattr(faults, "console_lines", lambda raw: (given.append(len(raw)), real(raw))[1])
    reader = FaultReader()
    size = 0
    for _ in range(3):
        reader.read(line)
        size += len(line)
    reader.end()
    assert sum(given) <= size
    assert max(given) <= max(console_line.LONGEST, len(line.split("\n", 1)[0]))
    assert reader.count <= faults.MOST_REPORTS + len(grammar.GRAVITY)
    assert len(reader._rest) <= console_line.LONGEST
    assert all(len(crash.trace) <= 64 and len(crash.line) <= 300 for crash in reader.faults)


def test_each_piece_is_read_once_however_often_is_looked() -> None:
    given: list[int] = []

    class Counting(FaultReader):
        def _line(self, raw: str) -> None:
            given.append(len(raw))
            super()._line(raw)

    reader = Counting()
    for number in range(1000):
        reader.read(f"[{number:5}.000000] a line\n")
        assert reader.faults == ()
    assert len(given) == 1000


def patterns() -> list[re.Pattern[str]]:
    found = []
    for module in (console_line, faults, grammar, kernel_log, unspecific):
        for value in vars(module).values():
            found += [one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, re.Pattern)]
    return found


def endless(parsed: parser.SubPattern) -> Iterator[parser.SubPattern]:
    """What is repeated without a bound."""
    for code, argument in parsed:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            if argument[1] is codes.MAXREPEAT:
                yield argument[2]
            yield from endless(argument[2])
        elif code is codes.BRANCH:
            for branch in argument[1]:
                yield from endless(branch)
        elif code is codes.SUBPATTERN:
            yield from endless(argument[3])
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from endless(argument[1])


def test_no_pattern_repeats_what_repeats() -> None:
    found = patterns()
    assert len(found) > 25
    for pattern in found:
        for repeated in endless(parser.parse(pattern.pattern)):
            assert not list(endless(repeated)), pattern.pattern
            assert repeated.getwidth()[1] == 1, pattern.pattern


def test_a_console_may_hold_anything() -> None:
    chance = random.Random(5)
    words = [
        "BUG: ",
        "WARNING: at ",
        "Call Trace:\n",
        " f+0x1/0x2",
        "\n",
        "\r",
        "\0",
        "\x1b[2J",
        "[    1.000000] ",
        "<4>",
        "(",
        "){",
        "\udcff",
        "é",
        "rcu ",
    ]
    for _ in range(300):
        text = "".join(chance.choices(words, k=200))
        for crash in find_crashes(text):
            assert len(crash.fingerprint) == 8
            assert crash.sentence().isprintable() or "\t" in crash.sentence()
        assert "\x1b" not in last_lines(text)


def test_a_terminal_is_told_nothing_by_a_console() -> None:
    (found,) = find_crashes("\x1b[31mBUG: \x1b]0;title\x07one\x9b2J\u202etwo\n")
    assert found.line == "BUG: one\ufffd2J\ufffdtwo"
    assert last_lines("a\x1b[2Jb\x07\n") == "ab\ufffd"


# --- The log of a kernel that lives -----------------------------------------------------------------------------------


def test_only_the_kernels_own_warnings_are_the_kernels() -> None:
    log = "".join(
        f"<{facility << 3 | level}>[ 1.0] {facility} {level}\n" for facility in range(24) for level in range(8)
    )
    assert parse_warnings(log) == ("0 0", "0 1", "0 2", "0 3", "0 4")


class DmesgHost:
    """A host whose programs say what it is told; a simulation."""

    name = "simulated"

    def __init__(self, dmesg: str, taint: str) -> None:
        self._told = f"{dmesg}=== pdrgate 0\n=== pdrgate {taint}\n"

    def script(self, text: str) -> Completed:
        return Completed((text,), 0, self._told, "")


@pytest.mark.parametrize("taint", ["²", "9" * 5000, "-1", "0x1", "1 2", "", "no such file"])
def test_a_taint_that_is_no_number_is_not_known(taint: str) -> None:
    assert read_kernel_log(DmesgHost("", taint)).taint is None  # type: ignore[arg-type]


def test_a_log_cannot_say_how_it_ends() -> None:
    told = read_kernel_log(DmesgHost("<4>[    2.5] === pdrgate 1\n<4>[    2.6] odd\n", "512"))  # type: ignore[arg-type]
    assert told == KernelLog(("=== pdrgate 1", "odd"), 512)


PANIC = """\
rust_kernel: panicked at drivers/net/ring.rs:{line}:9:
{reason}
------------[ cut here ]------------
kernel BUG at rust/helpers/bug.c:7!
Oops: invalid opcode: 0000 [#1] PREEMPT SMP NOPTI
RIP: 0010:rust_helper_BUG+0x8/0x10
Call Trace:
 <TASK>
 _RNvCsabc_7___rustc17rust_begin_unwind+0x12f/0x140
 {helper}+0x7c/0x80
 {user}+0x5d/0x90 [ring]
 __napi_poll+0x2b/0x1b0
 </TASK>"""
HELPERS = (
    "_RNvNtCsabc_4core9panicking9panic_fmt",
    "_RNvNtNtCsabc_4core9panicking11panic_const24panic_const_add_overflow",
    "_RNvNtCsabc_4core6option13unwrap_failed",
    "_RNvMNtCsabc_4core6optionINtB2_6OptionhE6expectCsdef_4ring",
    "_RNCNvNtCsabc_4core5slice5index26slice_start_index_len_fail",
    "_RNvNtC4core4cell22panic_already_borrowed",
    "_RNvNtCsabc_5alloc5alloc18handle_alloc_error",
    "_ZN4core9panicking5panic17h0123456789abcdefE",
    "rust_begin_unwind",
)


@pytest.mark.parametrize("helper", HELPERS)
@pytest.mark.parametrize("user", ["ring_take", "_RNvMs_NtCsdef_4ring4coreNtB4_4Ring4take", "_ZN4ring4take17hfE"])
def test_a_panic_of_rust_is_its_callers(helper: str, user: str) -> None:
    text = PANIC.format(
        line=88, reason="index out of bounds: the len is 4 but the index is 9", helper=helper, user=user
    )
    (fault,) = find_crashes(behind(PREFIXES["time"], text))
    assert (fault.kind, fault.where) == ("oops", (user, "__napi_poll"))
    assert fault.sentence().startswith(
        "rust_kernel: panicked at drivers/net/ring.rs:88:9: index out of bounds: the len is 4 but the index is 9 at "
        f"{user}+0x5d/0x90"
    )
    other = PANIC.format(line=88, reason="another", helper=helper, user="other_take")
    assert find_crashes(other)[0].fingerprint != fault.fingerprint


SENTENCES = {
    "eth7: hw csum failure": "check_sum",
    "(NULL net_device): hw csum failure": "check_sum",
    "mlx5_core 0000:01:00.0 eth7: hw csum failure": "check_sum",
    "unchecked MSR access error: RDMSR from 0x1b0 at rIP: 0xffffffff81000000 (native_read_msr+0x4/0x20)": "check_sum",
    "something that nobody has seen before (7)": "check_sum",
    "skb linear failure": "check_sum",
    "skb frag list is broken": "check_sum",
    "mac=aa:bb:cc:dd:ee:ff answers twice": "check_sum",
}
# Lines of a dump as kernels from 6.1 to 7.3 have them; of a line with several, each is a line on a console.
DUMPED = """{}
skb len=60 data_len=0 headroom=98 headlen=60 tailroom=1798
end-tail=1800 mac=(64,14) mac_len=14 net=(78,20) trans=98
shinfo(txflags=0 nr_frags=0 gso(size=0 type=0 segs=0))
csum(0x100062 start=98 offset=16 ip_summed=3 complete_sw=0 valid=0 level=0)
hash(0x0 sw=0 l4=0) proto=0x0800 pkttype=0 iif=0
priority=0x0 mark=0x0 alloc_cpu=0 vlan_all=0x0
encapsulation=0 inner(proto=0x0000, mac=0, net=0, trans=0)
dev name=eth7 feat=0x0000010000114b09
sk family=2 type=1 proto=6
skb headroom: 00000000: 45 00 00 3c 00 00 40 00
skb linear:   00000000: 45 00 00 3c 00 00 40 00
skb tailroom: 00000000: 45 00 00 3c 00 00 40 00
skb frag:     00000000: 45 00 00 3c 00 00 40 00
skb frag 1: not readable
skb fraglist:
CPU: 0 UID: 0 PID: 0 Comm: swapper/0 Not tainted 6.18.0 #1
Hardware name: A board
Call Trace:
 <IRQ>
 dump_stack_lvl+0x64/0x80
 check_sum+0xbd/0xd0
 path_rx+0x11/0x80
 </IRQ>
another sentence"""


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("prefix", ["none", "time", "task", "level and time"])
def test_a_sentence_with_a_trace_is_one_fault_without_a_known_word(sentence: str, prefix: str) -> None:
    text = DUMPED.format(sentence)
    (fault,) = find_crashes(behind(PREFIXES[prefix], text))
    assert (fault.kind, fault.line, fault.where) == ("taint-warning", sentence, ("check_sum", "path_rx"))
    (again,) = find_crashes(behind(PREFIXES[prefix], f"{NULL_POINTER}\n{text}"))[1:]
    assert again.fingerprint == fault.fingerprint
    log = behind(PREFIXES["level and time"], f"first\n{text}")
    assert parse_warnings(log) == ("first", sentence, "another sentence")


@pytest.mark.parametrize("asked", ["sysrq: Show Blocked State\ntask:path state:D stack:0", "NMI backtrace for cpu 1"])
def test_a_trace_that_was_asked_for_is_no_fault(asked: str) -> None:
    text = f"a sentence\n{asked}\nCall Trace:\n <TASK>\n path_rx+0x1/0x2\n </TASK>"
    assert find_crashes(behind(PREFIXES["time"], text)) == ()


def test_what_is_new_in_a_log_takes_one_look_at_each_line() -> None:
    many = tuple(f"line {number % 500}" for number in range(200_000))
    assert KernelLog(many, 0).since(KernelLog(many[:-3], 0)) == many[-3:]


def test_that_an_interrupt_took_long_is_the_machines_fault() -> None:
    assert parse_warnings("<4>[    2.5] hrtimer: interrupt took 24166032 ns\n<4>[    2.6] odd\n") == ("odd",)

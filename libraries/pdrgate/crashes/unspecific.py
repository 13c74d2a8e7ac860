"""Functions that identify no fault: they report a fault, wait or lock for others, and stand in all traces alike.

This module is their only list. The other functions of a trace identify its fault. Names are without leading underscores
and without what the compiler appends.
"""

from __future__ import annotations

import re

_REPORT = (
    r"dump_(?:stack|backtrace|cpu_task)\w*",
    r"show_(?:stack|regs|trace|state)\w*",
    r"sched_show_task",
    r"(?:v|nmi_)?panic",
    r"print_(?:report|address_description|memory_metadata|error_description|trailer|section|tracking)\w*",
    r"check_panic\w*",
    r"oops_\w+",
    r"page_fault_oops",
    r"die(?:_\w+)?",
    r"no_context",
    r"arm64_(?:notify|force)_\w+",
    r"crash_kexec\w*",
    r"warn",
    r"warn_(?:slowpath|printk|alloc)\w*",
    r"WARN_trap",
    r"report_bug\w*",
    r"(?:handle|fixup|spin|do)_bug\w*",
    r"bug_(?:brk_)?handler",
    r"(?:do|call|early)_(?:debug_exception|break_hook|brk64|el1_brk64)",
)
_TRAP = (
    r"(?:asm_)?exc_\w+",
    r"(?:do_)?(?:general_protection|invalid_op|page_fault|double_fault|divide_error|int3)",
    r"do_(?:error_trap|trap\w*|user_addr_fault|kern_addr_fault|translation_fault|mem_abort|undefinstr|kernel_fault)",
    r"bad_area\w*",
    r"kernelmode_fixup\w*",
    r"fixup_exception",
    r"error_(?:code|entry)",
    r"(?:async|trace)_page_fault",
    r"el1h?_\w+",
    r"gp_(?:user_force|try_fixup)\w*",
)
_WATCHDOG = (
    r"watchdog\w*",
    r"rcu_(?:dump|check_gp|check_callbacks|sched_clock_irq|pending)\w*",
    r"print_(?:other_)?cpu_stall\w*",
    r"check_cpu_stall\w*",
    r"nmi_(?:cpu_)?backtrace\w*",
    r"(?:arch_|nmi_|apic_)?trigger_\w+",
    r"update_process_times",
    r"tick_(?:sched|nohz|periodic|handle)\w*",
    r"hrtimer_(?:run_queues|interrupt)",
    r"(?:asm_)?sysvec_\w+",
    r"(?:smp_|local_)?apic_timer_interrupt",
    r"perf_event_overflow\w*",
    r"(?:default_)?do_nmi",
    r"end_repeat_nmi",
    r"nmi",
)
_SANITIZER = (
    r"(?:kasan|asan|hwasan|kmsan|msan|kcsan|tsan|kfence|ubsan)_\w+",
    r"check_memory_region\w*",
)
_LOCKDEP = (
    r"lockdep_\w+",
    r"rcu_lockdep\w*",
    r"print_(?:circular|bad|usage|deadlock|lock|irq|kernel|unlock|freed|collision)\w*",
    r"check_(?:noncircular|prevs?_add|irq_usage|usage|deadlock|path|wait_context|preemption_disabled)\w*",
    r"validate_chain",
    r"mark_(?:lock|held_locks|usage)\w*",
    r"lock_(?:acquire|release|contended)\w*",
    r"register_lock_class",
    r"assign_lock_key",
    r"debug_check_no_\w+",
    r"might_(?:sleep|resched|fault)\w*",
    r"schedule_(?:bug|debug)",
    r"debug_smp_processor_id",
    r"this_cpu_preempt_check",
)
_LOCK = (
    r"(?:raw_|rt_)?(?:spin|read|write)_(?:lock|unlock|trylock)\w*",
    r"do_raw_\w+",
    r"(?:native_|pv_)?queued_(?:spin|read|write)_lock\w*",
    r"spin_dump",
    r"(?:ww_|rt_)?mutex_(?:lock|unlock|trylock)\w*",
    r"(?:rt_mutex|rtlock|rwsem|rwbase|percpu_down)_\w+",
    r"down(?:_(?:read|write|common|interruptible|killable|timeout)\w*)?",
)
_WAIT = (
    r"schedule",
    r"schedule_(?:timeout|preempt_disabled|hrtimeout|idle|rtlock)\w*",
    r"preempt_schedule\w*",
    r"cond_resched\w*",
    r"io_schedule\w*",
    r"switch_to\w*",
    r"context_switch",
    r"wait_for_com(?:mon|pletion)\w*",
    r"do_wait_for_common",
    r"bit_wait\w*",
    r"(?:out_of_line_)?wait_on_bit\w*",
    r"wait_woken",
    r"[um]sleep\w*",
)
_CHECK = (
    r"list_(?:add|del)_(?:entry_)?valid\w*",
    r"refcount_(?:warn_saturate|error_report)",
    r"usercopy_abort",
    r"check_(?:object_size|heap_object)\w*",
    r"fortify_\w+",
    r"bad_page\w*",
    r"slab_(?:err|pad_check|fix)",
    r"object_err",
    r"check_(?:bytes_and_report|object|slab)",
    r"(?:free|alloc)_debug_processing",
    r"stack_chk_fail",
    r"debug_print_object",
    r"kobject_add_internal",
    r"cfi_(?:check|slowpath)\w*",
    r"skb_(?:(?:over_|under_)?panic|push|put)",
    r"(?:netdev|netns|ref)_tracker_\w+",
    r"(?:dev|netdev)_hold(?:_track)?",
)
_RUST = (
    r"rust_helper_(?:BUG|WARN)\w*",
    r"rust_(?:begin_unwind|panic|eh_personality)\w*",
)
_CRATE = re.compile(r"(?:_R\w*?C(?:s[0-9A-Za-z]*_)?|_ZN)(?P<length>\d{1,3})_?(?P<rest>[a-z_]\w*)", re.ASCII)
"""The crate at the root of a Rust symbol's path, in the mangling of today (v0) and of old compilers."""
_LIBRARIES = ("core", "alloc", "__rustc", "compiler_builtins")
"""Crates with Rust's checks and panics: ``unwrap``, the bounds of a slice, ``panic_fmt``."""
_UNSPECIFIC = re.compile(
    "|".join((*_REPORT, *_TRAP, *_WATCHDOG, *_SANITIZER, *_LOCKDEP, *_LOCK, *_WAIT, *_CHECK, *_RUST))
)
_PART = re.compile(r"\.(?:constprop|isra|part|cold|llvm)\b")
"""Marks of the compiler on a function that it split or specialised."""
_LONGEST = 128
"""Characters of a symbol that are looked at: for long the longest that kernels reported."""


def identifies(function: str) -> bool:
    """Whether a function in a trace distinguishes a fault from others."""
    crate = _CRATE.match(function[:_LONGEST])
    if crate is not None and crate["rest"][: int(crate["length"])] in _LIBRARIES:
        return False
    whole = _PART.split(function[:_LONGEST], maxsplit=1)[0].lstrip("_")
    return _UNSPECIFIC.fullmatch(whole) is None

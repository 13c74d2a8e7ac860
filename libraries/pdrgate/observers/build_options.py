"""Options that a kernel is built and started with and that a packet's path pays for, whatever the measured change.

Two builds that differ in one of these differ by more than their change. The data of this file says which options they
are, of which kind, and why each matters. All other options are taken not to matter to packets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum


class OptionKind(StrEnum):
    """Purpose of an option, as a report names it."""

    HARDENING = "hardening"
    MITIGATIONS = "mitigations"
    CHECKS = "debugging"
    SCHEDULING = "scheduling"
    TRACING = "tracing"
    NETWORK = "network"
    ACCOUNTING = "accounting"
    COMPILER = "compiler"
    CPU = "CPU"

    @property
    def weighty(self) -> bool:
        """Whether it is no property of the change that is measured, and alone can make a build faster."""
        return self in (OptionKind.HARDENING, OptionKind.MITIGATIONS, OptionKind.CHECKS, OptionKind.CPU)


@dataclass(frozen=True, slots=True)
class BuildOption:
    """An option of a kernel's configuration, or a word of its command line."""

    name: str
    kind: OptionKind
    why: str
    """The option's cost for a packet."""
    formerly: str = ""
    """The option's name in older kernels."""


def _of(kind: OptionKind, reasons: Mapping[str, str]) -> Iterator[BuildOption]:
    for names, why in reasons.items():
        name, _, formerly = names.partition(" ")
        yield BuildOption(name, kind, why, formerly)


OPTIONS: tuple[BuildOption, ...] = (
    *_of(OptionKind.HARDENING, {
        "INIT_ON_ALLOC_DEFAULT_ON": "each buffer is zeroed when it is allocated",
        "INIT_ON_FREE_DEFAULT_ON": "each buffer is zeroed when it is freed",
        "INIT_STACK_ALL_ZERO": "variables on the stack are zeroed in each call",
        "INIT_STACK_ALL_PATTERN": "variables on the stack are filled in each call",
        "GCC_PLUGIN_STRUCTLEAK_BYREF_ALL": "variables on the stack are zeroed in each call",
        "GCC_PLUGIN_STACKLEAK": "the stack is erased after each system call, and its depth tracked",
        "KSTACK_ERASE": "the stack is erased after each system call, and its depth tracked",
        "ZERO_CALL_USED_REGS": "registers are zeroed at the end of each function",
        "FORTIFY_SOURCE": "lengths of copies are checked",
        "LIST_HARDENED": "each insertion into a list, and each removal, is checked inline",
        "DEBUG_LIST": "each insertion into a list, and each removal, is checked by a call",
        "BUG_ON_DATA_CORRUPTION": "it switches the checks of lists on",
        "HARDENED_USERCOPY": "copies from and to programs are checked",
        "SLAB_FREELIST_RANDOM": "free objects are handed out in random order",
        "SLAB_FREELIST_HARDENED": "pointers of free lists are encoded and checked",
        "SLAB_BUCKETS": "more caches for objects whose size a program chooses",
        "RANDOM_KMALLOC_CACHES": "16 copies of each general cache",
        "SLAB_MERGE_DEFAULT": "caches of like objects are one: fewer cache misses",
        "SHUFFLE_PAGE_ALLOCATOR": "free pages are handed out in random order",
        "PAGE_POISONING": "pages are filled when they are freed",
        "STACKPROTECTOR": "functions with arrays check their stack",
        "STACKPROTECTOR_STRONG": "most functions with local variables check their stack",
        "RANDOMIZE_KSTACK_OFFSET_DEFAULT": "each system call begins at another depth of the stack",
        "VMAP_STACK": "stacks are mapped page by page",
        "CFI_CLANG": "each indirect call is checked for its target",
        "CFI": "each indirect call is checked for its target",
        "FINEIBT": "each indirect call is checked for its target",
        "X86_KERNEL_IBT": "functions begin with endbr, and indirect calls are checked",
        "SHADOW_CALL_STACK": "each call stores its return address twice",
        "RANDSTRUCT_FULL": "fields of structures lie in random order, across other cache lines",
        "UBSAN_BOUNDS": "each index into an array is checked",
        "BPF_JIT_ALWAYS_ON": "BPF programs are always compiled",
        "SECURITY_NETWORK": "security modules look at sockets and packets",
        "SECURITY_SELINUX": "packets may be labelled and checked by SELinux",
    }),
    *_of(OptionKind.MITIGATIONS, {
        "CPU_MITIGATIONS SPECULATION_MITIGATIONS": "whether any mitigation is built in",
        "MITIGATION_RETPOLINE RETPOLINE": "each indirect call goes through a thunk",
        "MITIGATION_RETHUNK RETHUNK": "each return goes through a thunk",
        "MITIGATION_SLS SLS": "code after each return and jump stops speculation",
        "MITIGATION_CALL_DEPTH_TRACKING CALL_DEPTH_TRACKING": "functions are padded, so that calls can be counted",
    }),
    *_of(OptionKind.CHECKS, {
        "KASAN": "each access to memory is checked", "KMSAN": "each access to memory is checked",
        "KCSAN": "accesses to memory are watched for races", "UBSAN": "undefined behaviour is checked",
        "KFENCE": "some allocations are guarded by pages",
        "KCOV": "each block of code is recorded", "GCOV_KERNEL": "each branch is counted",
        "PROVE_LOCKING": "each lock is checked against all others", "LOCKDEP": "each lock is recorded",
        "LOCK_STAT": "each lock is timed", "PROVE_RCU": "each use of RCU is checked",
        "DEBUG_ATOMIC_SLEEP": "what may sleep is checked", "DEBUG_PREEMPT": "each use of a CPU's own data is checked",
        "DEBUG_SPINLOCK": "each spinlock is checked", "DEBUG_MUTEXES": "each mutex is checked",
        "DEBUG_LOCK_ALLOC": "each freed lock is checked", "DEBUG_RT_MUTEXES": "each lock of PREEMPT_RT is checked",
        "DEBUG_RWSEMS": "each semaphore is checked", "DEBUG_OBJECTS": "timers and work are tracked",
        "DEBUG_PAGEALLOC": "freed pages are unmapped", "DEBUG_VM": "memory management is checked",
        "DEBUG_SG": "each scatter list is checked",
        "DEBUG_NET": "the network stack checks itself", "DEBUG_NOTIFIERS": "notifiers are checked",
        "DEBUG_IRQFLAGS": "each change of interrupts is checked", "DEBUG_CREDENTIALS": "credentials are checked",
        "DEBUG_PER_CPU_MAPS": "each access to another CPU's data is checked",
"SLUB_DEBUG_ON": "each object is checked and poisoned",
        "PAGE_OWNER": "each page's allocation is recorded", "PAGE_TABLE_CHECK": "each page table entry is checked",
        "DMA_API_DEBUG": "each mapping for a device is tracked", "REF_TRACKER": "each reference is tracked",
        "NET_DEV_REFCNT_TRACKER": "each reference to a device is tracked",
        "NET_NS_REFCNT_TRACKER": "each reference to a namespace is tracked",
        "FAULT_INJECTION": "allocations ask whether they shall fail",
    }),
    *_of(OptionKind.SCHEDULING, {
        "PREEMPT_RT": "locks of the network stack sleep, and softirqs are threads",
        "PREEMPT": "each end of a critical section asks whether to yield",
        "PREEMPT_LAZY": "how soon a thread yields", "PREEMPT_VOLUNTARY": "how soon a thread yields",
        "PREEMPT_NONE": "how soon a thread yields", "PREEMPT_DYNAMIC": "preemption is chosen at boot, by static calls",
        "HZ": "ticks a second", "HZ_PERIODIC": "idle CPUs tick", "NO_HZ_IDLE": "idle CPUs do not tick",
        "NO_HZ_FULL": "busy CPUs may not tick: each entry into the kernel is noted",
        "CONTEXT_TRACKING_USER": "each entry into the kernel is noted",
        "VIRT_CPU_ACCOUNTING_GEN": "time is taken at each entry",
        "IRQ_FORCED_THREADING": "interrupts may be threads", "IRQ_TIME_ACCOUNTING": "time is taken at each interrupt",
        "RCU_NOCB_CPU": "callbacks may run elsewhere", "RCU_BOOST": "readers of RCU are accounted for",
        "SCHED_CORE": "siblings are scheduled together", "NUMA_BALANCING": "pages are moved between nodes",
        "SMP": "locks are real", "PARAVIRT": "some operations are calls into a hypervisor's code",
        "PARAVIRT_SPINLOCKS": "spinlocks are calls", "TRANSPARENT_HUGEPAGE": "programs' pages may be large",
    }),
    *_of(OptionKind.TRACING, {
        "FUNCTION_TRACER": "each function begins with a call or its place", "FTRACE": "tracepoints are built in",
        "DYNAMIC_FTRACE": "the calls that functions begin with are patched out", "KPROBES": "code can be patched",
        "FUNCTION_GRAPH_TRACER": "functions' ends can be traced", "TRACEPOINTS": "each tracepoint is a jump",
        "IRQSOFF_TRACER": "each change of interrupts is traced", "PREEMPT_TRACER": "each critical section is traced",
        "TRACE_IRQFLAGS": "each change of interrupts is noted", "UNWINDER_FRAME_POINTER": "each function keeps a frame",
        "FRAME_POINTER": "each function keeps a frame", "STACK_TRACER": "each function's stack is measured",
        "PERF_EVENTS": "tracepoints ask for perf", "LATENCYTOP": "waits are recorded",
    }),
    *_of(OptionKind.NETWORK, {
        "NETFILTER": "hooks on each packet's way", "NETFILTER_INGRESS": "a hook where packets arrive",
        "NETFILTER_EGRESS": "a hook where packets leave", "NETFILTER_SKIP_EGRESS": "a flag on each packet",
        "BRIDGE_NETFILTER": "a reference in each packet, freed with it", "NF_CONNTRACK": "a reference in each packet",
        "XFRM": "policies are looked up, and a reference is in each packet",
        "NET_CLS_ACT": "classifiers where packets arrive and leave",
        "NET_XGRESS": "programs where packets arrive and leave",
        "NET_INGRESS": "a branch where packets arrive", "NET_EGRESS": "a branch where packets leave",
        "NET_SCHED": "queues of devices", "NETWORK_PHY_TIMESTAMPING": "each packet may be stamped by a PHY",
        "NETWORK_SECMARK": "a mark in each packet", "RPS": "packets may be moved between CPUs",
        "RFS_ACCEL": "the device may move packets between CPUs", "XPS": "queues are chosen by CPU",
        "NET_RX_BUSY_POLL": "each packet carries its queue", "BQL": "bytes in queues are counted",
        "NET_FLOW_LIMIT": "flows of full queues are limited", "NET_SWITCHDEV": "a flag on each packet",
        "IP_MULTIPLE_TABLES": "rules are looked up before routes",
        "IPV6_MULTIPLE_TABLES": "rules are looked up before routes",
        "IP_ROUTE_MULTIPATH": "routes of several ways", "IPV6_SUBTREES": "routes by source",
        "IPV6_SEG6_LWTUNNEL": "segment routing", "LWTUNNEL": "tunnels of routes", "LWTUNNEL_BPF": "programs of routes",
        "NET_L3_MASTER_DEV": "routing domains are looked up", "NET_VRF": "routing domains",
        "BPF_JIT": "BPF programs are compiled", "XDP_SOCKETS": "a branch for each packet of XDP",
        "BPF_STREAM_PARSER": "programs on sockets", "PAGE_POOL_STATS": "pages of drivers are counted",
        "SKB_EXTENSIONS": "packets carry extensions that are freed with them",
        "MAX_SKB_FRAGS": "how large each packet's head is", "NET_DROP_MONITOR": "drops are reported",
    }),
    *_of(OptionKind.ACCOUNTING, {
        "MEMCG": "allocations and sockets are charged to groups", "MEMCG_KMEM": "kernel memory is charged to groups",
        "CGROUPS": "groups of processes", "CGROUP_BPF": "programs of groups on each packet of a socket",
        "CGROUP_NET_PRIO": "priorities of groups", "CGROUP_NET_CLASSID": "classes of groups",
        "SOCK_CGROUP_DATA": "each socket has a group", "CGROUP_SCHED": "groups are scheduled",
        "CFS_BANDWIDTH": "groups are throttled", "RT_GROUP_SCHED": "groups of real-time threads",
        "MEM_ALLOC_PROFILING_ENABLED_BY_DEFAULT": "each allocation is counted",
        "TASK_DELAY_ACCT": "waits are counted", "PSI": "pressure is accounted at each switch",
        "SCHEDSTATS": "scheduling is counted",
        "AUDIT": "what programs do is recorded", "SLUB_STATS": "the allocator counts",
        "SLUB_TINY": "a small and slow allocator",
        "SLAB": "the allocator", "SLUB": "the allocator", "SLUB_CPU_PARTIAL": "each CPU keeps slabs of its own",
    }),
    *_of(OptionKind.COMPILER, {
        "CC_VERSION_TEXT": "other code of the same source", "CC_OPTIMIZE_FOR_SIZE": "small code is slow code",
        "CC_OPTIMIZE_FOR_PERFORMANCE": "code is made to be fast", "LTO_NONE": "no optimization across files",
        "LTO_CLANG_THIN": "optimization across files", "LTO_CLANG_FULL": "optimization across files",
        "AUTOFDO_CLANG": "code is laid out by a profile", "PROPELLER_CLANG": "code is laid out by a profile",
        "X86_NATIVE_CPU": "code for this very CPU", "GENERIC_CPU": "code for any CPU",
        "MCORE2": "code for one kind of CPU",
        "NO_AUTO_INLINE": "nothing is inlined unless asked", "DEBUG_FORCE_FUNCTION_ALIGN_64B": "where functions begin",
        "FUNCTION_ALIGNMENT": "where functions begin", "JUMP_LABEL": "branches that are patched, not taken",
    }),
)  # fmt: skip
"""Options by kind: the names without CONFIG_, each with the name that it had before."""

WORDS: tuple[BuildOption, ...] = (
    *_of(OptionKind.HARDENING, {
        "init_on_alloc": "each buffer is zeroed when it is allocated",
        "init_on_free": "each buffer is zeroed when it is freed",
        "page_poison": "pages are filled when they are freed", "slab_nomerge": "caches of like objects are not one",
        "hardened_usercopy": "copies from and to programs are checked",
        "randomize_kstack_offset": "each system call begins at another depth of the stack",
        "page_alloc.shuffle": "free pages are handed out in random order", "cfi": "how indirect calls are checked",
    }),
    *_of(OptionKind.MITIGATIONS, dict.fromkeys(
        (
            "mitigations", "spectre_v1", "nospectre_v1", "spectre_v2", "nospectre_v2", "spectre_bhi",
            "spec_store_bypass_disable", "pti", "nopti", "retbleed", "spec_rstack_overflow", "mds", "l1tf",
            "tsx_async_abort", "mmio_stale_data", "gather_data_sampling", "reg_file_data_sampling",
            "indirect_target_selection", "vmscape", "tsa", "srbds",
        ),
        "it chooses what is done against speculation",
    )),
    *_of(OptionKind.CHECKS, {
        "slab_debug slub_debug": "objects are checked",
        "debug_pagealloc": "freed pages are unmapped", "page_owner": "each page's allocation is recorded",
        "kfence.sample_interval": "how many allocations are guarded", "kmemleak": "each allocation is recorded",
        "kasan": "each access to memory is checked",
    }),
    *_of(OptionKind.SCHEDULING, {
        "preempt": "how soon a thread yields", "nohz": "idle CPUs tick", "nohz_full": "busy CPUs do not tick",
        "isolcpus": "CPUs without other work", "rcu_nocbs": "callbacks run elsewhere",
        "threadirqs": "interrupts are threads",
        "idle": "how CPUs idle", "nosmt": "whether siblings are used",
    }),
)  # fmt: skip
"""Words of the command line that set the same; behind a name the one that it had before."""

OPTION: Mapping[str, BuildOption] = {name: one for one in OPTIONS for name in (one.name, one.formerly) if name}
"""Options by each of their names."""
WORD: Mapping[str, BuildOption] = {name: one for one in WORDS for name in (one.name, one.formerly) if name}

_LINE = re.compile(r"^CONFIG_([A-Z0-9_]+)=([^\n]{1,200})$", re.MULTILINE)


_END = "# end of the options"

PRINT_OPTIONS = (
    f'awk -F= \'BEGIN {{ split("{" ".join(OPTION)}", names, " "); for (at in names) wanted["CONFIG_" names[at]] }} '
    f'$1 in wanted {{ print }} END {{ print "{_END}" }}\''
)
"""Command that reads a configuration of 260 kB on its input and prints the lines that matter; see `set_options`."""


def set_options(lines: str) -> dict[str, str] | None:
    """Options of `OPTIONS` that a configuration sets, by the newer of two names, from the output of `PRINT_OPTIONS`.

    Options that it does not set are left out. None is returned for an incomplete output.
    """
    if _END not in lines:
        return None
    return {OPTION[name].name: value.strip('"') for name, value in _LINE.findall(lines) if name in OPTION}

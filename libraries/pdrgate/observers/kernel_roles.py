"""Functions of Linux by what they do: the names of functions that counting and seeing rest on.

What a function does is taken from what its code does wherever that shows it; see `MemoryCounts.fills_pages`. A name
stands here where only the kernel's authors know: that a function is called once for each packet, or that a CPU waits in
it. Names come and go, so each role has all that Linux has had since 6.1, and a kernel in which a role has no function
is reported with what cannot be known of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from pdrgate.record.stretch import Functions


class HasFunctions(Protocol):
    """Map of the addresses at which functions of a kernel begin."""

    def entries(self, name: str) -> list[int]:
        """The addresses of functions of that name; empty if there is none."""


@dataclass(frozen=True, slots=True)
class KernelRole:
    """Role of a function in any kernel, with its names."""

    does: str
    """Clause that states the role: ``takes a packet up from a driver``."""
    names: tuple[str, ...]
    """Its names, the first that is there counts where one is wanted."""
    unknown: str
    """Clause that states what stays unknown of a kernel without such a function."""
    otherwise: tuple[str, ...] = ()
    """Its names in kernels for architectures that have none of the first ones."""

    def entries(self, kernel: HasFunctions) -> Iterator[int]:
        """Addresses at which such functions begin."""
        first = [at for name in self.names for at in kernel.entries(name)]
        return iter(first or [at for name in self.otherwise for at in kernel.entries(name)])

    def is_one(self, name: str, kernel: HasFunctions) -> bool:
        """Whether a function of a kernel has that role."""
        if name in self.names:
            return True
        return name in self.otherwise and not any(kernel.entries(one) for one in self.names)

    def calls(self, executed: Functions) -> int:
        """Number of calls of the first of its functions that was called at all."""
        return next((calls for name in self.names if (calls := executed.get(name, (0, 0))[1])), 0)

    def absence(self) -> str:
        """Report on a kernel without such a function."""
        return f"no function is known that {self.does} ({', '.join((*self.names, *self.otherwise))}): {self.unknown}"


_OWN_WORK = "what the kernel does by itself counts for packets"

TICK: Final = KernelRole(
    "ticks",
    ("update_process_times",),
    "what the kernel does by itself is subtracted by time, not by tick",
)
POLL_OF_DRIVER: Final = KernelRole(
    "has a driver take packets", ("virtnet_poll", "__napi_poll"), "how many packets a poll takes"
)
"""One batch by each call."""
GOES_IDLE: Final = KernelRole(
    "ends a time without work", ("tick_nohz_idle_exit",), "the cost of a request is with what waiting takes"
)
TAKES_UP: Final = KernelRole(
    "takes a packet up", ("napi_gro_receive", "gro_receive_skb"), "memory is seen where a program has each packet alone"
)
"""Function that a driver calls once for each packet that is no XDP program's; `gro_receive_skb` since 6.17."""
READS_DATAGRAM: Final = KernelRole(
    "takes a datagram from a socket", ("__skb_try_recv_from_queue",), "atomics of programs that read sockets"
)
"""Function that takes a datagram from a socket for a program, also behind a wait."""
SENDS: Final = KernelRole(
    "sends for a program", ("inet_sendmsg", "inet6_sendmsg", "packet_sendmsg"), "atomics of programs that send"
)
TIMER_INTERRUPT: Final = KernelRole(
    "begins a timer's interrupt", ("asm_sysvec_apic_timer_interrupt", "sysvec_apic_timer_interrupt"), _OWN_WORK,
    ("arch_timer_handler_virt", "arch_timer_handler_phys"),
)  # fmt: skip
INTERRUPT_RETURN: Final = KernelRole(
    "ends an interrupt", ("native_irq_return_iret",), _OWN_WORK, ("ret_to_kernel", "ret_to_user")
)  # fmt: skip
OWN_WORK: Final = KernelRole(
    "begins the kernel's own work",
    (
        "run_timer_softirq", "rcu_core", "rcu_core_si", "run_rebalance_domains", "sched_balance_softirq",
        "__schedule",
    ),
    _OWN_WORK,
)  # fmt: skip
"""Work that no packet has asked for: ticks come by the clock, and a trial in which memory is seen is slow.

`sched_balance_softirq` is its name since 6.10.
"""
LOOKS_FOR_PACKETS: Final = KernelRole(
    "looks for packets", ("net_rx_action", "__napi_poll"), "memory is not seen behind the kernel's own work"
)
CLOCK_GOES_ON: Final = KernelRole(
    "has the clock go on", ("update_wall_time",), "what is written as the clock ticks counts as shared"
)
"""Function that is called whenever jiffies go on."""
DEVICE_INTERRUPT: Final = KernelRole(
    "begins a device's interrupt", ("asm_common_interrupt", "common_interrupt"), "interrupts of devices take time",
    ("handle_fasteoi_irq",),
)  # fmt: skip
"""Interrupts of devices, which come when QEMU's main loop has a CPU, so they take no time."""
NEXT_STEP: Final = KernelRole(
    "has a packet of a list go a step further", ("__netif_receive_skb_core", "ip_forward", "ip6_forward"),
    "lines that packets of one list share count once",
)  # fmt: skip
"""Function that is called once for each packet of a list, after all of them were taken up."""
INTERRUPT_OF_CPU: Final = KernelRole(
    "takes an interrupt of another CPU",
    ("sysvec_reschedule_ipi", "sysvec_call_function", "sysvec_call_function_single", "sysvec_irq_work"),
    "interprocessor interrupts",
    ("ipi_handler",),
)
WAKES: Final = KernelRole("wakes a task", ("try_to_wake_up",), "wakeups")
WAITS_FOR_LOCK: Final = KernelRole(
    "waits for a lock",
    (
        "native_queued_spin_lock_slowpath", "queued_spin_lock_slowpath", "__pv_queued_spin_lock_slowpath",
        "resilient_queued_spin_lock_slowpath", "resilient_tas_spin_lock", "queued_read_lock_slowpath",
        "queued_write_lock_slowpath", "osq_lock", "mutex_spin_on_owner", "rwsem_spin_on_owner",
    ),
    "waiting for locks",
)  # fmt: skip
"""Functions in which a CPU waits that does not sleep; BPF's maps have the resilient ones since 6.15."""

BEGINS_UNCALLED: Final = re.compile(
    r"asm_|irq_entries_start$|common_interrupt|error_entry$|paranoid_|handle_softirqs$|__do_softirq$|do_softirq_own_stack$"
    r"|el[01][ht]_64_|el1_interrupt$|do_interrupt_handler$|call_on_irq_stack$|gic_handle_irq$|____do_softirq$"
)
"""Functions that enter an interrupt or do the work after one. The code that it interrupted did not call them."""
ENDS_UNCALLED: Final = re.compile(
    r"error_return$|restore_regs_and_return_to_kernel$|native_irq_return_iret$|common_interrupt_return$"
    r"|ret_to_kernel$"
)
"""Code by which an interrupt ends, in the chain of callers that it has interrupted."""

ROLES_OF_ONE_CPU: Final = (
    TICK, POLL_OF_DRIVER, GOES_IDLE, TAKES_UP, READS_DATAGRAM, SENDS, TIMER_INTERRUPT, INTERRUPT_RETURN, OWN_WORK,
    LOOKS_FOR_PACKETS,
)  # fmt: skip
"""Roles by which a guest of one CPU is counted and seen."""
ROLES_OF_SEVERAL_CPUS: Final = (
    TAKES_UP, TIMER_INTERRUPT, INTERRUPT_RETURN, OWN_WORK, LOOKS_FOR_PACKETS, CLOCK_GOES_ON, DEVICE_INTERRUPT,
    NEXT_STEP, INTERRUPT_OF_CPU, WAKES, WAITS_FOR_LOCK,
)  # fmt: skip
"""Roles by which a guest of several CPUs is counted and seen."""


def absent(roles: Iterable[KernelRole], kernel: HasFunctions) -> tuple[str, ...]:
    """Reports on a kernel for the roles that it has no function of."""
    return tuple(one.absence() for one in roles if not any(one.entries(kernel)))

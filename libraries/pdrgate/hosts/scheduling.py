"""When a thread of this machine runs, of those that could, and how soon."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import struct
from pathlib import Path
from typing import Protocol

_BOUND = Path("/dev/cpu_dma_latency")
_STATUS = Path("/proc/self/status")
_SYS_NICE = 23
"""CAP_SYS_NICE's bit (capabilities(7))."""
_SLICE = 100_000
"""ns; the shortest that the kernel takes."""
_CALLS = {"x86_64": (315, 314), "aarch64": (275, 274)}
"""The numbers of sched_getattr(2) and sched_setattr(2) on each machine; the C library has no functions for them."""
_ATTR = struct.Struct("<IIQiIQQQII")
"""struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period, and limits of utilisation."""
_RUNTIME = 5


class Closing(Protocol):
    """What lasts until it is closed."""

    def close(self) -> object: ...


def stay_awake() -> Closing | None:
    """Keep this machine's idle CPUs from going to sleep, until what is returned is closed, or this process ends.

    By a bound on how long they may take to wake up (Documentation/power/pm_qos_interface.rst), of none. In a virtual
    machine a CPU that sleeps is given back to the hypervisor, and takes 50 us and more to come back. None where the
    kernel has no such bound, or it may not be set.
    """
    try:
        bound = _BOUND.open("wb", buffering=0)
    except OSError:
        return None
    try:
        bound.write(struct.pack("i", 0))
    except OSError:
        bound.close()
        return None
    return bound


def go_first(thread: int) -> None:
    """Have a thread run as soon as it has something to do, before all that take turns on its CPU (SCHED_FIFO).

    For threads that have nothing to do for part of the time: nobody else runs until they wait. Where it may not be,
    nothing happens.
    """
    with contextlib.suppress(OSError):
        os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))


def may_go_first() -> bool:
    """Whether this process may have threads run before others, as root may, but for a container without SYS_NICE."""
    found = re.search(r"^CapEff:\s*(\w+)$", _STATUS.read_text(), re.MULTILINE)
    return found is None or bool(int(found[1], 16) >> _SYS_NICE & 1)


def take_turns(thread: int) -> None:
    """Have a thread take turns with others again, as its nice value has it."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


def take_short_slices(thread: int) -> None:
    """Have a thread run in slices of 0.1 ms, so that it need not wait for another one's to end when it wakes up.

    Without, a thread that wakes up waits some ms, whatever its nice value: the running one has its slice to its end.
    Since Linux 6.12 who asks for shorter ones goes before it at once; earlier kernels take no notice. Where it may not
    be, nothing happens.
    """
    if platform.machine() not in _CALLS:
        return
    get, put = _CALLS[platform.machine()]
    call = ctypes.CDLL(None, use_errno=True).syscall
    attributes = ctypes.create_string_buffer(_ATTR.size)
    if call(get, thread, attributes, _ATTR.size, 0):
        return
    fields = list(_ATTR.unpack(attributes.raw))
    if fields[1] not in (os.SCHED_OTHER, os.SCHED_BATCH):
        return
    fields[_RUNTIME] = _SLICE
    call(put, thread, _ATTR.pack(*fields), 0)

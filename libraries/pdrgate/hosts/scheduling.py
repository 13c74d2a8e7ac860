"""When a thread of this machine runs, of those that could, and how soon."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import struct
from io import FileIO
from pathlib import Path

_BOUND = Path("/dev/cpu_dma_latency")
_STATUS = Path("/proc/self/status")
_SYS_NICE = 23
"""CAP_SYS_NICE's bit (capabilities(7))."""
_SLICE = 100_000
"""Slice in ns, the shortest that the kernel takes."""
_CALLS = {"x86_64": (315, 314), "aarch64": (275, 274)}
"""Numbers of sched_getattr(2) and sched_setattr(2) on each machine. The C library has no functions for them."""
_ATTR = struct.Struct("<IIQiIQQQII")
"""Layout of struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period, utilisation limits."""
_RUNTIME = 5


def stay_awake() -> FileIO | None:
    """Keep this machine's idle CPUs from going to sleep, until the returned value is closed, or this process ends.

    The bound on the time that they may take to wake up (Documentation/power/pm_qos_interface.rst) is set to 0. In a
    virtual machine a CPU that sleeps is given back to the hypervisor, and takes 50 us and more to come back. None is
    returned if the kernel has no such bound, or it may not be set.
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
    """Make a thread run as soon as it has something to do, before all that take turns on its CPU (SCHED_FIFO).

    For threads that have nothing to do for part of the time: nobody else runs until they wait. Where it may not be,
    nothing happens.
    """
    with contextlib.suppress(OSError):
        os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))


def may_go_first() -> bool:
    """Whether this process may raise the priority of threads: root may, except in a container without SYS_NICE."""
    capabilities = re.search(r"^CapEff:\s*(\w+)$", _STATUS.read_text(), re.MULTILINE)
    return capabilities is None or bool(int(capabilities[1], 16) >> _SYS_NICE & 1)


def take_turns(thread: int) -> None:
    """Make a thread take turns with others again, as its nice value has it."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


def take_short_slices(thread: int) -> None:
    """Have a thread run in slices of 0.1 ms, so that it need not wait for another one's to end when it wakes up.

    Otherwise a thread that wakes up waits some ms, whatever its nice value: the running thread uses up its slice. Since
    Linux 6.12 a thread with shorter slices goes first at once; earlier kernels ignore the setting. Nothing happens if
    it may not be set.
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

"""How long a thread of this machine may run before others have their turn."""

from __future__ import annotations

import ctypes
import os
import platform
import struct

_SLICE = 100_000
"""ns; the shortest that the kernel takes."""
_CALLS = {"x86_64": (315, 314), "aarch64": (275, 274)}
"""By machine, the numbers of sched_getattr(2) and sched_setattr(2), which the C library has no functions for."""
_ATTR = struct.Struct("<IIQiIQQQII")
"""struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period, and limits of utilisation."""
_RUNTIME = 5


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

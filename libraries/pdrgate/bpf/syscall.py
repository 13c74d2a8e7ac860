"""bpf(2), as far as no tool goes: putting a program into a cpumap takes descriptors of one process."""

from __future__ import annotations

import ctypes
import os
import platform

from pdrgate.errors import TestbedError

_NUMBERS = {"x86_64": 321, "aarch64": 280}
_MAP_UPDATE, _MAP_DELETE, _PROG_GET_FD_BY_ID, _MAP_GET_FD_BY_ID = 2, 3, 13, 14


def program_fd(number: int) -> int:
    """A descriptor of the program with this id; the caller closes it. Raises TestbedError."""
    return _bpf(_PROG_GET_FD_BY_ID, (ctypes.c_uint32 * 4)(number), f"opening BPF program {number}")


def map_fd(number: int) -> int:
    """A descriptor of the map with this id; the caller closes it. Raises TestbedError."""
    return _bpf(_MAP_GET_FD_BY_ID, (ctypes.c_uint32 * 4)(number), f"opening BPF map {number}")


class _Element(ctypes.Structure):
    _fields_ = (
        ("map_fd", ctypes.c_uint32), ("pad", ctypes.c_uint32), ("key", ctypes.c_uint64),
        ("value", ctypes.c_uint64), ("flags", ctypes.c_uint64),
    )  # fmt: skip


def map_update(fd: int, key: bytes, value: bytes) -> None:
    """Set an element of a map. Raises TestbedError."""
    keys, values = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(value, len(value))
    element = _Element(fd, 0, ctypes.addressof(keys), ctypes.addressof(values), 0)
    _bpf(_MAP_UPDATE, element, "updating a BPF map")


def map_delete(fd: int, key: bytes) -> None:
    """Remove an element of a map. Raises TestbedError."""
    keys = ctypes.create_string_buffer(key, len(key))
    _bpf(_MAP_DELETE, _Element(fd, 0, ctypes.addressof(keys), 0, 0), "removing an element of a BPF map")


def _bpf(command: int, attributes: ctypes.Structure | ctypes.Array[ctypes.c_uint32], what: str) -> int:
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise TestbedError(
            f"{what} is not known on {platform.machine()}, but on {', '.join(_NUMBERS)}; use one of them"
        )
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    result = int(syscall(number, command, ctypes.byref(attributes), ctypes.sizeof(attributes)))
    if result < 0:
        reason = os.strerror(ctypes.get_errno())
        raise TestbedError(f"{what} failed: {reason}; bpf(2) takes root and a kernel that allows it")
    return result

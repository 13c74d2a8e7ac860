"""Calls of bpf(2) that no tool offers.

A program is put into a cpumap by descriptors of one process. A program at a tracepoint had better end with the process
that attached it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import struct
from collections.abc import Iterator

from pdrgate.values.errors import TestbedError

_NUMBERS = {"x86_64": 321, "aarch64": 280}
_MAP_LOOKUP, _MAP_UPDATE, _MAP_DELETE, _MAP_GET_NEXT_KEY, _PROG_GET_FD_BY_ID, _MAP_GET_FD_BY_ID = 1, 2, 3, 4, 13, 14
_PROG_LOAD, _RAW_TRACEPOINT_OPEN = 5, 17
_SOCKET_FILTER = 1
_GET_PRANDOM_U32 = 7


def program_fd(number: int) -> int:
    """A descriptor of the program with this id; the caller closes it. Raises TestbedError."""
    return _bpf(_PROG_GET_FD_BY_ID, (ctypes.c_uint32 * 4)(number), f"opening BPF program {number}")


class _Program(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32), ("count", ctypes.c_uint32), ("instructions", ctypes.c_uint64),
        ("license", ctypes.c_uint64), ("rest", ctypes.c_uint64 * 3),
    )  # fmt: skip


def constant_filter_fd(value: int) -> int:
    """A descriptor of a new socket filter that returns ``value`` of any packet; the caller closes it.

    Raises:
        TestbedError: the kernel refuses.
    """
    return _socket_filter(struct.pack("<BBhi", 0xB7, 0, 0, value))


def random_filter_fd(values: int) -> int:
    """A descriptor of a new socket filter that returns a random value below ``values`` for any packet. The caller
    closes it. Raises TestbedError."""
    drawn = struct.pack("<BBhi", 0x85, 0, 0, _GET_PRANDOM_U32) + struct.pack("<BBhi", 0x94, 0, 0, values)
    return _socket_filter(drawn)


def _socket_filter(code: bytes) -> int:
    program = ctypes.create_string_buffer(code + struct.pack("<BBhi", 0x95, 0, 0, 0))
    license_ = ctypes.create_string_buffer(b"Apache-2.0")
    count = len(code) // 8 + 1
    return _bpf(
        _PROG_LOAD, _Program(_SOCKET_FILTER, count, ctypes.addressof(program), ctypes.addressof(license_)),
        "loading a BPF program",
    )  # fmt: skip


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


def map_items(fd: int, key_size: int, value_size: int) -> Iterator[tuple[bytes, bytes]]:
    """The elements of a map that only grows. Of a per-CPU map a value is all CPUs', each at a multiple of 8 bytes."""
    key, following = (ctypes.create_string_buffer(key_size) for _ in range(2))
    value = ctypes.create_string_buffer(value_size)
    at = 0
    while _tried(_MAP_GET_NEXT_KEY, _Element(fd, 0, at, ctypes.addressof(following), 0)) >= 0:
        ctypes.memmove(key, following, key_size)
        at = ctypes.addressof(key)
        if _tried(_MAP_LOOKUP, _Element(fd, 0, at, ctypes.addressof(value), 0)) >= 0:
            yield key.raw, value.raw


def attach_tracepoint(fd: int) -> int:
    """Attach a program (``tp_btf/…``) to its tracepoint until the descriptor that is returned is closed.

    Raises:
        TestbedError: the kernel refuses.
    """
    attributes = (ctypes.c_uint64 * 2)(0, fd)  # it is known already which tracepoint it is for
    return _bpf(_RAW_TRACEPOINT_OPEN, attributes, "attaching a BPF program to a tracepoint")


_Attributes = ctypes.Structure | ctypes.Array[ctypes.c_uint32] | ctypes.Array[ctypes.c_uint64]


def _bpf(command: int, attributes: _Attributes, what: str) -> int:
    if platform.machine() not in _NUMBERS:
        raise TestbedError(
            f"{what} is not known on {platform.machine()}, but on {', '.join(_NUMBERS)}; use one of them"
        )
    result = _tried(command, attributes)
    if result < 0:
        reason = os.strerror(ctypes.get_errno())
        raise TestbedError(f"{what} failed: {reason}; bpf(2) takes root and a kernel that allows it")
    return result


def _tried(command: int, attributes: _Attributes) -> int:
    """Result of the call; below 0 if it fails."""
    number = _NUMBERS[platform.machine()]
    return int(_libc().syscall(number, command, ctypes.byref(attributes), ctypes.sizeof(attributes)))


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)

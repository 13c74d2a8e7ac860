"""TAPs for QEMU, made in a network namespace of this machine and handed over as descriptors.

So QEMU needs no right to make them; and they end with the last descriptor, which is QEMU's.
"""

from __future__ import annotations

import fcntl
import os
import struct
from concurrent.futures import ThreadPoolExecutor

from pdrgate.bpf.syscall import constant_filter_fd
from pdrgate.errors import TestbedError
from pdrgate.hosts.network_namespace import enter_namespace

_DEVICE = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_TUNSETSTEERINGEBPF = 0x800454E0
_TAP, _NO_HEADER, _OFFLOADS, _SEVERAL = 0x0002, 0x1000, 0x4000, 0x0100
"""IFF_TAP, IFF_NO_PI, IFF_VNET_HDR and IFF_MULTI_QUEUE."""


def open_tap(name: str, queues: int, namespace: str | None, spread: bool = False) -> list[int]:
    """Descriptors of a new TAP, one for each pair of queues; the caller closes them.

    Args:
        spread: whether what it is sent is spread over its queues, else all is for the first.

    Raises:
        TestbedError: it cannot be made.
    """
    try:
        if namespace is None:
            return _made(name, queues, spread)
        with ThreadPoolExecutor(1, initializer=enter_namespace, initargs=(namespace,)) as inside:
            return inside.submit(_made, name, queues, spread).result()
    except (OSError, RuntimeError) as error:
        where = f" in network namespace {namespace}" if namespace is not None else ""
        raise TestbedError(
            f"cannot make the TAP {name}{where}: {error}; it takes root, and {_DEVICE} (modprobe tun)"
        ) from error


def _made(name: str, queues: int, spread: bool) -> list[int]:
    flags = _TAP | _NO_HEADER | _OFFLOADS | (_SEVERAL if queues > 1 else 0)
    made: list[int] = []
    try:
        for _ in range(queues):
            made.append(os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC))
            fcntl.ioctl(made[-1], _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
        if queues > 1 and not spread:
            _keep_together(made[0])
    except (OSError, TestbedError):
        for descriptor in made:
            os.close(descriptor)
        raise
    return made


def _keep_together(tap: int) -> None:
    """Have a TAP choose its first queue for each packet; else it chooses by flow."""
    program = constant_filter_fd(0)
    try:
        fcntl.ioctl(tap, _TUNSETSTEERINGEBPF, struct.pack("i", program))
    finally:
        os.close(program)  # the TAP has it

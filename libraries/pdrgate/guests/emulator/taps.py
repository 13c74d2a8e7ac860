"""TAPs for QEMU, made in a network namespace of this machine and handed over as descriptors.

So QEMU needs no right to make them; and they end with the last descriptor, which is QEMU's.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable

from pdrgate.bpf.syscall import constant_filter_fd, random_filter_fd
from pdrgate.hosts.network_namespace import ThreadInNamespace
from pdrgate.values.errors import TestbedError

_DEVICE = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_TUNSETSTEERINGEBPF = 0x800454E0
_TAP, _NO_HEADER, _OFFLOADS, _SEVERAL = 0x0002, 0x1000, 0x4000, 0x0100
"""IFF_TAP, IFF_NO_PI, IFF_VNET_HDR and IFF_MULTI_QUEUE."""


def open_tap(name: str, queues: int, namespace: str | None) -> list[int]:
    """Descriptors of a new TAP, one for each pair of queues; the caller closes them.

    Raises:
        TestbedError: it cannot be made.
    """
    flags = _SEVERAL if queues > 1 else 0
    try:
        return _inside(namespace, lambda: _opened(name, queues, flags))
    except OSError as error:
        where = f" in network namespace {namespace}" if namespace is not None else ""
        raise TestbedError(
            f"cannot make the TAP {name}{where}: {error}; it takes root, and {_DEVICE} (modprobe tun)"
        ) from error


def take_first_queues(name: str, namespace: str | None, queues: int = 1) -> None:
    """Make a TAP of several queues take one of its first ``queues`` for each packet, by chance.

    Otherwise it chooses by flow, and by their directions.

    Raises:
        TestbedError: the kernel refuses.
    """
    program = constant_filter_fd(0) if queues == 1 else random_filter_fd(queues)
    try:
        # Only who has a queue may say so; the guest has what it sends and gets in its own.
        (queue,) = _inside(namespace, lambda: _opened(name, 1, _SEVERAL))
        try:
            fcntl.ioctl(queue, _TUNSETSTEERINGEBPF, struct.pack("i", program))
        finally:
            os.close(queue)
    except OSError as error:
        raise TestbedError(f"cannot have the TAP {name} take its first queues: {error}; it takes Linux 4.16") from error
    finally:
        os.close(program)


def _inside(namespace: str | None, made: Callable[[], list[int]]) -> list[int]:
    if namespace is None:
        return made()
    inside = ThreadInNamespace(namespace)
    try:
        return inside.submit(made).result()
    finally:
        inside.close()


def _opened(name: str, queues: int, flags: int) -> list[int]:
    made: list[int] = []
    try:
        for _ in range(queues):
            made.append(os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC))
            request = struct.pack("16sH22x", name.encode(), _TAP | _NO_HEADER | _OFFLOADS | flags)
            fcntl.ioctl(made[-1], _TUNSETIFF, request)
    except OSError:
        for descriptor in made:
            os.close(descriptor)
        raise
    return made

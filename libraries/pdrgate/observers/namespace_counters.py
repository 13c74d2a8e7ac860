"""The counters of a network namespace of this machine, read without starting a program.

Programs in each of four namespaces took a trial of 0.1 s another 0.03 s, and half of it of both CPUs. A thread that
lives in the namespace asks the kernel for what they print: its files in /proc, qdiscs by rtnetlink(7), and a driver's
statistics by the ioctl of ethtool(8).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pdrgate.hosts.network_namespace import ThreadInNamespace
from pdrgate.observers.counters import FILES, HostCounters, host_counters, summed
from pdrgate.observers.reading import Counter
from pdrgate.values.errors import TestbedError

_RTM_NEWQDISC, _RTM_GETQDISC, _NLMSG_ERROR, _NLMSG_DONE = 36, 38, 2, 3
_REQUEST_DUMP = 0x301
_HEADER, _TCMSG, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BxxxiIII"), struct.Struct("=HH")
_KIND, _STATS2, _STATS_QUEUE = 1, 7, 3
_QUEUE = struct.Struct("=III")
"""The first three of gnet_stats_queue: queued packets, queued bytes, drops."""
_ROOT = 0xFFFFFFFF
_ANSWER = 1 << 16

_SIOCETHTOOL = 0x8946
_GSTRINGS, _GSTATS, _GSSET_INFO = 0x1B, 0x1D, 0x37
_STATISTICS = 1
_NAME_LENGTH = 32


class NamespaceCounters:
    """Reader of the counters of a network namespace, from `__init__` to `close`.

    Args:
        name: of a namespace in /run/netns.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._inside = ThreadInNamespace(name)

    def begin(self, interfaces: Collection[str]) -> PendingCounters:
        """Start a reading of these ports' counters, and of all counters that are no port's. Several namespaces read at
        once."""
        return PendingCounters(self._name, tuple(interfaces), self._inside)

    def open_file(self, path: str) -> int:
        """A descriptor of a file in /proc that shows the namespace to any reader. The caller closes it."""
        return self._inside.submit(lambda: os.open(path, os.O_RDONLY | os.O_CLOEXEC)).result()

    def close(self) -> None:
        """Leave the namespace. Calling it twice is harmless."""
        self._inside.close()


class PendingCounters:
    """Counters that are being read."""

    def __init__(self, name: str, interfaces: tuple[str, ...], inside: ThreadInNamespace) -> None:
        self._name = name
        self._interfaces = interfaces
        self._coming = inside.submit(lambda: _read(interfaces))

    def result(self) -> dict[Counter, int]:
        """Counters as `pdrgate.observers.counters.read_counters` has them. Raises TestbedError when the namespace is
        gone."""
        try:
            read = self._coming.result()
        except OSError as error:
            raise TestbedError(
                f"the counters of network namespace {self._name} cannot be read; was it deleted during the run?"
            ) from error
        return host_counters(read, self._interfaces, f"netns:{self._name}")


def _read(interfaces: tuple[str, ...]) -> HostCounters:
    files = {}
    for path in FILES:
        with contextlib.suppress(OSError):  # no such protocol here
            files[path] = Path(path.replace("/proc/net/", "/proc/thread-self/net/")).read_text()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        drivers = {interface: _driver_statistics(asked, interface) for interface in interfaces}
    return HostCounters(files, _qdiscs(), drivers)


# --- Qdiscs ----------------------------------------------------------------------------------------------------------


def _qdiscs() -> list[dict[str, Any]]:
    """All of the namespace, as ``tc -s -j qdisc show`` has them."""
    request = _TCMSG.pack(0, 0, 0, 0, 0)
    found: list[dict[str, Any]] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as asked:
        asked.send(_HEADER.pack(_HEADER.size + len(request), _RTM_GETQDISC, _REQUEST_DUMP, 1, 0) + request)
        while True:
            for kind, body in _messages(asked.recv(_ANSWER)):
                if kind in (_NLMSG_DONE, _NLMSG_ERROR):
                    return found
                if kind == _RTM_NEWQDISC:
                    found.append(_qdisc(body))


def _messages(answer: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEADER.size <= len(answer):
        length, kind, _, _, _ = _HEADER.unpack_from(answer, at)
        yield kind, answer[at + _HEADER.size : at + length]
        at += (length + 3) & ~3


def _attributes(body: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind] = body[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return found


def _qdisc(body: bytes) -> dict[str, Any]:
    _, index, handle, parent, _ = _TCMSG.unpack_from(body)
    attributes = _attributes(body[_TCMSG.size :])
    qdisc: dict[str, Any] = {
        "dev": socket.if_indextoname(index), "kind": attributes.get(_KIND, b"").rstrip(b"\0").decode(),
        "handle": f"{handle >> 16:x}:",
    }  # fmt: skip
    qdisc |= {"root": True} if parent == _ROOT else {"parent": f"{parent >> 16:x}:{parent & 0xFFFF:x}"}
    queue = _attributes(attributes.get(_STATS2, b"")).get(_STATS_QUEUE, b"")
    if len(queue) >= _QUEUE.size:
        _, _, qdisc["drops"] = _QUEUE.unpack_from(queue)
    return qdisc


# --- Drivers ---------------------------------------------------------------------------------------------------------


def _driver_statistics(asked: socket.socket, interface: str) -> dict[str, int]:
    """Statistics as ``ethtool -S`` has them; empty if a driver has none."""
    try:
        sets = _ethtool(asked, interface, struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _STATISTICS, 0))
        number = struct.unpack_from("=I", sets, 16)[0]
        names = _ethtool(
            asked, interface, struct.pack("=III", _GSTRINGS, _STATISTICS, number) + bytes(number * _NAME_LENGTH)
        )
        values = _ethtool(asked, interface, struct.pack("=II", _GSTATS, number) + bytes(number * 8))
    except OSError:
        return {}
    texts = (names[12 + at : 12 + at + _NAME_LENGTH] for at in range(0, number * _NAME_LENGTH, _NAME_LENGTH))
    return summed(
        (text.partition(b"\0")[0].decode(errors="replace").strip(), value)
        for text, value in zip(texts, struct.unpack_from(f"={number}Q", values, 8), strict=True)
    )


def _ethtool(asked: socket.socket, interface: str, command: bytes) -> bytes:
    """Answer of the kernel to a command of ethtool's."""
    data = ctypes.create_string_buffer(command, len(command))
    request = struct.pack("=16sQ16x", interface.encode(), ctypes.addressof(data))
    fcntl.ioctl(asked, _SIOCETHTOOL, request)
    return data.raw

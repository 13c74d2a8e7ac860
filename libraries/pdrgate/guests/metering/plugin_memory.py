"""Memory that a plugin of QEMU shares with who reads it."""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt


class PluginMemory:
    """The memory of one guest's plugin, which dies with it. Reading it costs the guest nothing.

    Args:
        name: what the file is called in /proc.
        size: bytes.
    """

    head: ClassVar[np.dtype[np.void]]
    """What the memory begins with."""

    def __init__(self, name: str, size: int) -> None:
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        # Whoever made it shorter while we read would end us by SIGBUS.
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._memory = mmap.mmap(self.fd, size)

    def close(self) -> None:
        """Let go of it; may be called twice."""
        if self.fd >= 0:
            self._memory.close()
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _get(self, name: str) -> int:
        """A number of the head."""
        at = offset(self.head, name)
        return int.from_bytes(self._memory[at : at + 8], "little")

    def _put(self, name: str, value: int) -> None:
        self._write(name, np.array([value], "<u8"))

    def _write(self, name: str, values: npt.NDArray[np.generic]) -> None:
        at, content = offset(self.head, name), values.tobytes()
        self._memory[at : at + len(content)] = content

    def _table(self, at: int, kind: np.dtype[np.void], count: int) -> npt.NDArray[np.void]:
        """A copy of so many records from byte ``at`` on."""
        return np.frombuffer(self._memory, kind, count, at).copy()


def offset(kind: np.dtype[np.void], name: str) -> int:
    """At which byte of a record a field begins."""
    fields = kind.fields
    assert fields is not None
    return fields[name][1]

"""Memory that QEMU shares with who started it."""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import Self


class SharedMemory:
    """A file that is nowhere but in memory, and dies with those that have it. Reading it costs the guest nothing.

    Args:
        name: what the file is called in /proc.
        size: bytes.
    """

    def __init__(self, name: str, size: int) -> None:
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        # Whoever made it shorter while we read would end us by SIGBUS.
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._memory = mmap.mmap(self.fd, size)

    def close(self) -> None:
        """Let go of it. Calling it twice is harmless."""
        if self.fd >= 0:
            self._memory.close()
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

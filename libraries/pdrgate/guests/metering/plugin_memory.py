"""Memory that a plugin of QEMU shares with who reads it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pdrgate.guests.shared_memory import SharedMemory


class PluginMemory(SharedMemory):
    """The memory of one guest's plugin: a head of numbers, and tables behind it."""

    head: ClassVar[np.dtype[np.void]]
    """Head of the memory."""

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

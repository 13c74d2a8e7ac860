"""Packets that this machine's kernel drops, counted by a BPF program of ours at the tracepoint ``skb:kfree_skb``.

The program ends with this process: a run that is killed leaves nothing.
"""

from __future__ import annotations

import contextlib
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from pdrgate.bpf.programs import loaded
from pdrgate.bpf.syscall import attach_tracepoint, map_fd, map_items, map_update, program_fd
from pdrgate.builds.bpf_build import own_build
from pdrgate.hosts.cpus import parse_cpu_list
from pdrgate.hosts.host import Host

_KEY = struct.Struct("=QII")
_POSSIBLE = Path("/sys/devices/system/cpu/possible")


@dataclass(frozen=True, slots=True)
class Drop:
    """A way to be dropped."""

    location: int
    """Address in the kernel's code."""
    reason: int
    """``enum skb_drop_reason``, which differs from kernel to kernel."""
    netns: int
    """Inode number of the network namespace of the packet's device; 0 if it has none."""


class KernelDrops:
    """Counter of the kernel's drops, from `__init__` to `close`.

    Args:
        host: this machine.
        received: network namespace and reason of a generator's own drops of received packets, which are not counted.

    Raises:
        TestbedError: the kernel has no BTF or takes no such program, or a tool is missing.
    """

    def __init__(self, host: Host, received: tuple[int, int] = (0, 0)) -> None:
        self._size = 8 * len(parse_cpu_list(_POSSIBLE.read_text()))
        with contextlib.ExitStack() as failed:
            with loaded(host, own_build("drop_reasons"), "tp_btf/kfree_skb") as program:
                self._map = map_fd(program.maps["drops"].number)
                failed.callback(os.close, self._map)
                back = map_fd(program.maps["received"].number)
                try:
                    map_update(back, struct.pack("=I", 0), struct.pack("=II", *received))
                finally:
                    os.close(back)
                fd = program_fd(program.number)
                failed.callback(os.close, fd)
                self._attached = attach_tracepoint(fd)
            failed.pop_all()
            os.close(fd)

    def counts(self) -> dict[Drop, int]:
        """Packets so far."""
        found = {}
        for key, value in map_items(self._map, _KEY.size, self._size):
            found[Drop(*_KEY.unpack(key))] = sum(struct.unpack(f"={self._size // 8}Q", value))
        return found

    def close(self) -> None:
        """Detach the program. Calling it twice is harmless."""
        for fd in (self._attached, self._map):
            if fd >= 0:
                os.close(fd)
        self._attached = self._map = -1

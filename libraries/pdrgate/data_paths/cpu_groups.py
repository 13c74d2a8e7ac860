"""Shares of the CPU for some processes of a host, by the weights of cgroups (v2)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from pdrgate.hosts.host import Host
from pdrgate.values.errors import TestbedError

_FOLDER = "/sys/fs/cgroup"


class CpuGroups:
    """A group for each process, from `__init__` to `close`.

    A weight counts against those of the other groups, and against processes without a group: one of nice 0 has the
    weight 100.

    Raises:
        TestbedError: the host has no cgroups v2 with weights of CPUs; what was made is removed again.
    """

    def __init__(self, host: Host, processes: Sequence[int], weights: Sequence[int]) -> None:
        self._host = host
        self._folders: list[str] = []
        root = cgroup_root(host)
        if "cpu" not in host.read(f"{root}/cgroup.controllers").split():
            raise TestbedError(
                f"{host.name} gives cgroups v2 no weights of CPUs: that is version 1's there, or lacks in its kernel; "
                "measure without shares, or in a guest"
            )
        host.write(f"{root}/cgroup.subtree_control", "+cpu")
        try:
            for process, weight in zip(processes, weights, strict=True):
                self._give(f"{root}/pdrgate-{secrets.token_hex(4)}", process, weight)
        except BaseException:
            self.close()
            raise

    def _give(self, folder: str, process: int, weight: int) -> None:
        host = self._host
        host.run("mkdir", folder)
        self._folders.append(folder)
        host.write(f"{folder}/cpu.weight", str(weight))
        host.write(f"{folder}/cgroup.procs", str(process))
        if (told := host.read(f"{folder}/cpu.weight").strip()) != str(weight):
            raise TestbedError(f"gave process {process} of {host.name} the weight {weight}, but it reads back {told}")

    def close(self) -> None:
        """Remove the groups, once their processes have ended; may be called twice. Raises TestbedError."""
        while self._folders:
            self._host.run("rmdir", self._folders[-1])
            self._folders.pop()


def cgroup_root(host: Host) -> str:
    """The folder where a host has cgroups v2 mounted; mounts them where nothing is. Raises TestbedError."""
    for line in host.read("/proc/mounts").splitlines():
        _, folder, kind, *_ = line.split()
        if kind == "cgroup2":
            return folder
    host.run("mount", "-t", "cgroup2", "cgroup2", _FOLDER)
    return _FOLDER

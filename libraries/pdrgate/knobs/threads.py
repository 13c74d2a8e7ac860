"""Priorities of the kernel's threads."""

from __future__ import annotations

from dataclasses import dataclass

from pdrgate.hosts.host import Host
from pdrgate.knobs.knob import Knob

_NICE = 16
"""Behind the name, which may itself hold blanks, nice is the 17th field (proc(5): the 19th of all)."""
_FIND = 'for c in /proc/[0-9]*/comm; do read -r n <"$c" && [ "$n" = "$1" ] && echo "${c%/comm}"; done; true'


@dataclass(frozen=True, slots=True)
class KernelThreadNice(Knob):
    """The nice value of a kernel thread, found by its name: ``ksoftirqd/1`` does CPU 1's packet work under load."""

    kind = "kernel-thread-nice"

    thread: str
    value: str

    def describe(self) -> str:
        return f"nice value of {self.thread} = {self.value}"

    def lacking(self, host: Host) -> str | None:
        return None if self._folder(host) else f"{host.name} has no kernel thread {self.thread}"

    def gone(self, host: Host) -> bool:
        return not self._folder(host)

    def read(self, host: Host) -> str:
        return host.read(f"{self._folder(host)}/stat").rpartition(")")[2].split()[_NICE]

    def _folder(self, host: Host) -> str:
        return host.run("sh", "-c", _FIND, "sh", self.thread).stdout.strip()

    def _set(self, host: Host, wanted: str) -> None:
        # Without -n, which busybox adds to the present value.
        host.run("renice", wanted, "-p", self._folder(host).removeprefix("/proc/"))
        remedy = "set isolate: false in the testbed file to do without"
        self._read_back(host, wanted, f"the nice value of {self.thread}", remedy)

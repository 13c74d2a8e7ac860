"""What a kernel has complained of: the warnings in its log, and its taint."""

from __future__ import annotations

from dataclasses import dataclass

from pdrgate.crashes.faults import parse_warnings, taint_words
from pdrgate.hosts.host import Host

_TAINT = "/proc/sys/kernel/tainted"


@dataclass(frozen=True, slots=True)
class KernelLog:
    """The state of a kernel's log at one moment. ``warnings`` is None where the log may not be read."""

    warnings: tuple[str, ...] | None
    taint: int | None

    def since(self, earlier: KernelLog) -> tuple[str, ...]:
        """What is new: warnings and graver messages in the order they came, then what taints the kernel by now."""
        told = list(self.warnings or ())
        for line in earlier.warnings or ():
            # Old lines may have left the log's ring buffer: what is new is what was not there, as often as it is.
            if line in told:
                told.remove(line)
        if self.taint is not None and earlier.taint is not None and (gained := self.taint & ~earlier.taint):
            told.append(f"the kernel is tainted now: {', '.join(taint_words(gained))}")
        return tuple(told)


def read_kernel_log(host: Host) -> KernelLog:
    """Read log and taint of a host's kernel. Raises HostError when the host does not answer."""
    log = host.run("dmesg", "-r", check=False)
    taint = host.run("cat", _TAINT, check=False).stdout.strip()
    return KernelLog(
        parse_warnings(log.stdout) if log.exit_code == 0 else None, int(taint) if taint.isdigit() else None
    )

"""A kernel's complaints: the warnings in its log, and its taint."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from pdrgate.crashes.console_line import LONGEST, WITHIN_A_REPORT, shown_line, without_stamp
from pdrgate.hosts.host import Host

_MARK = "=== pdrgate "
_LOOK = f"dmesg -r 2>/dev/null; echo '{_MARK}'$?; echo '{_MARK}'$(cat /proc/sys/kernel/tainted 2>/dev/null)"
"""Both at once: to be asked takes an emulated guest as long as the answer."""

WARNING = 4
"""Messages of this level and graver ones (lower numbers) are warnings."""

_NUMBER = re.compile(r"[0-9]{1,18}")
_LEVEL = re.compile(r"<0{0,2}([0-7])>")
"""A level of the kernel itself, whose facility is 0. dmesg of old util-linux writes it with zeros before it."""

_SLOW_MACHINE = re.compile(r"hrtimer: interrupt took [0-9]+ ns")
"""Message of a kernel whose machine stood still, or that a memory trial made slow. It is no fault of the kernel."""

_INSIDE = re.compile(
    WITHIN_A_REPORT.pattern + r"|(?:\? )?[A-Za-z_][\w.$]{0,255}\+0x[0-9a-f]{1,16}/0x|Call [Tt]race:|</?[#A-Z]{2,8}>"
    r"|(?:[RE](?:[A-D]X|[SD]I|[BS]P|IP|FLAGS)|EFLAGS|ORIG_RAX|R\d{1,2}|[CD]R\d|[CDEFGS]S|pc|lr|sp|x\d{1,2}) ?: |Code: "
    r"|---\[ end|-{8,}\[ cut|Modules linked in:"
)
"""Begin of a line inside of a report, its trace and registers too. The report's sentence stands before it."""

_TAINTS = "GFSRMBUDAWCIOELKXTN"
_TAINT_WORDS = {
    "P": "proprietary module", "F": "module loaded by force", "S": "kernel on an unsupported CPU",
    "R": "module unloaded by force", "M": "machine check", "B": "bad page", "U": "user space asked for it",
    "D": "died recently (oops or BUG)", "A": "ACPI table overridden", "W": "warning", "C": "staging driver",
    "I": "platform firmware workaround", "O": "module from outside the tree", "E": "unsigned module",
    "L": "soft lockup",
    "K": "live patch", "X": "distribution's own", "T": "struct randomization", "N": "in-kernel test",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelLog:
    """The state of a kernel's log at one moment. ``warnings`` is None if the log may not be read."""

    warnings: tuple[str, ...] | None
    taint: int | None

    def since(self, earlier: KernelLog) -> tuple[str, ...]:
        """New complaints: warnings and graver messages in the order they came, then the new taints of the kernel."""
        # Old lines may have left the log's ring buffer: what is new is what was not there, as often as it is.
        old, complaints = Counter(earlier.warnings or ()), []
        for line in self.warnings or ():
            if old[line]:
                old[line] -= 1
            else:
                complaints.append(line)
        if self.taint is not None and earlier.taint is not None and (gained := self.taint & ~earlier.taint):
            complaints.append(f"the kernel is tainted now: {', '.join(taint_words(gained))}")
        return tuple(complaints)


def read_kernel_log(host: Host) -> KernelLog:
    """Read log and taint of a host's kernel. Raises HostError when the host does not answer."""
    log_and_exit, _, taint = host.script(_LOOK).stdout.rpartition(_MARK)
    log, _, exit_code = log_and_exit.rpartition(_MARK)
    taint = taint.strip()
    return KernelLog(
        parse_warnings(log) if exit_code.strip() == "0" else None, int(taint) if _NUMBER.fullmatch(taint) else None
    )


def taint_words(taint: int) -> tuple[str, ...]:
    """Words for the bits of /proc/sys/kernel/tainted (Documentation/admin-guide/tainted-kernels.rst)."""
    letters = ["P" if bit == 0 else letter for bit, letter in enumerate(_TAINTS) if taint >> bit & 1]
    unknown = [f"bit {bit}" for bit in range(len(_TAINTS), taint.bit_length()) if taint >> bit & 1]
    return tuple(f"{letter} ({_TAINT_WORDS[letter]})" for letter in letters) + tuple(unknown)


def parse_warnings(log: str) -> tuple[str, ...]:
    """The kernel's own warnings and graver messages of ``dmesg -r``, without level and time.

    What programs wrote to /dev/kmsg is there, too, and has another facility, in the level's higher bits.
    """
    found: list[str] = []
    for line in log.split("\n"):
        level = _LEVEL.match(line)
        if not level or int(level[1]) > WARNING:
            continue
        shown = without_stamp(shown_line(line[:LONGEST]))
        text = shown.strip()
        if text and not _SLOW_MACHINE.fullmatch(text) and not (found and _INSIDE.match(shown)):
            found.append(text)
    return tuple(found)

"""What a kernel says on its console when it dies, and what its log says while it lives. Pure functions on text."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["panic", "oops", "lockup", "hung", "oom", "taint-warning"]

_SIGNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("panic", re.compile(r"Kernel panic - not syncing: .*")),
    (
        "oops",
        re.compile(
            r"(BUG: (?:unable to handle|kernel NULL pointer|Bad page|KASAN|KFENCE|scheduling while atomic).*"
            r"|Oops: .*|kernel BUG at .*|general protection fault.*|invalid opcode: .*|divide error: .*"
            r"|stack segment: .*|double fault: .*|unable to handle kernel .*)"
        ),
    ),
    (
        "lockup",
        re.compile(
            r"(watchdog: BUG: soft lockup.*|.*NMI watchdog: .*LOCKUP.*|.*[Hh]ard LOCKUP.*|.*rcu.*detected.*stall.*)"
        ),
    ),
    ("hung", re.compile(r"INFO: task .* blocked for more than .*")),
    ("oom", re.compile(r"(.* invoked oom-killer: .*|Out of memory: .*)")),
    (
        "taint-warning",
        re.compile(r"(WARNING: (?:CPU: \d+ PID: \d+ )?at .*|WARNING: possible .*|INFO: suspicious RCU usage.*)"),
    ),
)  # fmt: skip
_GRAVITY: tuple[Kind, ...] = ("oops", "panic", "lockup", "oom", "hung", "taint-warning")
"""An oops comes before the panic that it ends in: it says where."""

_STAMP = re.compile(r"^(?:<\d+>)?(?:\[[ \d.]+\](?:\[ *[TC]\d+\])? ?)?")
_RIP = re.compile(r"RIP: 0010:(\S+)")
"""In the kernel's own code segment; 0033 is a program's."""
_FRAME = re.compile(r"^\s*(\? )?([A-Za-z_][\w.]*\+0x[0-9a-f]+/0x[0-9a-f]+)(?: \[[\w-]+(?: [0-9a-f]+)?\])?")
_TRACE_END = re.compile(r"(</TASK>|---\[ end|Code: |RIP: |RSP: |R10: |Modules linked in|Kernel Offset)")
_MARKER = re.compile(r"^\s*<[/#A-Z]+>\s*$")
_FINGERPRINT_FRAMES = 5
_NOT_TELLING = re.compile(
    r"(dump_stack|show_stack|panic|oops_|die|__die|page_fault_oops|exc_|asm_exc_|handle_bug|report_bug|__warn|bad_area|"
    r"do_user_addr_fault|__bad_area|kernelmode_fixup|fixup_exception|watchdog_|rcu_dump|check_panic)"
)
"""Functions that report a fault and stand in all traces alike."""


@dataclass(frozen=True, slots=True)
class Crash:
    """One fault that the kernel told of."""

    kind: Kind
    line: str
    """The kernel's own sentence."""
    rip: str | None = None
    """Where the CPU was, as symbol+offset/size."""
    trace: tuple[str, ...] = ()
    """The call trace, innermost first, without frames that the kernel itself is not sure of."""

    @property
    def where(self) -> tuple[str, ...]:
        """The functions that tell one fault from another, innermost first."""
        frames = [frame for frame in ((self.rip,) if self.rip else ()) + self.trace if not frame.startswith("0x")]
        names = list(dict.fromkeys(frame.partition("+")[0] for frame in frames))
        return tuple([name for name in names if not _NOT_TELLING.match(name)][:_FINGERPRINT_FRAMES])

    @property
    def fingerprint(self) -> str:
        """Eight digits that the same fault has in every boot: of its kind and top frames, else of its sentence."""
        told = self.where or (re.sub(r"[0-9a-fx]*\d[0-9a-fx]*", "#", self.line),)
        return hashlib.sha256("\n".join((self.kind, *told)).encode()).hexdigest()[:8]

    def sentence(self) -> str:
        """The fault in one line."""
        at = self.rip or next((frame for frame in self.trace if frame.partition("+")[0] in self.where), "")
        via = [name for name in self.where if name != at.partition("+")[0]][:3]
        words = f" at {at}" if at else ""
        return f"{self.line}{words}" + (f" < {' < '.join(via)}" if via else "")


def find_crashes(console: str) -> tuple[Crash, ...]:
    """All faults on a console, in the order they were told; one that ends in another is told once for both."""
    lines = [_STAMP.sub("", line.rstrip("\r")) for line in console.splitlines()]
    starts: list[tuple[int, Kind, str]] = []
    for number, line in enumerate(lines):
        for kind, sign in _SIGNS:
            if match := sign.search(line):
                starts.append((number, kind, match[0].strip()))
                break
    found: list[Crash] = []
    for index, (number, kind, sentence) in enumerate(starts):
        end = starts[index + 1][0] if index + 1 < len(starts) else len(lines)
        rip, trace = _evidence(lines[number:end])
        crash = Crash(kind, sentence, rip, trace)
        if found and kind == found[-1].kind == "oops" and number - starts[index - 1][0] < 20:
            # "BUG: unable to handle …" and "Oops: 0002 …" are one fault.
            found[-1] = dataclasses.replace(found[-1], rip=found[-1].rip or rip, trace=found[-1].trace or trace)
        else:
            found.append(crash)
    return tuple(found)


def gravest(crashes: Iterable[Crash]) -> Crash | None:
    """The one to tell: the first of the gravest kind; None when there is none."""
    return min(crashes, key=lambda crash: _GRAVITY.index(crash.kind), default=None)


def _evidence(lines: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    rip = next((match[1] for line in lines if (match := _RIP.search(line))), None)
    trace: list[str] = []
    inside = False
    for line in lines:
        if "Call Trace:" in line:
            if trace:
                break
            inside = True
        elif inside and (match := _FRAME.match(line)):
            if not match[1]:
                trace.append(match[2])
        elif inside and trace and not _MARKER.match(line) and _TRACE_END.search(line):
            inside = False
    return rip, tuple(trace)


def last_lines(console: str, count: int = 3) -> str:
    """The last lines on a console, in one line, for an error message."""
    lines = [_STAMP.sub("", line).strip() for line in console.splitlines()]
    return " | ".join([line for line in lines if line][-count:]) or "nothing"


# --- Addresses to source lines ---------------------------------------------------------------------------------------


def decode(crash: Crash, vmlinux: Path) -> Crash:
    """The crash with ``function+0x1/0x2 (net/ipv6/ip6_output.c:123)`` in place of ``function+0x1/0x2``.

    Frames are left as they are where ``vmlinux`` does not know them (modules, another build) or nm and addr2line are
    missing. A frame fits a symbol when name and size agree, as in the kernel's scripts/faddr2line.
    """
    frames = [*((crash.rip,) if crash.rip else ()), *crash.trace]
    symbols = _symbols(vmlinux)
    addresses: dict[str, int] = {}
    for frame in frames:
        match = re.fullmatch(r"([\w.]+)\+0x([0-9a-f]+)/0x([0-9a-f]+)", frame)
        if match is None:
            continue
        name, offset, size = match[1], int(match[2], 16), int(match[3], 16)
        fits = [start for start, length in symbols.get(name, ()) if length == size]
        if len(fits) == 1:
            # A trace holds return addresses: the call stands before them. RIP is the faulting instruction itself.
            addresses[frame] = fits[0] + offset - (0 if frame == crash.rip else 1)
    lines = _source_lines(vmlinux, list(addresses.values()))
    told = {frame: f"{frame} ({line})" for frame, address in addresses.items() if (line := lines.get(address))}
    return dataclasses.replace(
        crash,
        rip=crash.rip and told.get(crash.rip, crash.rip),
        trace=tuple(told.get(frame, frame) for frame in crash.trace),
    )


def _symbols(vmlinux: Path) -> dict[str, list[tuple[int, int]]]:
    """By name, start and size of the functions; the size reaches to the next symbol, as kallsyms counts it."""
    found = []
    for line in _tool("nm", "-n", "--defined-only", str(vmlinux)).splitlines():
        parts = line.split()
        if len(parts) == 3:
            found.append((int(parts[0], 16), parts[1], parts[2]))
    starts = sorted({address for address, _, _ in found})
    following = dict(itertools.pairwise(starts))
    symbols: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for address, kind, name in found:
        if kind in "tTwW" and address in following:
            symbols[name].append((address, following[address] - address))
    return symbols


def _source_lines(vmlinux: Path, addresses: Sequence[int]) -> dict[int, str]:
    if not addresses:
        return {}
    told = _tool("addr2line", "-e", str(vmlinux), *(f"{address:#x}" for address in addresses)).splitlines()
    if len(told) != len(addresses):
        return {}
    # Paths in the kernel's own tree, without where it was built.
    named = {
        address: re.sub(r" \(discriminator \d+\)$", "", line) for address, line in zip(addresses, told, strict=True)
    }
    return {
        address: re.sub(
            r"^.*/(?=(?:arch|block|crypto|drivers|fs|include|init|kernel|lib|mm|net|security|virt)/)", "", line
        )
        for address, line in named.items()
        if not line.startswith("?")
    }


def _tool(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


# --- The kernel's log ------------------------------------------------------------------------------------------------

WARNING = 4
"""Messages of this level and graver ones (lower numbers) are warnings."""

_TAINTS = "GFSRMBUDAWCIOELKXTN"
_TAINT_WORDS = {
    "P": "proprietary module", "F": "module loaded by force", "S": "kernel on an unsupported CPU",
    "R": "module unloaded by force", "M": "machine check", "B": "bad page", "U": "user space asked for it",
    "D": "died recently (oops or BUG)", "A": "ACPI table overridden", "W": "warning", "C": "staging driver",
    "I": "platform firmware workaround", "O": "module from outside the tree", "E": "unsigned module",
    "L": "soft lockup",
    "K": "live patch", "X": "distribution's own", "T": "struct randomization", "N": "in-kernel test",
}  # fmt: skip


def taint_words(taint: int) -> tuple[str, ...]:
    """What bits of /proc/sys/kernel/tainted mean (Documentation/admin-guide/tainted-kernels.rst)."""
    letters = ["P" if bit == 0 else letter for bit, letter in enumerate(_TAINTS) if taint >> bit & 1]
    unknown = [f"bit {bit}" for bit in range(len(_TAINTS), taint.bit_length()) if taint >> bit & 1]
    return tuple(f"{letter} ({_TAINT_WORDS[letter]})" for letter in letters) + tuple(unknown)


def parse_warnings(log: str) -> tuple[str, ...]:
    """The warnings and graver messages of ``dmesg -r``, without level and time."""
    found = []
    for line in log.splitlines():
        match = re.match(r"<(\d+)>", line)
        if match and int(match[1]) & 7 <= WARNING and (text := _STAMP.sub("", line).strip()):
            found.append(text)
    return tuple(found)

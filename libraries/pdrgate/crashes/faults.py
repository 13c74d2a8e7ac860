"""What a kernel says on its console when it dies or complains: its faults, found and told apart. Pure functions."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    lines = [without_stamp(line.rstrip("\r")) for line in console.splitlines()]
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


def without_stamp(line: str) -> str:
    """A line of console or log without its level, time and CPU."""
    return _STAMP.sub("", line)


def last_lines(console: str, count: int = 3) -> str:
    """The last lines on a console, in one line, for an error message."""
    lines = [without_stamp(line).strip() for line in console.splitlines()]
    return " | ".join([line for line in lines if line][-count:]) or "nothing"

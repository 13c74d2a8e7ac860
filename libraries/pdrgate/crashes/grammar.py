"""The heads of fault reports, in the forms that kernels from 3.10 on have, on x86 and arm64.

A report begins with a head: a word (`BUG:`, `WARNING:`, `INFO:`, `UBSAN:`, ...), whatever follows it. Sentences of
drivers (``virtio0: WARNING: ...``) are prose and no reports, except for a `BUG:`. A few checks have sentences without
such a word. All patterns are looked for at the begin of a line that was cut, and end at once where they do not fit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

FaultKind = Literal["panic", "oops", "lockup", "hung", "oom", "taint-warning"]

GRAVITY: tuple[FaultKind, ...] = ("oops", "panic", "lockup", "oom", "hung", "taint-warning")
"""An oops comes before the panic that it ends in: it says where."""

LineRole = Literal["report", "fault", "check", "more"]
"""Relation of a head to the head before it.

A ``report`` begins another report. A ``check`` states the finding ("refcount_t: underflow"), and belongs to the
``fault`` that is then made of it ("WARNING: ... at ...", "kernel BUG at ...", "Oops: 0000 [#1]"), which in old kernels
comes first. A deadly fault has several lines with such a head. ``more`` is a later part of a report, such as which
process was killed.
"""

_FRAME = r"[A-Za-z_][\w.$]{0,255}\+0x[0-9a-f]{1,16}/0x[0-9a-f]{1,16}"
FRAME = re.compile(_FRAME)
"""A place in a function: symbol+offset/size."""


@dataclass(frozen=True, slots=True)
class Head:
    """The begin of a report."""

    kind: FaultKind
    role: LineRole
    place: str | None = None
    """The function that the head itself names, as symbol+offset/size."""


_ANYBODY = r"(?:[A-Za-z][\w#./()-]{0,40}(?: [\w#./()-]{1,40}){0,3} ?: |\[[ \w]{1,20}\] ?)?"
_KERNEL = r"(?:(?:rcu|lockdep|watchdog|NMI watchdog|traps|mm): |\[[CT]?\d{1,6}\] ?)?(?:\[ )?"
"""Prefixes of any report, and the bracket around lockdep's reports until Linux 4.12."""
_WORD = re.compile(
    rf"{_ANYBODY}(?P<any>Kernel panic - not syncing|BUG)(?:: |$)"
    rf"|{_KERNEL}(?P<word>BUG|WARNING|INFO|UBSAN|KCSAN|KMSAN|KASAN|PANIC|Oops|Internal error)(?:: | - )"
    rf"|{_KERNEL}(?P<bare>kernel BUG at|general protection fault|[Uu]nable to handle kernel|Corrupted page table at"
    r"|Bad mode in)\b"
)
_SLUB = re.compile(r"BUG [\w:.-]{1,80} (?:\([^)]{0,80}\))?: ")
_DIES = re.compile(
    r"(?:traps: )?(?:(?P<again>invalid opcode|double fault|[\w ]{0,20}stack guard page)|[A-Za-z][\w #-]{2,40})"
    r": [0-9a-f]{4,16} \[#\d{1,6}\]"
)
"""Head of all deadly faults on x86: ``int3: 0000 [#1]``. Some of them have been reported before by another head."""
_LOCKUP = re.compile(r"(?:(?:NMI )?watchdog: )?(?:CPU ?\d{1,6}: )?Watchdog detected hard LOCKUP")
_OOM = re.compile(r"[^:]{1,60}? invoked oom-killer: ")
_KILLED = re.compile(r"(?:Memory cgroup out|Out) of memory: ")
_PLACE = re.compile(r"(?:\[[^\]]{0,200}\] )?(?:CPU: \d{1,6} PID: \d{1,10} )?(?:at |[^\s:]{1,200}:\d{1,7} at )")
"""The place in a `WARN`, in the forms of Linux 3.10 (``at FILE:LINE``), 3.12 (``CPU: 0 PID: 1 at FILE:LINE``) and 6.18
(``FILE:LINE at FUNCTION``)."""
_CHECKS = re.compile(
    r"(?:[\w.-]{1,40} (?:[\w.:-]{1,40} )?)?(?:[\w.-]{1,40}: )?NETDEV WATCHDOG: |list_(?:add|del) corruption\b"
    r"|refcount_t: |(?:traps: )?Missing ENDBR: |usercopy: Kernel memory |ODEBUG: \S"
    r"|(?:\w{1,40}: )?detected (?:buffer overflow|field-spanning)|(?:\w{1,40}: )?panicked at \S"
    r"|(?:cfi: )?CFI failure (?:at |\()|(?:\w{1,40}: )?skb_(?:over|under)_panic: |unregister_netdevice: waiting for "
    r"|page dumped because: VM_(?:BUG|WARN)_ON"
)
_REPORTS = re.compile(
    r"kmemleak: \d{1,9} new suspected |irq \d{1,6}: nobody cared"
    r"|[^:]{1,40}: (?:page )?allocation failure|[^:]{1,40}: vmalloc error|.{1,100}?: hw csum failure$"
    r"|unchecked MSR access error: |sysfs: cannot create duplicate filename |genirq: Flags mismatch irq "
)
_HOLDERS = re.compile(r"ref_tracker: .{1,120}? has \d{1,9}/\d{1,9} users at")
"""Head of a trace of who holds what a kernel waits for, as `unregister_netdevice` does."""
_GRAVE = re.compile(
    r"unable to handle|[Kk]ernel NULL pointer|Bad page|Bad rss-counter|KASAN|KFENCE|scheduling while atomic"
    r"|.{0,40}stack guard page"
)
"""Texts behind `BUG:` that name what a kernel does not survive in a state that anything can be measured in."""
_PROSE = re.compile(
    r"lockdep is turned off|NMI handler|Slab 0x|Object 0x|Allocated in|Freed in|task .{1,80} likely|Possible |BIOS "
    r"|Unprivileged "
)
"""Texts behind `INFO:` or `WARNING:` that are part of another report or no fault of the kernel."""
_HUNG = re.compile(r"task .{1,80}? blocked (?:in I/O wait )?for more than ")
_STALL = re.compile(r"rcu.{0,80}? (?:stall|self-detected)")


def head_of(text: str) -> Head | None:
    """The head that a line begins with."""
    if (match := _WORD.match(text)) is None:
        return _wordless(text)
    word, said = match["any"] or match["word"] or match["bare"], text[match.end() :]
    named = FRAME.search(said)
    place = named[0] if named else None
    if word == "Kernel panic - not syncing":
        return Head("panic", "report")
    if word == "BUG":
        if "lockup - " in said[:40]:
            return Head("lockup", "report")
        return Head("oops" if _GRAVE.match(said) else "taint-warning", "report", place)
    if word in ("Oops", "Internal error", "KASAN", "kernel BUG at"):
        return Head("oops", "fault")
    if word in ("WARNING", "INFO"):
        return _complaint(said, place)
    if word in ("UBSAN", "KCSAN", "KMSAN"):
        return Head("taint-warning", "report")
    return Head("oops", "report")


def _complaint(said: str, place: str | None) -> Head | None:
    """The head of a line by the text after `WARNING:` or `INFO:`; None if the line is prose."""
    if _PLACE.match(said):
        return Head("taint-warning", "fault", place)
    if _HUNG.match(said):
        return Head("hung", "report")
    if _STALL.match(said):
        return Head("lockup", "report")
    return None if _PROSE.match(said) else Head("taint-warning", "report")


def _wordless(text: str) -> Head | None:
    if dies := _DIES.match(text):
        return Head("oops", "fault" if dies["again"] else "report")
    if _SLUB.match(text):
        return Head("oops", "report")
    if _LOCKUP.match(text):
        return Head("lockup", "report")
    if _OOM.match(text):
        return Head("oom", "report")
    if _KILLED.match(text):
        return Head("oom", "more")
    if _HOLDERS.match(text):
        return Head("taint-warning", "fault")
    if _CHECKS.match(text):
        named = FRAME.search(text)
        return Head("taint-warning", "check", named[0] if named else None)
    return Head("taint-warning", "report") if _REPORTS.match(text) else None

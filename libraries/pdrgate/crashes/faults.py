"""Faults that a kernel reports on its console when it dies or complains, found and distinguished. No I/O.

A console is read once, line by line, as it comes. The work on a line depends on no other line, and the memory for a
console is bounded, whatever is on it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pdrgate.crashes.console_line import LONGEST, WITHIN_A_REPORT, ConsoleLine, console_lines
from pdrgate.crashes.grammar import FRAME, GRAVITY, FaultKind, Head, LineRole, head_of
from pdrgate.crashes.unspecific import identifies

MOST_REPORTS = 1000
"""Largest number of faults kept of a console. Beyond it, only faults of a new kind are kept."""

_MOST_FRAMES = 64
_MOST_LOCKS = 8
_LONGEST_SENTENCE = 300
_NEAR = 20
"""Lines in which a kernel says several heads of one fault."""
_WHOLE = 2000
"""Lines after which a report that has not got to its trace has none."""
_FINGERPRINT_FRAMES = 5

_PC = re.compile(r"(?:RIP: 0010:|E?IP: |EIP is at |pc : |PC is at |NIP |caller is )(?:\[<[0-9a-f]{8,16}>\] {0,4}){0,2}")
"""An address in the kernel's own code segment; 0033 is a program's."""
_TRACE = re.compile(r" {0,8}(?:Call [Tt]race|Backtrace):")
_FRAME = re.compile(
    r"\s{0,40}(?:<{1,2}/?[#A-Za-z]{2,8}>{1,2}\s{1,4})?(?:\[<[0-9a-f]{8,16}>\] {0,4})?(?P<doubt>\? )?(?P<frame>"
    + FRAME.pattern
    + ")"
)
_MARKER = re.compile(r"\s{0,8}<{1,2}[#A-Za-z]{2,8}>{1,2}\s{0,8}$")
_END = re.compile(
    r"\s{0,8}(?:</TASK>|---\[ end|Code: |RIP[: ]|RSP: |R10: |Modules linked in|Kernel Offset|Allocated by|Freed by"
    r"|Uninit was)"
)
_ASKED_FOR = re.compile(r"(?:NMI|stack) backtrace|Sending NMI|task:|sysrq: ")
"""Begin of a line that heads a trace which is part of a report, or which somebody has asked for."""
_LOCK = re.compile(r"\s{0,8}(?:-> #\d{1,4} )?(?:[0-9a-f]{8,16} |\S{1,20} )?\((?P<name>[^{}]{1,200})\)\{[^}]{1,16}\}")
"""A lock in lockdep's words. Locks that a task only holds have a number before them."""
_PANICKED = re.compile(r"(?:\w{1,40}: )?panicked at .*:$")
"""A panic of Rust code, whose reason is in the next line."""
_INSTANCE = re.compile(r"#\d{1,6}(?:/\d{1,4})?$|/\d{1,4}$")
_TRACE_WITHOUT_HEAD = ("KMSAN", "KCSAN", "KFENCE", "ref_tracker", "unregister_netdevice")
_HEX = re.compile(r"[0-9a-fx]+")


@dataclass(frozen=True, slots=True)
class Crash:
    """A fault that the kernel reported."""

    kind: FaultKind
    line: str
    """The kernel's own sentence."""
    rip: str | None = None
    """Place of the CPU, or the place that the sentence names, as symbol+offset/size."""
    trace: tuple[str, ...] = ()
    """The call trace, innermost first, without frames that the kernel itself is not sure of."""
    locks: tuple[str, ...] = ()
    """Classes of locks, by name, in lockdep's report."""

    @property
    def where(self) -> tuple[str, ...]:
        """Functions that distinguish this fault from others, innermost first."""
        frames = [frame for frame in ((self.rip,) if self.rip else ()) + self.trace if not frame.startswith("0x")]
        names = list(dict.fromkeys(frame.partition("+")[0] for frame in frames))
        return tuple([name for name in names if identifies(name)][:_FINGERPRINT_FRAMES])

    @property
    def fingerprint(self) -> str:
        """Eight digits that the same fault has in every boot.

        They are a hash of the kind and the top frames. A lock order is hashed by its sentence and locks, for two boots
        may find it on different ways. A fault with neither is hashed by its sentence.
        """
        identity = (_unnumbered(self.line), *self.locks) if self.locks else self.where or (_unnumbered(self.line),)
        return hashlib.sha256("\n".join((self.kind, *identity)).encode()).hexdigest()[:8]

    def sentence(self) -> str:
        """The fault in one line."""
        frames = ((self.rip,) if self.rip else ()) + self.trace
        at = next((frame for frame in frames if frame.partition("+")[0] in self.where), self.rip or "")
        via = [name for name in self.where if name != at.partition("+")[0]][:3]
        words = (f" of {', '.join(self.locks)}" if self.locks else "") + (f" at {at}" if at else "")
        return f"{self.line}{words}" + (f" < {' < '.join(via)}" if via else "")


class FaultReader:
    """Reads a console as it is written, and keeps the faults on it. Each character is looked at once."""

    def __init__(self) -> None:
        self._rest = ""
        """A line that is not complete, cut at the longest length."""
        self._reports: list[_Report] = []
        self._kinds: set[FaultKind] = set()
        self._open: dict[str, _Report] = {}
        """The open report of each task or CPU."""
        self._sentences: dict[str, str] = {}
        """The last sentence of each task or CPU, which is the head of a trace that follows without a report."""
        self._stamped = False
        """Whether the kernel's time has been seen. A program's output has none."""

    @property
    def faults(self) -> tuple[Crash, ...]:
        """All faults so far, in the order of their reports. A fault that ends in another is listed once for both."""
        return tuple(report.crash() for report in self._reports)

    @property
    def count(self) -> int:
        """Number of faults so far."""
        return len(self._reports)

    @property
    def writing(self) -> bool:
        """Whether the kernel seems to be in the middle of a report, or a line."""
        return bool(self._rest) or any(report.inside for report in self._open.values())

    def read(self, text: str) -> None:
        """Go on with what has been written since."""
        lines = text.split("\n")
        for line in lines[:-1]:
            self._line((self._rest + line)[:LONGEST] if self._rest else line)
            self._rest = ""
        self._rest = (self._rest + lines[-1][:LONGEST])[:LONGEST]

    def end(self) -> None:
        """The console has ended, perhaps within a line."""
        self._line(self._rest)
        self._rest = ""

    def _line(self, raw: str) -> None:
        for line in console_lines(raw):
            self._stamped = self._stamped or line.stamped
            head = head_of(line.text.strip())
            if head is not None and not self._is_a_programs(line, head):
                self._begin(line, head)
                self._sentences.pop(line.caller, None)
            else:
                self._go_on(line)

    def _go_on(self, line: ConsoleLine) -> None:
        """A line that is no head: one of a report, or a sentence that may turn out to be one by the trace after it."""
        report = self._report_of(line)
        if (report is None or report.ended) and _TRACE.match(line.text) and line.caller in self._sentences:
            self._begin(replace(line, text=self._sentences.pop(line.caller)), Head("taint-warning", "report"))
            report = self._open[line.caller]
        if report is not None:
            report.add(line.text)
        is_sentence = bool(line.text) and not WITHIN_A_REPORT.match(line.text)
        if is_sentence and (report is None or report.ended) and line.stamped >= self._stamped:
            if _ASKED_FOR.match(line.text) or _END.match(line.text):
                self._sentences.pop(line.caller, None)
            else:
                self._sentences[line.caller] = line.text
            if len(self._sentences) > MOST_REPORTS:
                self._sentences.pop(next(iter(self._sentences)))

    def _is_a_programs(self, line: ConsoleLine, head: Head) -> bool:
        return self._stamped and not line.stamped and (head.kind, head.role) == ("taint-warning", "report")

    def _begin(self, line: ConsoleLine, head: Head) -> None:
        before = self._open.get(line.caller)
        if head.role == "more":
            before = next((one for one in reversed(self._reports) if one.kind == head.kind), None)
        if before is not None and before.goes_on(head):
            before.take(head)
            return
        report = _Report(head, line.text.strip().removeprefix("[ ").removesuffix(" ]")[:_LONGEST_SENTENCE])
        self._open[line.caller] = report
        if len(self._reports) < MOST_REPORTS or head.kind not in self._kinds:
            self._kinds.add(head.kind)
            self._reports.append(report)
        if len(self._open) > MOST_REPORTS:
            self._open.pop(next(iter(self._open)))

    def _report_of(self, line: ConsoleLine) -> _Report | None:
        """The open report of the task or CPU that says the line. A CPU that another one asks for its trace has
        none."""
        if (own := self._open.get(line.caller)) is not None or not line.caller or not self._reports:
            return own
        return None if self._reports[-1].trace else self._reports[-1]


@dataclass(slots=True)
class _Report:
    """A report that is being read."""

    head: Head
    line: str
    kind: FaultKind = field(init=False)
    role: LineRole = field(init=False)
    place: str | None = field(init=False)
    pc: str | None = None
    trace: list[str] = field(default_factory=list)
    locks: list[str] = field(default_factory=list)
    inside: bool = False
    """Whether the trace is being written."""
    ended: bool = False
    """Whether the trace has ended."""
    lines: int = 0

    def __post_init__(self) -> None:
        self.kind, self.role, self.place = self.head.kind, self.head.role, self.head.place

    def goes_on(self, head: Head) -> bool:
        """Whether a head is another one of this fault."""
        if head.role == "more":
            return True
        if self.trace or self.lines > _NEAR:
            return False
        if head.role == "fault":
            return self.role == "check" or self.kind == head.kind == "oops"
        return head.role == "check" and self.role == "fault"

    def take(self, head: Head) -> None:
        self.kind = min(self.kind, head.kind, key=GRAVITY.index)
        self.place = self.place or head.place
        self.role = head.role if self.role == "check" else self.role

    def add(self, text: str) -> None:
        """A line after its head."""
        self.lines += 1
        if self.lines == 1 and _PANICKED.match(self.line):
            self.line = f"{self.line} {text.strip()}"[:_LONGEST_SENTENCE]
        if self.ended or (self.lines > _WHOLE and not self.inside):
            return
        if self.pc is None and (not self.inside or self.kind in ("panic", "oops", "lockup")):
            self._see_pc(text)
        if trace := _TRACE.match(text):
            self.ended, self.inside = bool(self.trace), not self.trace
            text = text[trace.end() :]
        elif not self.inside:
            self.inside = self._begins_without_a_word(text)
            self._see_lock(text)
        if not self.inside:
            return
        if frame := _FRAME.match(text):
            if not frame["doubt"] and len(self.trace) < _MOST_FRAMES:
                self.trace.append(frame["frame"])
        elif self.trace and not _MARKER.match(text) and (not text.strip() or _END.match(text)):
            self.ended, self.inside = True, False

    def _see_pc(self, text: str) -> None:
        if (pc := _PC.match(text.lstrip())) and (frame := FRAME.match(text.lstrip(), pc.end())):
            self.pc = frame[0]

    def _begins_without_a_word(self, text: str) -> bool:
        return any(word in self.line for word in _TRACE_WITHOUT_HEAD) and _FRAME.match(text) is not None

    def _see_lock(self, text: str) -> None:
        if (lock := _LOCK.match(text)) and len(self.locks) < _MOST_LOCKS:
            name = _INSTANCE.sub("", _INSTANCE.sub("", lock["name"]))
            if name not in self.locks:
                self.locks.append(name)

    def crash(self) -> Crash:
        return Crash(self.kind, self.line, self.place or self.pc, tuple(self.trace), tuple(sorted(self.locks)))


def gravest_crash(crashes: Iterable[Crash]) -> Crash | None:
    """The first crash of the gravest kind; None if there are no crashes."""
    return min(crashes, key=lambda crash: GRAVITY.index(crash.kind), default=None)


def last_lines(console: str, count: int = 3) -> str:
    """The last lines on a console, in one line, for an error message."""
    lines = [
        line.text.strip()[:_LONGEST_SENTENCE]
        for raw in console.split("\n")[-20 * count :]
        for line in console_lines(raw)
    ]
    return " | ".join([line for line in lines if line][-count:]) or "nothing"


def _unnumbered(sentence: str) -> str:
    """A sentence without its numbers and addresses."""
    return _HEX.sub(lambda found: "#" if any(map(str.isdigit, found[0])) else found[0], sentence)

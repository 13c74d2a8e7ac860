"""A line of a console or a kernel's log: what the kernel said, and what stands before it.

Nothing on a console is trusted: a line may be of any length and hold any bytes. All patterns here look at a bounded
number of characters from where they begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

LONGEST = 4096
"""Characters of a line that are looked at."""

_CALLER = r"(?:\[ {0,12}(?P<caller>[TC]\d{1,10})\] ?)?"
_STAMP = re.compile(r"\[ {0,12}\d{1,10}\.\d{6}\](?: ?\[ {0,12}(?P<caller>[TC]\d{1,10})\])? ?")
"""A stamp as the kernel prints it: ``[ 12.345678][ T101] ``. It may stand behind what a program wrote without a
newline."""
_DAY = r"(?:[A-Z][a-z]{2} {1,2})?[A-Z][a-z]{2} {1,2}\d{1,2}"
_CLOCK = r"\d{2}:\d{2}(?::\d{2})?(?:[.,]\d{1,9})?"
_ZONE = r"(?:Z|[+-]\d{2}:?\d{2})?"
_PREFIXES = (
    re.compile(r"<\d{1,10}>"),
    re.compile(r"[a-z]{4,8} {0,8}: ?[a-z]{3,6} {0,8}: (?=\[)"),  # dmesg --decode: "kern  :warn  : [..."
    re.compile(  # syslog, journalctl: "Jun 11 10:00:01 sut01 kernel: ", "2024-06-11T10:00:01+02:00 sut01 kernel: "
        rf"(?:{_DAY} {_CLOCK}|\d{{4}}-\d{{2}}-\d{{2}}[T ]{_CLOCK}{_ZONE}|\[ {{0,12}}\d{{1,10}}\.\d{{1,9}}\])"
        r" [\w.:-]{1,255} kernel(?:\[\d{1,10}\])?: ?"
    ),
    re.compile(rf"\[ {{0,12}}\d{{1,10}}\.\d{{1,9}}\] ?{_CALLER}"),
    re.compile(
        rf"\[(?:{_DAY} {_CLOCK}(?: \d{{4}})?|[A-Z][a-z]{{2}}\d{{1,2}} {_CLOCK}| {{1,14}}\+\d{{1,10}}\.\d{{1,9}})\] ?"
        rf"{_CALLER}"
    ),
    re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}T{_CLOCK}{_ZONE} ?{_CALLER}"),
    re.compile(rf"{_CALLER.removesuffix('?')}"),
)
_MOST_PREFIXES = 4
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|[\]PX^_][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[()*+#%].|[0-9A-OQ-WYZ=>c])"
)
"""Terminal commands (ECMA-48). A command without its end is a control character like others."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Control characters except the tab, and those that make text invisible or run from right to left."""

WITHIN_A_REPORT = re.compile(
    r"\s|CPU: \d|Hardware name: |skb (?:len=|(?:headroom|linear|tailroom|frag|fraglist):|frag \d)|dev name="
    r"|sk family=|[a-z][a-z-]{1,20}(?:=|\((?:\w{1,20}=)?)(?:0x[0-9a-f]|-?\d|\()|[0-9a-f]{8,16}: "
)
"""Begin of a line between a report's sentence and its trace: the machine, or a dump of a packet or of memory."""


@dataclass(frozen=True, slots=True)
class ConsoleLine:
    """Content of one line."""

    text: str
    """The text without level, time, CPU, and whatever a log or dmesg puts before it."""
    caller: str = ""
    """The task or CPU that printed it (``T101``, ``C0``), if the kernel reports it (CONFIG_PRINTK_CALLER)."""
    stamped: bool = False
    """Whether a prefix shows that the kernel printed it."""


def console_lines(raw: str) -> Iterator[ConsoleLine]:
    """The lines in a raw line: several if the kernel printed before a program's line was complete."""
    rest = shown_line(raw[:LONGEST])
    while rest:
        line = parse_line(rest)
        stamp = _STAMP.search(line.text)
        if stamp is None:
            yield line
            return
        yield replace(line, text=line.text[: stamp.start()])
        rest = line.text[stamp.start() :]


def parse_line(line: str) -> ConsoleLine:
    """Take off all prefixes of a message."""
    caller, stamped = "", False
    for _ in range(_MOST_PREFIXES):
        match = next((found for one in _PREFIXES if (found := one.match(line)) and found.end()), None)
        if match is None:
            break
        caller = match.groupdict().get("caller") or caller
        stamped = True
        line = line[match.end() :]
    return ConsoleLine(line, caller, stamped)


def without_stamp(line: str) -> str:
    """A line of console or log without its level, time and CPU."""
    return parse_line(line).text


def shown_line(text: str) -> str:
    """Text of one line that does nothing to the terminal or page that shows it."""
    text = text.strip("\0\r\n")
    return text if text.isprintable() else _CONTROL.sub("\ufffd", _ESCAPE.sub("", text))

"""GitHub-flavoured Markdown of which no name becomes structure, wherever it came from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pdrgate.values.printable import printable

_LONGEST = 100
"""Characters of a cell: one long name must not make a table that nobody can read."""
_STRUCTURE = r"[&<>|`*~\[\]\\$]|(?<![^\W_])_|_(?![^\W_])"
"""What may begin HTML, a cell, code, emphasis, a link or a formula; an underscore within a word begins nothing."""
_LINKED = r"(?<=[@#])(?=\w)|(?<=:)(?=//)|(?<=www)(?=\.)"
"""Places where GitHub and GitLab would make a mention, a reference to an issue, or a link."""
_ACTIVE = re.compile(f"{_STRUCTURE}|{_LINKED}", re.IGNORECASE)
_BREAK = "&#8203;"
"""No width, and no word goes on across it."""


def markdown_text(told: str) -> str:
    """A text of one line in which nothing is Markdown, HTML, a mention or a link.

    A character reference never stands for structure (CommonMark, section 2.5).
    """
    return _ACTIVE.sub(lambda found: f"&#{ord(found[0])};" if found[0] else _BREAK, _line(told))


def code(told: str) -> str:
    """The same as code, in which nobody looks for mentions; empty for nothing."""
    line = _line(told)
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line[:1] in ("`", " ") or line[-1:] in ("`", " ") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}" if line else ""


def block(told: str) -> str:
    """A block of code of one line, to be copied as it is."""
    return block_of([_line(told)])


def block_of(lines: Sequence[str]) -> str:
    """A block of code whose lines keep their spaces."""
    whole = "\n".join(printable(" ".join(one.split("\n"))) for one in lines)
    fence = "`" * max(3, _longest_run(whole) + 1)
    return f"{fence}\n{whole}\n{fence}"


def cut(told: str, length: int = _LONGEST) -> str:
    """What a cell holds of a text; cut before anything is escaped."""
    line = _line(told)
    return line if len(line) <= length else f"{line[: length - 1]}…"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], numeric: frozenset[str] = frozenset()) -> str:
    """A table of cells that are Markdown already; columns of numbers are in line at the right."""
    rule = ["---:" if name in numeric else "---" for name in head]
    # A bar ends a cell even within code, which is the only place where one can be left.
    lines = [" | ".join(cell.replace("|", r"\|") for cell in cells) for cells in (head, rule, *rows)]
    return "\n".join(f"| {line} |" for line in lines)


def _line(told: str) -> str:
    return printable(" ".join(told.split()))


def _longest_run(line: str) -> int:
    return max(map(len, re.findall("`+", line)), default=0)

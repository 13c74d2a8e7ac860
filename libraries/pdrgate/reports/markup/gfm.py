"""GitHub-flavoured Markdown of which no name becomes structure, wherever it came from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pdrgate.reports.tree import Cell, Column, Paragraph, Table
from pdrgate.values.printable import printable

_LONGEST = 100
"""Characters of a cell: one long name must not make a table that nobody can read."""
_SENTENCE = 200
"""Characters of a cell that says several things, with names among them."""
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
    """Text as code of Markdown, in which nobody looks for mentions; empty for nothing."""
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


def table_markdown(table: Table) -> str:
    """The table without its caption; nothing without rows. Columns of numbers are in line at the right."""
    if not table.rows:
        return ""
    head = [markdown_text(column.name) for column in table.columns]
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    rows = [[*(_cell(cell, table.columns[at]) for at, cell in enumerate(row))] for row in table.rows]
    return "\n".join(f"| {' | '.join([*cells, *[''] * (len(head) - len(cells))])} |" for cells in (head, rule, *rows))


def captioned_markdown(table: Table, of: str = "") -> str:
    """The table below its caption, and its note below it; ``of`` is Markdown that says of what it is."""
    drawn = table_markdown(table)
    caption = f"{markdown_text(table.caption)}{of}:" if table.caption else ""
    return "\n\n".join(filter(None, (caption, drawn, markdown_text(table.note)))) if drawn else ""


def paragraph_markdown(sentence: Paragraph) -> str:
    """The sentence, a program's text in it as code."""
    return f"{markdown_text(sentence.text)}{' ' * bool(sentence.code)}{code(cut(sentence.code))}"


def folded(title: str, told: str) -> str:
    """What is shown to who asks for it; nothing for nothing."""
    return f"<details><summary>{title}</summary>\n\n{told}\n\n</details>" if told else ""


def _cell(cell: Cell, column: Column) -> str:
    length = _SENTENCE if column.wraps else _LONGEST
    if cell.is_name:
        text = " ".join(filter(None, (code(cut(cell.text, length)), markdown_text(cell.detail))))
    else:
        text = markdown_text(cut(cell.detailed, length))
    # A bar ends a cell even within code, which is the only place where one can be left.
    return "<br>".join(filter(None, (markdown_text(cut(cell.marked, length)), text))).replace("|", r"\|")


def _line(told: str) -> str:
    return printable(" ".join(told.split()))


def _longest_run(line: str) -> int:
    return max(map(len, re.findall("`+", line)), default=0)

"""What a report says, before any medium: parts with sentences, tables and figures. Pure values.

1. A module of `words` makes a `ReportPart` from a result: what is said of one subject, such as latency.
2. `words.scenario_tree` lists the parts of a scenario in the order in which all reports show them.
3. Each medium has one renderer. It knows cells, columns and tables, and no measurand. The console prints
   `ReportPart.lines`, a pull request and Robot's documentation have the brief tables, a page has the whole ones.

>>> table = Table("Costs", (Column("function", heads=True), Column("calls", True)), [[Cell("f"), Cell("2")]])
>>> [column.name for column in table.columns if column.numeric]
['calls']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Tone = Literal["", "pass", "fail", "warn"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    numeric: bool = False
    wraps: bool = False
    """Long text, or text of several lines, may stand here."""
    heads: bool = False
    """Whether its cells name their rows."""
    optional: bool = False
    """Whether a narrow screen may leave it out."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    text: str
    tone: Tone = ""
    span: int = 1
    """Columns that it takes."""
    is_name: bool = False
    """Whether it is the name of a function or a build: code, where a medium has code."""
    mark: str = ""
    """The verdict in words on what the cell holds: above it where a cell has lines, else in a column of its own."""
    why: str = ""
    """Why there is no verdict, in a short clause."""
    detail: str = ""
    """What follows the text where a cell has room for a sentence."""
    short: str = ""
    """The text for a narrow screen, where it is another one."""
    link: str = ""
    """Address of a page with more, where a medium has links; of cells that name their rows."""

    @property
    def marked(self) -> str:
        """The mark, and why there is no verdict: *not judged: noise hides it*."""
        return f"{self.mark}: {self.why}" if self.why else self.mark

    @property
    def detailed(self) -> str:
        """The text and its detail."""
        return f"{self.text} {self.detail}".rstrip()


@dataclass(frozen=True, slots=True)
class Table:
    """A table; a row may end early with a cell of several columns."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    """What is said of the table less loudly: behind its caption, or below it."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence; ``code`` is a text of a program's that it ends with."""

    text: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Preformatted:
    """Lines of pieces of text that keep their spaces; a piece is marked where it is what the reader looks for."""

    lines: Sequence[Sequence[tuple[str, bool]]]


class Figure:
    """A figure that a medium draws in its own way, or leaves out; each kind is a class of its own."""

    __slots__ = ()


Block = Table | Paragraph | Preformatted | Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPart:
    """What is said of one subject."""

    title: str = ""
    """What a reader unfolds."""
    lines: Sequence[str] = ()
    """The numbers in sentences, where there is no room for a table."""
    remarks: Sequence[str] = ()
    """What a reader must know, wherever there is room for a sentence."""
    brief: Sequence[Block] = ()
    """A few rows: for a pull request, or the top of a log."""
    whole: Sequence[Block] = ()
    """All rows, on a page."""
    further: Sequence[Block] = ()
    """What the page shows behind all that verdicts rest on."""
    is_check: bool = False
    """Whether the whole tables say how far to trust it: a page folds them."""
    on_screen: bool = False
    """Whether the brief tables belong on a console too."""


def with_marks_apart(table: Table, *, why: bool = True) -> Table:
    """The table for a medium whose cells have one line: marks stand in a last column.

    Args:
        why: whether the column says why there is no verdict.
    """
    if not any(cell.mark for row in table.rows for cell in row):
        return table
    marks = [next((cell for cell in row if cell.mark), Cell("")) for row in table.rows]
    rows = [
        [*row, Cell(mark.marked if why else mark.mark, mark.tone)]
        for row, mark in zip(table.rows, marks, strict=True)
    ]  # fmt: skip
    return replace(table, columns=(*table.columns, Column("verdict")), rows=rows)


def begun(of: str, caption: str) -> str:
    """A caption that says of which build it is, where there are several."""
    whole = f"{of}: {caption}" if of else caption
    return whole[:1].upper() + whole[1:]

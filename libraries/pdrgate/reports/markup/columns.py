"""Plain text whose columns are in line."""

from __future__ import annotations

from dataclasses import replace

from pdrgate.reports.tree import Column, Table, with_marks_apart
from pdrgate.values.printable import printable


def table_lines(table: Table, width: int | None = None, indent: str = "  ") -> list[str]:
    """The head and a line for each row; nothing without rows.

    Args:
        width: columns of the screen: where the table is wider, its cells get shorter, then optional columns are left
            out. None for any number.
    """
    if not table.rows:
        return []
    whole = with_marks_apart(table, why=False)
    short = replace(whole, rows=[[replace(cell, text=cell.short or cell.text) for cell in row] for row in whole.rows])
    lines: list[str] = []
    for shown in (whole, short, _without_optional(short)):
        lines = _lines(shown, indent)
        if width is None or max(map(len, lines)) <= width:
            break
    return lines


def reasons_lines(table: Table) -> list[str]:
    """Why rows of the table have no verdict, a line each: a column in line has no room for it."""
    return [f"{row[0].text} is {cell.mark}: {cell.why}" for row in table.rows for cell in row if cell.why]


def _without_optional(table: Table) -> Table:
    kept = [at for at, column in enumerate(table.columns) if not column.optional]
    rows = [[row[at] for at in kept if at < len(row)] for row in table.rows]
    return replace(table, columns=[table.columns[at] for at in kept], rows=rows)


def _lines(table: Table, indent: str) -> list[str]:
    rows = [[printable(cell.text) for cell in row] for row in table.rows]
    filled = [[*row, *[""] * (len(table.columns) - len(row))] for row in rows]
    lines = [[column.name.upper() for column in table.columns], *filled]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [f"{indent}{'  '.join(map(_placed, line, widths, table.columns))}".rstrip() for line in lines]


def _placed(text: str, width: int, column: Column) -> str:
    return text.rjust(width) if column.numeric else text.ljust(width)

"""Tables of plain text, whose columns are in line."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(rows: Sequence[Sequence[str]], numeric: Collection[int] | None = None, indent: str = "") -> list[str]:
    """A line for each row; see `in_line`."""
    widths = widths_of(rows)
    return [in_line(row, widths, numeric, indent) for row in rows]


def widths_of(rows: Sequence[Sequence[str]]) -> list[int]:
    """Characters of the longest cell of each column."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def in_line(row: Sequence[str], widths: Sequence[int], numeric: Collection[int] | None = None, indent: str = "") -> str:
    """A row as one line.

    Args:
        numeric: numbers of the columns that stand at the right; None: all but the first.
    """
    cells = (
        cell.rjust(width) if (at > 0 if numeric is None else at in numeric) else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return f"{indent}{'  '.join(cells)}".rstrip()

"""HTML by templates, in which everything is escaped that is not HTML already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import jinja2

from pdrgate.values.printable import printable_lines


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    numeric: bool = False
    wraps: bool = False
    """Long text, or text of several lines, may stand here."""
    heads: bool = False
    """Whether its cells name their rows."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    text: str
    tone: Literal["", "pass", "fail", "warn"] = ""
    span: int = 1
    """Columns that it takes."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; a row may end early with a cell of several columns."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    """What is said behind the caption, and less loudly."""

    def html(self) -> str:
        """The table as a fragment that stands well in Robot's log as in a page."""
        return rendered("table.html.j2", table=self).replace("\n<", "<").strip()


def rendered(template: str, **values: Any) -> str:
    """A template of this package with its values; no character of them controls whoever shows the page."""
    return printable_lines(templates().get_template(template).render(**values))


@cache
def templates() -> jinja2.Environment:
    """All of this package."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("pdrgate.reports.markup", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

"""HTML by templates, in which everything is escaped that is not HTML already."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from pdrgate.reports.tree import Cell, Column, Paragraph, Preformatted, Table
from pdrgate.values.printable import printable, printable_lines

_NO_BREAK, _MAY_BREAK = "\N{NO-BREAK SPACE}", Markup("/<wbr>")


def table_html(table: Table) -> str:
    """The table as a fragment that stands well in Robot's log as in a page."""
    rows = [[_cell(cell, table.columns[at]) for at, cell in enumerate(row)] for row in table.rows]
    return rendered("table.html.j2", table=replace(table, rows=rows)).replace("\n<", "<").strip()


def paragraph_html(paragraph: Paragraph) -> str:
    """The paragraph, its code as it is."""
    return Markup("<p>{}{}</p>").format(printable(paragraph.text), printable(paragraph.code))


def preformatted_html(block: Preformatted) -> str:
    """The lines, what is marked with a marker's colour."""
    lines = (
        Markup("").join(Markup("<mark>{}</mark>" if marked else "{}").format(text) for text, marked in line)
        for line in block.lines
    )
    return Markup("<pre>{}</pre>").format(Markup("\n").join(lines))


def _cell(cell: Cell, column: Column) -> Cell:
    """The cell with its mark above its text. A unit may go on in the next line behind its stroke."""
    mark = cell.mark.replace(" ", _NO_BREAK, 1) + (f": {cell.why}" if cell.why else "")
    text = "\n".join(filter(None, (mark, cell.detailed)))
    breaks = column.wraps and (column.numeric or column.heads)
    return replace(cell, text=_MAY_BREAK.join(text.split("/")) if breaks else text)


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

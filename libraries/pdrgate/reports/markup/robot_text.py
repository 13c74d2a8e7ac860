"""Robot's documentation format, of which no name becomes structure: it has no escapes of its own.

`<` and `&` are Robot's own business. What else has a meaning there: bars make tables and links (``[javascript:…|x]`` is
one), ``://`` links and pictures, stars, underscores and backticks styles, and some beginnings of a line blocks.
"""

from __future__ import annotations

import re

from pdrgate.reports.markup.gfm import cut
from pdrgate.reports.tree import Table, with_marks_apart
from pdrgate.values.printable import printable

_BAR = str.maketrans({"|": "\N{BOX DRAWINGS LIGHT VERTICAL}"})
_BREAK = "\N{ZERO WIDTH SPACE}"
_STYLE = re.compile(r"[*`]|(?<!\w)_(?=.*_(?!\w))|_(?!\w)")
_LINK = re.compile(r"(?<=:)(?=//)")
_BLOCK = re.compile(r"^(?=[-=|])")


def robot_text(told: str) -> str:
    """A text of one line in which nothing is a style, a link, a picture or a block."""
    line = printable(" ".join(told.split())).translate(_BAR)
    return _BLOCK.sub(_BREAK, _LINK.sub(_BREAK, _STYLE.sub(rf"{_BREAK}\g<0>{_BREAK}", line)))


def bold(told: str) -> str:
    """The text in bold."""
    return f"*{robot_text(told)}*"


def robot_table(table: Table) -> str:
    """The table without its caption, of which a long text is cut: Robot's tables grow with them; nothing without rows.

    A cell of several columns has only its text.
    """
    if not table.rows:
        return ""
    whole = with_marks_apart(table)
    head = [f"= {robot_text(column.name)} =" if column.name else "" for column in whole.columns]
    rows = [[robot_text(cut(cell.text)) for cell in row] for row in whole.rows]
    return "\n".join(f"| {' | '.join([*cells, *[''] * (len(head) - len(cells))])} |" for cells in (head, *rows))


def captioned_table(table: Table) -> list[str]:
    """The table below its caption, and its note below it."""
    drawn = robot_table(table)
    caption = f"{robot_text(table.caption)}:" if table.caption else ""
    return [*filter(None, (caption, drawn, robot_text(table.note)))] if drawn else []


def picture(address: str, title: str) -> str:
    """A picture by an address of our own making, with what it shows in words; words that end in .png are no picture."""
    return f"[{address}|{robot_text(title).translate({ord('['): '(', ord(']'): ')'})}{_BREAK}]"


def link(address: str, words: str) -> str:
    """A link to a file of the run."""
    return f"[{address}|{robot_text(words)}]"

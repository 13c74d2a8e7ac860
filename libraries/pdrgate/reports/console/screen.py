"""Lines on a stream; on a terminal as wide as that, in colour, and with a last line that changes."""

from __future__ import annotations

import os
from typing import Literal, TextIO

from rich.console import Console
from rich.text import Text

from pdrgate.results.verdict import Verdict
from pdrgate.values.printable import printable

_ERASE = "\r\x1b[2K"
_HANGING = 2
"""Columns by which what goes on in a further line is set in."""
_TONES = {0: "bold green", 1: "bold red", 2: "bold magenta", 3: "bold yellow"}
"""Tones by exit code; the word says it without colour."""


class Screen:
    """A screen that lines are written to. Colour is for terminals and for who sets FORCE_COLOR, unless NO_COLOR is
    set.

    What is not a terminal gets each line as a whole, however long: a log of a CI is searched, and folded by who shows
    it. The line that changes is drawn only when something has happened, by no thread: the machine that is measured may
    be this one.

    Args:
        live: whether there may be a line that changes: nobody else writes to the terminal.
    """

    def __init__(self, stream: TextIO, *, live: bool = False) -> None:
        self._stream = stream
        colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"  # nor bold: plain is plain
        self._console = Console(file=stream, color_system=colours, highlight=False, markup=False, emoji=False)
        is_terminal = stream.isatty()
        self.width = self._console.width if is_terminal else None
        """Columns; None where a line may have any number."""
        self._live = live and is_terminal and not self._console.is_dumb_terminal
        self._status = Text()

    def line(self, told: str | Text, *, cut: bool = False) -> None:
        """A line. What does not fit goes on in further ones, set in; or is cut off, where columns are in line."""
        text = told if isinstance(told, Text) else Text(printable(told))
        self._erase()
        if self.width is None:
            self._console.print(text, soft_wrap=True)
        elif cut:
            self._console.print(text, no_wrap=True, overflow="ellipsis", crop=True)
        else:
            self._wrapped(text, self.width)
        self._draw()

    def status(self, told: str) -> None:
        """What the last line shows from here on; empty for none."""
        self._erase()
        self._status = Text(printable(told), style="dim")
        self._draw()

    def _wrapped(self, text: Text, width: int) -> None:
        margin = len(text.plain) - len(text.plain.lstrip())
        body = text[margin:]
        room = max(width - margin - _HANGING, 20)
        for number, part in enumerate(body.wrap(self._console, room) if text.plain.strip() else [body]):
            part.rstrip()
            indent = " " * (margin + (_HANGING if number else 0))
            self._console.print(Text.assemble(indent, part), no_wrap=True, overflow="ignore", crop=False)

    def _erase(self) -> None:
        if self._live and self._status:
            self._stream.write(_ERASE)
            self._stream.flush()

    def _draw(self) -> None:
        if self._live and self._status:
            assert self.width is not None
            shown = self._status.copy()
            shown.truncate(self.width - 1, overflow="ellipsis")  # the cursor stands behind it
            self._console.print(shown, end="")


def verdict_text(verdict: Verdict) -> Text:
    """The word, in its colour."""
    return Text(str(verdict), style=_TONES[verdict.exit_code])

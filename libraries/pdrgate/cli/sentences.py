"""Output of the commands that measure many boots: sentences, and no line for each trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pdrgate.values.printable import printable

if TYPE_CHECKING:
    from pdrgate.gate.run.progress import Progress, Upcoming


class Sentences:
    """Observer of a session that prints each sentence it gets and no line for a trial. Boots are what counts here."""

    def __init__(self, to_stderr: bool) -> None:
        self._to_stderr = to_stderr

    def said(self, sentence: str) -> None:
        click.echo(f"  {printable(sentence)}", err=self._to_stderr)

    warned = said

    def measuring(self, upcoming: Upcoming) -> None:
        pass

    def measured(self, progress: Progress) -> None:
        pass

"""The session of a command that measures many boots. It prints sentences, and no line for each trial."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pdrgate.values.printable import printable

if TYPE_CHECKING:
    from pdrgate.gate.run.progress import Progress
    from pdrgate.gate.run.session import Session
    from pdrgate.history.address import Address
    from pdrgate.measurands import Ask
    from pdrgate.results.model import Side


@contextlib.contextmanager
def boots_session(
    testbed: Path, said: Mapping[str, Any], output: Path, console: Sentences, history: Address | None
) -> Iterator[Session]:
    """The testbed, taken; its run has a new folder below ``output``, and the experience of a history.

    Args:
        said: the options that the command line says; the testbed's file may say others.
    """
    from pdrgate.gate.run.options import Options
    from pdrgate.gate.run.run_record import RunRecord
    from pdrgate.gate.run.run_settings import settings_of_testbed
    from pdrgate.gate.run.session import Session
    from pdrgate.history.database.experience import Experience
    from pdrgate.launch import found, give_history_to_caller, give_to_caller, new_folder
    from pdrgate.testbeds import load_testbed

    config = load_testbed(found(testbed))
    options = Options(**settings_of_testbed(config, Options) | dict(said) | {"below_noise": True})
    folder = new_folder(output)
    record = RunRecord(folder, options.profile)
    session = Session(config, options, record, console, experience=None if history is None else Experience(history))
    try:
        session.take()
        yield session
    finally:
        session.close()
        if record.scenarios:
            record.write(finished=True)
        record.close()
        give_to_caller(folder)
        if history is not None:
            give_history_to_caller(history)


class Sentences:
    """Observer of a session that prints each sentence it gets and no line for a trial. Boots are what counts here."""

    def __init__(self, to_stderr: bool) -> None:
        self._to_stderr = to_stderr

    def said(self, sentence: str) -> None:
        click.echo(f"  {printable(sentence)}", err=self._to_stderr)

    warned = said

    def measuring(self, ask: Ask, side: Side | None, pair: int) -> None:
        pass

    def measured(self, progress: Progress) -> None:
        pass

"""``pdrgate restore``: undo what runs left that were killed, or could not put it back."""

from __future__ import annotations

from pathlib import Path

import click

from pdrgate.cli.parameters import PathType
from pdrgate.values.errors import EXIT_FAULT, EXIT_PASS


@click.command()
@click.option(
    "--state",
    metavar="FOLDER",
    type=PathType(),
    help="Where runs keep their locks and their journals.  [default: /run/pdrgate, for other hosts /var/lib/pdrgate]",
)
def restore(state: Path | None) -> int:
    """Undo what runs left on this machine and on the hosts they touched, which were killed or could not put it back.

    Settings go back to what they were, programs end, namespaces go. What somebody else has set since is left alone. The
    next run does the same by itself. What a run that is measuring uses is not touched.

    Exits with 0 when nothing is left, with 2 when something could not be undone, or is used by a run.
    """
    from pdrgate.safety.recovery import NotUndone, recover_stale
    from pdrgate.safety.state_folder import STATE_DIR

    told = recover_stale(state or STATE_DIR)
    for sentence in told:
        click.echo(sentence)
    if not told:
        click.echo("nothing to undo: no run has left anything")
    return EXIT_FAULT if any(isinstance(sentence, NotUndone) for sentence in told) else EXIT_PASS

"""``pdrgate merge``: the runs of several machines as one, with one verdict."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pdrgate.cli.parameters import PathType


@click.command()
@click.argument("places", metavar="RUN...", nargs=-1, required=True, type=PathType())
@click.option(
    "--into", metavar="FOLDER", type=PathType(), default="merged", show_default=True, help="Where the reports go."
)
def merge(places: tuple[Path, ...], into: Path) -> int:
    """Make one report of runs that several machines measured, with one verdict: the gravest of them.

    RUN is a run's folder, or a folder that has some, at any depth. Each that is named owes a result: where one is not
    there or holds none, because whoever was to measure died, that is an ERROR of its own, and the others stand as they
    are. FOLDER gets summary.html, summary.md, plots/*.png, xunit.xml and merged.json.

    Exits as the gate would have, had it measured all of it.
    """
    from pdrgate.reports.console.ending import show_files, show_verdict
    from pdrgate.reports.console.screen import Screen
    from pdrgate.reports.merged_run import merge as merged

    found = merged(places, into)
    screen = Screen(sys.stdout)
    show_verdict(found.result, screen)
    for told in found.failed_besides:
        screen.line(f"failed for a reason of its own: {told}")
    screen.line("")
    show_files(into, screen)
    return found.exit_code

"""``pdrgate merge``: the runs of several machines as one, with one verdict."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pdrgate.cli.parameters import COMMIT, PathType, note

if TYPE_CHECKING:
    from pdrgate.reports.whole_runs.merged_run import Expected


@click.command()
@click.argument("places", metavar="RUN...", nargs=-1, required=True, type=PathType())
@click.option(
    "--into", metavar="FOLDER", type=PathType(), default="merged", show_default=True, help="Where the reports go."
)
@click.option(
    "--commit",
    metavar="COMMIT",
    type=COMMIT,
    envvar="PDRGATE_COMMIT",
    help="Take results of this commit alone; the gate has its own from --commit or PDRGATE_COMMIT.",
)
@click.option(
    "--build",
    "builds",
    metavar="SHA256",
    multiple=True,
    help="Take results of these builds alone, by the digests that result.json has of them; say it for each.",
)
@click.option(
    "--gates",
    metavar="WORD",
    default="",
    help="What the CI says of the jobs that measured; unless it is 'success', nothing passes.",
)
def merge(places: tuple[Path, ...], into: Path, commit: str | None, builds: tuple[str, ...], gates: str) -> int:
    """Make one report of runs that several machines measured, with one verdict: the gravest of them.

    RUN is a run's folder, or a folder that has some, at any depth. Each that is named owes a result: where one is not
    there or holds none, because whoever was to measure died, that is an ERROR of its own, and the others stand as they
    are. The same becomes of a result whose verdict contradicts its own numbers.

    FOLDER gets summary.html, paths/*.html, summary.md, plots/*.png, xunit.xml and merged.json.

    Exits as the gate would have, had it measured all of it.
    """
    from pdrgate.reports.whole_runs.merged_run import Expected

    return merge_runs(places, into, Expected(commit=commit or "", builds=frozenset(builds), gates=gates))


def merge_runs(places: Sequence[Path], into: Path, expected: Expected | None = None) -> int:
    """Merge runs into a folder, print what they came to, and return the exit code."""
    from pdrgate.history.results import LARGEST_RESULT
    from pdrgate.reports.console.ending import show_files, show_verdict
    from pdrgate.reports.console.screen import Screen
    from pdrgate.reports.whole_runs.merged_run import MERGED_FILE
    from pdrgate.reports.whole_runs.merged_run import merge as merged

    found = merged(places, into, expected)
    screen = Screen(sys.stdout)
    show_verdict(found.result, screen)
    for told in found.failed_besides:
        screen.line(f"failed for a reason of its own: {told}")
    screen.line("")
    show_files(into, screen)
    if (size := (into / MERGED_FILE).stat().st_size) > LARGEST_RESULT:
        note(
            f"{MERGED_FILE} has {size >> 20} MiB, and pdrgate reads at most {LARGEST_RESULT >> 20}: the reports are "
            "whole; to make others of it later, merge fewer runs into a folder"
        )
    return found.exit_code

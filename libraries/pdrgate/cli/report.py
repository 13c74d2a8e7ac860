"""``pdrgate report``: every report of a run again, from what it stored."""

from __future__ import annotations

from pathlib import Path

import click

from pdrgate.cli.parameters import PathType
from pdrgate.reports.ci.exports import EXPORTS, exported
from pdrgate.values.errors import EXIT_PASS


@click.command()
@click.argument("run", metavar="RUN", type=PathType())
@click.option(
    "--format",
    "form",
    type=click.Choice(["files", "markdown", *EXPORTS]),
    default="files",
    show_default=True,
    help="Others than files are printed: markdown for a pull request or $GITHUB_STEP_SUMMARY, all else for the tool "
    "or format that it is called after.",
)
def report(run: Path, form: str) -> int:
    """Make every report of RUN again, from what it stored.

    RUN is a run's folder. Its result.json and trials.jsonl make summary.html, paths/*.html of several paths,
    summary.md and plots/*.png; its output.xml makes Robot's log.html, report.html and xunit.xml. Without output.xml,
    xunit.xml is made of result.json. What a listener wrote into allure-results while the run went on gets verdict,
    parameters, attachments and numbers anew.

    Prints the path of each file. Exits with 2 when RUN holds no result.
    """
    if form == "markdown":
        from pdrgate.history.results import read_result
        from pdrgate.reports.ci.markdown import run_markdown
        from pdrgate.reports.ci.pipeline import pipeline

        click.echo(run_markdown(read_result(run), pipeline().pages), nl=False)
        return EXIT_PASS
    if form != "files":
        from pdrgate.history.results import read_result

        click.echo(exported(form, read_result(run)), nl=False)
        return EXIT_PASS
    from pdrgate.reports.whole_runs.remake import UnmadeReport, remake

    for made in remake(run):
        click.echo(made.sentence if isinstance(made, UnmadeReport) else str(made))
    return EXIT_PASS

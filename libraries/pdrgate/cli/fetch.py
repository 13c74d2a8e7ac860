"""``pdrgate fetch``: a result that a CI server keeps, as a baseline."""

from __future__ import annotations

from pathlib import Path

import click

from pdrgate.cli.parameters import DURATION, PathType, note
from pdrgate.values.errors import EXIT_PASS
from pdrgate.values.units import Duration


@click.command()
@click.argument("job", metavar="URL")
@click.option(
    "--build",
    metavar="BUILD",
    help="A number, or such as lastSuccessfulBuild.  [default: kept, the newest that is kept forever and passed]",
)
@click.option("--in", "folder", metavar="FOLDER", help="Of several results, the one in such a folder of the archive.")
@click.option("--output", metavar="FILE", default="baseline.json", show_default=True, type=PathType())
@click.option(
    "--patience",
    metavar="TIME",
    type=DURATION,
    default="30 s",
    show_default=True,
    help="How long the server may be silent.",
)
def fetch(job: str, build: str | None, folder: str | None, output: Path, patience: Duration) -> int:
    """Fetch the result.json that a build of the Jenkins job at URL archived, for --baseline.

    A build is pinned as a baseline by a person, with "Keep this build forever". The user and the API token are those of
    JENKINS_USER_ID and JENKINS_API_TOKEN.

    Prints the path of the file. Exits with 2 when there is no such result, or the server does not hand it over.
    """
    from pdrgate.history.jenkins_builds import KEPT, TOKEN, JenkinsBuilds, Job
    from pdrgate.history.results import keep_result

    named = Job.parse(job)
    builds = JenkinsBuilds(named, patience)
    found = builds.result(build or named.build or KEPT, folder)
    result = keep_result(output, found.content, found.url)
    note(f"build {found.build} of {named.name}: {result.verdict} ({found.path})")
    if builds.in_the_clear:
        note(f"{named.server} was asked without encryption: whoever listens has {TOKEN}; use https")
    click.echo(str(output))
    return EXIT_PASS

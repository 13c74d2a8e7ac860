"""``pdrgate history``: the runs of many days in one database."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from pdrgate.cli.parameters import DURATION, PathType, echo_json, forms, history_option, text_or_json
from pdrgate.history.address import Address
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import EXIT_FAULT, EXIT_PASS, DataError, StorageError, UsageError
from pdrgate.values.units import Duration

if TYPE_CHECKING:
    from pdrgate.history.database.connection import Database
    from pdrgate.history.database.queries import Wanted

_DATE = "%Y-%m-%d"

_where = history_option(
    "where", default="results/history.db", show_default=True, help="A SQLite file, or postgresql://user@host/database."
)


class SinceType(click.ParamType[float]):
    """A day, ``2026-11-01``, or an age, ``7d``: a moment, in seconds of the epoch."""

    name = "since"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse what the command line says; a usage error when it is neither."""
        with contextlib.suppress(ValueError):
            return time.mktime(time.strptime(value, _DATE))
        return time.time() - float(DURATION.convert(value, param, ctx))


def _filters(command: Any) -> Any:
    """The options that say which results."""
    options = (
        click.option("--scenario", metavar="NAME", default="", help="Of this scenario; may have * for anything."),
        click.option("--build", metavar="NAME", default="", help="Of this build or kernel release; may have *."),
        click.option("--verdict", type=click.Choice([each.value for each in Verdict]), help="With this verdict."),
        click.option("--since", metavar="DAY_OR_AGE", type=SinceType(), help="From 2026-11-01 on, or of the last 7d."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def history() -> None:
    """Keep the results of many runs in one database, and ask it.

    A run of 'pdrgate gate' puts itself in; 'import' does the same with others. Each of the commands takes --history.
    """


@history.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PathType())
@_where
def import_(paths: tuple[Path, ...], where: Address) -> int:
    """Put results into the history: the folders of runs, trials.jsonl and result files of PASTRAMI.

    PATH is one of these, or a directory with any of them below it. What is there already is not put in twice; a run
    that was resumed since is brought up to date.

    Exits with 2 when something could not be read; all else is in the history then.
    """
    from pdrgate.history.database.importing import add, sources

    failed = False
    found = sources(paths)
    with _opened(where, create=True) as opened:
        for path in found:
            try:
                with opened.writing() as connection:
                    done = add(connection, path)
            except DataError as error:
                failed = True
                click.echo(f"pdrgate: left out: {error}", err=True)
            else:
                click.echo(str(done))
    return EXIT_FAULT if failed else EXIT_PASS


@history.command("list")
@_filters
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="The newest so many.")
@text_or_json
@_where
def list_(form: str, where: Address, limit: int, **filters: Any) -> int:
    """Print what the history holds, the newest first."""
    from pdrgate.history.database.queries import entries
    from pdrgate.reports.words.run_lines import entries_table

    with _opened(where) as opened, opened.reading() as connection:
        found = entries(connection, _wanted(filters, limit))
    if form == "json":
        echo_json({"results": found})
    elif found:
        click.echo("\n".join(entries_table(found)))
    else:
        click.echo("nothing of that kind is in the history")
    return EXIT_PASS


@history.command("ungated")
@click.argument("places", metavar="PLACE...", nargs=-1, required=True)
@_where
def ungated_(places: tuple[str, ...], where: Address) -> int:
    """Print the kernels at PLACE that the history has no verdict on, one a line, as 'pdrgate gate --kernel' takes them.

    PLACE is a folder that builds are put into (packages, images, build trees), or packages of the distribution, by a
    pattern such as 'linux-image-6.1.*-amd64', or 'SUITE/linux-image-*' of another suite. Builds are taken as their
    names count, 6.9 before 6.10. One that the testbed kept from a verdict is printed until three runs have tried it.
    """
    from pdrgate.builds.found_builds import builds_at
    from pdrgate.history.database.queries import gated_builds

    builds = [build for place in places for build in builds_at(place)]
    gated: frozenset[str] = frozenset()
    if where.file is None or where.file.exists():
        with _opened(where) as opened, opened.reading() as connection:
            gated = gated_builds(connection)
    for build in builds:
        if build.label not in gated:
            click.echo(build.source)
    return EXIT_PASS


@history.command("pin")
@click.argument("run", metavar="RUN")
@click.option("--name", metavar="NAME", required=True, help="What to call it: v6.12, release, main.")
@click.option(
    "--side",
    type=click.Choice(["candidate", "baseline"]),
    default="candidate",
    show_default=True,
    help="Which build, where the run compared two.",
)
@_where
def pin_(run: str, name: str, side: str, where: Address) -> int:
    """Let NAME stand for the build that RUN measured, for 'pdrgate gate --baseline history:NAME'.

    RUN is a run's folder, or its name. A name stays with its build until somebody pins it to another: a build that
    passed against it does not take its place.
    """
    from pdrgate.history.database.baselines import pin

    with _opened(where) as opened, opened.writing() as connection:
        before, now = pin(connection, run, name, side)
    was = ", ".join(one.label for one in before if one.build not in {each.build for each in now})
    click.echo(
        f"{name} is {', '.join(one.label for one in now)} (run {now[0].run})" + (f"; it was {was}" if was else "")
    )
    return EXIT_PASS


@history.command("unpin")
@click.argument("name", metavar="NAME")
@_where
def unpin_(name: str, where: Address) -> int:
    """Forget NAME. What was measured stays."""
    from pdrgate.history.database.baselines import unpin

    with _opened(where) as opened, opened.writing() as connection:
        unpin(connection, name)
    return EXIT_PASS


@history.command("baselines")
@text_or_json
@_where
def baselines_(form: str, where: Address) -> int:
    """Print the names, and the builds that they stand for."""
    from pdrgate.history.database.baselines import pins

    with _opened(where) as opened, opened.reading() as connection:
        found = pins(connection)
    if form == "json":
        echo_json({"baselines": found})
    elif found:
        click.echo("\n".join(f"{one.name}  {one.label}  (run {one.run})" for one in found))
    else:
        click.echo("no build is pinned; 'pdrgate history pin RUN --name NAME' pins one")
    return EXIT_PASS


@history.command("prune")
@click.option("--older-than", metavar="AGE", type=DURATION, required=True, help="Such as 90d.")
@_where
def prune_(older_than: Duration, where: Address) -> int:
    """Delete runs that are older, but for those of builds that are pinned. Their folders stay as they are."""
    from pdrgate.history.database.pruning import give_back, prune

    with _opened(where) as opened:
        with opened.writing() as connection:
            gone = prune(connection, (now := time.time()) - older_than, now)
        give_back(opened)
    click.echo(f"{gone} runs are deleted; those of pinned builds are kept")
    return EXIT_PASS


@history.command("export")
@_filters
@forms("csv", "parquet")
@click.option(
    "--what",
    type=click.Choice(["measurands", "trials"]),
    default="measurands",
    show_default=True,
    help="A row for each measurand of each build in a scenario, or for each trial of their runs.",
)
@click.option("--output", metavar="FILE", type=PathType(), help="[default: standard output, of CSV]")
@_where
def export_(
    form: str, what: Literal["measurands", "trials"], output: Path | None, where: Address, **filters: Any
) -> int:
    """Write what the history holds as one flat table, for other programs."""
    from pdrgate.history.database.export import flat, write_csv, write_parquet

    if form == "parquet" and output is None:
        raise UsageError("Parquet is no text; name a file with --output")
    with _opened(where) as opened, opened.reading() as connection:
        rows = flat(connection, what, _wanted(filters))
        if output is None:
            write_csv(rows, sys.stdout)
            return EXIT_PASS
        if form == "parquet":
            count = write_parquet(rows, output)
        else:
            with _written(output) as stream:
                count = write_csv(rows, stream)
    click.echo(f"{output}: {count} rows")
    return EXIT_PASS


@contextlib.contextmanager
def _written(file: Path) -> Iterator[TextIO]:
    try:
        with file.open("w", newline="", encoding="utf-8") as stream:
            yield stream
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error.strerror}; choose another with --output") from error


@contextlib.contextmanager
def _opened(where: Address, *, create: bool = False) -> Iterator[Database]:
    from pdrgate.history.database.connection import Database

    with Database.open(where, create=create) as opened:
        yield opened


def _wanted(filters: dict[str, Any], limit: int | None = None) -> Wanted:
    from pdrgate.history.database.queries import Wanted

    verdict = filters.pop("verdict")
    return Wanted(**filters, verdict=verdict and Verdict(verdict), limit=limit)

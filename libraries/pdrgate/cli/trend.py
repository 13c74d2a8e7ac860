"""``pdrgate trend``: what moved over many runs, and between which builds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pdrgate.cli.parameters import RATIO, PathType, echo_json, forms, history_option
from pdrgate.history.address import Address
from pdrgate.values.errors import EXIT_FAIL, EXIT_PASS, DataError, UsageError
from pdrgate.values.units import Ratio

if TYPE_CHECKING:
    from pdrgate.gate.judged_again.trend_costs import CostAt
    from pdrgate.results.model import CostResult
    from pdrgate.trend import Move, Point, Series

    Alarm = Callable[[Sequence[Series], CostAt], tuple[tuple[Move, ...], tuple[Move, ...]]]
    Draw = Callable[["_Seen", CostAt], None]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the runs of a trend show: series, and the moves in them."""

    series: Sequence[Series]
    moves: Sequence[Move]
    """Without those that somebody has looked at."""
    quiet: Sequence[Move]
    """Moves that somebody has looked at and acknowledged."""
    runs: int
    baselines: Mapping[str, str] = field(default_factory=dict)
    """Names that builds are pinned by, by the digest of the build."""
    folders: Mapping[tuple[float, str], Path] = field(default_factory=dict)
    """Folders of the runs, by when they began and their names; empty for a history."""


@click.command()
@click.argument("folders", metavar="RESULTS...", nargs=-1, type=PathType())
@history_option("where", help="Look at a history instead, a SQLite file or postgresql://user@host/database.")
@click.option("--least", type=RATIO, default="1%", show_default=True, help="Smaller changes are not reported.")
@click.option(
    "--last", metavar="N", type=click.IntRange(1), help="Report only what moved within the last N runs of its series."
)
@click.option(
    "--acknowledged",
    metavar="FILE",
    type=PathType(),
    help="Be silent on what moved at the builds that FILE names, one a line; '# why' may follow.",
)
@forms("text", "json", "markdown")
@click.option("--page", metavar="FILE", type=PathType(), help="Draw all of it on one HTML page.")
@click.option(
    "--table",
    metavar="FILE",
    type=PathType(),
    help="Compare the two newest runs by path in a table on an HTML page.",
)
@click.pass_context
def trend(
    context: click.Context,
    /,
    folders: tuple[Path, ...],
    where: Address | None,
    least: Ratio,
    last: int | None,
    acknowledged: Path | None,
    form: str,
    page: Path | None,
    table: Path | None,
) -> int:
    """Say what got worse, or better, over the runs in RESULTS, and between which builds; nothing when nothing moved.

    RESULTS is a folder of runs, or a run's. Runs are taken in the order in which they began. Those that were UNSTABLE,
    CRASH, DISTURBED, GENERATOR_LIMITED or an ERROR are left out; a run that stands alone moves nothing.

    Exits with 0 when nothing got worse, with 1 when something did, with 2 when there is no result.
    """
    from pdrgate.gate.judged_again.trend_costs import functions_between, with_functions
    from pdrgate.history.whole_file import write_whole
    from pdrgate.reports.pages.runs_page import runs_page
    from pdrgate.reports.pages.trend_page import trend_page
    from pdrgate.reports.words.trend_lines import trend_lines, trend_markdown, trend_record
    from pdrgate.trend import Acknowledged, moves

    if folders and context.get_parameter_source("where") is not click.core.ParameterSource.COMMANDLINE:
        where = None
    if bool(folders) == (where is not None):
        raise UsageError("name folders of runs, or a history with --history FILE_OR_URL, and not both")

    known = Acknowledged() if acknowledged is None else Acknowledged.read(acknowledged)

    def alarm(series: Sequence[Series], cost: CostAt) -> tuple[tuple[Move, ...], tuple[Move, ...]]:
        return known.divided(with_functions(moves(series, float(least), last), cost))

    def draw(seen: _Seen, cost: CostAt) -> None:
        """Write the pages while what functions cost can still be asked for."""
        functions = partial(functions_between, cost_at=cost)
        if page is not None:
            addresses = _addresses(seen.folders, page)
            drawn = trend_page(seen.series, seen.moves, seen.runs, seen.baselines, seen.quiet, addresses, functions)
            write_whole(page, drawn.encode(), durable=False)
        if table is not None:
            drawn = runs_page(seen.series, _addresses(seen.folders, table), functions)
            write_whole(table, drawn.encode(), durable=False)

    seen = _of_results(folders, alarm, draw) if where is None else _of_history(where, alarm, draw)
    series, found = seen.series, seen.moves
    if form == "json":
        echo_json(trend_record(series, found))
    elif form == "markdown":
        click.echo(trend_markdown(found), nl=False)
    else:
        for line in trend_lines(found):
            click.echo(line)
    return EXIT_FAIL if any(move.worse for move in found) else EXIT_PASS


def _addresses(folders: Mapping[tuple[float, str], Path], page: Path) -> Mapping[tuple[float, str], str]:
    """Addresses of folders of runs from where a page lies."""
    return {key: os.path.relpath(folder, page.resolve().parent) for key, folder in folders.items()}


def _of_results(folders: tuple[Path, ...], alarm: Alarm, draw: Draw) -> _Seen:
    """Series and moves of the runs whose results lie in folders. Raises DataError where there is no result."""
    from pdrgate.history.results import results_below
    from pdrgate.trend import cost_at, series_of

    results = {file.resolve(): result for folder in folders for file, result in results_below(folder)}
    if not results:
        raise DataError(f"there is no result in {' or '.join(map(str, folders))}; name a folder of runs")
    series = series_of(results.values())
    by_run = {(one.started, one.run): one for one in results.values()}

    def cost(one: Series, point: Point) -> CostResult | None:
        return cost_at((by_run[point.time, point.run],), one, point)

    known = {(one.started, one.run): file.parent for file, one in results.items()}
    seen = _Seen(series, *alarm(series, cost), len(results), folders=known)
    draw(seen, cost)
    return seen


def _of_history(where: Address, alarm: Alarm, draw: Draw) -> _Seen:
    """Series and moves of the runs in a history, with the names of its baselines.

    Raises DataError where it has no result.
    """
    from pdrgate.history.database.baselines import pins
    from pdrgate.history.database.connection import Database
    from pdrgate.history.database.queries import all_series, point_cost

    with Database.open(where) as history, history.reading() as connection:
        series = all_series(connection)
        if not series:
            raise DataError(f"there is no result in {where}; put some in with 'pdrgate history import RUN...'")
        cost = partial(point_cost, connection)
        names: dict[str, list[str]] = {}
        for pin in pins(connection):
            names.setdefault(pin.build, []).append(pin.name)
        runs = len({point.run for one in series for point in one.points})
        baselines = {build: ", ".join(dict.fromkeys(own)) for build, own in names.items()}
        seen = _Seen(series, *alarm(series, cost), runs, baselines)
        draw(seen, cost)
    return seen

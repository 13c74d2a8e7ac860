"""``pdrgate watch``: gates the builds that are new somewhere, and says nothing while nothing moved."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pdrgate.cli.parameters import AddressType, BuildType, output_option
from pdrgate.errors import EXIT_FAIL, EXIT_FAULT, EXIT_PASS
from pdrgate.history.address import HISTORY_VARIABLE, Address
from pdrgate.results.verdict import Verdict

if TYPE_CHECKING:
    from pdrgate.builds.kernel_build import KernelBuild
    from pdrgate.trend import Move

_SETTLED = frozenset(
    {
        Verdict.PASS,
        Verdict.IMPROVEMENT,
        Verdict.NO_BASELINE,
        Verdict.REGRESSION,
        Verdict.CRASH,
        Verdict.UNSTABLE,
        Verdict.INCONCLUSIVE,
    }
)
"""What a build that has it is not gated again for: all else is the testbed's fault."""
_MOST_TRIES = 3
"""Of a build that nothing can be said of."""
_LEAST = 0.01
"""Smaller changes of a trend are not told."""


@click.command()
@click.argument("places", metavar="PLACE...", nargs=-1, required=True)
@click.option("--against", metavar="BUILD", type=BuildType(), required=True, help="The build that all are compared to.")
@click.option(
    "--history",
    "where",
    metavar="FILE_OR_URL",
    type=AddressType(),
    envvar=HISTORY_VARIABLE,
    default="results/history.db",
    show_default=True,
    help="What was gated before, and where it goes: a SQLite file, or postgresql://user@host/database.",
)
@output_option
@click.option("--gate-options", metavar="OPTIONS", default="", help="Further options of 'pdrgate gate', as one text.")
def watch(places: tuple[str, ...], against: str, where: Address, output: Path, gate_options: str) -> int:
    """Gate each kernel at PLACE that was not gated before, once, and end; a timer starts it again.

    PLACE is a folder that builds are put into (packages, images, build trees), or packages of the distribution, by a
    pattern such as 'linux-image-6.1.*-amd64'. Builds are taken as their names count. One that the testbed kept from a
    verdict is tried again, three times in all.

    Prints nothing while nothing moved: no build failed, none is faster, and no trend of the history bends. Else it
    prints the verdict with its evidence, and between which builds to look.

    Exits with 0 while nothing got worse, with 1 when something did, with 2 when a build could not be judged.
    """
    from pdrgate.builds.found_builds import builds_at
    from pdrgate.reports.words.trend_lines import trend_lines

    builds = [build for place in places for build in builds_at(place)]
    codes, gated = {EXIT_PASS}, 0
    verdicts = _known(where)
    for build in builds:
        if _is_settled(verdicts.get(build.label, ())):
            continue
        code, told = _gated(build, against, where, output, shlex.split(gate_options))
        gated += 1
        codes.add(code)
        verdicts = _known(where)
        if code != EXIT_PASS or told.startswith(Verdict.IMPROVEMENT):
            for line in (build.label, *told.splitlines(), *_between(build, builds, verdicts)):
                click.echo(line)
    moves = [move for move in _moves(where, gated) if move.worse] if gated else []
    for line in trend_lines(moves):
        click.echo(line)
    if moves or EXIT_FAIL in codes:
        return EXIT_FAIL
    return max(codes, key=lambda code: code != EXIT_PASS)


def _known(where: Address) -> dict[str, list[Verdict]]:
    """The verdicts that the history has, by build; nothing where there is no history yet."""
    from pdrgate.history.database.connection import Database
    from pdrgate.history.database.queries import entries

    if where.file is not None and not where.file.exists():
        return {}
    found: dict[str, list[Verdict]] = {}
    with Database.open(where) as history, history.reading() as connection:
        for entry in entries(connection):
            if entry.verdict is not None:
                found.setdefault(entry.build, []).append(entry.verdict)
    return found


def _is_settled(verdicts: Sequence[Verdict]) -> bool:
    return len(verdicts) >= _MOST_TRIES or any(verdict in _SETTLED for verdict in verdicts)


def _gated(build: KernelBuild, against: str, where: Address, output: Path, further: Sequence[str]) -> tuple[int, str]:
    """The exit code of a gate of its own process, and what it printed."""
    command = (
        *(sys.executable, "-m", "pdrgate.cli", "gate", "--quiet", "--kernel", build.source, "--against", against),
        *("--history", where.text, "--output", str(output), *further),
    )
    environment = {**os.environ, HISTORY_VARIABLE: where.url or where.text}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=environment
    )
    return (done.returncode if done.returncode in (EXIT_PASS, EXIT_FAIL) else EXIT_FAULT), done.stdout


def _between(
    build: KernelBuild, builds: Sequence[KernelBuild], verdicts: Mapping[str, Sequence[Verdict]]
) -> Iterator[str]:
    """Where to look for what slowed a build down."""
    if Verdict.REGRESSION not in verdicts.get(build.label, ()):
        return
    before = builds[: builds.index(build)]
    passed = [one for one in before if {Verdict.PASS, Verdict.IMPROVEMENT} & set(verdicts.get(one.label, ()))]
    if passed:
        yield f"the last build that passed is {passed[-1].label}; docs/bisect.md says how to find the step after it"


def _moves(where: Address, last: int) -> Sequence[Move]:
    """What the newest runs of the history moved."""
    from pdrgate.gate.judged_again.trend_costs import with_functions
    from pdrgate.history.database.connection import Database
    from pdrgate.history.database.trends import kept_cost, kept_series
    from pdrgate.trend import moves

    with Database.open(where) as history, history.reading() as connection:
        found = moves(kept_series(connection), _LEAST, last)
        return with_functions(found, lambda series, point: kept_cost(connection, series, point))

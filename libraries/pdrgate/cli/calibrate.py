"""``pdrgate calibrate``: what do boots of one build deviate by on this testbed?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pdrgate.cli.boots_session import Sentences, boots_session
from pdrgate.cli.parameters import (
    BuildType,
    PathType,
    declared,
    echo_json,
    history_option,
    output_option,
    said_options,
    scenario_option,
    text_or_json,
)
from pdrgate.history.address import Address
from pdrgate.values.errors import EXIT_PASS


@click.command()
@click.argument("testbed", metavar="[TESTBED]", required=False, type=PathType())
@click.option("--kernel", metavar="BUILD", type=BuildType(), help="A kernel to boot; else the testbed file's own.")
@click.option("--pairs", type=click.IntRange(2, 500), default=8, show_default=True, help="Of boots of that one build.")
@scenario_option()
@declared("profile")
@declared("changes")
@output_option
@history_option(
    help="Where it is kept: a SQLite file, or postgresql://user@host/database.  [default: history.db in the folder of "
    "--output]"
)
@text_or_json
@declared("wait")
def calibrate(
    testbed: Path | None,
    kernel: str | None,
    pairs: int,
    scenario: str,
    suites: tuple[Path, ...],
    output: Path,
    history: Address | None,
    form: str,
    changes: tuple[str, ...],
    **more: Any,
) -> int:
    """Measure what boots of one build deviate by on TESTBED, and keep it for the gate.

    TESTBED is a testbed file; without one it is the gate's own default. Pairs of boots of one build are compared: what
    they deviate by says which tolerance a number of pairs resolves, and lets one boot be compared with a stored one.
    Where nothing boots (namespaces), the testbed is set up anew each time.

    Exits with 0 when it is known, with 2 when the testbed or the machine kept it from being measured, with
    3 when the pairs do not decide.
    """
    from pdrgate.gate.comparisons.equal_builds import compare_with_itself
    from pdrgate.gate.run.scenario_keys import changed
    from pdrgate.gate.verdicts.noise_floor import noise_floor
    from pdrgate.launch import default_testbed
    from pdrgate.launch.described import scenario_named
    from pdrgate.measurands import DESCRIPTIONS, Rule
    from pdrgate.reports.words.headline import scenario_headline
    from pdrgate.reports.words.noise_words import noise_lines

    said = said_options(changes, more)
    (path,) = changed([scenario_named(scenario, suites)], said.get("changes", ()))
    where = history or Address.beside(output)
    console = Sentences(to_stderr=form == "json")
    place = testbed or default_testbed(builds=False)[0]
    with boots_session(place, said, output, console, where) as session:
        comparison = compare_with_itself(session, path, kernel or "", pairs)
    judgement = comparison.judgement
    assert judgement is not None
    if not comparison.observed:
        click.echo(scenario_headline(comparison.result()))
        return judgement.verdict.exit_code
    if not judgement.verdict.passes:
        console.said(f"the two sides are one build, and yet: {judgement}")
    floor = noise_floor(session.experience, comparison.result().findings.fingerprint)
    if form == "json":
        echo_json(floor)
    else:
        accepted = {one.name: one.tolerance.accepted({}) for one in DESCRIPTIONS if one.rule is Rule.PAIRS}
        click.echo("\n".join(["", *noise_lines(floor, accepted), f"  kept in {where}"]))
    return EXIT_PASS

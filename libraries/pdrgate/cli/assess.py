"""``pdrgate assess``: can the PDR in these files be trusted?"""

from __future__ import annotations

from pathlib import Path

import click

from pdrgate.cli.parameters import LOSS_HELP, RATIO, PathType, echo_json, note, text_or_json
from pdrgate.values.units import Ratio


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PathType())
@text_or_json
@click.option(
    "--reading",
    type=click.Choice(["strict", "tolerant", "published"]),
    default="strict",
    show_default=True,
    help="How PASTRAMI's entry into saturation is read: the paper's text, what the authors meant, what they published.",
)
@click.option("--loss", type=RATIO, help=LOSS_HELP)
@click.option("--eta", type=RATIO, default="0.1", show_default=True, help="A TIR below this is saturation.")
def assess(files: tuple[Path, ...], form: str, reading: str, loss: Ratio | None, eta: Ratio) -> int:
    """Say whether the PDR in each FILE can be trusted.

    FILE is a trials.jsonl of pdrgate, a result file of PASTRAMI, or a directory: all of them below it. An experiment of
    TCP has no PDR: what is asked of it is whether its throughput is one number. An experiment is one scenario and boot;
    where builds were compared, one build of one comparison over its boots.

    Exits with 0 when every experiment is STABLE, with 1 when one is not, with 2 when a FILE is no trials or the
    generator was the limit.
    """
    from pdrgate.stability import TirReading, assess, expand, read_experiments
    from pdrgate.stability.experiments import goal_of
    from pdrgate.stability.series_checks import assess_transfers
    from pdrgate.stability.text import render_assessments, render_transfers

    found = [experiment for path in expand(files, note) for experiment in read_experiments(path)]
    assessments = [
        assess(
            experiment.trials,
            reading=TirReading(reading),
            plr_threshold=goal_of(experiment.scenario) if loss is None else float(loss),
            eta=float(eta),
            source=experiment.source,
            notes=experiment.notes,
        )
        for experiment in found
        if not experiment.closed_loop
    ]
    loops = [assess_transfers(experiment) for experiment in found if experiment.closed_loop]
    if form == "json":
        echo_json({"experiments": [*(one.result() for one in assessments), *(one.result() for one in loops)]})
    else:
        if assessments:
            click.echo(render_assessments(assessments))
        if loops:
            click.echo(render_transfers(loops))
    return max([one.verdict.exit_code for one in assessments] + [one.verdict.exit_code for one in loops])

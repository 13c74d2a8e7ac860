"""``pdrgate compare``: one set of trials against another."""

from __future__ import annotations

from pathlib import Path

import click

from pdrgate.cli.parameters import LOSS_HELP, RATIO, PathType, declared, echo_json, forms, history_option, note
from pdrgate.history.address import Address
from pdrgate.values.units import Ratio


@click.command()
@click.argument("baseline", type=PathType())
@click.argument("candidate", type=PathType())
@declared("tolerance")
@click.option("--loss", type=RATIO, help=LOSS_HELP)
@click.option("--scenario", metavar="NAME", default="", help="Of several scenarios the one that is compared.")
@click.option("--build", metavar="BUILD", default="", help="Of several comparisons of builds the one that has it.")
@click.option(
    "--test", metavar="NAME", default="", help="Of several tests the one that asked for it, with its suites or without."
)
@history_option(help="Where what boots deviate by is kept.  [default: history.db beside CANDIDATE's folder]")
@click.option(
    "--boots-deviate",
    metavar="RATIO",
    type=RATIO,
    help="What boots are known to deviate by, in place of what the history has.",
)
@forms("text", "json", "markdown")
def compare(
    baseline: Path,
    candidate: Path,
    tolerance: Ratio,
    loss: Ratio | None,
    scenario: str,
    build: str,
    test: str,
    history: Address | None,
    boots_deviate: Ratio | None,
    form: str,
) -> int:
    """Say whether the trials in CANDIDATE show a lower PDR or saturation throughput than those in BASELINE.

    Each is a trials.jsonl, a result file of PASTRAMI, or a directory of one; all its repeats are taken together.
    Trials of TCP are compared by its throughput, round trips and retransmissions. Both hold one scenario. Each holds
    one run, and at most one comparison of builds. --scenario, --build, --test or the name of a file chooses one
    of several.

    BASELINE gives the baseline's trials of a comparison of builds, and CANDIDATE gives the candidate's. Name such a
    run twice to judge its pairs of boots again. Boots of two runs are unpaired. One run does not show what the next
    one gives, so unpaired boots are a REGRESSION only where the deviation between boots is known. Exits as gate does.
    """
    from pdrgate.gate.judged_again.file_comparison import compare_files
    from pdrgate.gate.judged_again.sets_of_trials import WantedSet
    from pdrgate.history.database.experience import Experience

    folder = candidate.absolute() if candidate.is_dir() else candidate.absolute().parent
    comparison, judgement = compare_files(
        baseline, candidate, float(tolerance), None if loss is None else float(loss), note,
        asked=WantedSet(scenario, build, test), experience=Experience(history or Address.beside(folder.parent)),
        boots_deviate=None if boots_deviate is None else float(boots_deviate),
    )  # fmt: skip
    if form == "json":
        echo_json({"verdict": judgement.verdict, "reason": judgement.reason, "comparison": comparison})
    elif form == "markdown":
        from pdrgate.reports.ci.markdown import comparison_markdown

        click.echo(comparison_markdown(comparison, judgement, str(candidate)), nl=False)
    else:
        click.echo(str(judgement))
    return judgement.verdict.exit_code

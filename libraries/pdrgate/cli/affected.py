"""``pdrgate affected``: what differs between two kernels, and which paths run it."""

from __future__ import annotations

from pathlib import Path

import click

from pdrgate.cli.parameters import PathType, echo_json, forms, note
from pdrgate.values.errors import EXIT_PASS


@click.command()
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidate", metavar="CANDIDATE")
@click.option(
    "--run", "folder", metavar="RUN", type=PathType(),
    help="The folder of a run, whose packets show which functions each path executes.",
)  # fmt: skip
@forms("text", "json")
def affected(baseline: str, candidate: str, folder: Path | None, form: str) -> int:
    """Say which functions and variables differ between two kernels, and which paths of RUN execute such functions.

    BASELINE and CANDIDATE are what the gate's --kernel takes. Nothing is booted or measured. Addresses are compared by
    the names that they have. Modules are compared that a path may load: of the network, virtio and cryptography.

    What boot code computes and what the kernel patches at run time is not seen.
    """
    from pdrgate.builds.named_build import named_build
    from pdrgate.differences.affected_paths import affected_paths, codes_of_run
    from pdrgate.differences.code_differences import code_differences
    from pdrgate.history.results import read_result
    from pdrgate.reports.words.affected_words import affected_lines, affected_values

    run = None if folder is None else read_result(folder)
    found = code_differences(named_build(baseline, report=note), named_build(candidate, report=note))
    paths = () if run is None else affected_paths(found, codes_of_run(run))
    if form == "json":
        echo_json(affected_values(found, paths))
    else:
        click.echo("\n".join(affected_lines(found, paths)))
    return EXIT_PASS

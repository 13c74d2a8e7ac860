"""``pdrgate affected``: what differs between two kernels, and which paths run it."""

from __future__ import annotations

from pathlib import Path

import click

from pdrgate.cli.parameters import echo_json, forms, history_option, note
from pdrgate.history.address import Address
from pdrgate.values.errors import EXIT_PASS


@click.command()
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidate", metavar="CANDIDATE")
@history_option("where", help="It shows what BASELINE runs on each path.  [default: history.db in results]")
@forms("text", "json")
def affected(baseline: str, candidate: str, where: Address | None, form: str) -> int:
    """Say which functions and variables differ between two kernels, and which paths run or touch them.

    BASELINE and CANDIDATE are what the gate's --kernel takes. Nothing is booted or measured. Addresses are compared by
    the names that they have. Modules are compared that a path may load: of the network, virtio and cryptography.

    What boot code computes and what the kernel patches at run time is not seen.
    """
    from pdrgate.builds.named_build import named_build
    from pdrgate.differences.affected_paths import affected_paths
    from pdrgate.differences.code_differences import code_differences
    from pdrgate.launch.described import described_tests
    from pdrgate.launch.selected_paths import known_codes
    from pdrgate.launch.shard import PORTFOLIO
    from pdrgate.launch.suites import default_testbed
    from pdrgate.reports.words.affected_words import affected_lines, affected_values
    from pdrgate.testbeds import load_testbed
    from pdrgate.this_process.own_files import found as own_file

    before = named_build(baseline, report=note)
    found = code_differences(before, named_build(candidate, report=note))
    testbed = load_testbed(own_file(default_testbed(builds=True)[0]))
    known = known_codes(where or Address.beside(Path("results")), before, testbed)
    tests = described_tests(patterns=(PORTFOLIO,)) if known else []
    paths = affected_paths(found, {one.name: known.get(one.scenario.name) for one in tests})
    if form == "json":
        echo_json(affected_values(found, paths))
    else:
        click.echo("\n".join(affected_lines(found, paths)))
    return EXIT_PASS

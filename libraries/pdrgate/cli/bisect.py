"""``pdrgate bisect``: which of these builds is the first that is slower?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pdrgate.cli.boots_session import Sentences, boots_session
from pdrgate.cli.parameters import (
    BuildType,
    PathType,
    declared,
    echo_json,
    history_option,
    note,
    output_option,
    said_options,
    scenario_option,
    text_or_json,
)
from pdrgate.history.address import Address
from pdrgate.values.errors import EXIT_FAIL, EXIT_PASS, UsageError
from pdrgate.values.printable import printable

if TYPE_CHECKING:
    from pdrgate.gate.comparisons.bisection import Bisected, Steps
    from pdrgate.gate.run.scenario import Scenario


@click.command()
@click.argument("builds", metavar="GOOD [BUILD]... BAD", nargs=-1, required=True, type=BuildType())
@click.option("--bpf", is_flag=True, help="The builds are eBPF object files, and no kernels.")
@click.option("--each", is_flag=True, help="Judge each build against the one before, in place of a few of them.")
@click.option(
    "--testbed", metavar="FILE", type=PathType(), help="[default: local-vm.yaml, with --bpf steady-guest.yaml]"
)
@scenario_option("")
@declared("measure")
@declared("profile")
@declared("tolerance")
@declared("cost_tolerance")
@declared("changes")
@output_option
@history_option(help="What boots deviate by is kept there.  [default: history.db in the folder of --output]")
@text_or_json
@declared("wait")
def bisect(
    builds: tuple[str, ...],
    bpf: bool,
    each: bool,
    testbed: Path | None,
    scenario: str | None,
    suites: tuple[Path, ...],
    measure: str | None,
    output: Path,
    history: Address | None,
    form: str,
    changes: tuple[str, ...],
    **more: Any,
) -> int:
    """Find the first of some builds that is slower than GOOD, from GOOD to BAD, on one path.

    Two builds are compared as the gate compares them: --scenario names the path that it marked red, and --measure what
    is measured on it. BUILD is what the gate's --kernel takes, with --bpf what its --bpf takes; TREE@A..B is each
    commit of a git tree from A to B. For 'git bisect run' there is: pdrgate gate --bisect.

    Exits with 0 when it is found, with 1 when BAD is not slower, with 2 when the testbed or the machine kept it from
    being found, with 3 when the ends are undecided. With --each: 0 when no build is slower than the one before, 1 when
    one is.
    """
    from pdrgate.builds.found_builds import commits_named
    from pdrgate.gate.comparisons.bisection import BisectionRequest, Steps
    from pdrgate.gate.run.measures import measure_of
    from pdrgate.gate.run.scenario_keys import changed
    from pdrgate.launch import default_testbed
    from pdrgate.launch.measure_choice import default_measure

    said = said_options(changes, more)
    where = history or Address.beside(output)
    builds = builds if bpf else commits_named(builds)
    console = Sentences(to_stderr=form == "json")
    if len(builds) < 2:
        raise UsageError("a bisection is between two builds; name the good one, the bad one, and those between")
    _look_at(builds, bpf=bpf)
    place = testbed or default_testbed(builds=not bpf)[0]
    (path,) = changed([_scenario(scenario, suites, builds[0] if bpf else "")], said.get("changes", ()))
    chosen = measure_of(measure or default_measure(place, kernels=not bpf), path)
    counted = chosen.name == "cost"
    if chosen.name not in ("cost", "pdr", "transfer") or (counted and bpf):
        kinds = "pdr" if bpf else "cost, pdr or transfer"
        raise UsageError(f"such builds are not bisected by --measure {chosen.name}; choose {kinds}")
    if why := chosen.misfit(path):
        raise UsageError(f"{path.title}: {why}")
    if counted and "tolerance" in said:
        raise UsageError("--tolerance says nothing of --measure cost: name --cost-tolerance, or --measure pdr")
    asked = BisectionRequest(scenario=path, bpf=bpf, measure="cost" if counted else "pairs")
    with boots_session(place, said, output, console, where) as session:
        return _each(builds, Steps(session, asked), form) if each else _first(builds, Steps(session, asked), form)


def _look_at(builds: Sequence[str], *, bpf: bool) -> None:
    """Look at the files that are named before anybody is waited for; of commits only the ends.

    Raises:
        BuildError, DataError: one of them is none.
    """
    from pdrgate.builds.bpf_build import bpf_build
    from pdrgate.builds.git_tree.revision import named_revision
    from pdrgate.builds.named_build import look_at

    for build in builds:
        if bpf:
            bpf_build(build)
        elif build in (builds[0], builds[-1]) or named_revision(build.partition(",")[0]) is None:
            look_at(build, note)


def _first(builds: Sequence[str], steps: Steps, form: str) -> int:
    """Compare both ends, and find the first bad build between them."""
    from pdrgate.gate.comparisons.bisection import bisected

    judgement, end = steps.ends(builds[0], builds[-1])
    if not end.bad:
        click.echo(f"the last build is not surely slower than the first one: {judgement}", err=form == "json")
        return EXIT_FAIL if judgement.verdict.passes else judgement.verdict.exit_code
    steps.session.observer.said(f"the ends: {judgement}")
    _show(bisected(builds, steps, end), form)
    _show_folder(steps)
    return EXIT_PASS


def _each(builds: Sequence[str], steps: Steps, form: str) -> int:
    """Find each build that is slower than the one before."""
    from pdrgate.gate.comparisons.bisection import judged_series

    series = judged_series(builds, steps)
    if form == "json":
        echo_json({"sentence": series.sentence, "steps": series.steps})
    else:
        click.echo(f"\n{printable(series.sentence)}")
    _show_folder(steps)
    return EXIT_FAIL if series.slower else EXIT_PASS


def _show(found: Bisected, form: str) -> None:
    from pdrgate.reports.markup.columns import table_lines
    from pdrgate.reports.words.costs import changes_table, total_change

    if form == "json":
        echo_json(found)
        return
    comparison = found.first.comparison
    table = changes_table(comparison.functions, total_change(comparison)) if comparison is not None else None
    lines = [f"  {table.caption}:", *table_lines(table, indent="    ")] if table is not None else []
    click.echo("")
    click.echo("\n".join(map(printable, (found.sentence, *lines))))


def _show_folder(steps: Steps) -> None:
    steps.session.observer.said(f"what was measured: {steps.session.record.folder}")


def _scenario(name: str | None, suites: Sequence[Path], program: str) -> Scenario:
    """The scenario that is named; else the gate's own for builds of that kind.

    Args:
        program: an eBPF object; empty: kernels are compared.
    """
    from pdrgate.builds.bpf_build import bpf_build
    from pdrgate.data_paths.catalogue import DATA_PATHS
    from pdrgate.gate.run.scenario import Scenario
    from pdrgate.launch.described import scenario_named

    if name is not None:
        return scenario_named(name, suites)
    if not program:
        return Scenario()
    kind = bpf_build(program).kind
    path = next((name for name, one in DATA_PATHS.items() if one.program == kind), "")
    if not path:
        raise UsageError(f"{program}: no data path runs a program of the kind {kind}; name another with --scenario")
    return Scenario(data_path=path)

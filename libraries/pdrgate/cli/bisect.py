"""``pdrgate bisect``: which of these builds is the first whose packets cost more?"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pdrgate.cli.boots_session import boots_session
from pdrgate.cli.parameters import (
    PATIENT,
    BuildType,
    PathType,
    RatioType,
    declared,
    echo_json,
    note,
    output_option,
    text_or_json,
)
from pdrgate.cli.sentences import Sentences
from pdrgate.values.errors import EXIT_FAIL, EXIT_PASS, UsageError
from pdrgate.values.printable import printable
from pdrgate.values.units import Duration, Ratio

if TYPE_CHECKING:
    from pdrgate.gate.comparisons.bisection import Bisected, BisectionEnds, BisectionRequest
    from pdrgate.gate.run.session import Session


@click.command()
@click.argument("builds", metavar="GOOD [BUILD]... BAD", nargs=-1, required=True, type=BuildType())
@click.option("--bpf", is_flag=True, help="The builds are eBPF object files, and no kernels.")
@click.option(
    "--ends",
    metavar="RUN",
    type=PathType(),
    help="Judge one build by the ends that this run has compared, and exit for 'git bisect run'.",
)
@click.option("--each", is_flag=True, help="Judge each build against the one before, in place of a few of them.")
@click.option(
    "--testbed", metavar="FILE", type=PathType(), help="[default: local-vm.yaml, with --bpf steady-guest.yaml]"
)
@click.option("--scenario", metavar="NAME", help="Its name, as results have it.  [default: the gate's for such builds]")
@declared("profile")
@declared("tolerance")
@click.option(
    "--cost-tolerance",
    metavar="RATIO",
    type=RatioType(),
    help="Growth of the instructions per packet from which on a build is bad; 1% in emulated guests.",
)
@output_option
@click.option(
    "--noise",
    metavar="FILE",
    type=PathType(),
    help="What boots deviate by is kept there.  [default: noise.jsonl in the folder of --output]",
)
@text_or_json
@declared("wait")
@click.pass_context
def bisect(
    context: click.Context,
    builds: tuple[str, ...],
    bpf: bool,
    ends: Path | None,
    each: bool,
    testbed: Path | None,
    scenario: str | None,
    profile: str,
    tolerance: Ratio,
    cost_tolerance: Ratio | None,
    output: Path,
    noise: Path | None,
    form: str,
    wait: Duration,
) -> int:
    """Find the first of some builds whose packets cost more instructions than GOOD's, from GOOD to BAD.

    GOOD and BAD are compared as the gate compares two builds, by PDR, throughput and cost. Those between are judged by
    the cost alone, which takes a boot each. BUILD is what the gate's --kernel takes, with --bpf what its --bpf takes;
    TREE@A..B is each commit of a git tree from A to B.

    Exits with 0 when it is found, with 1 when BAD's packets do not cost more, with 2 when the testbed or the machine
    kept it from being found. With --each: 0 when no build is slower than the one before, 1 when one is. With --ends and
    one BUILD: 0 good, 1 bad, 125 cannot be told, above 127 nothing can.
    """
    from pdrgate.builds.found_builds import commits_named
    from pdrgate.gate.comparisons.bisection import BisectionEnds, BisectionRequest
    from pdrgate.gate.run.profile import profile as named_profile
    from pdrgate.history.noise_file import NOISE_FILE
    from pdrgate.launch import default_testbed

    beside = noise or output / NOISE_FILE
    builds = builds if bpf else commits_named(builds)
    console = Sentences(to_stderr=form == "json")
    if ends is not None:
        if len(builds) != 1:
            raise UsageError("--ends judges one build; name one")
        for option in ("bpf", "each", "scenario", "profile", "tolerance", "cost_tolerance"):
            if context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE:
                raise UsageError(f"--ends has the terms of that run; leave out --{option.replace('_', '-')}")
        known = BisectionEnds.kept(ends)
        _check_testbed(ends, Path(known.asked.testbed), testbed)
        _look_at(builds, bpf=known.asked.bpf)
        if context.get_parameter_source("wait") is not click.core.ParameterSource.COMMANDLINE:
            wait = PATIENT
        with _session(known.asked, output, beside, console, wait, known.tolerance) as session:
            return _one(session, known, builds[0], form)
    if len(builds) < 2:
        raise UsageError("a bisection is between two builds; name the good one, the bad one, and those between")
    _look_at(builds, bpf=bpf)
    asked = BisectionRequest(
        testbed=str(testbed or default_testbed(builds=not bpf)[0]), profile=named_profile(profile).name, bpf=bpf,
        scenario=scenario or _scenario(builds[0] if bpf else ""),
    )  # fmt: skip
    with _session(asked, output, beside, console, wait, cost_tolerance) as session:
        return _all(session, asked, builds, tolerance, form, each)


def _check_testbed(ends: Path, theirs: Path, asked: Path | None) -> None:
    """Raise UsageError where the command names another testbed than the ends have, or a stranger's ends name one that
    nobody here has asked for: a testbed file is commands for root.
    """
    from pdrgate.gate.comparisons.bisection import ENDS_FILE
    from pdrgate.history.seal import is_sealed
    from pdrgate.this_process.own_files import is_own

    if asked is not None and asked.absolute() != theirs.absolute():
        raise UsageError(f"--ends has the terms of that run; leave out --testbed, or name {theirs}")
    if asked is None and not is_own(theirs) and not is_sealed(ends / ENDS_FILE):
        raise UsageError(f"{ends} was not begun here; where its testbed file is yours, say --testbed {theirs}")


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


def _all(
    session: Session, asked: BisectionRequest, builds: Sequence[str], tolerance: Ratio, form: str, each: bool
) -> int:  # fmt: skip
    """Compare both ends, and find the first bad one between them, or each that is worse than the one before."""
    from pdrgate.gate.comparisons.bisection import Steps, bisected, compare_ends
    from pdrgate.gate.comparisons.judged_series import judged_series

    judgement, found = compare_ends(session, asked, builds[0], builds[-1], float(tolerance), each=each)
    session.observer.said(f"the ends: {judgement}")
    if isinstance(found, str):
        click.echo(found, err=form == "json")
        return judgement.verdict.exit_code if not judgement.verdict.passes else EXIT_FAIL
    found.keep(session.record.folder)
    slower = False
    with session.recorded_in(session.record.steps):
        steps = Steps(session, found)
        if each:
            series = judged_series(builds, steps)
            slower = bool(series.slower)
            if form == "json":
                echo_json({"sentence": series.sentence, "steps": series.steps})
            else:
                click.echo(f"\n{series.sentence}")
        else:
            _tell(bisected(builds, steps), form)
    session.observer.said(f"the ends' result, and the trials of all steps: {session.record.folder}")
    return EXIT_FAIL if each and slower else EXIT_PASS


def _one(session: Session, ends: BisectionEnds, build: str, form: str) -> int:
    """Judge one build, for git."""
    from pdrgate.gate.comparisons.bisection import Steps

    step = Steps(session, ends).judge(build)
    if form == "json":
        echo_json(step)
    else:
        click.echo(f"{step.verdict}: {step.reason}")
    return step.verdict.bisect_code


def _tell(found: Bisected, form: str) -> None:
    from pdrgate.reports.markup.columns import table_lines
    from pdrgate.reports.words.costs import changes_table

    if form == "json":
        echo_json(found)
        return
    click.echo("")
    table = changes_table(found.functions, found.change)
    lines = [f"  {table.caption}:", *table_lines(table, indent="    ")] if table is not None else []
    click.echo("\n".join(map(printable, (found.sentence, *lines))))


def _session(
    asked: BisectionRequest, output: Path, noise: Path, console: Sentences, wait: Duration, cost_tolerance: float | None
) -> contextlib.AbstractContextManager[Session]:
    """The testbed, taken, in a new folder below ``output``."""
    from pdrgate.gate.run.options import Options
    from pdrgate.gate.run.profile import profile as named_profile
    from pdrgate.history.noise_file import NoiseFile

    options = Options(
        profile=named_profile(asked.profile).name, wait=wait, below_noise=True,
        cost_tolerance=None if cost_tolerance is None else Ratio(cost_tolerance),
    )  # fmt: skip
    return boots_session(Path(asked.testbed), options, output, console, [NoiseFile(noise)], [noise])


def _scenario(program: str) -> str:
    """The gate's own for builds of that kind.

    Args:
        program: an eBPF object; empty: kernels are compared.
    """
    from pdrgate.builds.bpf_build import bpf_build
    from pdrgate.data_paths.catalogue import DATA_PATHS
    from pdrgate.gate.run.scenario import Scenario

    if not program:
        return Scenario().name
    kind = bpf_build(program).kind
    path = next((name for name, one in DATA_PATHS.items() if one.program == kind), "")
    if not path:
        raise UsageError(f"{program}: no data path runs a program of the kind {kind}; name another with --scenario")
    return Scenario(data_path=path).name

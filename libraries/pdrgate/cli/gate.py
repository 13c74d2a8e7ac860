"""``pdrgate gate``: measure, judge, and say whether the build passes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pdrgate.cli.parameters import (
    PATIENT,
    AddressType,
    BuildType,
    CommitType,
    DurationType,
    PathType,
    RatioType,
    output_option,
    profile_option,
    wait_option,
)
from pdrgate.errors import EXIT_PASS, UsageError
from pdrgate.history.address import HISTORY_VARIABLE

if TYPE_CHECKING:
    from pdrgate.gate.run.options import RunOptions

_SUITES = Path("robot/gate")
FEWEST_BOOTS = 3
"""A curve whose loads were measured less often supports no PDR (the checks of the repeats need three of each)."""


def _tags(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """What --scenario may be, for a shell."""
    from pdrgate.launch import listed

    try:
        tags = {tag for test in listed(context.params.get("suites") or (_SUITES,)) for tag in test.tags}
    except UsageError:
        return []  # the run will tell
    return [tag for tag in (*sorted(tags), "all") if tag.startswith(incomplete)]


@click.command()
@click.option(
    "--testbed",
    metavar="FILE",
    type=PathType(),
    help="[default: steady-guest.yaml, with --kernel local-vm.yaml]",
)
@click.option(
    "--kernel",
    metavar="BUILD",
    type=BuildType(),
    help="A kernel to boot: .deb, bzImage, build tree or distribution package.",
)
@click.option(
    "--bpf", metavar="OBJECT", type=BuildType(), help="An eBPF object file with a program for XDP or tc, to be loaded."
)
@click.option(
    "--against",
    metavar="BUILD",
    type=BuildType(),
    help="What --kernel or --bpf is compared with, measured in turn with it.",
)
@click.option(
    "--boots", type=click.IntRange(FEWEST_BOOTS, 500), default=48, show_default=True, help="Boots of each, at most."
)
@click.option(
    "--budget",
    metavar="TIME",
    type=DurationType(),
    help="After this time none is booted.  [default: 100 s for guests of constant speed, 9 min for others, or what six "
    "pairs take]",
)
@click.option(
    "--scenario",
    "scenarios",
    metavar="TAG",
    multiple=True,
    default=["default"],
    show_default=True,
    shell_complete=_tags,
    help="Tests to run, by tag or Robot tag pattern (small-buffers, ipv4, ipv6ANDlarge-buffers); 'all' runs all.",
)
@profile_option
@click.option(
    "--tolerance",
    metavar="RATIO",
    type=RatioType(),
    default="2%",
    show_default=True,
    help="Loss of PDR that is accepted.",
)
@click.option(
    "--cost-tolerance",
    metavar="RATIO",
    type=RatioType(),
    help="Growth of the instructions per packet that is accepted; 1% in emulated guests, elsewhere not judged.",
)
@click.option("--latency", is_flag=True, help="Measure latency at 50, 90 and 99 % of the PDR as well, and judge it.")
@click.option(
    "--latency-tolerance",
    metavar="RATIO",
    type=RatioType(),
    default="30%",
    show_default=True,
    help="Growth of latency that is accepted.",
)
@output_option
@click.option(
    "--baseline",
    metavar="PATH",
    type=PathType(),
    help="A result.json, the folder of a run, a folder of runs, or history:NAME, a build that the history names.",
)
@click.option(
    "--any-fingerprint", is_flag=True, help="Compare with history:NAME though it was measured on other terms."
)
@click.option(
    "--history",
    metavar="FILE_OR_URL",
    type=AddressType(),
    envvar=HISTORY_VARIABLE,
    help="A database to put the run into: a SQLite file, or postgresql://user@host/database.",
)
@click.option("--require-baseline", is_flag=True, help="Fail, before measuring, where there is no baseline.")
@click.option(
    "--noise",
    metavar="FILE",
    type=PathType(),
    help="Where what boots deviate by is kept.  [default: noise.jsonl in the folder of --output]",
)
@click.option("--afresh", is_flag=True, help="Forget earlier tries of the same two builds; else their pairs count too.")
@click.option(
    "--below-noise", is_flag=True, help="Compare builds though the tolerance is below what this testbed resolves."
)
@click.option(
    "--allow-config-differences",
    is_flag=True,
    help="Claim an IMPROVEMENT also of builds whose hardening, mitigations or debugging differ.",
)
@click.option(
    "--spike-in", is_flag=True, help="Show of builds that pass that they could have failed: plant a slowdown."
)
@click.option(
    "--soak", metavar="TIME", type=DurationType(), help="Offer 90 % of the PDR for so long, and say what is lost."
)
@click.option("--retis", is_flag=True, help="Have Retis look at each packet that is dropped, in one trial more.")
@click.option("--resume", metavar="RUN", type=PathType(), help="Continue the run in this folder.")
@click.option("--reading", type=click.Choice(["strict", "tolerant", "published"]), default="strict", show_default=True)
@wait_option
@click.option("--quiet", "-q", is_flag=True, help="Print the verdict and its evidence, and nothing else.")
@click.option("--bisect", is_flag=True, help="Exit for 'git bisect run': 0 good, 1 bad, 125 cannot be told.")
@click.option(
    "--commit",
    metavar="COMMIT",
    type=CommitType(),
    envvar="PDRGATE_COMMIT",
    help="Of the change that is judged; result.json has it, and 'pdrgate merge' takes no other.",
)
@click.option(
    "--suite",
    "suites",
    metavar="PATH",
    type=PathType(),
    multiple=True,
    default=[str(_SUITES)],
    show_default=True,
)
@click.option("--list-scenarios", is_flag=True, help="List the tests that there are, with their tags, and end.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: result.json on standard output, and the lines for people on standard error.",
)
@click.pass_context
def gate(
    context: click.Context,
    /,
    output: Path,
    resume: Path | None,
    quiet: bool,
    form: Literal["text", "json"],
    list_scenarios: bool,
    **asked: Any,
) -> int:
    """Measure the data path and say whether it is stable, and as fast as its baseline.

    Exits with 0 when the gate passes (PASS, IMPROVEMENT, NO_BASELINE), with 1 when the build fails it (REGRESSION,
    CRASH, UNSTABLE, INCONCLUSIVE), with 2 when the testbed or a tool is at fault (DISTURBED, GENERATOR_LIMITED, ERROR).
    """
    from pdrgate.gate.run.options import RunOptions
    from pdrgate.history.noise_file import NOISE_FILE
    from pdrgate.launch import Telling, check, default_testbed, followed, new_folder, run_gate

    telling = Telling(form, quiet)
    given = {
        option.name: option.opts[0]
        for option in context.command.params
        if option.name in asked and context.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE
    }
    if list_scenarios:
        _list(asked["suites"], asked["scenarios"] if "scenarios" in given else ("all",), form)
        return EXIT_PASS
    if resume is not None:
        if given:
            named = next(iter(given.values()))
            raise UsageError(f"--resume takes the options of the run that it continues; leave out {named}")
        folder = followed(resume if resume.exists() else output / resume)
        options = RunOptions.of_run(folder)
        check(options)
        return run_gate(options, folder, resume=True, telling=telling)
    why = ""
    asked["baseline"] = asked["baseline"] and followed(asked["baseline"])
    if asked["bisect"] and "wait" not in given:
        asked["wait"] = PATIENT
    asked["noise"] = asked["noise"] or output / NOISE_FILE
    if asked["testbed"] is None:
        asked["testbed"], why = default_testbed(asked["kernel"] is not None)
    options = _asked(**asked)
    check(options)
    folder = new_folder(output)
    options.keep(folder)
    return run_gate(options, folder, why, telling=telling)


def _list(suites: Sequence[Path], patterns: Sequence[str], form: str) -> None:
    """Print the tests that there are, by suite, with the tags that choose them."""
    import json
    from itertools import groupby

    from pdrgate.launch import listed

    tests = listed(suites, patterns)
    if form == "json":
        click.echo(json.dumps([dataclasses.asdict(one) for one in tests], indent=1))
        return
    width = max(len(one.test) for one in tests)
    for (name, about), found in groupby(tests, key=lambda one: (one.suite, one.about)):
        click.echo(f"{name}: {about}")
        for one in found:
            click.echo(f"  {one.test:{width}s}  {' '.join(one.tags)}")


def _asked(**given: Any) -> RunOptions:
    """The options of a new run; what the command line leaves open is chosen by what it names.

    Args:
        given: by field, the values that click made; None where there is none.

    Raises:
        UsageError: options that do not go together.
    """
    from pdrgate.builds.bpf_build import bpf_build
    from pdrgate.gate.run.options import RunOptions
    from pdrgate.gate.verdicts.baseline import is_history, name_in_history
    from pdrgate.stability import TirReading

    said = {name: value for name, value in given.items() if value is not None}
    options = RunOptions(**said | {"reading": TirReading(said["reading"])})
    if options.kernel and options.bpf:
        raise UsageError("--kernel and --bpf do not go together: compare one of the two at a time")
    if bool(options.kernel or options.bpf) != bool(options.against):
        raise UsageError("--kernel or --bpf and --against go together: boots of both builds are compared")
    if options.against and options.baseline is not None:
        raise UsageError("--baseline and --against do not go together: what is measured in turn needs no stored result")
    if is_history(options.baseline):
        raise UsageError(  # an address may hold a password, and is not told
            "--baseline names a history, which has many; name it with --history FILE_OR_URL, and what to compare with "
            "by --baseline history:NAME ('pdrgate history pin' gives names)"
        )
    if name_in_history(options.baseline) and options.history is None:
        raise UsageError(f"--baseline {options.baseline} is of a history; name that with --history FILE_OR_URL")
    if options.any_fingerprint and not name_in_history(options.baseline):
        raise UsageError("--any-fingerprint is for --baseline history:NAME; a file or a folder must be comparable")
    if options.require_baseline and options.baseline is None:
        raise UsageError("--require-baseline asks for a baseline; name a run or a folder of runs with --baseline")
    if options.spike_in and not options.against:
        raise UsageError("--spike-in slows the baseline of a comparison down; name one: --kernel BUILD --against BUILD")
    if options.spike_in and not options.tolerance:
        raise UsageError("--spike-in plants a slowdown of twice the tolerance, and twice 0% is none; ask for more")
    if options.bisect and not options.against:
        raise UsageError("--bisect needs a build that is known to be good: --kernel BUILD --against GOOD")
    if options.against and options.scenarios == ("default",):
        tag = f"bpf-build-{bpf_build(options.bpf).kind}" if options.bpf else "kernel-build"
        options = dataclasses.replace(options, scenarios=(tag,))
    if options.retis and options.against:
        raise UsageError("--retis looks at one build; leave out --against, and look at the candidate by itself")
    if options.soak is not None and not options.soak:
        raise UsageError("--soak 0 s offers nothing; name a time such as 1 h, or leave it out")
    if options.soak is not None and options.against:
        raise UsageError("--soak is of one build; leave out --against")
    if options.soak is not None and options.scenarios == ("default",):
        options = dataclasses.replace(options, scenarios=("soak",))
    return options

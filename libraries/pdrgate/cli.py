"""The command ``pdrgate``: parses, calls a floor, prints. Errors are one line on stderr; exit codes as in errors.py."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pdrgate import __version__
from pdrgate.errors import (
    EXIT_FAULT,
    EXIT_PASS,
    EXIT_STOP,
    EXIT_UNTESTABLE,
    EXIT_USAGE,
    PdrGateError,
    UnitError,
    UsageError,
)
from pdrgate.units import Duration, Ratio

if TYPE_CHECKING:
    from pdrgate.gate.options import RunOptions

# numpy costs more to start than all of the rest: commands import what computes only when they run.

FEWEST_BOOTS = 3
"""A curve whose loads were measured less often supports no PDR (the checks of the repeats need three of each)."""


class RatioType(click.ParamType[Ratio]):
    """``0.5%`` or ``0.005``; at least 0 and below 1."""

    name = "ratio"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Ratio:
        """Parse what the command line says; a usage error when it is no ratio in [0, 1)."""
        try:
            ratio = Ratio.parse(value)
        except UnitError as error:
            self.fail(str(error), param, ctx)
        if not 0 <= ratio < 1:
            self.fail(f"{value!r} must be at least 0 and below 100%", param, ctx)
        return ratio


class DurationType(click.ParamType[Duration]):
    """``90 s``, ``5 min`` or a number of seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Duration:
        """Parse what the command line says; a usage error when it is no duration."""
        try:
            return Duration.parse(value)
        except UnitError as error:
            self.fail(str(error), param, ctx)


class PathType(click.ParamType[Path]):
    """A path. Empty text names none: pathlib would take it for the working directory."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; a usage error when the text is empty."""
        if not str(value).strip():
            self.fail("it is empty; name a file or a folder, such as '.' for this one", param, ctx)
        return Path(value)


class BuildType(click.ParamType[str]):
    """What a person calls a build: a path, perhaps with parts, or a package.

    Empty text, of an unset shell variable for one, is refused: no comparison would be made, and nobody told.
    """

    name = "build"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text; a usage error when it is empty."""
        if not str(value).strip():
            self.fail("it is empty; name a file or a package, or leave the option out", param, ctx)
        return str(value)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="pdrgate", message="%(prog)s %(version)s")
def cli(debug: bool) -> None:
    """Decide whether a kernel's packet data path is as fast as it was.

    Exit codes: 0 passes, 1 fails because of the SUT, 2 a file or the testbed is at fault, 64 a usage error.
    """


@cli.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PathType())
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--reading",
    type=click.Choice(["strict", "tolerant", "published"]),
    default="strict",
    show_default=True,
    help="How PASTRAMI's entry into saturation is read: the paper's text, what the authors meant, what they published.",
)
@click.option("--loss", type=RatioType(), default="0.5%", show_default=True, help="The PLR that defines the PDR.")
@click.option("--eta", type=RatioType(), default="0.1", show_default=True, help="A TIR below this is saturation.")
def assess(files: tuple[Path, ...], form: str, reading: str, loss: Ratio, eta: Ratio) -> int:
    """Say whether the PDR in each FILE can be trusted.

    FILE is a trials.jsonl of pdrgate, a result file of PASTRAMI, or a directory: all *.txt and trials.jsonl below it.

    Exits with 0 when every experiment is STABLE, with 1 when one is not, with 2 when a FILE is no trials or the
    generator was the limit.
    """
    import json

    import msgspec

    from pdrgate.stability import Reading, assess, expand, read_experiments
    from pdrgate.stability.text import render

    assessments = [
        assess(
            experiment.trials,
            reading=Reading(reading),
            plr_threshold=float(loss),
            eta=float(eta),
            source=experiment.source,
            notes=experiment.notes,
        )
        for path in expand(files, _note)
        for experiment in read_experiments(path)
    ]
    if form == "json":
        record = {"experiments": [msgspec.to_builtins(found.result()) for found in assessments]}
        click.echo(json.dumps(record, indent=1, allow_nan=False))
    else:
        click.echo(render(assessments))
    return max(found.verdict.exit_code for found in assessments)


@cli.command()
@click.argument("baseline", type=PathType())
@click.argument("candidate", type=PathType())
@click.option("--tolerance", type=RatioType(), default="2%", show_default=True, help="Loss of PDR that is accepted.")
@click.option("--loss", type=RatioType(), default="0.5%", show_default=True, help="The PLR that defines the PDR.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def compare(baseline: Path, candidate: Path, tolerance: Ratio, loss: Ratio, form: str) -> int:
    """Say whether the trials in CANDIDATE show a lower PDR or saturation throughput than those in BASELINE.

    Each is a trials.jsonl, a result file of PASTRAMI, or a directory of one; all its repeats are taken together. Of the
    trials of a comparison of builds, BASELINE gives those of its baseline and CANDIDATE those of its candidate: name
    such a run twice, and its pairs of boots are judged again. Exits as gate does. Trials taken in one boot do not show
    what the next boot will give: replicate boots, not trials.
    """
    import json

    import msgspec

    from pdrgate.gate.file_comparison import compare_files

    comparison, judgement = compare_files(baseline, candidate, float(tolerance), float(loss), _note)
    if form == "json":
        record = {"verdict": judgement.verdict, "reason": judgement.reason}
        click.echo(json.dumps(record | {"comparison": msgspec.to_builtins(comparison)}, indent=1))
    else:
        click.echo(str(judgement))
    return judgement.verdict.exit_code


@cli.command()
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
    help="After this time none is booted.  [default: 9 min, or what six pairs take where boots are slow]",
)
@click.option(
    "--scenario",
    "scenarios",
    metavar="TAG",
    multiple=True,
    default=["default"],
    show_default=True,
    help="Tests to run, by tag or Robot tag pattern (small-buffers, ipv4, ipv6ANDlarge-buffers); 'all' runs all.",
)
@click.option(
    "--profile", type=click.Choice(["smoke", "quick", "standard", "pastrami"]), default="quick", show_default=True
)
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
    default="1%",
    show_default=True,
    help="Growth of the instructions per packet that is accepted.",
)
@click.option("--output", metavar="FOLDER", default="results", show_default=True, type=PathType())
@click.option(
    "--baseline",
    metavar="PATH",
    type=PathType(),
    help="A result.json, the folder of a run, or a folder of runs.",
)
@click.option("--require-baseline", is_flag=True, help="Fail, before measuring, where there is no baseline.")
@click.option("--resume", metavar="RUN", type=PathType(), help="Continue the run in this folder.")
@click.option("--reading", type=click.Choice(["strict", "tolerant", "published"]), default="strict", show_default=True)
@click.option(
    "--wait",
    metavar="TIME",
    type=DurationType(),
    default="0 s",
    show_default=True,
    help="Wait for another run here to end.",
)
@click.option("--bisect", is_flag=True, help="Exit for 'git bisect run': 0 good, 1 bad, 125 cannot be told.")
@click.option(
    "--suite",
    "suites",
    metavar="PATH",
    type=PathType(),
    multiple=True,
    default=["robot/gate"],
    show_default=True,
)
@click.pass_context
def gate(context: click.Context, /, output: Path, resume: Path | None, **asked: Any) -> int:
    """Measure the data path and say whether it is stable, and as fast as its baseline.

    Exits with 0 when the gate passes (PASS, IMPROVEMENT, NO_BASELINE), with 1 when the build fails it (REGRESSION,
    UNSTABLE, INCONCLUSIVE), with 2 when the testbed or a tool is at fault (DISTURBED, GENERATOR_LIMITED, ERROR).
    """
    from pdrgate.gate.options import RunOptions
    from pdrgate.launch import check, default_testbed, new_folder, run_gate

    if resume is not None:
        given = [
            option.opts[0]
            for option in context.command.params
            if option.name in asked
            and context.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE
        ]
        if given:
            raise UsageError(f"--resume takes the options of the run that it continues; leave out {given[0]}")
        folder = resume if resume.exists() else output / resume
        options = RunOptions.of_run(folder)
        check(options)
        return run_gate(options, folder, resume=True)
    why = ""
    if asked["testbed"] is None:
        asked["testbed"], why = default_testbed(asked["kernel"] is not None)
    options = _asked(**asked)
    check(options)
    folder = new_folder(output)
    options.keep(folder)
    return run_gate(options, folder, why)


def _asked(**given: Any) -> RunOptions:
    """The options of a new run; what the command line leaves open is chosen by what it names.

    Args:
        given: by field, the values that click made; None where there is none.

    Raises:
        UsageError: options that do not go together.
    """
    from pdrgate.builds.bpf_build import bpf_build
    from pdrgate.gate.options import RunOptions
    from pdrgate.stability import Reading

    said = {name: value for name, value in given.items() if value is not None}
    options = RunOptions(**said | {"reading": Reading(said["reading"])})
    if options.kernel and options.bpf:
        raise UsageError("--kernel and --bpf do not go together: compare one of the two at a time")
    if bool(options.kernel or options.bpf) != bool(options.against):
        raise UsageError("--kernel or --bpf and --against go together: boots of both builds are compared")
    if options.against and options.baseline is not None:
        raise UsageError("--baseline and --against do not go together: what is measured in turn needs no stored result")
    if options.require_baseline and options.baseline is None:
        raise UsageError("--require-baseline asks for a baseline; name a run or a folder of runs with --baseline")
    if options.bisect and not options.against:
        raise UsageError("--bisect needs a build that is known to be good: --kernel BUILD --against GOOD")
    if options.against and options.scenarios == ("default",):
        tag = f"bpf-build-{bpf_build(options.bpf).kind}" if options.bpf else "kernel-build"
        options = dataclasses.replace(options, scenarios=(tag,))
    return options


@cli.command()
@click.option(
    "--state",
    metavar="FOLDER",
    type=PathType(),
    help="Where runs keep their locks and their journals.  [default: /run/pdrgate, for other hosts /var/lib/pdrgate]",
)
def restore(state: Path | None) -> int:
    """Undo what killed runs left on this machine and on the hosts they touched.

    Settings go back to what they were, programs end, namespaces go. What somebody else has set since is left alone. The
    next run does the same by itself. What a run that is measuring uses is not touched.

    Exits with 0 when nothing is left, with 2 when something could not be undone, or is used by a run.
    """
    from pdrgate.safety.recovery import NotUndone, recover_stale
    from pdrgate.safety.state import STATE_DIR

    told = recover_stale(state or STATE_DIR)
    for sentence in told:
        click.echo(sentence)
    if not told:
        click.echo("nothing to undo: no killed run has left anything")
    return EXIT_FAULT if any(isinstance(sentence, NotUndone) for sentence in told) else EXIT_PASS


@cli.command()
@click.argument("testbed", metavar="TESTBED", type=PathType())
@click.option("--kernel", metavar="BUILD", help="A kernel to boot, for a testbed that boots kernels.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--output", metavar="FOLDER", default="results", show_default=True, type=PathType())
@click.option(
    "--wait",
    metavar="TIME",
    type=DurationType(),
    default="0 s",
    show_default=True,
    help="Wait for another run here to end.",
)
def doctor(testbed: Path, kernel: str | None, form: str, output: Path, wait: Duration) -> int:
    """Look at TESTBED before it measures: what is missing, what would disturb, and what to do about it.

    TESTBED is a testbed file. It is set up, sends a few seconds of traffic, and is put back.

    Exits with 0 when it is fit to measure, if need be with warnings, and with 2 when a check fails.
    """
    import json

    from pdrgate.doctor import Examination, Finding, Status, worst
    from pdrgate.launch import found as path_of
    from pdrgate.reports.doctor import render, summary
    from pdrgate.testbeds import load_testbed

    config = load_testbed(path_of(testbed))
    if kernel is not None:
        config = config.with_kernel(kernel)
    findings: list[Finding] = []

    def kept() -> Iterator[Finding]:
        # Closed at once when we are interrupted, for it holds the testbed open.
        with contextlib.closing(Examination(config, output, wait=wait).findings()) as found:
            for finding in found:
                findings.append(finding)
                yield finding

    if form == "json":
        record: dict[str, object] = {"testbed": config.name, "source": str(config.source)}
        record["findings"] = [finding.to_dict() for finding in kept()]
        record["status"] = worst(findings)
        click.echo(json.dumps(record, indent=1))
    else:
        click.echo(f"testbed {config.name} ({config.source})")
        for line in render(kept()):
            click.echo(line)
        click.echo(f"\n{summary(findings)}")
    return EXIT_FAULT if worst(findings) is Status.FAIL else EXIT_PASS


@cli.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
def report(run: Path) -> int:
    """Make every report of RUN again, from what it stored.

    RUN is a run's folder. Its result.json and trials.jsonl, of this version or an older one, make summary.html and
    plots/*.png; its output.xml makes Robot's log.html, report.html and xunit.xml. Without output.xml, xunit.xml is made
    of result.json. allure-results were written by a listener while the run went on, and stay as they are.

    Prints the path of each file. Exits with 2 when RUN holds no result.
    """
    from pdrgate.reports.remake import Told, remake

    for made in remake(run):
        click.echo(made.sentence if isinstance(made, Told) else str(made))
    return EXIT_PASS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    debug = False
    words = list(sys.argv[1:] if arguments is None else arguments)

    def for_bisect(code: int) -> int:
        """To git bisect, any other code of an error would be a bad build; a wrong command line stops it."""
        if "--bisect" not in words:
            return code
        return EXIT_STOP if code == EXIT_USAGE else EXIT_UNTESTABLE

    try:
        with cli.make_context("pdrgate", words) as context:
            debug = context.params["debug"]
            code = cli.invoke(context)
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_USAGE
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "pdrgate"
        return _complain(f"{error.format_message().rstrip('.')}; see '{where} --help'", for_bisect(EXIT_USAGE))
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted", 130)
    except BrokenPipeError:
        # The reader has gone (| head): nothing to complain about, and no second error on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAULT
    except PdrGateError as error:
        if debug:
            raise
        return _complain(str(error), for_bisect(error.exit_code))
    except Exception as error:
        if debug:
            raise
        return _complain(
            f"internal error: {type(error).__name__}: {error}; run again with --debug", for_bisect(EXIT_FAULT)
        )


def _note(sentence: str) -> None:
    click.echo(f"pdrgate: note: {sentence}", err=True)


def _complain(message: str, code: int) -> int:
    click.echo(f"pdrgate: {' '.join(message.split())}", err=True)
    return code


if __name__ == "__main__":
    sys.exit(main())

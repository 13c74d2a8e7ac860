"""``pdrgate gate``: measure, judge, and say whether the build passes."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Collection, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pdrgate.cli.parameters import (
    PATIENT,
    PathType,
    declared_options,
    echo_json,
    note,
    output_option,
    said_options,
)
from pdrgate.gate.run.declaration import declarations
from pdrgate.gate.run.options import SCENARIO_FILES, RunOptions
from pdrgate.history.address import Address
from pdrgate.this_process.interruption import was_interrupted
from pdrgate.this_process.own_files import beside_own
from pdrgate.this_process.streams import standard_output_to
from pdrgate.values.errors import EXIT_PASS, PdrGateError, UsageError

if TYPE_CHECKING:
    from pdrgate.gate.run.project_file import ProjectFile


def _tags(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """What --scenario may be, for a shell."""
    from pdrgate.launch import listed

    suites = context.params.get("suites") or _USUAL.suites
    try:
        tags = {tag for test in listed(suites) for tag in test.tags}
    except PdrGateError:
        return []  # the run itself reports the error
    return [tag for tag in (*sorted(tags), "all") if tag.startswith(incomplete)]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@declared_options(scenarios=_tags)
@output_option
@click.option("--resume", metavar="RUN", type=PathType(), help="Continue the run in this folder.")
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(1, 999),
    default=1,
    help="Measure N parts of the paths at once.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print the verdict and its evidence only.")
@click.option("--verbose", "-v", is_flag=True, help="Print all that happens on each of several paths.")
@click.option("--list-scenarios", is_flag=True, help="List the tests with their tags, and end.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: print result.json.",
)
@click.pass_context
def gate(
    context: click.Context,
    /,
    output: Path,
    resume: Path | None,
    workers: int,
    quiet: bool,
    verbose: bool,
    form: Literal["text", "json"],
    list_scenarios: bool,
    **asked: Any,
) -> int:
    """Measure the data path and say whether it is stable, and as fast as its baseline.

    Exits with 0 when the gate passes, with 1 when the build fails it, with 2 when the testbed or a tool is at fault,
    with 3 when what was measured does not decide.
    """
    from pdrgate.cli.merge import merge_runs
    from pdrgate.launch import OutputForm, check, followed, resumed_options, run_gate
    from pdrgate.launch.workers import PathWorker, run_workers, shared_out
    from pdrgate.reports.whole_runs.merged_run import MERGED_FILE

    printing = OutputForm(form, quiet, verbose)
    asked = said_options(asked.pop("changes"), asked, RunOptions)
    given = {
        name: declarations(RunOptions)[name].option
        for name in asked
        if context.get_parameter_source(name) is not click.core.ParameterSource.ENVIRONMENT
    }
    _take_file(context, asked, given)
    if list_scenarios:
        _list(asked.get("suites", _USUAL.suites), asked.get("scenarios", ("all",)), form)
        return EXIT_PASS
    if resume is not None:
        folder = followed(resume if resume.exists() else output / resume)
        asked.setdefault("history", Address.beside(folder.parent))
        options = resumed_options(folder, asked, given)
        check(options, note)
        return run_gate(options, folder, resume=True, output=printing)
    project = _take_project(asked, given)
    if "bisect" in asked:
        asked.setdefault("wait", PATIENT)
    asked.setdefault("history", Address.beside(output))
    runs = [_new_run(one, given, project) for one in _by_worker(_by_architecture(asked), workers)]
    cpus = shared_out(workers) if workers > 1 else ()  # refused before anything is made
    folders = [_kept_folder(options, output) for options, _ in runs]
    if len(runs) == 1:
        return run_gate(runs[0][0], folders[0], runs[0][1], output=printing)
    into, out = folders[-1].with_name(f"{folders[-1].name}-merged"), sys.stdout
    with standard_output_to(sys.stderr if form == "json" else out):
        if workers > 1:
            parts = zip((one.shard for one, _ in runs), folders, cycle(cpus))
            code = run_workers([PathWorker(*part) for part in parts], workers, quiet=quiet, verbose=verbose)
            if was_interrupted(code):
                return code
        else:
            for (options, why), folder in zip(runs, folders, strict=True):
                code = run_gate(options, folder, why, output=OutputForm("text", quiet, verbose))
                if was_interrupted(code):
                    return code
        code = merge_runs(folders, into)
    if form == "json":
        out.write((into / MERGED_FILE).read_text(encoding="utf-8"))
    return code


def _by_architecture(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """What is asked for, by the architectures that it is asked for on. Raises BuildError, UsageError."""
    from pdrgate.builds.named_build import for_architecture, known_architecture

    names = [one.strip() for one in asked.pop("arch", "").split(",") if one.strip()]
    if not names:
        return [asked]
    if not asked.get("kernel") and not asked.get("bpf"):
        raise UsageError("--arch is of kernels; name one with --kernel, such as ~/linux@main")
    if len(names) > 1 and "bisect" in asked:
        raise UsageError("--bisect asks one question; name one architecture with --arch")
    kernels = ["kernel"] if asked.get("bpf") else [name for name in ("kernel", "against") if asked.get(name)]
    found, alone = dict.fromkeys(known_architecture(name) for name in names), len(names) == 1
    if not asked.get("kernel"):
        return [asked if one.is_this_machines else asked | {"kernel": one.kernel_package} for one in found]
    return [asked | {name: for_architecture(asked[name], one, alone=alone) for name in kernels} for one in found]


def _by_worker(asked: list[dict[str, Any]], workers: int) -> list[dict[str, Any]]:
    """What is asked for, by the parts that workers measure of it. Raises UsageError."""
    if workers == 1:
        return asked
    for name in ("shard", "bisect"):
        if asked[0].get(name):
            raise UsageError(f"--workers shares the paths out among runs of its own; leave out --{name}")
    return [one | {"shard": f"{part}/{workers}"} for one in asked for part in range(1, workers + 1)]


def _new_run(asked: dict[str, Any], given: dict[str, str], project: ProjectFile | None) -> tuple[RunOptions, str]:
    """The options of a new run, which were looked at; and why its testbed is that one."""
    from pdrgate.launch import check, default_testbed

    why = ""
    if "testbed" not in asked:
        asked["testbed"], why = default_testbed("kernel" in asked and "bpf" not in asked)
    options = _of_testbed(_asked(**asked), given)
    check(options, note)
    if project is not None and project.acknowledgements and options.scenario_file is None:
        from pdrgate.launch import listed

        project.check_paths({test.test for test in listed(options.suites)})
    return options, why


def _kept_folder(options: RunOptions, output: Path) -> Path:
    """A new run's folder, with what it is asked for."""
    from pdrgate.gate.run.selection_file import write_selection
    from pdrgate.launch import new_folder
    from pdrgate.launch.selected_paths import selected_paths

    selection = selected_paths(options, note)
    folder = new_folder(output)
    options.keep(folder)
    if selection is not None:
        write_selection(folder, selection)
    return folder


def _list(suites: Sequence[Path], patterns: Sequence[str], form: str) -> None:
    """Print the tests that there are, by suite, with the tags that choose them."""
    from itertools import groupby

    from pdrgate.launch import listed

    tests = listed(suites, patterns)
    if form == "json":
        echo_json(tests)
        return
    width = max(len(one.test) for one in tests)
    for (name, about), found in groupby(tests, key=lambda one: (one.suite, one.about)):
        click.echo(f"{name}: {about}")
        for one in found:
            click.echo(f"  {one.test:{width}s}  {' '.join(one.tags)}")


def _take_file(context: click.Context, asked: dict[str, Any], given: dict[str, str]) -> None:
    """Take a YAML file that --scenario names for what it is."""
    files = [one for one in asked.get("scenarios", ()) if one.endswith(SCENARIO_FILES)]
    if not files:
        return
    if len(asked.pop("scenarios")) > 1:
        raise UsageError(f"--scenario {files[0]}: a scenario file is measured alone; leave the other ones out")
    asked["scenario_file"] = beside_own(PathType().convert(files[0], None, context))
    given["scenario_file"] = given.pop("scenarios")


def _take_project(asked: dict[str, Any], given: dict[str, str]) -> ProjectFile | None:
    """Take the options that the project's file says where the command line does not. Raises UsageError.

    Args:
        asked: gets them, by field.
        given: gets where they come from, by field.
    """
    if "project" not in asked:
        return None
    from pdrgate.gate.run.project_file import read_project

    project = read_project(asked["project"])
    own = {name: value for name, value in project.options.items() if name not in asked}
    if "changes" in asked:  # of two values for one key the later counts
        own["changes"] = (*project.options.get("changes", ()), *asked["changes"])
    asked |= own
    given |= dict.fromkeys(own, str(project.source))
    return project


def _of_testbed(options: RunOptions, said: Collection[str]) -> RunOptions:
    """The options with what the testbed's file says where the command line and the scenario's file do not."""
    from pdrgate.gate.run.run_settings import settings_of_testbed
    from pdrgate.launch import found
    from pdrgate.launch.shard import PORTFOLIO, new_order
    from pdrgate.testbeds import load_testbed

    of_file = settings_of_testbed(load_testbed(found(options.testbed)))
    options = dataclasses.replace(options, **{name: value for name, value in of_file.items() if name not in said})
    several = PORTFOLIO in options.scenarios or options.paths == "affected"
    drawn = several and options.order is None
    return dataclasses.replace(options, order=new_order()) if drawn else options


_OF_PROGRAMS = ("program", "attach", "replaces", "maps", "rodata", "packets")
"""Keys of eBPF programs only."""
_USUAL = RunOptions(testbed=Path())


_OF_KINDS = {"xdp": "path-xdp-ipv6", "tc": "path-tc-redirect"}
"""Tags of the paths that programs at ports are measured on, by kind."""
_OF_IPV4 = {"xdp": "path-xdp-ipv4", "tc": "path-ipv4-routing"}
"""Tags of the paths that programs at ports are measured on where they know IPv4 only, by kind."""


def _default_tag(options: RunOptions) -> str:
    """The tests of a run that names none."""
    from pdrgate.builds.bpf_build import bpf_build
    from pdrgate.builds.program_code import ip_versions
    from pdrgate.builds.program_hooks import hook_of
    from pdrgate.builds.program_setup import ProgramSetup
    from pdrgate.launch.shard import PORTFOLIO

    if options.packets is not None:
        return "bpf-packets"
    if options.bpf:
        setup = ProgramSetup(options.attach, replaces=options.replaces)
        build = bpf_build(options.bpf, setup=setup)
        builds = [build, *(bpf_build(one, build.kind, setup) for one in (options.against,) if one)]
        if build.kind in _OF_IPV4 and frozenset().union(*map(ip_versions, builds)) == {4}:
            return _OF_IPV4[build.kind]
        hook = hook_of(build.section.removeprefix("?"))
        tag = _OF_KINDS.get(build.kind) or (hook.path if hook is not None else "")
        if not tag:
            raise UsageError(
                f"no path of pdrgate's own calls a program in {build.section} for each packet; name one with --scenario"
            )
        return tag
    if options.measure != "cost":
        return "default"
    for change in options.changes:
        raise UsageError(f"--set {change} changes a path; name the path with --scenario, such as path-nat")
    return PORTFOLIO


def _pinned(options: RunOptions) -> RunOptions:
    """The options with commits for revisions, and with what a candidate's branch came from. Raises BuildError."""
    from pdrgate.builds.named_build import came_from, pinned

    if not options.kernel:
        return options
    if options.bpf:
        return dataclasses.replace(options, kernel=pinned(options.kernel))
    against = options.against or (None if options.baseline is not None else came_from(options.kernel)) or ""
    return dataclasses.replace(options, kernel=pinned(options.kernel), against=against and pinned(against))


def _check_packets(options: RunOptions) -> None:
    from pdrgate.gate.comparisons.packet_vectors.packet_vector import PacketVectors

    said = [f"--set {change}" for change in options.changes] + (["--spike-in"] if options.spike_in else [])
    if said:
        raise UsageError(f"packets of a capture are not sent: leave out {said[0]}, or --set packets")
    if not options.against:
        raise UsageError("--set packets compares two programs; name the other with --against OBJECT")
    assert options.packets is not None
    PacketVectors.read(options.packets)  # a faulty capture is refused before anything is set up


def _asked(**given: Any) -> RunOptions:
    """The options of a new run; what the command line leaves open is chosen by what it names.

    Args:
        given: by field, the values that the command line says.

    Raises:
        UsageError: options that do not go together.
    """
    from pdrgate.builds.kernel_build import branch_of
    from pdrgate.gate.run.scenario_file import described_by
    from pdrgate.gate.verdicts.baseline import is_history, name_in_history
    from pdrgate.launch.described import tag_named
    from pdrgate.launch.measure_choice import with_measure

    file: Path | None = given.get("scenario_file")
    own, of_file = (None, {}) if file is None else described_by(file)  # before anything is set up
    options = RunOptions(**of_file | given)
    if options.kernel and options.bpf and not options.against:
        raise UsageError("--kernel with --bpf is the kernel under both programs: name the other with --against OBJECT")
    options = _pinned(options)
    if options.kernel and not options.against:
        branch = branch_of(Path(options.kernel))
        tree = f", or --kernel {options.kernel.rstrip('/')}@{branch}: its branch began at a commit" if branch else ""
        raise UsageError(f"--kernel is compared with another build; name that with --against BUILD{tree}")
    if options.against and not options.kernel and not options.bpf:
        raise UsageError("--against names the baseline; name the candidate with --kernel BUILD or --bpf OBJECT")
    said = [name for name in _OF_PROGRAMS if getattr(options, name) != getattr(_USUAL, name)]
    if said and not options.bpf:
        raise UsageError(f"{said[0]} is of eBPF objects; name one with --bpf OBJECT, or two with --against OBJECT")
    if options.program:
        bpf, against = (named and f"{named}:{options.program}" for named in (options.bpf, options.against))
        options = dataclasses.replace(options, bpf=bpf, against=against, program="")
    if options.against and options.baseline is not None:
        raise UsageError("--baseline and --against do not go together: what is measured in turn needs no stored result")
    if is_history(options.baseline):
        raise UsageError(  # an address may hold a password, and is not shown
            "--baseline names a history, which has many; name it with --history FILE_OR_URL, and what to compare with "
            "by --baseline history:NAME ('pdrgate history pin' gives names)"
        )
    if options.any_fingerprint and not name_in_history(options.baseline):
        raise UsageError("any_fingerprint is for --baseline history:NAME; a file or a folder must be comparable")
    if options.require_baseline and options.baseline is None:
        raise UsageError("--require-baseline asks for a baseline; name a run or a folder of runs with --baseline")
    if options.spike_in and not options.against:
        raise UsageError("--spike-in slows the baseline of a comparison down; name one: --kernel BUILD --against BUILD")
    if options.spike_in and not options.tolerance:
        raise UsageError("--spike-in plants a slowdown of twice the tolerance, and twice 0% is none; ask for more")
    if options.bisect and not options.against:
        raise UsageError("--bisect needs a build that is known to be good: --kernel BUILD --against GOOD")
    if options.packets is not None:
        _check_packets(options)
    if own is not None and own.program is not None and options.bpf:
        raise UsageError(f"--bpf is the program under test, and {options.scenario_file} loads one; leave one out")
    if options.retis and options.against:
        raise UsageError("retis looks at one build; leave out --against, and look at the candidate by itself")
    if not options.soak:
        raise UsageError("soak: 0 s offers nothing; name a time such as 1 h, or leave it out")
    options = with_measure(options)
    if options.scenario_file is None and options.scenarios == ("default",):
        options = dataclasses.replace(options, scenarios=(_default_tag(options),))
    tags = (tag_named(one, options.suites) for one in options.scenarios)
    options = dataclasses.replace(options, scenarios=tuple(tags))
    return options

"""What a run is asked for: each option is declared here, once, and nowhere else.

A field has a name, a type, a default, and in `Said` a help text and where it may stand. The command line, the keys of
testbed files and scenario files, Robot's variables, the arguments of `Open Testbed`, the lists of pipelines and
docs/reference.md are made of the fields. `pdrgate.gate.run.run_settings` reads them. The options of a run are kept in
its folder, and whoever needs them reads them there.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pdrgate.builds.program_setup import Attach
from pdrgate.gate.run.declaration import (
    EVERYBODY,
    OF_PATH,
    OF_TESTBED,
    PEOPLE,
    By,
    Said,
    declarations,
    path_key,
    plain,
    testbed_key,
)  # fmt: skip
from pdrgate.gate.run.measures import MeasureName
from pdrgate.history.address import HISTORY_VARIABLE, Address
from pdrgate.history.seal import seal
from pdrgate.history.whole_file import write_whole
from pdrgate.this_process.checkout import GATE_COMMAND
from pdrgate.this_process.no_follow import read_no_follow
from pdrgate.values.errors import DataError, UsageError
from pdrgate.values.units import COST_TOLERANCE, LATENCY_TOLERANCE, TOLERANCE, Duration, Ratio

OPTIONS_FILE = "run.json"
_LARGEST_OPTIONS = 1 << 20
"""Largest options file that is read, bytes."""
ProfileName = Literal["smoke", "quick", "standard", "pastrami"]
_EVERYWHERE = EVERYBODY | By.TESTBED
NO_WAIT, LONG_SOAK = Duration(0), Duration(3600)
SCENARIO_FILES = (".yaml", ".yml")
"""The endings of scenario files."""
FILE_TAG = "scenario-file"
"""The tag of the test that measures a scenario file."""
_TIMED = ("pdr", "transfer", "overload", "windows", "soak")
"""What depends on how fast the SUT is."""
_IN_PAIRS = ("pdr", "transfer", "overload")
"""What two builds are compared by over pairs of boots."""
_OFFERED = ("pdr", "overload", "soak")
"""What is searched by offering loads."""

MOST_BOOTS, USUAL_BOOTS = 500, 48
FEWEST_BOOTS = 3
"""A curve whose loads were measured less often supports no PDR (the checks of the repeats need three of each)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The part of it that one session is asked for: what holds for every scenario that is measured in it.

    `Open Testbed` takes each as an argument.
    """

    profile: Annotated[
        ProfileName,
        Said("how much time a verdict may cost. See [the method](method-curve.md#one-run)", _EVERYWHERE, "NAME"),
    ] = "quick"
    tolerance: Annotated[
        Ratio, Said("the accepted loss of PDR and of saturation throughput", _EVERYWHERE, of=_TIMED)
    ] = TOLERANCE
    cost_tolerance: Annotated[
        Ratio | None,
        Said(
            "the accepted growth of the instructions per packet. Those that a processor counts are judged only with "
            "this option",
            _EVERYWHERE,
            default=f"{COST_TOLERANCE.text} in emulated guests",
        ),
    ] = None
    """Tolerance of the cost of a packet; None: the usual one.

    The usual one is `COST_TOLERANCE` where equal packets cost equal numbers of instructions, see
    `pdrgate.observers.watching.Counting`. Elsewhere instructions are report-only.
    """
    changes: Annotated[
        tuple[str, ...],
        Said(
            "a [key](#keys) of the testbed's or the scenario's file, for this run; may be repeated",
            PEOPLE,
            "KEY=VALUE",
            option="set",
        ),
    ] = ()
    """What it changes of each path that can have it, as ``KEY=VALUE``; `pdrgate.gate.run.run_settings` takes other keys
    of ``--set`` for the options that they name."""
    latency_tolerance: Annotated[Ratio, testbed_key("the accepted growth of latency", of=_OFFERED)] = LATENCY_TOLERANCE
    load_tolerance: Annotated[
        Ratio | None,
        testbed_key(
            "the accepted growth of [what it costs to load](counted.md#the-cost-of-a-load) an eBPF program: "
            "verified instructions, verifier states, machine code and the memory of its maps",
            default="reported, not judged",
        ),
    ] = None
    boots: Annotated[
        int,
        testbed_key(
            "boots of each build, at most; 3 to 500",
            default="48; 12 where packets are counted",
            range=(FEWEST_BOOTS, MOST_BOOTS),
            of=(*_IN_PAIRS, "cost"),
        ),
    ] = USUAL_BOOTS
    budget: Annotated[
        Duration | None,
        Said(
            "the time after which no pair of boots begins",
            OF_TESTBED | By.PIPELINE,
            default="100 s for guests of constant speed, 9 min for others, or what six pairs take",
        ),
    ] = None
    below_noise: Annotated[
        bool,
        testbed_key("compare builds even where 48 pairs cannot resolve the tolerance on this testbed", of=_IN_PAIRS),
    ] = False
    any_fingerprint: Annotated[
        bool,
        testbed_key(
            "compare with `history:NAME` even where it was measured under another fingerprint; the result says so"
        ),
    ] = False
    allow_config_differences: Annotated[
        bool,
        testbed_key(
            "allow an IMPROVEMENT where [hardening, mitigations, debugging or the "
            "CPU](comparing.md#builds-that-are-no-pair) differ"
        ),
    ] = False
    retis: Annotated[
        bool,
        testbed_key(
            "record with [Retis](retis.md) each packet that the SUT's kernel drops, in one more trial, where one build "
            "is measured"
        ),
    ] = False
    baseline: Annotated[
        Path | None,
        Said(
            "a result.json, the folder of a run, a folder of runs, or `history:NAME`. The history has [such "
            "names](#baselines-of-a-history). The database itself is refused: name one of its baselines",
            form="PATH",
        ),
    ] = None
    require_baseline: Annotated[bool, Said("fail, before measuring, where there is no baseline")] = False
    history: Annotated[
        Address | None,
        Said(
            "the [database](#pdrgate-history) of runs, noise and tries: a file, or `postgresql://user@host/database`. "
            "It keeps the run, the [noise floor](method-noise.md#what-boots-deviate-by) and [tries of two "
            "builds](method-builds.md#tried-again). Without this option, `PDRGATE_HISTORY` of the environment names "
            "it; a suite that Robot runs by itself has none. A URL with a password belongs there, because the command "
            "line refuses it",
            default="history.db in the folder of --output",
            environment=HISTORY_VARIABLE,
            commands=True,
        ),
    ] = None
    afresh: Annotated[
        bool,
        Said("forget [earlier tries](method-builds.md#tried-again) of the same two builds. Else their pairs count too"),
    ] = False
    spike_in: Annotated[
        bool,
        Said(
            "after a PASS, show that a slowdown is found. It is planted into the baseline, of twice the tolerance: "
            "[could it have failed?](comparing.md#could-it-have-failed)",
            EVERYBODY,
            of=_IN_PAIRS,
        ),
    ] = False
    wait: Annotated[
        Duration,
        Said(
            "wait at most so long for another run here to end. The run that has waited longest is next. With "
            "`--bisect` the default is to wait as long as it takes",
            EVERYBODY,
        ),
    ] = NO_WAIT

    @property
    def traces_drops(self) -> bool:
        """Whether a drop trace looks at each packet that the SUT's kernel drops."""
        return self.retis


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(Options):
    """All that a gate run is asked for; kept in ``run.json`` of its folder, so that it can be resumed.

    A field that is new takes a default: that is what it was in runs that did not know of it yet.
    """

    testbed: Annotated[
        Path,
        Said(
            "a testbed file",
            EVERYBODY,
            default="steady-guest.yaml; with --kernel local-vm.yaml; without QEMU local-netns.yaml",
            commands=True,
        ),
    ]
    kernel: Annotated[
        str,
        Said(
            "the candidate, a kernel to boot: a file, a build tree, TREE@REV of a git tree, or a package. See [all its "
            "names](#a-kernel-build)",
            EVERYBODY,
            "BUILD",
        ),
    ] = ""
    """What a person calls the build: a path with parts, or a package. Empty where none is compared."""
    bpf: Annotated[
        str,
        Said(
            "the candidate, an eBPF object to load. With `--kernel`, that kernel is booted under both objects",
            EVERYBODY,
            "OBJECT",
            commands=True,
        ),
    ] = ""
    program: Annotated[
        str,
        Said(
            "the program to measure, where the eBPF objects have several. Where it has another name on each side, "
            "write `--bpf OBJECT:PROGRAM`",
            OF_PATH | By.PIPELINE,
            "NAME",
        ),
    ] = ""
    attach: Annotated[
        Attach,
        path_key(
            "where the eBPF programs are attached at the SUT's ports: `xdp` (native where it can be had), "
            "`xdp-generic`, `tc-ingress`, `tc-egress`, or by links `tcx-ingress`, `tcx-egress` (Linux 6.6 and later); "
            "or at which hook of netfilter: `nf-prerouting`, `nf-input`, `nf-forward`, `nf-output`, `nf-postrouting` "
            "(Linux 6.4 and later). "
            "It also says of what kind a program is whose section does not",
            form="WHERE",
            default="as the data path has it",
            by=OF_PATH | By.PIPELINE,
        ),
    ] = "auto"
    replaces: Annotated[
        str,
        path_key(
            "the function of a dispatcher that the eBPF programs replace (freplace). The dispatcher is attached at the "
            "ports. `maps` and `rodata` apply to it too. Without `/FUNCTION`, the program's "
            '`SEC("freplace/FUNCTION")` names it',
            form="OBJECT:PROGRAM/FUNCTION",
            commands=True,
            by=OF_PATH | By.PIPELINE,
        ),
    ] = ""
    maps: Annotated[
        Path | None,
        path_key(
            "what maps of the eBPF programs hold before packets come, in YAML: [maps](#maps-of-ebpf-programs)",
            commands=True,
            by=OF_PATH | By.PIPELINE,
        ),
    ] = None
    rodata: Annotated[
        tuple[str, ...],
        path_key(
            "what a global variable of the eBPF programs is, such as a `volatile const` one, or a YAML file of them; "
            "may be repeated, and is a list in a file",
            form="NAME=VALUE",
            commands=True,
            by=OF_PATH | By.PIPELINE,
        ),
    ] = ()
    packets: Annotated[
        Path | None,
        path_key(
            "run the eBPF programs on the packets of this capture, each by itself, in place of traffic: [packets in "
            "place of ports](#packets-in-place-of-ports)",
            of=("packets",),
            by=OF_PATH | By.PIPELINE,
        ),
    ] = None
    soak: Annotated[
        Duration,
        testbed_key("how long `--measure soak` offers [90 % of the PDR](soak.md#soak)", default="1 h", of=("soak",)),
    ] = LONG_SOAK
    order: Annotated[
        int | None,
        Said(
            "measure the paths of the portfolio in the order that this number draws; each run prints its own number",
            By.TESTBED,
            "NUMBER",
            "drawn anew for each run",
            range=(0, 1_000_000),
        ),
    ] = None
    against: Annotated[
        str,
        Said(
            "the baseline of --kernel or --bpf",
            EVERYBODY,
            "BUILD",
            "for --kernel TREE@REV, the commit where its branch began",
            commands=True,
        ),
    ] = ""
    arch: Annotated[
        str,
        Said(
            "measure on each, such as `amd64,arm64`. One report is made of all. A revision of a "
            "git tree is compiled for each; in any other name of a build `{arch}` stands for the architecture: "
            "[one change on several architectures](architectures.md#one-change-on-several-architectures)",
            By.COMMAND | By.PIPELINE,
            "NAMES",
            "that of the builds",
        ),
    ] = ""
    measure: Annotated[
        MeasureName | None,
        Said(
            "what is [measured](reference.md#what-is-measured) on the paths",
            EVERYBODY,
            "WHAT",
            "cost of two kernels in guests; else pdr, and transfer of TCP",
        ),
    ] = None
    scenarios: Annotated[
        tuple[str, ...],
        Said(
            "paths to measure: a [tag](#tags-of-the-gates-suites) such as path-nat, a tag pattern, a name in results, "
            "or a [YAML file](#a-scenario-of-your-own); `all` is each. It may be repeated",
            By.COMMAND | By.PIPELINE,
            "TAG",
            option="scenario",
        ),
    ] = ("default",)
    scenario_file: Annotated[
        Path | None, Said("a scenario of your own", By.VARIABLE, "FILE", option="scenario", commands=True)
    ] = None
    suites: Annotated[
        tuple[Path, ...], Said("suites to run; may be repeated", By.COMMAND, "PATH", option="suite", commands=True)
    ] = (Path("robot/gate"),)
    paths: Annotated[
        Literal["affected", "all"],
        Said(
            "measure those of the paths that run [code that differs](affected.md) between both kernels, or all. With "
            "`affected`, two more are measured as an audit",
            EVERYBODY,
            "WHICH",
            of=("cost",),
        ),
    ] = "all"
    shard: Annotated[
        str,
        Said(
            "one part of the paths, such as `2/4` of four. [Several jobs](ci.md#several-jobs) measure them together",
            EVERYBODY,
            "K/N",
        ),
    ] = ""
    project: Annotated[
        Path | None,
        Said(
            "the [project's file](ci.md#the-projects-file), pdrgate.yaml. It has usual options, and "
            "changes that are acknowledged",
            By.COMMAND | By.PIPELINE,
            commands=True,
        ),
    ] = None
    bisect: Annotated[bool, Said("exit for [git bisect run](bisect.md): 0 good, 1 bad, 125 undecided", By.COMMAND)] = (
        False
    )
    commit: Annotated[
        str,
        Said(
            "the commit of the judged change. `pdrgate merge` takes no other",
            By.COMMAND,
            "COMMIT",
            "PDRGATE_COMMIT",
            environment="PDRGATE_COMMIT",
        ),
    ] = ""

    @classmethod
    def of_run(cls, folder: Path) -> Self:
        """The options of an earlier run. Raises DataError when the folder holds none, or a value that is none."""
        file = folder / OPTIONS_FILE
        try:
            record = dict(json.loads(read_no_follow(file, _LARGEST_OPTIONS).decode("utf-8-sig")))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise DataError(
                f"cannot resume {folder}: {file} is missing or damaged ({error}); start a new run"
            ) from error
        known = declarations(cls)
        if unknown := record.keys() - known.keys():  # without it this would be another run than the one to continue
            raise DataError(f"cannot resume {folder}: {file} has {len(unknown)} unknown keys; start a new run")
        values = {}
        for name, value in record.items():
            try:
                values[name] = known[name].value(value)
            except UsageError as error:  # which quotes the value: root reads files that others only name
                raise DataError(
                    f"cannot resume {folder}: {file}: {name} takes no such value; start a new run"
                ) from error
        try:
            return cls(**values)
        except TypeError as error:
            raise DataError(f"cannot resume {folder}: {file} lacks an option; start a new run") from error

    def keep(self, folder: Path) -> None:
        """Write the options into the folder of the run. Raises StorageError."""
        seal(write_whole(folder / OPTIONS_FILE, f"{json.dumps(self.written(), indent=1)}\n".encode()))

    @property
    def patterns(self) -> tuple[str, ...]:
        """The tag patterns of the tests to run."""
        return self.scenarios if self.scenario_file is None else (FILE_TAG,)

    @property
    def command(self) -> str:
        """What to type in a checkout to ask for the same again; where the results go is each run's own."""
        words = GATE_COMMAND.split()
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            for one in value if isinstance(value, tuple) else (value,):
                words += declarations(RunOptions)[field.name].words(one)
        return shlex.join(words)

    def written(self) -> dict[str, Any]:
        """All options by name as JSON has them: quantities and paths are texts that a person would write."""
        return {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


def kept_options(folder: Path) -> RunOptions | None:
    """The options of the run in ``folder``; None where none were kept, as of a suite of one's own."""
    try:
        return RunOptions.of_run(folder)
    except DataError:
        return None

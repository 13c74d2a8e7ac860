"""What a run is asked for: each option is declared here, once, and nowhere else.

A field has a name, a type, a default, and in `Said` a help text and who may set it. The command line, Robot's
variables, the arguments of `Open Testbed`, the lists of pipelines and docs/reference.md are made of the fields. The
options of a run are kept in its folder, and whoever needs them reads them there.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec

from pdrgate.builds.program_setup import Attach
from pdrgate.gate.run.declaration import EVERYBODY, By, Said, declarations, plain
from pdrgate.gate.run.measures import MeasureName
from pdrgate.history.address import HISTORY_VARIABLE, Address
from pdrgate.history.seal import seal
from pdrgate.history.whole_file import write_whole
from pdrgate.this_process.checkout import GATE_COMMAND
from pdrgate.this_process.no_follow import read_no_follow
from pdrgate.values.errors import DataError, UsageError, without_value
from pdrgate.values.tolerances import COST_TOLERANCE, LATENCY_TOLERANCE, TOLERANCE
from pdrgate.values.units import Duration, Ratio

OPTIONS_FILE = "run.json"
_LARGEST_OPTIONS = 1 << 20
"""Bytes of it."""
ProfileName = Literal["smoke", "quick", "standard", "pastrami"]
NO_WAIT = Duration(0)
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

FEWEST_BOOTS = 3
"""A curve whose loads were measured less often supports no PDR (the checks of the repeats need three of each)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The part of it that one session is asked for: what holds for every scenario that is measured in it.

    `Open Testbed` takes each as an argument.
    """

    profile: Annotated[
        ProfileName,
        Said(
            "How much time a verdict may cost.",
            "`smoke`, `quick`, `standard` or `pastrami`, see [the method](method-curve.md#one-run)",
            EVERYBODY,
            "NAME",
        ),
    ] = "quick"
    tolerance: Annotated[
        Ratio,
        Said(
            "The accepted loss of PDR, where a test says no other.",
            "the accepted loss of PDR and of saturation throughput",
            EVERYBODY,
            of=_TIMED,
        ),
    ] = TOLERANCE
    cost_tolerance: Annotated[
        Ratio | None,
        Said(
            "The accepted growth of the instructions per packet.",
            "the accepted growth of the instructions per packet. Instructions that the processor counts are judged "
            "only with this option",
            EVERYBODY,
            default=f"{COST_TOLERANCE.text} in emulated guests, elsewhere not judged",
        ),
    ] = None
    """None: the least is `COST_TOLERANCE` where equal packets cost equal numbers of instructions, see
    `pdrgate.testbeds.protocol.Counting`; elsewhere instructions are told and not judged."""
    latency: Annotated[
        bool,
        Said(
            "Measure latency at 50, 90 and 99 % of the PDR as well, and judge it.",
            "measure and judge [latency](counted.md#latency) too, at 50, 90 and 99 % of the PDR, in every "
            "scenario whose packets come back",
            of=_OFFERED,
        ),
    ] = False
    fate: Annotated[
        Literal["forwarded", "returned", "dropped", "passed", "handled"] | None,
        Said(
            "What counts as handled: forwarded, returned, dropped, passed or handled.",
            "[what counts as handled](counted.md#what-counts-as-handled) in every scenario of an open loop: "
            "`forwarded`, `returned`, `dropped`, `passed` or `handled`",
            form="NAME",
            default="as the data path says: mostly forwarded",
        ),
    ] = None
    alike: Annotated[
        bool,
        Said(
            "Require that both builds do the same to the same packet.",
            "require that both builds do the same to the same packet (port, addresses, time to live, checksums, "
            "length, payload); the first difference ends the comparison",
        ),
    ] = False
    traffic: Annotated[
        str,
        Said(
            "Packets to send, such as 'udp dst=198.18.0.1 dport=53 flows=1000', or a capture file.",
            "packets to send in place of a scenario's own, such as `udp dst=198.18.0.1 dport=53 flows=1000`, or a "
            "capture file: [traffic of your own](#traffic-of-your-own)",
            EVERYBODY,
            "WORDS",
        ),
    ] = ""
    latency_tolerance: Annotated[Ratio, Said("The accepted growth of latency.", of=_OFFERED)] = LATENCY_TOLERANCE
    load_tolerance: Annotated[
        Ratio | None,
        Said(
            "The accepted growth of what it costs to load an eBPF program.",
            "the accepted growth of [what it costs to load](counted.md#the-cost-of-a-load) an eBPF program: "
            "verified instructions, verifier states, machine code and the memory of its maps",
            default="reported, not judged",
        ),
    ] = None
    baseline: Annotated[
        Path | None,
        Said(
            "A result.json, the folder of a run, a folder of runs, or history:NAME, a build that the history names.",
            "a result.json, the folder of a run, a folder of runs, or `history:NAME`: [baselines of a "
            "history](#baselines-of-a-history). The database itself is refused: name one of its baselines",
            form="PATH",
        ),
    ] = None
    any_fingerprint: Annotated[
        bool,
        Said(
            "Compare with history:NAME even where it was measured under another fingerprint.",
            "compare with `history:NAME` even where it was measured under another fingerprint; the result says so",
        ),
    ] = False
    require_baseline: Annotated[bool, Said("Fail, before measuring, where there is no baseline.")] = False
    history: Annotated[
        Address | None,
        Said(
            "The database of runs, noise and tries: a SQLite file, or postgresql://user@host/database.",
            "the [database](#pdrgate-history) for the run, the [noise floor](method-noise.md#what-boots-deviate-by) "
            "and [tries of two builds](method-builds.md#tried-again). Without this option, `PDRGATE_HISTORY` of the "
            "environment names it. A URL with a password belongs there, because the command line refuses it",
            default="history.db in the folder of --output; none where Robot runs a suite",
            environment=HISTORY_VARIABLE,
            commands=True,
        ),
    ] = None
    afresh: Annotated[
        bool,
        Said(
            "Forget earlier tries of the same two builds; without this, their pairs count too.",
            "forget [earlier tries](method-builds.md#tried-again) of the same two builds; without this, their pairs "
            "count too",
        ),
    ] = False
    below_noise: Annotated[
        bool,
        Said(
            "Compare builds even where this testbed cannot resolve the tolerance.",
            "compare builds even where 48 pairs cannot resolve the tolerance on this testbed",
            of=_IN_PAIRS,
        ),
    ] = False
    allow_config_differences: Annotated[
        bool,
        Said(
            "Allow an IMPROVEMENT of builds whose hardening, mitigations or debugging differ.",
            "allow an IMPROVEMENT where [hardening, mitigations, debugging or the "
            "CPU](comparing.md#builds-that-are-no-pair) differ",
        ),
    ] = False
    spike_in: Annotated[
        bool,
        Said(
            "After a PASS, plant a slowdown and show that it is found.",
            "after a PASS, plant a slowdown of twice the tolerance into the baseline and show that it is found: "
            "[could it have failed?](comparing.md#could-it-have-failed)",
            EVERYBODY,
            of=_IN_PAIRS,
        ),
    ] = False
    retis: Annotated[
        bool,
        Said(
            "Record each dropped packet with Retis, in one more trial.",
            "record with [Retis](retis.md) each packet that the SUT's kernel drops, in one more trial; only where one "
            "build is measured",
        ),
    ] = False
    wait: Annotated[
        Duration,
        Said(
            "Wait for another run here to end; for 'git bisect run' as long as it takes, where nothing is said.",
            "wait at most so long for another run on this machine to end. The run that has waited longest is next. "
            "With `--bisect` the default is to wait as long as it takes",
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
            "A testbed file.",
            by=EVERYBODY,
            default="steady-guest.yaml; with --kernel local-vm.yaml; without QEMU local-netns.yaml",
            commands=True,
        ),
    ]
    kernel: Annotated[
        str,
        Said(
            "A kernel to boot: .deb, .rpm, bzImage, build tree, TREE@REV of a git tree, distribution package, or "
            "SUITE/PACKAGE of another suite.",
            "the candidate: a kernel to boot, [named](#a-kernel-build) by a file, a folder, a package or a revision",
            EVERYBODY,
            "BUILD",
        ),
    ] = ""
    """What a person calls the build: a path with parts, or a package. Empty where none is compared."""
    bpf: Annotated[
        str,
        Said(
            "An eBPF object file with a program for XDP or tc, to be loaded.",
            "the candidate: an eBPF object to load; with `--kernel`, that kernel is booted under both objects",
            EVERYBODY,
            "OBJECT",
            commands=True,
        ),
    ] = ""
    program: Annotated[
        str,
        Said(
            "The program to measure, where the eBPF objects have several.",
            "the program to measure, where the eBPF objects have several; `--bpf OBJECT:PROGRAM` where it has another "
            "name on each side",
            EVERYBODY,
            "NAME",
        ),
    ] = ""
    attach: Annotated[
        Attach,
        Said(
            "Where the eBPF programs are attached at the SUT's ports.",
            "where the eBPF programs are attached at the SUT's ports: `xdp` (native where it can be had), "
            "`xdp-generic`, `tc-ingress`, `tc-egress`, or by links `tcx-ingress`, `tcx-egress` (Linux 6.6 and later). "
            "It also says of what kind a program is whose section does not",
            form="WHERE",
            default="as the data path has it",
        ),
    ] = "auto"
    replaces: Annotated[
        str,
        Said(
            "The function of a dispatcher that the eBPF programs replace (freplace).",
            "the function of a dispatcher that the eBPF programs replace (freplace). The dispatcher is attached at the "
            "ports. `--maps` and `--rodata` apply to it too. Without `/FUNCTION`, the program's "
            '`SEC("freplace/FUNCTION")` names it',
            form="OBJECT:PROGRAM/FUNCTION",
            commands=True,
        ),
    ] = ""
    maps: Annotated[
        Path | None,
        Said(
            "What maps of the eBPF programs hold before packets come, in YAML.",
            "what maps of the eBPF programs hold before packets come: [maps](#maps-of-ebpf-programs)",
            commands=True,
        ),
    ] = None
    rodata: Annotated[
        tuple[str, ...],
        Said(
            "What a global variable of the eBPF programs is; or a YAML file of them.",
            "what a global variable of the eBPF programs is, such as a `volatile const` one, or a YAML file of them; "
            "may be repeated",
            form="NAME=VALUE",
            commands=True,
        ),
    ] = ()
    packets: Annotated[
        Path | None,
        Said(
            "Run the eBPF programs on the packets of this capture, each by itself, in place of traffic.",
            "run the eBPF programs on the packets of this capture, each by itself, in place of traffic: [packets in "
            "place of ports](#packets-in-place-of-ports)",
            of=("packets",),
        ),
    ] = None
    against: Annotated[
        str,
        Said(
            "The baseline of --kernel or --bpf, measured in turn with it.",
            by=EVERYBODY,
            form="BUILD",
            default="for --kernel TREE@REV, the commit where its branch began",
            commands=True,
        ),
    ] = ""
    measure: Annotated[
        MeasureName | None,
        Said(
            "What is measured on the paths that --scenario chooses.",
            "what is [measured](reference.md#what-is-measured) on the paths that `--scenario` chooses",
            EVERYBODY,
            "WHAT",
            default="cost, where two kernels are booted in guests of local-vm; else pdr, and transfer of TCP",
        ),
    ] = None
    boots: Annotated[
        int,
        Said(
            "Boots of each, at most.",
            "boots of each build, at most; 3 to 500",
            range=(FEWEST_BOOTS, 500),
            of=_IN_PAIRS,
        ),
    ] = 48
    budget: Annotated[
        Duration | None,
        Said(
            "The time after which no pair of boots begins.",
            by=EVERYBODY,
            default="100 s for guests of constant speed, 9 min for others, or what six pairs take",
        ),
    ] = None
    soak: Annotated[
        Duration | None,
        Said(
            "Offer 90 % of the PDR for so long, and say what is lost.",
            "measure `soak`: offer [90 % of the PDR](soak.md#soak) for so long, and report what is lost",
            of=("soak",),
        ),
    ] = None
    scenarios: Annotated[
        tuple[str, ...],
        Said(
            "Paths to measure: by tag or Robot tag pattern (path-nat, ipv6ANDlarge-buffers), by name in results, or by "
            "a YAML file; 'all' is each.",
            "paths to measure: by [tag](#tags-of-the-gates-suites) or Robot tag pattern, by the name in a result, or a "
            "[scenario of your own](#a-scenario-of-your-own) in a YAML file; `all` is each; may be repeated",
            By.COMMAND | By.PIPELINE,
            "TAG",
            option="scenario",
        ),
    ] = ("default",)
    scenario_file: Annotated[
        Path | None,
        Said(
            "A scenario of your own, in a YAML file.",
            by=By.VARIABLE,
            form="FILE",
            option="scenario",
            commands=True,
        ),
    ] = None
    suites: Annotated[
        tuple[Path, ...],
        Said("Suites to run.", "suites to run; may be repeated", By.COMMAND, "PATH", option="suite", commands=True),
    ] = (Path("robot/gate"),)
    paths: Annotated[
        Literal["affected", "all"] | None,
        Said(
            "Measure the chosen paths whose code differs between both kernels, or all of them.",
            "`affected`: of the chosen paths, measure those that run [code that differs](affected.md) between both "
            "kernels, and two more as an audit; `all`: measure each",
            EVERYBODY,
            default="affected for --kernel TREE@REV, else all",
            of=("cost",),
        ),
    ] = None
    shard: Annotated[
        str,
        Said(
            "Measure one of several parts of the chosen paths, such as 2/4; 'pdrgate merge' joins them.",
            "measure one of several parts of the chosen paths, such as `2/4`: [several jobs](ci.md#several-jobs) "
            "measure them together",
            EVERYBODY,
            "K/N",
        ),
    ] = ""
    order: Annotated[
        int | None,
        Said(
            "Measure the paths of the portfolio in the order that this number draws.",
            "measure the paths of the portfolio in the order that this number draws; each run prints its own number",
            By.COMMAND,
            "NUMBER",
            default="drawn anew for each run",
            range=(0, 1_000_000),
        ),
    ] = None
    bisect: Annotated[
        bool,
        Said(
            "Exit for 'git bisect run': 0 good, 1 bad, 125 cannot be told.",
            "exit codes for `git bisect run`: [bisect.md](bisect.md)",
            By.COMMAND,
        ),
    ] = False
    commit: Annotated[
        str,
        Said(
            "The commit of the judged change; result.json has it, and 'pdrgate merge' takes no other.",
            "the commit of the judged change; result.json has it, and `pdrgate merge` takes no other",
            By.COMMAND,
            "COMMIT",
            "PDRGATE_COMMIT of the environment",
            environment="PDRGATE_COMMIT",
        ),
    ] = ""

    @classmethod
    def of_run(cls, folder: Path) -> Self:
        """The options of an earlier run. Raises DataError when the folder holds none, or a value that is none."""
        file = folder / OPTIONS_FILE
        try:
            record = json.loads(read_no_follow(file, _LARGEST_OPTIONS).decode("utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(
                f"cannot resume {folder}: {file} is missing or damaged ({error}); start a new run"
            ) from error
        try:
            options = msgspec.convert(record, cls, dec_hook=_typed)
        except msgspec.ValidationError as error:
            fault = without_value(error).replace(" - at `$.", " at `")
            raise DataError(f"cannot resume {folder}: {file}: {fault}; start a new run") from error
        if unknown := record.keys() - {field.name for field in dataclasses.fields(cls)}:
            # Without it this would be another run than the one to continue.
            raise DataError(f"cannot resume {folder}: {file}: unknown key `{min(unknown)}`; start a new run")
        return options

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
            option = declarations(RunOptions)[field.name].option
            for one in value if isinstance(value, tuple) else (value,):
                words += [option] if one is True else [option, str(plain(one))]
        return shlex.join(words)

    def written(self) -> dict[str, Any]:
        """All options by name as JSON has them: quantities and paths are texts that a person would write."""
        return {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


def origin_of_run(folder: Path) -> tuple[str, str]:
    """What to type to make the run in ``folder`` again, and the commit that it judges.

    Both empty where its options were not kept: a suite of one's own.
    """
    try:
        options = RunOptions.of_run(folder)
    except DataError:
        return "", ""
    return options.command, options.commit


def _typed(kind: type[Any], value: object) -> Any:
    """The reverse of `plain`, for types that msgspec has no reading of its own for.

    Raises:
        ValueError: it is none of those; msgspec adds the key to an error of this kind, and to none of its own.
    """
    try:
        text = msgspec.convert(value, str)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    try:
        return kind.parse(text) if issubclass(kind, Ratio | Duration | Address) else kind(text)
    except UsageError as error:
        raise ValueError(str(error)) from error

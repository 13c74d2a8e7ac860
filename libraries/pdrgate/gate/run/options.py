"""What a run is asked for: parsed once, kept with the run, and the same for the command line, Robot and the gate."""

from __future__ import annotations

import dataclasses
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec

from pdrgate.errors import DataError, StorageError, UsageError, without_value
from pdrgate.gate.run.profile import ProfileName
from pdrgate.history.address import Address
from pdrgate.measurands import Cost, PartialDropRate, TailLatency
from pdrgate.stability import TirReading
from pdrgate.units import Duration, Ratio

OPTIONS_FILE = "run.json"
NO_WAIT = Duration(0)

TOLERANCE = Ratio(PartialDropRate.about.tolerance.default)
"""Unless a run is asked for another."""

COST_TOLERANCE = Ratio(Cost.about.tolerance.default)
"""Unless a run is asked for another."""

LATENCY_TOLERANCE = Ratio(TailLatency.about.tolerance.default)
"""Unless a run is asked for another."""

_OPTIONS = {"scenarios": "scenario", "suites": "suite"}
"""Fields whose option is called otherwise, for it is said once for each."""
_UNSAID = {"profile": "quick", "suites": (Path("robot/gate"),), "scenarios": ("default",)}
"""What the command line takes where nothing is said, of fields that have no default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The part of it that one session is asked for: what holds for every scenario that is measured in it."""

    profile: ProfileName
    tolerance: Ratio = TOLERANCE
    """Loss of PDR that is accepted, where a test says no other."""
    baseline: Path | None = None
    """A result.json, the folder of a run, a folder of runs, or ``history:NAME``, a build that the history names."""
    any_fingerprint: bool = False
    """Whether what the history names may have been measured under another fingerprint."""
    require_baseline: bool = False
    """Whether a scenario without a baseline is an error."""
    reading: TirReading = TirReading.STRICT
    cost_tolerance: Ratio | None = None
    """Growth of the instructions per packet that is accepted; None: `COST_TOLERANCE` where equal packets cost equal
    numbers of them, see `pdrgate.testbeds.protocol.Counting`, and else they are told and not judged."""
    latency: bool = False
    """Whether latency is measured of every scenario whose packets come back, also where its suite does not ask."""
    latency_tolerance: Ratio = LATENCY_TOLERANCE
    """Growth of latency that is accepted."""
    wait: Duration = NO_WAIT
    """To wait for another run on this machine to end."""
    history: Address | None = None
    """The database that the run puts itself into when it ends; None: into none."""
    below_noise: bool = False
    """Whether builds are compared though the tolerance is below what the testbed resolves."""
    allow_config_differences: bool = False
    """Whether a faster build is an IMPROVEMENT though hardening, mitigations or debugging differ."""
    spike_in: bool = False
    """Whether a comparison of builds that passes must show that it could have failed."""
    retis: bool = False
    """Whether Retis looks at what is dropped, in one trial more that loses packets."""
    afresh: bool = False
    """Whether earlier tries of the same two builds are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(Options):
    """All that a gate run is asked for; kept in ``run.json`` of its folder, so that it can be resumed.

    A field that is new takes a default: that is what it was in runs that did not know of it yet.
    """

    suites: tuple[Path, ...]
    testbed: Path
    scenarios: tuple[str, ...]
    """Robot tag patterns; ``all`` takes every test."""
    kernel: str = ""
    """The candidate, as a person names a build (a path with parts, or a package); empty where none is compared."""
    bpf: str = ""
    """The same of an eBPF object; one of the two at most."""
    against: str = ""
    """What the candidate is compared with."""
    boots: int = 48
    """Of each build, at most."""
    budget: Duration | None = None
    """After this time no pair of boots is begun; None: 100 s for guests of constant speed, nine minutes for others, or
    what six pairs take."""
    soak: Duration | None = None
    """How long a soak lasts; None: there is none."""
    noise: Path | None = None
    """A file that keeps what boots deviate by, and beside it is one for the tries of builds; None: nowhere."""
    bisect: bool = False
    """Whether the exit code is for ``git bisect run``."""
    commit: str = ""
    """Of the change that is judged, as whoever started the run says."""

    @classmethod
    def of_run(cls, folder: Path) -> Self:
        """The options of an earlier run. Raises DataError when the folder holds none, or a value that is none."""
        file = folder / OPTIONS_FILE
        try:
            record = json.loads(file.read_text(encoding="utf-8-sig"))
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
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / OPTIONS_FILE).write_text(json.dumps(self.written(), indent=1) + "\n")
        except OSError as error:
            raise StorageError(f"cannot write to {folder}: {error.strerror}; choose another with --output") from error

    @property
    def command(self) -> str:
        """What to type in a checkout to ask for the same again; where the results go is each run's own."""
        words = ["./ci/gate"]
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value == _UNSAID.get(field.name, field.default):
                continue
            option = f"--{_OPTIONS.get(field.name, field.name).replace('_', '-')}"
            for one in value if isinstance(value, tuple) else (value,):
                words += [option] if one is True else [option, str(_plain(one))]
        return shlex.join(words)

    def written(self) -> dict[str, Any]:
        """By name, each option as JSON has it: quantities and paths as the text that a person would write."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


def origin_of_run(folder: Path) -> tuple[str, str]:
    """What to type to make the run in ``folder`` again, and the commit that it judges.

    Both empty where its options were not kept: a suite of one's own.
    """
    try:
        options = RunOptions.of_run(folder)
    except DataError:
        return "", ""
    return options.command, options.commit


def _plain(value: object) -> Any:
    match value:
        case Ratio() | Duration() | Address():
            return value.text
        case Path():
            return str(value)
        case tuple():
            return [_plain(one) for one in value]
    return value


def _typed(kind: type[Any], value: object) -> Any:
    """The reverse of `_plain`, for types that msgspec has no reading of its own for.

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

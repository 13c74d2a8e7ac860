"""A scenario of a user's own as a YAML file: what `Set Up SUT` and its neighbours say, for the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import yaml

from pdrgate.bpf.filling import check_setup
from pdrgate.builds.bpf_build import BpfBuild, BpfBuildError, bpf_build
from pdrgate.builds.program_setup import Attach, ProgramSetup, program_setup
from pdrgate.data_paths.catalogue import UNDER_STEPS
from pdrgate.data_paths.set_up import UNDO, named_set_up, set_up_of
from pdrgate.gate.run.scenario import Scenario
from pdrgate.traffic.chosen.traffic_words import chosen_traffic
from pdrgate.values.errors import UsageError, without_value
from pdrgate.values.units import Ratio

_LARGEST = 1 << 20
_RATIOS = ("loss_ratio", "width")
"""What may have a percent sign, too."""
_SWITCHES = ("gro",)
"""What is on or off, which YAML reads as true and false."""


class _Step(msgspec.Struct, forbid_unknown_fields=True):
    """A step that has its undo."""

    run: str
    undo: str


class _Program(msgspec.Struct, forbid_unknown_fields=True):
    """An eBPF program; what its maps hold stands in a file of its own."""

    object: str
    program: str = ""
    attach: Attach = "auto"
    maps: str = ""
    rodata: list[str] = []
    replaces: str = ""

    def build(self, beside: Path) -> BpfBuild:
        maps = beside / self.maps if self.maps else None
        rodata = [one if "=" in one else str(beside / one) for one in self.rodata]
        replaces = str(beside / self.replaces) if self.replaces else ""
        return own_program(beside / self.object, self.program, program_setup(self.attach, maps, rodata, replaces))


class _File(msgspec.Struct):
    """The file's own keys; all others are a scenario's."""

    name: str
    set_up: list[str | _Step] = []
    files: list[str] = []
    data_path: str = UNDER_STEPS
    traffic: str | list[str] = []
    ebpf_program: _Program | None = None


def own_program(file: Path, program: str, setup: ProgramSetup) -> BpfBuild:
    """The eBPF program that a scenario loads; with an empty ``program``, the only one of the object.

    Raises:
        BpfBuildError: the object cannot be read, has no such program, or no such map.
    """
    return check_setup(bpf_build(f"{file}:{program}" if program else file, setup=setup))


def _read_as(name: str, hint: Any) -> Any:
    """The type of a value in a file; which there are of words and numbers, the scenario says better than a decoder."""
    if name in _RATIOS:
        return float | str
    if name in _SWITCHES:
        return bool | str
    kinds = get_args(hint) or (hint,)
    literals = [literal for kind in kinds for literal in (get_args(kind) if get_origin(kind) is Literal else (kind,))]
    words = {type(literal) for literal in literals}
    return words.pop() if len(words) == 1 and words <= {int, str} else hint


_KINDS = {
    name: _read_as(name, hint)
    for name, hint in get_type_hints(Scenario).items()
    if name not in {*_File.__struct_fields__, "tcp", "program"}
}
"""What a file may say of a scenario besides, by the same names, and of which type it is."""
_Values = msgspec.defstruct(
    "_Values", [(name, kind | msgspec.UnsetType, msgspec.UNSET) for name, kind in _KINDS.items()]
)


_SWITCHED = {True: "on", False: "off"}


def _ratio(name: str, told: str | float) -> Ratio:
    try:
        return Ratio.parse(told)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def scenario_of(file: Path) -> Scenario:
    """The scenario that a file describes; files that it names lie beside it.

    Raises:
        UsageError: it cannot be read, or says what no scenario has.
    """
    try:
        with file.open("rb") as stream:
            content = yaml.safe_load(stream.read(_LARGEST))
        told = msgspec.convert(content, _File)
        values = msgspec.convert(content, _Values)
    except OSError as error:
        raise UsageError(f"cannot read the scenario {file}: {error.strerror}; name a YAML file") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(
            f"the scenario {file} is no YAML: {' '.join(str(error).split())}; docs/reference.md has an example"
        ) from error
    except msgspec.ValidationError as error:
        raise UsageError(f"the scenario {file}: {without_value(error)}; see docs/reference.md for its keys") from error
    except ValueError as error:  # a number of thousands of digits, a date of a 99th month
        raise UsageError(
            f"the scenario {file}: has a value that is none; see docs/reference.md for its keys"
        ) from error
    known = {*_File.__struct_fields__, *_KINDS}
    if unknown := sorted(map(str, content.keys() - known)):
        raise UsageError(
            f"the scenario {file} has a key {unknown[0]!r}, which there is not; there are {', '.join(sorted(known))}"
        )
    more = {name: getattr(values, name) for name in _KINDS if name in content}
    commands: list[str] = []
    for step in told.set_up:
        commands += [step] if isinstance(step, str) else [step.run, f"{UNDO} {step.undo}"]
    try:
        set_up = named_set_up(told.name, set_up_of(commands, [file.parent / name for name in told.files]))
        words = [told.traffic] if isinstance(told.traffic, str) else told.traffic
        traffic = chosen_traffic(words, beside=file.parent) if words else None
        program = told.ebpf_program.build(file.parent) if told.ebpf_program is not None else None
        more |= {name: _ratio(name, more[name]) for name in _RATIOS if name in more}
        more |= {name: _SWITCHED.get(more[name], more[name]) for name in _SWITCHES if name in more}
        return Scenario(data_path=told.data_path, set_up=set_up, traffic=traffic, program=program, **more)
    except (BpfBuildError, UsageError) as error:
        raise UsageError(f"the scenario {file}: {error}") from error

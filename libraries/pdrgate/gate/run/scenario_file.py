"""A scenario of a user's own as a YAML file: what `Set Up SUT` and its neighbours say, for the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from pdrgate.bpf.filling import check_setup
from pdrgate.builds.bpf_build import BpfBuild, BpfBuildError, bpf_build
from pdrgate.builds.program_setup import ProgramSetup, program_setup
from pdrgate.data_paths.catalogue import UNDER_STEPS
from pdrgate.data_paths.set_up import UNDO, named_set_up, set_up_of
from pdrgate.gate.run.declaration import By, declarations
from pdrgate.gate.run.options import RunOptions
from pdrgate.gate.run.run_settings import read_settings
from pdrgate.gate.run.scenario import SCENARIO_KEYS, Scenario
from pdrgate.gate.run.scenario_keys import scenario_values
from pdrgate.values.errors import DataError, UsageError, without_value

_LARGEST = 1 << 20
_OF_PROGRAMS = {name: one for name, one in declarations(RunOptions).items() if one.said.by & By.PATH}
"""What a file says of eBPF programs."""


class _Step(msgspec.Struct, forbid_unknown_fields=True):
    """A step that has its undo."""

    run: str
    undo: str


class _File(msgspec.Struct):
    """The file's own keys; all others are a scenario's, or the run's."""

    name: str
    set_up: list[str | _Step] = []
    files: list[str] = []
    ebpf_program: dict[str, Any] | None = None


def files_beside(folder: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of eBPF programs; files that they name by relative names are those of a folder."""
    found = dict(given)
    found |= {name: folder / found[name] for name in ("maps", "packets") if found.get(name)}
    if found.get("replaces"):
        found["replaces"] = str(folder / found["replaces"])
    if "rodata" in found:
        found["rodata"] = tuple(one if "=" in one else str(folder / one) for one in found["rodata"])
    return found


def scenario_of(file: Path) -> Scenario:
    """The scenario that a file describes, see `described_by`."""
    return described_by(file)[0]


def described_by(file: Path) -> tuple[Scenario, dict[str, Any]]:
    """The scenario that a file describes, and options for programs that are compared on it. Files lie beside it.

    Raises:
        UsageError: it cannot be read, or says what no scenario has.
    """
    content, described = _read(file)
    commands: list[str] = []
    for step in described.set_up:
        commands += [step] if isinstance(step, str) else [step.run, f"{UNDO} {step.undo}"]
    try:
        values = {"data_path": UNDER_STEPS} | scenario_values(content, file.parent)
        set_up = named_set_up(described.name, set_up_of(commands, [file.parent / name for name in described.files]))
        program = None if described.ebpf_program is None else _program(described.ebpf_program, file.parent)
        compared = {name: value for name, value in content.items() if name in _OF_PROGRAMS}
        options = files_beside(file.parent, read_settings(compared.items(), _OF_PROGRAMS))
        return Scenario(set_up=set_up, program=program, **values), options
    except (BpfBuildError, UsageError) as error:
        raise UsageError(f"the scenario {file}: {error}") from error


def _program(content: Mapping[str, Any], folder: Path) -> BpfBuild:
    """The program of ``ebpf_program``: its object, and the keys of eBPF programs. Raises UsageError, BpfBuildError."""
    if "object" not in content:
        raise UsageError("ebpf_program: the key object is missing; name an eBPF object file")
    said = read_settings(((name, value) for name, value in content.items() if name != "object"), _OF_PROGRAMS)
    name = said.pop("program", "")
    return own_program(folder / str(content["object"]), name, program_setup(**files_beside(folder, said)))


def _read(file: Path) -> tuple[dict[str, Any], _File]:
    """The content of a file and the file's own keys. Raises DataError where it cannot be read, else UsageError."""
    try:
        with file.open("rb") as stream:
            content = yaml.safe_load(stream.read(_LARGEST))
        described = msgspec.convert(content, _File)
    except OSError as error:
        raise DataError(f"cannot read the scenario {file}: {error.strerror}; name a YAML file") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(
            f"the scenario {file} is no YAML: {' '.join(str(error).split())}; docs/reference.md has an example"
        ) from error
    except ValueError as error:  # of a wrong type, a number of thousands of digits, a date of a 99th month
        why = without_value(error) if isinstance(error, msgspec.ValidationError) else "has a value that is none"
        raise UsageError(f"the scenario {file}: {why}; see docs/reference.md for its keys") from error
    known = {*_File.__struct_fields__, *SCENARIO_KEYS, *_OF_PROGRAMS}
    if unknown := sorted(map(str, content.keys() - known)):
        raise UsageError(
            f"the scenario {file} has a key {unknown[0]!r}, which there is not; there are {', '.join(sorted(known))}"
        )
    return content, described


def own_program(file: Path, program: str, setup: ProgramSetup) -> BpfBuild:
    """The eBPF program that a scenario loads; with an empty ``program``, the only one of the object.

    Raises:
        BpfBuildError: the object cannot be read, has no such program, or no such map.
    """
    return check_setup(bpf_build(f"{file}:{program}" if program else file, setup=setup))

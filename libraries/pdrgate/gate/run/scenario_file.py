"""A scenario of a user's own as a YAML file: what `Set Up SUT` and its neighbours say, for the command line."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import yaml

from pdrgate.bpf.filling import check_setup
from pdrgate.builds.bpf_build import BpfBuild, BpfBuildError, bpf_build
from pdrgate.builds.program_setup import Attach, ProgramSetup, program_setup
from pdrgate.data_paths.catalogue import UNDER_STEPS
from pdrgate.data_paths.set_up import UNDO, named_set_up, set_up_of
from pdrgate.errors import UsageError, without_value
from pdrgate.gate.run.scenario import Scenario
from pdrgate.traffic.chosen.traffic_words import chosen_traffic

_LARGEST = 1 << 20
_KEYS = {
    field.name for field in fields(Scenario)
} - {"set_up", "data_path", "tcp", "traffic", "program"}  # fmt: skip
"""What a file may say of a scenario besides, by the same names."""


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

    def build(self, beside: Path) -> BpfBuild:
        maps = beside / self.maps if self.maps else None
        rodata = [one if "=" in one else str(beside / one) for one in self.rodata]
        return own_program(beside / self.object, self.program, program_setup(self.attach, maps, rodata))


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


def scenario_of(file: Path) -> Scenario:
    """The scenario that a file describes; files that it names lie beside it.

    Raises:
        UsageError: it cannot be read, or says what no scenario has.
    """
    try:
        with file.open("rb") as stream:
            content = yaml.safe_load(stream.read(_LARGEST))
        told = msgspec.convert(content, _File)
    except OSError as error:
        raise UsageError(f"cannot read the scenario {file}: {error.strerror}; name a YAML file") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(
            f"the scenario {file} is no YAML: {' '.join(str(error).split())}; docs/reference.md has an example"
        ) from error
    except msgspec.ValidationError as error:
        raise UsageError(f"the scenario {file}: {without_value(error)}; see docs/reference.md for its keys") from error
    more: dict[str, Any] = {key: value for key, value in content.items() if key not in _File.__struct_fields__}
    if unknown := sorted(map(str, set(more) - _KEYS)):
        known = ", ".join(sorted({*_File.__struct_fields__, *_KEYS}))
        raise UsageError(f"the scenario {file} has a key {unknown[0]!r}, which there is not; there are {known}")
    commands: list[str] = []
    for step in told.set_up:
        commands += [step] if isinstance(step, str) else [step.run, f"{UNDO} {step.undo}"]
    try:
        set_up = named_set_up(told.name, set_up_of(commands, [file.parent / name for name in told.files]))
        words = [told.traffic] if isinstance(told.traffic, str) else told.traffic
        traffic = chosen_traffic(words, beside=file.parent) if words else None
        program = told.ebpf_program.build(file.parent) if told.ebpf_program is not None else None
        return Scenario(data_path=told.data_path, set_up=set_up, traffic=traffic, program=program, **more)
    except BpfBuildError as error:
        raise UsageError(f"the scenario {file}: {error}") from error
    except UsageError as error:
        raise UsageError(f"the scenario {file}: {error}") from error
    except TypeError as error:
        raise UsageError(
            f"the scenario {file} has a value of a kind that makes no sense ({error}); "
            "docs/reference.md says which keys take what"
        ) from error

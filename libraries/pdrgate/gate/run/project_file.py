"""The file of a project that is gated, pdrgate.yaml: options of its runs, and changes that its people live with.

Whoever may write to it may mute a change. So nothing reads it unasked: it is named by ``--project``, and a pipeline
takes it from a branch that the judged change cannot write.
"""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pdrgate.gate.run.declaration import By, Declaration, accepted_ratio, declarations
from pdrgate.gate.run.options import RunOptions
from pdrgate.gate.run.run_settings import keys, read_settings
from pdrgate.measurands import DESCRIPTIONS
from pdrgate.results.acknowledgement import Acknowledgement
from pdrgate.testbeds.file_faults import line_of_key, schema_faults
from pdrgate.testbeds.yaml_lines import Key, key_in_words, parse
from pdrgate.values.errors import DataError, PdrGateError, UsageError

_LARGEST = 1 << 20
"""Largest file that is read, bytes."""
_EXAMPLE = "docs/ci.md has an example"
_NOT_OF_A_PROJECT = ("project", "shard")
"""Options of one job alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """What such a file says."""

    source: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of a run by the names of their fields, typed."""
    acknowledgements: tuple[Acknowledgement, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    """The line of the first acknowledgement of each path."""

    def check_paths(self, known: Collection[str]) -> None:
        """Refuse a path that there is not.

        Args:
            known: the names of all paths.

        Raises:
            UsageError: a path of an acknowledgement is none of these.
        """
        for one in self.acknowledgements:
            if one.path not in known:
                near = difflib.get_close_matches(one.path, known, 1)
                meant = f"did you mean {near[0]}?" if near else "'pdrgate gate --list-scenarios' lists the paths"
                raise UsageError(f"{self.source}:{self.lines[one.path]}: there is no path {one.path}; {meant}")


def read_project(file: Path) -> ProjectFile:
    """The content of a project's file.

    Raises:
        DataError: it cannot be read.
        UsageError: it has a fault; the message names file, line and key.
    """
    try:
        with file.open("rb") as stream:
            raw = stream.read(_LARGEST + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}; name the project's file with --project") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no UTF-8 text; {_EXAMPLE}") from error
    if len(raw) > _LARGEST:
        raise UsageError(f"{file} is larger than {_LARGEST >> 20} MiB; {_EXAMPLE}")
    try:
        content, lines = parse(file, text, "project's file", "acknowledged:", _EXAMPLE)
        content = _dated(content)
        wrong = schema_faults("project", content, lines, _EXAMPLE)
    except RecursionError:
        raise UsageError(f"{file} is nested too deeply; {_EXAMPLE}") from None
    except PdrGateError as error:
        raise UsageError(str(error)) from error
    if wrong:
        line, key, problem = wrong[0]
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise UsageError(f"{file}:{line}: {key}: {problem}{more}")
    entries = content.get("acknowledged", [])
    return ProjectFile(
        source=file,
        options=_options(file, content.get("gate", {}), lines),
        acknowledgements=tuple(_entry(file, number, one, lines) for number, one in enumerate(entries)),
        lines={
            " ".join(one["path"].split()): line_of_key(("acknowledged", number), lines)
            for number, one in reversed(list(enumerate(entries)))
        },
    )  # fmt: skip


def _options(file: Path, given: Mapping[str, Any], lines: Mapping[Key, int]) -> dict[str, Any]:
    known = _known()
    found: dict[str, Any] = {}
    for name, value in given.items():
        plain = name.replace("-", "_")
        try:
            for one in value if isinstance(value, list) else (value,):
                own = read_settings([(plain, one)], known)
                for key, new in own.items():
                    found[key] = (*found.get(key, ()), *new) if isinstance(new, tuple) else new
        except UsageError as error:
            raise UsageError(f"{file}:{line_of_key(('gate', name), lines)}: gate.{error}") from error
    return {declared.name if (declared := known.get(key)) else key: value for key, value in found.items()}


def _known() -> Mapping[str, Declaration]:
    """What may stand below ``gate``: what pipelines have variables for, as these are called."""
    every = {**keys(), **declarations(RunOptions)}
    return {
        (one.name if one.is_key else one.option[2:]).replace("-", "_"): one
        for one in every.values()
        if By.PIPELINE in one.said.by and one.name not in _NOT_OF_A_PROJECT
    }


def _entry(file: Path, number: int, given: Mapping[str, Any], lines: Mapping[Key, int]) -> Acknowledgement:
    def fault(key: str, why: str) -> UsageError:
        full = ("acknowledged", number, key)
        return UsageError(f"{file}:{line_of_key(full, lines)}: {key_in_words(full)}: {why}")

    try:
        tolerance = accepted_ratio(given["tolerance"])
    except UsageError as error:
        raise fault("tolerance", str(error)) from error
    try:
        datetime.date.fromisoformat(given["until"])
    except ValueError as error:
        raise fault("until", f"{given['until']} is no day; write one such as 2027-01-31") from error
    measurand = given.get("measurand", "")
    if measurand and measurand not in (every := [one.name for one in DESCRIPTIONS]):
        near = difflib.get_close_matches(measurand, every, 1)
        raise fault(
            "measurand", "there is none of this name; " + (f"did you mean {near[0]}?" if near else "leave it out")
        )
    words = {key: " ".join(str(given[key]).split()) for key in ("path", "reason", "by")}
    return Acknowledgement(tolerance=float(tolerance), until=given["until"], measurand=measurand, **words)


def _dated(value: Any) -> Any:
    """The value with days as text: YAML makes a date of 2027-01-31."""
    if isinstance(value, dict):
        return {key: _dated(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_dated(one) for one in value]
    return value.isoformat() if isinstance(value, datetime.date) else value

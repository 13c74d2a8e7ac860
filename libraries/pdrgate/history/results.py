"""result.json: what a run found, as other programs read it. Checked against its schema when written and when read."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema

from pdrgate.errors import DataError, StorageError

RESULT_FILE = "result.json"
SCHEMA_VERSION = 1


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    """Check ``result`` against the schema and put it in place of the file at once, so that no reader sees half of it.

    Raises:
        StorageError: the file cannot be written.
        jsonschema.ValidationError: the result is not what the schema promises (a fault of pdrgate's).
    """
    _validator().validate(result)
    partial = path.with_name(path.name + ".part")
    try:
        with partial.open("w") as file:
            json.dump(result, file, indent=1, allow_nan=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()  # half a result would only take up room
        raise StorageError(f"cannot write {path}: {error.strerror}; make room there and run again") from error


def read_result(path: Path) -> dict[str, Any]:
    """The result in a file, or in ``result.json`` of a folder.

    Raises:
        DataError: there is none, or it is not a result that this version understands.
    """
    file = path / RESULT_FILE if path.is_dir() else path
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}; name a result.json or the folder of a run") from error
    except ValueError as error:
        raise DataError(f"{file} is no JSON ({error}); name a result.json or the folder of a run") from error
    fault = next(iter(_validator().iter_errors(content)), None)
    if fault is not None:
        where = "/".join(str(step) for step in fault.absolute_path) or "its top level"
        raise DataError(f"{file} is no result of this version of pdrgate: at {where}: {fault.message[:160]}")
    return dict(content)


def results_below(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The readable results of ``folder`` and of the run folders directly in it, the newest first."""
    found = []
    for file in [folder / RESULT_FILE, *folder.glob(f"*/{RESULT_FILE}")]:
        try:
            found.append((file, read_result(file)))
        except DataError:
            continue  # a run that was killed early, or of another version: no baseline, and no reason to stop
    yield from sorted(found, key=lambda item: item[1]["started"], reverse=True)


@cache
def _validator() -> jsonschema.Draft202012Validator:
    text = resources.files("pdrgate").joinpath("schemas/result.schema.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))
